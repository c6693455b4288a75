"""A driver of power, as the contract is given it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lumctl.devices.protocols import DriverContext, PowerDriver
from lumctl.devices.testing.checks import becomes_true


@dataclass(frozen=True)
class PowerUnderTest:
    """A driver and its machine, on which nobody works: it is switched off and on, and restarted.

    ``truth`` tells whether the machine is really on, seen apart from the driver. ``orders`` gives how often the
    controller has been told to switch or restart something. ``follows_within_s`` is how long the machine may take.
    ``unreachable`` is a driver aimed at where nothing answers, ``nobody`` one for a machine that the controller lacks.
    ``context`` and ``opens`` are as of :class:`lumctl.devices.testing.MeshUnderTest`.
    """

    driver: PowerDriver
    truth: Callable[[], bool] | None = None
    orders: Callable[[], int] | None = None
    follows_within_s: float = 10.0
    unreachable: PowerDriver | None = None
    nobody: PowerDriver | None = None
    context: DriverContext | None = None
    opens: Callable[[DriverContext], Any] | None = None

    def becomes(self, *, on: bool) -> bool:
        """Whether the machine gets there in time, by the driver and by the truth."""
        return becomes_true(
            lambda: self.driver.read_power().on is on and (self.truth is None or self.truth() is on),
            self.follows_within_s,
        )

    def switched(self, *, on: bool, force: bool = False) -> bool:
        """Switch the machine, and whether it follows."""
        self.driver.set_power(on, force=force)
        return self.becomes(on=on)
