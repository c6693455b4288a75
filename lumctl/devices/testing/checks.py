"""Checks that all suites use."""

from collections.abc import Callable
from threading import Event
from time import monotonic
from typing import Any

import pytest

from lumctl.devices.errors import DeviceRefusedError, UnsupportedError
from lumctl.devices.protocols import Driver
from lumctl.devices.types import Capability, Receipt

POLL_S = 0.02
CONFIRMED_AFTER_S = 1.0
"""Revert timer of a change that is confirmed at once: long enough for a busy machine, short enough for a test."""


def supported(driver: Driver, capability: Capability, call: Callable[[], object]) -> bool:
    """Whether the driver declares a capability; if not, check that the call is refused."""
    if capability in driver.capabilities:
        return True
    with pytest.raises(UnsupportedError):
        call()
    return False


def stays(
    commit: Callable[[], Receipt[Any]], confirm: Callable[[Any], object], held: Callable[[], bool], *, timed: bool
) -> None:
    """Commit and confirm a change, and check that the device holds it; with a timer, also after the timer's end.

    If the machine was so slow that the device reverted before the confirm, try once more.
    """
    for _ in range(3):
        receipt = commit()
        try:
            confirm(receipt)
        except DeviceRefusedError:
            continue
        break
    assert held()
    if timed:
        Event().wait(CONFIRMED_AFTER_S * 1.3)
        assert held(), "the change was confirmed, but the device reverted it"


def becomes_true(condition: Callable[[], bool], within_s: float = 10.0) -> bool:
    """Whether a condition comes true in time."""
    deadline = monotonic() + within_s
    while not condition():
        if monotonic() > deadline:
            return False
        Event().wait(POLL_S)
    return True
