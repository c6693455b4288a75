"""The faults of a campaign: which ones occur, and how changes ended under them."""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from lumctl.devices.testing.faults import FaultyWay, Trouble, WayFault

STEPS = 4
"""Changes in one sequence."""


class Rigged(Protocol):
    """The parts of a set-up that can have faults: the connection to a device, and the device itself."""

    @property
    def way(self) -> FaultyWay | None:
        """The connection path that the device's drivers use, if any."""
        ...

    @property
    def habits(self) -> Sequence[str]:
        """The ways in which the device itself can behave badly."""
        ...

    @property
    def misbehave(self) -> Callable[[str | None], object]:
        """Makes the device behave badly in one of these ways, or well again (``None``)."""
        ...

    @property
    def most_bytes(self) -> int:
        """The largest number of bytes after which a fault of the connection path takes effect."""
        ...


@dataclass
class TroubleCount:
    """Counts of what happened in a campaign; a test can then require that faults really occurred.

    ``outcomes`` counts how changes ended; ``faults`` counts the connection faults and the device's bad habits.
    """

    steps: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)

    def count(self, outcome: str) -> None:
        """Count one outcome."""
        self.outcomes[outcome] += 1

    def require(self, *outcomes: str, least: int = 1, faults: bool = True) -> None:
        """Require ``least`` occurrences of each of these outcomes and, with ``faults``, of every fault.

        Raises:
            AssertionError: one occurred less often.
        """
        missing = [outcome for outcome in outcomes if self.outcomes[outcome] < least]
        missing += [fault for fault, count in self.faults.items() if faults and count < least]
        if missing:
            raise AssertionError(f"these occurred less than {least} times: {', '.join(missing)}; the counts: {self}")

    def __str__(self) -> str:
        told = [f"{name} {count}" for name, count in sorted(self.outcomes.items())]
        met = [f"{name} {count}" for name, count in sorted(self.faults.items())]
        return f"{self.steps} changes: {', '.join(told)}; faults met: {', '.join(met)}"


def heal(rig: Rigged) -> None:
    """End all faults."""
    if rig.way is not None:
        rig.way.trouble = None
    rig.misbehave(None)


def trouble(rig: Rigged, dice: random.Random, tally: TroubleCount) -> None:
    """Set random faults: none, one on the connection (passing or lasting), one of the device, or both."""
    heal(rig)
    if rig.way is not None and dice.random() < 0.5:  # noqa: PLR2004 - as often as not
        # Adds 0, so that require() also finds the faults that never struck.
        tally.faults.update(dict.fromkeys(WayFault, 0))
        fault, soon = dice.choice(list(WayFault)), dice.random() < 0.2  # noqa: PLR2004
        after = 0 if soon else dice.randint(0, rig.most_bytes)
        rig.way.trouble = Trouble(fault, after, passes=dice.random() < 0.5)  # noqa: PLR2004
    if rig.habits and dice.random() < 0.4:  # noqa: PLR2004
        habit = dice.choice(list(rig.habits))
        rig.misbehave(habit)
        tally.faults[habit] += 1


def account(rig: Rigged, tally: TroubleCount) -> None:
    """Add the faults that the connection has counted to the tally."""
    if rig.way is not None:
        tally.faults.update(rig.way.struck)
        rig.way.struck.clear()
