"""Findings on a mesh or a switch: no answer, alarms, or impossible readings."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite, isnan

from lumctl.devices.types import Alarm, DeviceReading
from lumctl.errors import is_unresolved
from lumctl.health.rulebook import QUOTED, found, rulebook, verdict
from lumctl.health.states import SEVERITY, Finding

_MOST_ALARMS = 32
"""Limit on findings of one device, so that a device with many alarms does not hide other findings."""


@dataclass(frozen=True, slots=True)
class DeviceCase:
    """One mesh or switch. ``reading`` is ``None`` if it was never read; ``stale`` is the age of an old reading."""

    id: str
    reading: DeviceReading | None
    stale: str | None
    now: float

    @property
    def answered(self) -> DeviceReading | None:
        """Its current reading; ``None`` if it does not answer or the reading is too old."""
        well = self.reading is not None and self.reading.problem is None and self.stale is None
        return self.reading if well else None


def severity_of(alarm: Alarm) -> str:
    """The case of device.alarm for a device's own severity word."""
    return rulebook().severities.get(alarm.severity.strip().casefold(), "not-understood")


def is_plausible_c(celsius: float) -> bool:
    """Whether a temperature is possible for a working device."""
    limits = verdict("device.reading", "nonsense").limits
    return limits["coldest_c"] <= celsius <= limits["hottest_c"]


def is_plausible_dbm(dbm: float) -> bool:
    """Whether a power is possible at a port; ``-inf`` means no light."""
    return not isnan(dbm) and dbm <= verdict("device.reading", "nonsense").limits["brightest_dbm"]


def answering(case: DeviceCase) -> Iterator[Finding]:
    """The device does not answer, or its last answer is too old."""
    if case.reading is None:
        yield found(case.id, "device.unread", "never", "it has never been read", since=case.now)
    elif case.stale is not None:
        yield found(case.id, "device.unread", "stale", case.stale, since=case.reading.taken_at)
    elif case.reading.obstacle is not None:
        yield found(case.id, "device.unread", case.reading.obstacle.value, str(case.reading.problem), since=case.now)
    elif case.reading.problem is not None:
        kind = "no-name" if is_unresolved(case.reading.problem) else "no-answer"
        yield found(case.id, "device.unreachable", kind, case.reading.problem, since=case.now)


def readings(case: DeviceCase) -> Iterator[Finding]:
    """Readings that the driver supports and that are missing or impossible."""
    if (reading := case.answered) is None:
        return
    for name, why in reading.unread.items():
        yield found(case.id, "device.reading", "unread", f"{name} not read: {why}", since=case.now, about=name)
    absurd = {}
    if reading.temperature_c is not None and not is_plausible_c(reading.temperature_c):
        absurd["temperature"] = f"a temperature of {reading.temperature_c:g} C"
    wrong = {port: dbm for port, dbm in (reading.powers_dbm or {}).items() if not is_plausible_dbm(dbm)}
    if wrong:
        port, dbm = next(iter(wrong.items()))
        more = f", and {len(wrong) - 1} more like it" if len(wrong) > 1 else ""
        absurd["powers"] = f"a power of {dbm:g} dBm at port {port}{more}"
    for name, what in absurd.items():
        evidence = f"the driver returned {what}, which is impossible"
        yield found(case.id, "device.reading", "nonsense", evidence, since=case.now, about=name)


def alarms(case: DeviceCase) -> Iterator[Finding]:
    """One finding for each alarm of the device."""
    told = case.answered.alarms if case.answered is not None else None
    if not told:
        return
    # Equal alarms count once; if one text has two severities, the worse one counts.
    ranked = sorted(told, key=lambda alarm: -SEVERITY.index(verdict("device.alarm", severity_of(alarm)).state))
    each: dict[tuple[str, str], Alarm] = {}
    for alarm in ranked:
        each.setdefault((alarm.source, alarm.text), alarm)
    listed = list(each.values())
    for number, alarm in enumerate(listed[:_MOST_ALARMS], 1):
        left_out = len(listed) - number if number == _MOST_ALARMS else 0
        more = f"; {left_out} more alarms" if left_out else ""
        began = alarm.since if alarm.since is not None and isfinite(alarm.since) else case.now
        yield found(
            case.id,
            "device.alarm",
            severity_of(alarm),
            f"{_in_words(alarm)}{more}",
            # A device whose clock is wrong may state a time to come, or 0: the finding then begins now.
            since=min(began, case.now) if began > 0 else case.now,
            about=f"{alarm.source} {alarm.text}"[:QUOTED],
        )


def _in_words(alarm: Alarm) -> str:
    severity, case = alarm.severity.strip()[:QUOTED], severity_of(alarm)
    named = f"{severity} alarm" if severity else "alarm without a severity"
    if case == "not-understood":
        named = f"alarm of unknown severity {severity!r}"
    where = f" ({alarm.source.strip()[:QUOTED]})" if alarm.source.strip() else ""
    return f"{named}: {alarm.text.strip()[:QUOTED] or 'without text'}{where}"


def temperature(case: DeviceCase) -> Iterator[Finding]:
    """A device that is hotter than its electronics tolerate."""
    celsius = case.answered.temperature_c if case.answered is not None else None
    line = verdict("device.temperature", "hot")
    if celsius is not None and is_plausible_c(celsius) and celsius > line.limit:
        evidence = f"it is at {celsius:.1f} C (limit: {line.limit:g} C)"
        yield found(case.id, "device.temperature", "hot", evidence, since=case.now)


RULES = (answering, readings, alarms, temperature)
