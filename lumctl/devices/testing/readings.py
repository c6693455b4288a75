"""What a driver reports, compared with what its device really measures, raises and works on.

The set-up supplies the truth (``reading``, ``alarms``, ``completes_late``). Where it does not, a test is not tested.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import fields
from typing import Any

import pytest

from lumctl.devices.errors import OutcomeUnknownError, UnsupportedError
from lumctl.devices.testing.checks import becomes_true
from lumctl.devices.testing.rules import broken, not_tested, proves
from lumctl.devices.testing.subjects import Subject
from lumctl.devices.types import Alarm, Capability, OpticsReading, PowerReading

DB, CELSIUS, SHARE = 0.5, 2.0, 0.1
"""Differences that two instruments may show: in dB, in degrees Celsius, and as a share of any other number."""
SINCE_S = 2.0
SEVERITIES = {"critical", "major", "minor", "warning"}
FOLLOWS_WITHIN_S = 5.0
"""Time in which a device raises or clears an alarm, or completes a change that it was free to complete."""

_MEASURED: Mapping[str, tuple[str, ...]] = {
    "read_optics": (
        "rx_power_dbm", "tx_power_dbm", "bias_ma", "temperature_c", "voltage_v", "pre_fec_ber", "post_fec_ber",
        "fec_uncorrectable",
    ),
    "read_power": ("watts",),
}  # fmt: skip
"""What an answer measures, by call; the fields that a driver fills in must be known for it to be tested."""
_UNCOMPARED = {"taken_at", "optical", "thresholds"}


class ReadingsContract:
    """A part of ``CommonContract``."""

    @proves("readings", "units", "numbering")
    def test_readings_are_what_the_device_measures(self, subject: Subject) -> None:
        """In the unit of the contract, and from the port, lane or outlet that was asked for."""
        reads = {"read_temperature", "read_powers", *_MEASURED} & {read.call for read in subject.readings()}
        if not reads:
            pytest.skip("the driver declares no reading that measures something")
        if subject.reading is None:
            not_tested(f"the set-up gives no `reading`, so only the driver says what {_list(reads)} should give")
        truth = subject.reading()
        unknown = []
        for call in sorted(reads):
            if call == "read_temperature":
                unknown += _temperature(subject, truth)
            elif call == "read_powers":
                unknown += _powers(subject, truth)
            else:
                unknown += _fields(call, getattr(subject.driver, call)(), truth)
        if unknown:
            not_tested(f"`reading` in the set-up does not say {_list(unknown)}")


class AlarmsContract:
    """A part of ``MeshContract`` and ``SwitchContract``: alarms, and changes that continue after the answer."""

    @proves("alarms")
    def test_alarms_are_those_of_the_device(self, subject: Subject) -> None:
        """Each alarm is reported at its source with its severity and time, and not any more when it has ended."""
        if Capability.READ_ALARMS not in subject.driver.capabilities:
            pytest.skip("the driver does not declare read-alarms")
        if not subject.alarms:
            not_tested("the set-up gives no `alarms`, which make the device raise alarms")
        told: list[tuple[Alarm, Alarm]] = [_reported(subject.driver, raises) for raises in subject.alarms]
        untested = []
        for name in ("source", "severity", "since"):
            if any(getattr(raised, name) and not _says(name, raised, shown) for raised, shown in told):
                untested.append(f"read_alarms() gives no {name} that the kit knows, but none or a word of the device")
            elif len({getattr(raised, name) for raised, _ in told}) == 1 and getattr(told[0][0], name):
                untested.append(f"`alarms` in the set-up all have the same {name}, so a constant would pass")
        if untested:
            not_tested("; ".join(untested))

    @proves("progress")
    def test_a_change_in_progress_is_reported(self, subject: Subject) -> None:
        """From the device's answer until the change is complete, and not when the device is idle."""
        driver: Any = subject.driver
        if Capability.PROGRESS not in driver.capabilities:
            pytest.skip("the driver does not declare progress")
        write = subject.writes[0]
        act = write.prepare(driver)
        if not becomes_true(lambda: driver.read_progress() is None, FOLLOWS_WITHIN_S):
            broken("progress", f"read_progress() gives {driver.read_progress()} for a device that is idle")
        if subject.completes_late is None:
            not_tested(
                "the set-up gives no `completes_late`, which makes the device complete a change after its answer"
            )
        if write.truth is None:
            not_tested("the set-up gives no `truth`, so the kit cannot see whether a change is complete")
        with subject.completes_late():
            with suppress(OutcomeUnknownError):
                act()
            progress = driver.read_progress()
            if write.truth() == write.after:
                not_tested("inside `completes_late` of the set-up, the device completed a change before its answer")
            if progress is None:
                broken("progress", f"read_progress() gives None; the device still holds {write.truth()}")
        if not becomes_true(lambda: driver.read_progress() is None, FOLLOWS_WITHIN_S):
            broken("progress", f"the change is complete; read_progress() still gives {driver.read_progress()}")
        if write.truth() != write.after:
            broken("progress", f"read_progress() gives None, but the device holds {write.truth()}, not {write.after}")


def _temperature(subject: Subject, truth: Any) -> list[str]:
    if truth.temperature_c is None:
        return ["temperature_c"]
    driver: Any = subject.driver
    shown = driver.read_temperature()
    if not _same("_c", shown, truth.temperature_c):
        looks = ": this looks like Fahrenheit" if _same("_c", (shown - 32) / 1.8, truth.temperature_c) else ""
        broken("units", f"read_temperature() gives {shown:g}, the device has {truth.temperature_c:g} C{looks}")
    return []


def _powers(subject: Subject, truth: Any) -> list[str]:
    if not truth.powers_dbm:
        return ["powers_dbm"]
    driver: Any = subject.driver
    try:
        shown = driver.read_powers(tuple(truth.powers_dbm))
    except UnsupportedError:
        return ["the powers of ports with a monitor only"]
    wrong = {port: dbm for port, dbm in truth.powers_dbm.items() if not _same("_dbm", shown.get(port), dbm)}
    if wrong:
        port = min(wrong)
        elsewhere = [other for other, dbm in truth.powers_dbm.items() if _same("_dbm", shown.get(port), dbm)]
        found = f"read_powers() gives {shown.get(port)} dBm for port {port}, which has {wrong[port]:g} dBm"
        if elsewhere:
            broken("numbering", f"{found}: that is the power of port {elsewhere[0]}")
        broken("units", found)
    return [] if _differ(truth.powers_dbm) else ["different powers for two ports next to each other"]


def _differ(powers: Mapping[int, float]) -> bool:
    return any(port + 1 in powers and not _same("_dbm", dbm, powers[port + 1]) for port, dbm in powers.items())


def _fields(call: str, shown: OpticsReading | PowerReading, truth: Any) -> list[str]:
    """Compare every field that is known; return those that the driver fills in and nobody knows."""
    for field in fields(truth):
        name, known = field.name, getattr(truth, field.name)
        if name in _UNCOMPARED or known is None or known == "":
            continue
        if not _same(name, getattr(shown, name), known):
            broken("readings", f"{call}() gives {name} {getattr(shown, name)!r}, the device has {known!r}")
    return [name for name in _MEASURED[call] if getattr(shown, name) is not None and getattr(truth, name) is None]


def _same(name: str, shown: Any, known: Any) -> bool:
    """Whether two values of a quantity agree; the name ends with the unit."""
    if not isinstance(known, int | float) or isinstance(known, bool) or shown is None:
        return bool(shown == known)
    if math.isinf(known) or math.isinf(shown):
        return bool(shown == known)
    within = DB if name.endswith("_dbm") else CELSIUS if name.endswith("_c") else SHARE * abs(known)
    return bool(abs(shown - known) <= within)


def _reported(driver: Any, raises: Callable[[], AbstractContextManager[Alarm]]) -> tuple[Alarm, Alarm]:
    """An alarm that the device raises, and how the driver reports it.

    Raises:
        ContractBrokenError: it is not reported, reported wrongly, or still reported when it has ended.
    """
    before = driver.read_alarms()

    def added() -> list[Alarm]:
        return [alarm for alarm in driver.read_alarms() if alarm not in before]

    with raises() as raised:
        becomes_true(lambda: bool(added()), FOLLOWS_WITHIN_S)
        found = added()
        if not found:
            broken("alarms", f"the device raises {raised}, and read_alarms() gives {driver.read_alarms()!r:.150}")
        right = [alarm for alarm in found if _difference(raised, alarm) is None]
        if not right:
            broken("alarms", f"read_alarms() gives {_difference(raised, found[0])}")
    if not becomes_true(lambda: right[0] not in driver.read_alarms(), FOLLOWS_WITHIN_S):
        broken("alarms", f"read_alarms() still gives {right[0].text!r} when the alarm has ended")
    return raised, right[0]


def _difference(raised: Alarm, shown: Alarm) -> str | None:
    """What a driver states wrongly of an alarm; what it leaves out or calls by the device's own word is not wrong."""
    if _says("source", raised, shown) and shown.source != raised.source:
        return f"source {shown.source!r} for an alarm of {raised.source!r}"
    if _says("severity", raised, shown) and shown.severity.casefold() != raised.severity.casefold():
        return f"severity {shown.severity!r} for an alarm that is {raised.severity!r}"
    if shown.since is not None and raised.since is not None and abs(shown.since - raised.since) > SINCE_S:
        return f"since {shown.since:.0f} for an alarm that is there since {raised.since:.0f}"
    return None


def _says(name: str, raised: Alarm, shown: Alarm) -> bool:
    """Whether a driver states a part of an alarm in words that the kit can compare."""
    if name == "since":
        return shown.since is not None
    true, word = getattr(raised, name).casefold(), getattr(shown, name).casefold()
    return bool(true and word) and (word == true or word.startswith("port/") or word in SEVERITIES)


def _list(names: Sequence[str] | set[str]) -> str:
    return ", ".join(sorted(names))
