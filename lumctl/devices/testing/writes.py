"""Checks of writes: whether a write reaches the device, and whether its error states the truth about the device."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from threading import Event
from typing import Any

import pytest

from lumctl.devices.errors import (
    DeviceBusyError,
    DeviceError,
    DeviceRefusedError,
    DeviceUnreachableError,
    InconsistentError,
    OutcomeUnknownError,
    UnsupportedError,
)
from lumctl.devices.testing.checks import becomes_true
from lumctl.devices.testing.interception import Fault
from lumctl.devices.testing.rules import broken, one_line
from lumctl.devices.testing.subjects import Subject, Write

BUSY_TRIES, BUSY_WAIT_S = 50, 0.1


def prepared_write(write: Write, driver: Any) -> Callable[[], object]:
    """Prepare the device for a write; wait if it is slow or a lost session still holds its lock."""
    for _ in range(BUSY_TRIES):
        try:
            return write.prepare(driver)
        except (DeviceBusyError, DeviceUnreachableError):  # the time limit is short and the machine may be busy
            Event().wait(BUSY_WAIT_S)
    return write.prepare(driver)


def error_of(act: Callable[[], object]) -> BaseException | None:
    """What a call raises, if anything."""
    try:
        act()
    except Exception as error:  # noqa: BLE001 - a driver may raise anything; the caller judges it
        return error
    return None


def require_unreachable(call: str, act: Callable[[], object]) -> None:
    """Check that a call raises DeviceUnreachableError, because the device does not answer.

    Raises:
        ContractBrokenError: the call raises another error, or returns.
    """
    try:
        answer = act()
    except DeviceUnreachableError:
        return
    except DeviceError as error:
        broken(
            "unreachable", f"the device does not answer, but {call} raised {type(error).__name__}: {one_line(error)}"
        )
    except Exception as error:  # noqa: BLE001 - any error is one that the driver did not catch
        broken("errors", f"the device does not answer, but {call} raised {type(error).__name__}: {one_line(error)}")
    broken("unreachable", f"the device does not answer, but {call} returned {answer!r:.200}")


def takes_effect(write: Write, states: tuple[object, ...]) -> bool:
    """Whether the device is in one of these states, or reaches one within its time limit."""
    held = write.held
    return held is None or becomes_true(lambda: held() in states, write.follows_within_s)


def require_outcome(subject: Subject, write: Write, fault: Fault, error: BaseException | None) -> None:
    """Check that the outcome of a write under a fault is true of the device's state afterwards.

    Raises:
        ContractBrokenError: the error, or its absence, contradicts the device's state.
    """
    said = "returned" if error is None else f"raised {type(error).__name__}"
    if error is not None and not isinstance(error, DeviceError):
        broken("errors", f"{fault.text}: {write.call} raised {type(error).__name__}: {one_line(error)}")
    if write.held is None:
        return
    unclear = isinstance(error, OutcomeUnknownError | InconsistentError)
    if subject.atomic and write.held() not in (write.before, write.after):
        broken("atomic", f"{fault.text}: {write.call} {said}, but the device holds {write.held()}")
    if error is None and not takes_effect(write, (write.after,)):
        broken("outcome", f"{fault.text}: {write.call} returned, but the device holds {write.held()}")
    if isinstance(error, DeviceRefusedError | DeviceUnreachableError | UnsupportedError) and not unclear:
        held = write.held()
        if held != write.before:
            rule = "outcome" if held == write.after else "half-applied"
            broken(rule, f"{fault.text}: {write.call} {said}, but the device has changed: {held}")


def writes_of(subject: Subject) -> tuple[Write, ...]:
    """Every write and setting of a driver; skips the test if there is none."""
    writes = (*subject.writes, *subject.settings)
    if not writes:
        pytest.skip("the driver declares no call that changes the device")
    return writes


def unseen_values(write: Write, driver: Any, seen: Callable[[], object]) -> Iterator[tuple[object, object]]:
    """Write both values; yield each value that is not shown afterwards, with the value that is shown instead."""
    try:
        act = write.prepare(driver)
    except UnsupportedError:  # this device lacks the setting
        return
    if not _becomes(write, seen, write.before):
        yield write.before, seen()
    act()
    if not _becomes(write, seen, write.after):
        yield write.after, seen()


def _becomes(write: Write, seen: Callable[[], object], wanted: object) -> bool:
    def is_seen() -> bool:
        with suppress(DeviceError):  # the device may be busy until the time limit
            return seen() == wanted
        return False

    return becomes_true(is_seen, write.follows_within_s)
