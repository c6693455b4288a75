"""The imperfections of a mesh's PUCs, and the phases of its waveguides."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf, isnan, pi
from random import Random

from lumctl.devices.types import PucState
from lumctl.errors import UsageError
from lumctl.fabric.geometry import FREE, Mesh


@dataclass(frozen=True, slots=True)
class Phases:
    """The phases of a PUC's two arms (on side 0 and on side 1), or their errors, in rad."""

    side_0: float
    side_1: float


Setting = PucState | Phases
"""The setting of a PUC: one of its two states, or a partial coupling by the exact phases of its arms."""


@dataclass(frozen=True, slots=True)
class WaveOptics:
    """The imperfections of the PUCs, apart from loss, which is part of the mesh's condition.

    Extinction is the ratio of the power at the intended output to the power at the other output, in dB; ``inf`` for an
    ideal PUC. It applies to the two states; if a PUC is set by exact phases, these determine its extinction.
    ``puc_extinction_db`` is the extinction of single PUCs, in both states. ``phase_errors`` are added to the arms'
    phases, by PUC. ``waveguide_phases`` are in rad, by the lower terminal of the waveguide, and 0 by default.

    Raises:
        UsageError: an extinction is below 0 dB or not a number.
    """

    bar_extinction_db: float = 30.0
    cross_extinction_db: float = 30.0
    puc_extinction_db: Mapping[int, float] = field(default_factory=dict)
    phase_errors: Mapping[int, Phases] = field(default_factory=dict)
    waveguide_phases: Mapping[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for found in (self.bar_extinction_db, self.cross_extinction_db, *self.puc_extinction_db.values()):
            if isnan(found) or found < 0:
                raise UsageError(
                    f"an extinction of {found:g} dB is not possible", hint="it is at least 0 dB; 20 to 45 is usual"
                )

    def extinction_db(self, puc: int, state: PucState) -> float:
        """The extinction of a PUC in a state."""
        usual = self.bar_extinction_db if state is PucState.BAR else self.cross_extinction_db
        return self.puc_extinction_db.get(puc, usual)


IDEAL = WaveOptics(inf, inf)
"""PUCs without leakage."""


def random_phase_errors(mesh: Mesh, sigma_rad: float, rng: Random) -> dict[int, Phases]:
    """An error for every arm of every PUC, normal with the standard deviation ``sigma_rad``.

    Make the errors once for a mesh: like real errors, they stay when states change.
    """
    return {puc: Phases(rng.gauss(0, sigma_rad), rng.gauss(0, sigma_rad)) for puc in range(mesh.puc_count)}


def random_waveguide_phases(mesh: Mesh, rng: Random) -> dict[int, float]:
    """A random phase for every waveguide between two PUCs, uniform over the circle."""
    return {
        terminal: rng.uniform(0, 2 * pi)
        for terminal, peer in enumerate(mesh.peers)
        if peer != FREE and terminal <= peer
    }


try:
    # Imported here for all modules of the field model, so that one error names the extra.
    import numpy as np
    from numpy.typing import NDArray
    from scipy.sparse import csc_matrix
    from scipy.sparse.csgraph import connected_components
    from scipy.sparse.linalg import splu
except ImportError as absent:
    raise UsageError(
        f"tracing light as waves needs numpy and scipy: {absent.name} is not installed",
        hint="pip install 'lumctl[optics]'",
    ) from absent

Reals = NDArray[np.float64]
Waves = NDArray[np.complex128]

__all__ = ["NDArray", "Reals", "Waves", "connected_components", "csc_matrix", "np", "splu"]
