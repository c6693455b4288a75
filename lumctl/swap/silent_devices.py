"""Devices that a plan writes and that do not answer: until they do, the plan cannot be applied."""

from collections.abc import Iterable, Sequence

from lumctl.change.plan import Do, Plan
from lumctl.change.refusal_advice import why_silent
from lumctl.errors import RefusedError
from lumctl.health.observation import Observation
from lumctl.health.states import Finding
from lumctl.time_text import moment_text

_NEW_S = 1.0
"""A silence shorter than this began with the observation itself: when it really began is unknown."""


def silent_devices(seen: Observation, devices: Iterable[str]) -> list[Finding]:
    """The finding of each of some devices that does not answer."""
    report = seen.report.devices
    found = (finding for device in devices if device in report for finding in report[device].findings)
    return [finding for finding in found if finding.rule == "device.unreachable"]


def reason_of(silent: Finding) -> str:
    """Why a device does not answer, in words."""
    return silent.evidence.removesuffix("; nothing was sent")


def written_devices(plan: Plan) -> tuple[str, ...]:
    """The devices that a plan programs."""
    return tuple(dict.fromkeys(str(step.data["device"]) for step in plan.steps if step.do is Do.PROGRAM))


def silence_refusal(seen: Observation, plan: Plan) -> RefusedError | None:
    """The refusal of a plan that writes devices that do not answer now; ``None`` if all of them answer."""
    found = silent_devices(seen, written_devices(plan))
    if not found:
        return None
    silent = " and ".join(_words(each, seen.at) for each in found)
    hint = why_silent([each.component for each in found], seen.target)
    return RefusedError(f"no swap can be applied while {silent}", hint=hint)


def until_answered(devices: Sequence[str]) -> str:
    """How long something has to wait for these devices, in words."""
    return f"until {' and '.join(devices)} {'answer' if devices[1:] else 'answers'}"


def _words(silent: Finding, now: float) -> str:
    # No age: a job that tries again and again would report each new one.
    since = f", since {moment_text(silent.since)}" if now - silent.since >= _NEW_S else ""
    return f"{silent.component} does not answer ({reason_of(silent)}{since})"
