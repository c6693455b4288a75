"""Compares the readings, alarms and progress that a driver reports with those of its device.

The set-up supplies the truth (``reading``, ``alarms``, ``completes_late``). Without it a test counts as not tested.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import fields
from typing import Any

from lumctl.devices.answers import fault_of
from lumctl.devices.errors import UnsupportedError
from lumctl.devices.protocols import DriverContext
from lumctl.devices.testing.checks import becomes_true
from lumctl.devices.testing.rules import broken
from lumctl.devices.testing.subjects import Subject
from lumctl.devices.types import Alarm, Neighbour, OpticsReading, PowerReading
from lumctl.printable import printable

DB, CELSIUS, SHARE = 0.5, 2.0, 0.1
"""Differences that two instruments may show: in dB, in degrees Celsius, and as a share of any other number."""
SINCE_S = 2.0
SEVERITIES = {"critical", "major", "minor", "warning"}
FOLLOWS_WITHIN_S = 5.0
"""Seconds in which a device raises or clears an alarm, or completes a change after it is allowed to."""

MEASURED: Mapping[str, tuple[str, ...]] = {
    "read_optics": (
        "rx_power_dbm", "tx_power_dbm", "bias_ma", "temperature_c", "voltage_v", "pre_fec_ber", "post_fec_ber",
        "fec_uncorrectable",
    ),
    "read_power": ("watts",),
}  # fmt: skip
"""The measured fields of an answer, by call; a field that a driver fills in is tested only if its truth is known."""
_UNCOMPARED = {"taken_at", "optical", "thresholds"}
MOST_WATTS = 100_000.0
YEARS_S = 10 * 365 * 86400.0
DARK_DBM = -20.0
# Wavelengths from 3 to 1 micrometre: a frequency in GHz or in Hz is far outside.
MHZ = (100_000_000, 300_000_000)
_NUMBERED = ("PUC", "port")
_UNITS = ("dBm", "degrees", " W", " mA", "rate", "time", "age", " V")


def require_sound(kind: str, call: str, answer: Any, arguments: Mapping[str, Any], context: DriverContext) -> None:
    """Check an answer against the contract.

    Raises:
        ContractBrokenError: the answer has a wrong type or unit, or wrong port or PUC numbers.
    """
    wrong = fault_of(kind, call, answer, arguments, context)
    if wrong:
        rule = "types" if ", expected " in wrong else _rule_of(wrong)
        broken(rule, f"{call}() {wrong}")
    if call == "identify":
        _require_line(answer)
    elif call == "read_powers":
        _require_dbm(answer)
    elif call in {"read_states", "read_ports"}:
        _require_all(call, answer, context)
    elif isinstance(answer, OpticsReading):
        _require_optics(answer, context)
    elif isinstance(answer, PowerReading):
        _require_time("read_power", answer.taken_at, context)
        if answer.watts is not None and answer.watts > MOST_WATTS:
            broken("units", f"read_power() returns {answer.watts:g} W for one machine")
    elif call == "neighbours":
        _require_ages(answer)
    elif call == "read_alarms":
        _require_alarms(answer)


def _rule_of(wrong: str) -> str:
    if any(unit in wrong for unit in _UNITS):
        return "units"
    return "numbering" if any(word in wrong for word in _NUMBERED) else "types"


def _require_line(line: str) -> None:
    if not line or len(line.splitlines()) != 1 or printable(line) != line:
        broken("identity", f"identify() returns {line!r}, which is not one printable line")


def _require_dbm(powers: Mapping[int, float]) -> None:
    if any(math.isnan(power) for power in powers.values()):
        broken("units", "read_powers() returns NaN; no light is -inf")
    if powers and all(power >= 0 for power in powers.values()):
        shown = ", ".join(f"{power:g}" for power in powers.values())
        broken(
            "units", f"read_powers() returns {shown}: no port on a bench has 1 mW or more; these values look like mW"
        )


def _require_all(call: str, answer: Mapping[int, Any], context: DriverContext) -> None:
    count = context.puc_count if call == "read_states" else context.port_count
    missing = sorted(set(range(count)) - set(answer))
    if missing and call == "read_ports":
        broken("numbering", f"{call}() lacks {missing[0]}; numbers start at 0, and there are {count}")


def _require_optics(reading: OpticsReading, context: DriverContext) -> None:
    _require_time("read_optics", reading.taken_at, context)
    if reading.rx_power_dbm is not None and reading.rx_power_dbm >= 0:
        broken("units", f"read_optics() returns {reading.rx_power_dbm:g} dBm received: 1 mW or more looks like mW")
    tx = reading.tx_power_dbm
    if reading.transmitting is False and tx is not None and tx > DARK_DBM:
        broken("units", f"read_optics() returns {tx:g} dBm sent while the transmitter is off; no light is -inf")
    frequency = reading.frequency_mhz
    if frequency is not None and not MHZ[0] <= frequency <= MHZ[1]:
        broken("units", f"read_optics() returns {frequency:g} MHz, which is not an optical frequency")
    limits = [reading.thresholds.get(f"rx_power_{name}") for name in ("low_alarm", "high_alarm")]
    if None not in limits and limits[0] >= limits[1]:  # type: ignore[operator]  # neither is None
        broken(
            "units",
            f"read_optics() returns rx_power_low_alarm {limits[0]}, which is not below rx_power_high_alarm {limits[1]}",
        )


def _require_time(call: str, taken_at: float, context: DriverContext) -> None:
    now = context.now()
    # A context without a clock gives 0.
    if now and not now - 60 <= taken_at <= now + 1:
        broken("units", f"{call}() returns taken_at {taken_at:g}, but context.now() is {now:g}")


def _require_ages(heard: tuple[Neighbour, ...]) -> None:
    for each in heard:
        if each.age_s > YEARS_S:
            broken("units", f"neighbours() returns an age of {each.age_s:g} s: this looks like a time or like ms")


def _require_alarms(alarms: tuple[Alarm, ...]) -> None:
    for alarm in alarms:
        if not alarm.text:
            broken("types", "read_alarms() returns an alarm without a text")
        if alarm.since is not None and alarm.since > time.time() + 86400:
            broken("units", f"read_alarms() returns an alarm since {alarm.since:g}: this looks like milliseconds")


def unknown_measures(subject: Subject, calls: set[str], truth: Any) -> list[str]:
    """Compare what these calls measure with the truth; return the fields that the truth lacks.

    Raises:
        ContractBrokenError: a call returns another value than the device measures.
    """
    unknown: list[str] = []
    for call in sorted(calls):
        if call == "read_temperature":
            unknown += _temperature(subject, truth)
        elif call == "read_powers":
            unknown += _powers(subject, truth)
        else:
            unknown += _fields(call, getattr(subject.driver, call)(), truth)
    return unknown


def _temperature(subject: Subject, truth: Any) -> list[str]:
    if truth.temperature_c is None:
        return ["temperature_c"]
    driver: Any = subject.driver
    shown = driver.read_temperature()
    if not _same("_c", shown, truth.temperature_c):
        looks = ": this looks like Fahrenheit" if _same("_c", (shown - 32) / 1.8, truth.temperature_c) else ""
        broken("units", f"read_temperature() returns {shown:g}, but the device has {truth.temperature_c:g} C{looks}")
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
        found = f"read_powers() returns {shown.get(port)} dBm for port {port}, which has {wrong[port]:g} dBm"
        if elsewhere:
            broken("numbering", f"{found}: that is the power of port {elsewhere[0]}")
        broken("units", found)
    return [] if _differ(truth.powers_dbm) else ["different powers for two ports next to each other"]


def _differ(powers: Mapping[int, float]) -> bool:
    return any(port + 1 in powers and not _same("_dbm", dbm, powers[port + 1]) for port, dbm in powers.items())


def _fields(call: str, shown: OpticsReading | PowerReading, truth: Any) -> list[str]:
    """Compare every field that is known; return those that the driver fills in and the truth lacks."""
    for field in fields(truth):
        name, known = field.name, getattr(truth, field.name)
        if name in _UNCOMPARED or known is None or known == "":
            continue
        if not _same(name, getattr(shown, name), known):
            broken("readings", f"{call}() returns {name} {getattr(shown, name)!r}, but the device has {known!r}")
    return [name for name in MEASURED[call] if getattr(shown, name) is not None and getattr(truth, name) is None]


def _same(name: str, shown: Any, known: Any) -> bool:
    """Whether two values of a quantity agree; the name ends with the unit."""
    if not isinstance(known, int | float) or isinstance(known, bool) or shown is None:
        return bool(shown == known)
    if math.isinf(known) or math.isinf(shown):
        return bool(shown == known)
    within = DB if name.endswith("_dbm") else CELSIUS if name.endswith("_c") else SHARE * abs(known)
    return bool(abs(shown - known) <= within)


def reported(driver: Any, raises: Callable[[], AbstractContextManager[Alarm]]) -> tuple[Alarm, Alarm]:
    """An alarm that the device raises, and how the driver reports it.

    Raises:
        ContractBrokenError: the alarm is not reported, reported wrongly, or still reported after it has ended.
    """
    # The device may raise alarms of its own.
    before = driver.read_alarms()

    def added() -> list[Alarm]:
        return [alarm for alarm in driver.read_alarms() if alarm not in before]

    with raises() as raised:
        becomes_true(lambda: bool(added()), FOLLOWS_WITHIN_S)
        found = added()
        if not found:
            broken("alarms", f"the device raises {raised}, but read_alarms() returns {driver.read_alarms()!r:.150}")
        right = [alarm for alarm in found if _difference(raised, alarm) is None]
        if not right:
            broken("alarms", f"read_alarms() gives {_difference(raised, found[0])}")
    if not becomes_true(lambda: right[0] not in driver.read_alarms(), FOLLOWS_WITHIN_S):
        broken("alarms", f"read_alarms() still returns {right[0].text!r} when the alarm has ended")
    return raised, right[0]


def _difference(raised: Alarm, shown: Alarm) -> str | None:
    """Errors in a driver's report of an alarm; missing parts, or the device's own words, are not errors."""
    if states_it("source", raised, shown) and shown.source != raised.source:
        return f"source {shown.source!r} for an alarm of {raised.source!r}"
    if states_it("severity", raised, shown) and shown.severity.casefold() != raised.severity.casefold():
        return f"severity {shown.severity!r} for an alarm that is {raised.severity!r}"
    if shown.since is not None and raised.since is not None and abs(shown.since - raised.since) > SINCE_S:
        return f"since {shown.since:.0f} for an alarm that was raised at {raised.since:.0f}"
    return None


def states_it(name: str, raised: Alarm, shown: Alarm) -> bool:
    """Whether a driver states a part of an alarm in words that the kit can compare."""
    if name == "since":
        return shown.since is not None
    true, word = getattr(raised, name).casefold(), getattr(shown, name).casefold()
    return bool(true and word) and (word == true or word.startswith("port/") or word in SEVERITIES)


def listed(names: Sequence[str] | set[str]) -> str:
    """Names in alphabetical order, with commas."""
    return ", ".join(sorted(names))
