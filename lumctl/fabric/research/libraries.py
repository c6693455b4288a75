"""numpy and scipy, which only the tracing of waves needs: an extra, and one line that says so where it is absent."""

from lumctl.errors import UsageError

try:
    import numpy as np
    from numpy.typing import NDArray
    from scipy.sparse import csc_matrix
    from scipy.sparse.csgraph import connected_components
    from scipy.sparse.linalg import splu
except ImportError as absent:
    raise UsageError(
        f"light is traced as waves with numpy and scipy: {absent.name} is not installed",
        hint="pip install 'lumctl[optics]'",
    ) from absent

Reals = NDArray[np.float64]
Waves = NDArray[np.complex128]

__all__ = ["NDArray", "Reals", "Waves", "connected_components", "csc_matrix", "np", "splu"]
