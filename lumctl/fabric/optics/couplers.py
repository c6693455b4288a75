"""What one PUC does to light, for all PUCs of a mesh at once."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import cos, sin, sqrt

from lumctl.devices.types import PucState
from lumctl.fabric.condition import Condition
from lumctl.fabric.geometry import Mesh
from lumctl.fabric.optics.libraries import Waves, np
from lumctl.fabric.optics.model import Optics, Phases, Setting

_DARK = 1e-6
"""Amplitudes below this (120 dB down) count as none.

The phases of bar contain pi, so that its leak would be a rounding error; and a loop without loss that light could
enter only by such a leak would have no answer.
"""

_NONE = Phases(0.0, 0.0)


@dataclass(frozen=True, eq=False, slots=True)
class Couplers:
    """Amplitudes by the terminal ``t`` at which light comes in: ``bar`` to ``t ^ 2``, ``cross`` to ``t ^ 3``."""

    bar: Waves
    cross: Waves


def couplers(mesh: Mesh, settings: Mapping[int, Setting], optics: Optics, condition: Condition) -> Couplers:
    """All PUCs as they are set; a stuck one is what it is stuck in, one that is not named is in bar."""
    standing = {**settings, **condition.stuck}
    pucs = range(mesh.puc_count)
    turns = np.array([_turn(puc, standing.get(puc, PucState.BAR), optics) for puc in pucs], dtype=np.float64)
    sines, cosines, common = turns.reshape(-1, 3).T
    loss_db = np.array([condition.pass_loss_db(puc) for puc in pucs])
    factor = 1j * np.exp(1j * common) * 10 ** (-loss_db / 20)
    bar = np.stack((factor * sines, -factor * sines), axis=1)
    cross = np.stack((factor * cosines, factor * cosines), axis=1)
    # Both ways through the PUC are alike: T is symmetric.
    return Couplers(_lit(np.tile(bar, 2).ravel()), _lit(np.tile(cross, 2).ravel()))


def _turn(puc: int, setting: Setting, optics: Optics) -> tuple[float, float, float]:
    """The sine and the cosine of ``t``, and ``D``, of one PUC."""
    error = optics.phase_errors.get(puc, _NONE)
    common, half = (error.side_0 + error.side_1) / 2, (error.side_0 - error.side_1) / 2
    if isinstance(setting, Phases):
        half += (setting.side_0 - setting.side_1) / 2
        return sin(half), cos(half), common + (setting.side_0 + setting.side_1) / 2
    # Not by way of an angle, so that an ideal PUC leaks nothing at all.
    leak = 10 ** (-optics.extinction_db(puc, setting) / 10)
    right, wrong = sqrt(1 / (1 + leak)), sqrt(leak / (1 + leak))
    sine, cosine = (right, wrong) if setting is PucState.BAR else (wrong, right)
    return sine * cos(half) + cosine * sin(half), cosine * cos(half) - sine * sin(half), common


def _lit(amplitudes: Waves) -> Waves:
    return np.where(np.abs(amplitudes) < _DARK, 0.0, amplitudes)
