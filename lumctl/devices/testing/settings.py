"""Whether a write reaches the device: seen by a second driver, and by the truth that the set-up supplies."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

from lumctl.devices.errors import DeviceError, UnsupportedError
from lumctl.devices.testing.checks import becomes_true
from lumctl.devices.testing.rules import broken, not_tested, proves
from lumctl.devices.testing.subjects import Subject, Write, another
from lumctl.devices.testing.time_limit import closing


class SettingsContract:
    """A part of ``CommonContract``."""

    @proves("read-back", "read-afresh")
    def test_a_write_shows_to_another_driver(self, subject: Subject) -> None:
        """In both directions: neither driver reads what it remembers."""
        writes = [write for write in _writes(subject) if write.shown is not None]
        if not writes:
            pytest.skip("the driver reads nothing that it writes")
        with closing(another(subject)) as other:
            for write in writes:
                if write.shown is not None:
                    for wanted, seen in _written(write, subject.driver, partial(write.shown, other)):
                        broken("read-back", f"{write.call} wrote {wanted}, and another driver reads {seen}")
                    for wanted, seen in _written(write, other, partial(write.shown, subject.driver)):
                        broken("read-afresh", f"{write.call} of another driver wrote {wanted}, the driver reads {seen}")

    @proves("read-back", "commit")
    def test_a_write_is_what_the_device_holds(self, subject: Subject) -> None:
        """A driver may read the wrong port, lane or outlet just as it writes it."""
        writes = _writes(subject)
        for write in writes:
            if write.truth is not None:
                for wanted, seen in _written(write, subject.driver, write.truth):
                    broken("read-back", f"{write.call} wrote {wanted}, and the device holds {seen}")
        if unknown := [write.call for write in writes if write.truth is None]:
            not_tested(f"the set-up gives no truth: only the driver says what {', '.join(unknown)} did")


def _writes(subject: Subject) -> tuple[Write, ...]:
    writes = (*subject.writes, *subject.settings)
    if not writes:
        pytest.skip("the driver declares nothing that changes the device")
    return writes


def _written(write: Write, driver: Any, seen: Callable[[], object]) -> Iterator[tuple[object, object]]:
    """Write both values; each one that is not seen, with what is."""
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
        with suppress(DeviceError):  # it may be busy for as long as it may take
            return seen() == wanted
        return False

    return becomes_true(is_seen, write.follows_within_s)
