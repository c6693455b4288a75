"""The troubles of a campaign: which ones come, and the account of what came of them."""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from lumctl.devices.testing.faults import FaultyWay, Trouble, WayFault

STEPS = 4
"""Changes in one sequence."""


class Rigged(Protocol):
    """What can be troubled: the way to a device, and the device itself."""

    @property
    def way(self) -> FaultyWay | None:
        """The way that its drivers go, if they go one."""
        ...

    @property
    def habits(self) -> Sequence[str]:
        """The ways in which the device itself can behave badly."""
        ...

    @property
    def misbehave(self) -> Callable[[str | None], object]:
        """Makes it do so, or behave well again (``None``)."""
        ...

    @property
    def most_bytes(self) -> int:
        """After how many bytes a fault on the way comes at the latest."""
        ...


@dataclass
class TroubleCount:
    """What happened in a campaign, so that one that met no faults cannot pass for one that did.

    ``outcomes`` counts how changes ended, ``faults`` the faults that were met on the way and the habits that a device
    had.
    """

    steps: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)

    def count(self, outcome: str) -> None:
        """Note one outcome."""
        self.outcomes[outcome] += 1

    def require(self, *outcomes: str, least: int = 1, faults: bool = True) -> None:
        """Require that each of these outcomes came so often, and that (``faults``) every fault was met as often.

        Raises:
            AssertionError: one did not.
        """
        missing = [outcome for outcome in outcomes if self.outcomes[outcome] < least]
        missing += [fault for fault, count in self.faults.items() if faults and count < least]
        if missing:
            raise AssertionError(f"these came less than {least} times: {', '.join(missing)}; there were: {self}")

    def __str__(self) -> str:
        told = [f"{name} {count}" for name, count in sorted(self.outcomes.items())]
        met = [f"{name} {count}" for name, count in sorted(self.faults.items())]
        return f"{self.steps} changes: {', '.join(told)}; faults met: {', '.join(met)}"


def heal(rig: Rigged) -> None:
    """All is well again."""
    if rig.way is not None:
        rig.way.trouble = None
    rig.misbehave(None)


def trouble(rig: Rigged, dice: random.Random, tally: TroubleCount) -> None:
    """Perhaps something is wrong from now on: on the way, for once or for longer, or with the device, or both."""
    heal(rig)
    if rig.way is not None and dice.random() < 0.5:  # noqa: PLR2004 - as often as not
        tally.faults.update(dict.fromkeys(WayFault, 0))
        fault, soon = dice.choice(list(WayFault)), dice.random() < 0.2  # noqa: PLR2004
        after = 0 if soon else dice.randint(0, rig.most_bytes)
        rig.way.trouble = Trouble(fault, after, passes=dice.random() < 0.5)  # noqa: PLR2004
    if rig.habits and dice.random() < 0.4:  # noqa: PLR2004
        habit = dice.choice(list(rig.habits))
        rig.misbehave(habit)
        tally.faults[habit] += 1


def account(rig: Rigged, tally: TroubleCount) -> None:
    """Take over what the way has counted."""
    if rig.way is not None:
        tally.faults.update(rig.way.struck)
        rig.way.struck.clear()
