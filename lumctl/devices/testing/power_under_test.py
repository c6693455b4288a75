"""A power driver and its machine, as input to the contract."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lumctl.devices.protocols import DriverContext, PowerDriver
from lumctl.devices.testing.checks import becomes_true
from lumctl.devices.types import PowerReading


@dataclass(frozen=True)
class PowerUnderTest:
    """A driver and an idle machine: the tests switch it off and on and restart it.

    ``truth`` returns whether the machine is really on, read independently of the driver; ``reading`` what it really
    draws while it is on, and ``others`` the state of the other machines of the controller. ``orders`` returns how many
    switch and restart commands the controller has received. The machine may take ``follows_within_s`` to follow.
    ``unreachable`` is a driver for an address where nothing answers, ``nobody`` one for a machine that the controller
    lacks. ``context`` and ``opens`` are as in :class:`lumctl.devices.testing.MeshUnderTest`.
    """

    driver: PowerDriver
    truth: Callable[[], bool] | None = None
    orders: Callable[[], int] | None = None
    follows_within_s: float = 10.0
    unreachable: PowerDriver | None = None
    nobody: PowerDriver | None = None
    context: DriverContext | None = None
    opens: Callable[[DriverContext], Any] | None = None
    reading: Callable[[], PowerReading] | None = None
    others: Callable[[], object] | None = None

    def becomes(self, *, on: bool) -> bool:
        """Whether the machine reaches the state in time, according to the driver and to ``truth``."""
        return becomes_true(
            lambda: self.driver.read_power().on is on and (self.truth is None or self.truth() is on),
            self.follows_within_s,
        )

    def switched(self, *, on: bool, force: bool = False) -> bool:
        """Switch the machine; return whether it follows."""
        self.driver.set_power(on, force=force)
        return self.becomes(on=on)
