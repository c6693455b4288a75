"""The verdict on a mesh or a switch: whether it answers, its alarms, and its instruments."""

from math import inf

from lumctl.devices.types import DeviceReading
from lumctl.health.judging import judge, state_of
from lumctl.health.rules.device import RULES, DeviceCase, is_plausible_c
from lumctl.health.states import ComponentHealth, State


def judge_device(
    name: str, reading: DeviceReading | None, now: float, *, stale_after_s: float = inf
) -> ComponentHealth:
    """Judge one device by its reading; ``None``: it was never asked. An answer may be ``stale_after_s`` old."""
    age_s = now - reading.taken_at if reading is not None else 0.0
    stale = f"last answered {age_s:.0f} s ago (limit: {stale_after_s:g} s)" if age_s > stale_after_s else None
    case = DeviceCase(name, reading, stale, now)
    findings = judge(RULES, case)
    otherwise = State.OK if case.answered is not None else State.UNKNOWN
    return ComponentHealth(
        name,
        "device",
        state_of(findings, otherwise=otherwise),
        findings,
        reading.taken_at if reading is not None and reading.problem is None else None,
        otherwise=otherwise,
        seen=_seen(case),
    )


def _seen(case: DeviceCase) -> frozenset[str]:
    """``driver`` if it was asked, ``answer`` if it answers, and the readings that can be judged."""
    if case.reading is None or case.stale is not None:
        return frozenset()
    if (reading := case.answered) is None:
        return frozenset({"driver"})
    seen = {"driver", "answer"}
    if reading.alarms is not None:
        seen.add("alarms")
    if reading.temperature_c is not None and is_plausible_c(reading.temperature_c):
        seen.add("temperature")
    return frozenset(seen)
