"""How far the PUCs of a mesh are from ideal ones, and which phases its waveguides have."""

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
"""What a PUC is told to be: one of its two states, or partial, by the exact phases of its arms."""


@dataclass(frozen=True, slots=True)
class WaveOptics:
    """What is wrong with the PUCs, loss apart (that is the condition's).

    Extinction is what leaves by the right side over what leaves by the wrong one, in dB, ``inf`` for an ideal PUC.
    It belongs to the two states: a PUC that is set by its exact phases has what they give. ``puc_extinction_db`` is
    that of single PUCs, in both states. ``phase_errors`` are added to the arms' phases, by PUC. ``waveguide_phases``
    are in rad, by the lower terminal of the waveguide; those not named are 0.

    Raises:
        UsageError: an extinction is below 0 dB or no number.
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
                    f"an extinction of {found:g} dB cannot be", hint="it starts at 0 dB; 20 to 45 is usual"
                )

    def extinction_db(self, puc: int, state: PucState) -> float:
        """The extinction of a PUC in a state."""
        usual = self.bar_extinction_db if state is PucState.BAR else self.cross_extinction_db
        return self.puc_extinction_db.get(puc, usual)


IDEAL = WaveOptics(inf, inf)
"""PUCs that leak nothing."""


def random_phase_errors(mesh: Mesh, sigma_rad: float, rng: Random) -> dict[int, Phases]:
    """An error for every arm of every PUC, normal with the standard deviation ``sigma_rad``.

    It is made once for a mesh: like the real ones, errors stay while states change.
    """
    return {puc: Phases(rng.gauss(0, sigma_rad), rng.gauss(0, sigma_rad)) for puc in range(mesh.puc_count)}


def random_waveguide_phases(mesh: Mesh, rng: Random) -> dict[int, float]:
    """A phase for every waveguide between two PUCs, evenly over the circle."""
    return {
        terminal: rng.uniform(0, 2 * pi)
        for terminal, peer in enumerate(mesh.peers)
        if peer != FREE and terminal <= peer
    }


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
