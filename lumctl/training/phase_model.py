"""What changing light between the phases of a training step costs.

After arXiv 2507.08119: a step consists of computing, of communication that computing does not hide, and of stalls. A
change takes the same time whenever it is made. *On demand*, it begins when the last rank asks for the next phase, so
that all of it is a stall. *Ahead*, it begins when the last rank leaves the phase before, so that the time until the
last rank asks, the window, hides it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class ChangeMode(StrEnum):
    """When a change of light begins."""

    ON_DEMAND = "on-demand"
    AHEAD = "ahead"


@dataclass(frozen=True, slots=True)
class BoundaryTimes:
    """When each rank of a group left one phase and asked for the next, in seconds of one clock."""

    left_s: Sequence[float]
    asked_s: Sequence[float]

    @property
    def window_s(self) -> float:
        """The time in which nobody needs the light: from the last rank's leaving to the last rank's asking."""
        return max(self.asked_s) - max(self.left_s)


@dataclass(frozen=True, slots=True)
class StepCost:
    """A training step with changes of light, in seconds. ``hidden_s`` of ``changes_s`` cost nothing."""

    step_s: float
    stall_s: float
    changes_s: float
    utilisation: float
    overhead: float
    """The stall over the step without changes."""

    @property
    def hidden_s(self) -> float:
        """The part of the changes that windows hide."""
        return self.changes_s - self.stall_s


@dataclass(frozen=True, slots=True)
class StepTimes:
    """A training step on light that does not change.

    ``compute_s`` and ``exposed_s``, the communication that computing does not hide, are the whole step. ``windows_s``
    has a window for each change of phase, each inside one of the two.
    """

    compute_s: float
    exposed_s: float
    windows_s: tuple[float, ...]

    def cost(self, change_s: float, mode: ChangeMode) -> StepCost:
        """The step if each change takes ``change_s`` from its request until all may use the light.

        Raises:
            ValueError: a time is negative.
        """
        if min(change_s, self.compute_s, self.exposed_s, *self.windows_s) < 0:
            raise ValueError("times are at least 0")
        windows = self.windows_s if mode is ChangeMode.AHEAD else (0.0,) * len(self.windows_s)
        stall = sum(max(0.0, change_s - window) for window in windows)
        still = self.compute_s + self.exposed_s
        step = still + stall
        return StepCost(
            step_s=step,
            stall_s=stall,
            changes_s=change_s * len(windows),
            utilisation=self.compute_s / step if step else 0.0,
            overhead=stall / still if still else 0.0,
        )
