"""What all suites ask."""

from collections.abc import Callable
from threading import Event
from time import monotonic

import pytest

from lumctl.devices.errors import UnsupportedError
from lumctl.devices.protocols import Driver
from lumctl.devices.types import Capability

POLL_S = 0.02


def supported(driver: Driver, capability: Capability, call: Callable[[], object]) -> bool:
    """Whether the driver declares a capability; if it does not, the call must be refused."""
    if capability in driver.capabilities:
        return True
    with pytest.raises(UnsupportedError):
        call()
    return False


def becomes_true(condition: Callable[[], bool], within_s: float = 10.0) -> bool:
    """Whether a condition comes true in time."""
    deadline = monotonic() + within_s
    while not condition():
        if monotonic() > deadline:
            return False
        Event().wait(POLL_S)
    return True
