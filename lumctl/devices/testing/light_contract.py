"""What a driver of a mesh or a switch must read: what its device shows, and whether that is still at work."""

import contextlib
import math
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from lumctl.devices.errors import OutcomeUnknownError
from lumctl.devices.testing.checks import becomes_true
from lumctl.devices.testing.rules import broken, not_tested, proves
from lumctl.devices.testing.subjects import Subject
from lumctl.devices.types import Alarm, Capability

WITHIN_DB, WITHIN_C, WITHIN_S = 0.1, 0.6, 2.0
"""How far a reading may be from what the device shows: protocols round."""


class LightContract:
    """A part of ``MeshContract`` and ``SwitchContract``, which give the fixture ``subject``."""

    @proves("units", "numbering", "alarms")
    def test_readings_are_what_the_device_shows(self, subject: Subject) -> None:
        """Powers, temperature and alarms, port by port."""
        if subject.shown is None:
            not_tested("the set-up gives no `shown`, which tells what the device shows apart from the driver")
        for read in subject.readings():
            agrees = _AGREES.get(read.call)
            if agrees is not None and hasattr(subject.shown, read.call):
                agrees(read.of(subject.driver), read.of(subject.shown))

    @proves("progress")
    def test_a_change_in_progress_is_reported_until_it_ends(self, subject: Subject) -> None:
        """Until then lumctl takes nothing that it reads as the outcome."""
        driver: Any = subject.driver
        if Capability.PROGRESS not in driver.capabilities:
            pytest.skip("the driver does not declare PROGRESS")
        if subject.at_work is None:
            not_tested("the set-up gives no `at_work`, which makes the device complete a change after its answer")
        write = subject.writes[0].prepare(driver)
        with subject.at_work():
            complete = False
            with contextlib.suppress(OutcomeUnknownError):  # it may have waited for the end
                complete = getattr(write(), "complete", False)
            if complete or driver.read_progress() is None:
                broken("progress", "the device is at work on a change, and the driver reports that nothing is")
        if not becomes_true(lambda: driver.read_progress() is None):
            broken("progress", "the device has finished, and read_progress() still reports a change")


def _powers(given: Mapping[int, float], shown: Mapping[int, float]) -> None:
    for port, dbm in given.items():
        # Two receivers without light are equal; one without light is infinitely far from any other.
        if dbm != shown[port] and not abs(dbm - shown[port]) <= WITHIN_DB:
            at = next((other for other, power in shown.items() if math.isclose(power, dbm)), None)
            rule = "units" if at is None else "numbering"
            whose = "" if at is None else f", which port {at} has"
            broken(rule, f"read_powers() gives {dbm:g} dBm for port {port}{whose}; it has {shown[port]:g} dBm")


def _temperature(given: float, shown: float) -> None:
    if abs(given - shown) > WITHIN_C:
        broken("units", f"read_temperature() gives {given:g}; the device has {shown:g} degrees Celsius")


def _alarms(given: tuple[Alarm, ...], shown: tuple[Alarm, ...]) -> None:
    sources, meant = ([each.source for each in alarms] for alarms in (given, shown))
    if sorted(sources) != sorted(meant):
        broken("alarms", f"read_alarms() gives alarms of {sources}; the device has alarms of {meant}")
    since = {each.source: each.since for each in shown}
    for alarm in given:
        begun = since[alarm.source]
        if alarm.since is not None and begun is not None and abs(alarm.since - begun) > WITHIN_S:
            broken("alarms", f"read_alarms() gives {alarm.text!r} since {alarm.since:.0f}; it began at {begun:.0f}")


_AGREES: Mapping[str, Callable[[Any, Any], None]] = {
    "read_powers": _powers,
    "read_temperature": _temperature,
    "read_alarms": _alarms,
}
