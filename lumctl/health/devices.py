"""The verdict on a mesh or a switch: whether its driver gets an answer."""

from collections.abc import Mapping

from lumctl.health.rulebook import found
from lumctl.health.states import ComponentHealth, State


def judge_device(name: str, answers: Mapping[str, str | None], now: float) -> ComponentHealth:
    """Judge one device by what went wrong when it was asked; ``None`` means that it answered."""
    if name not in answers:
        finding = found(name, "device.unread", "never", "it was never asked", since=now)
    elif (problem := answers[name]) is not None:
        finding = found(name, "device.unreachable", "no-answer", problem, since=now)
    else:
        return ComponentHealth(name, "device", State.OK, read_at=now, otherwise=State.OK, seen=frozenset({"driver"}))
    asked = frozenset({"driver"}) if name in answers else frozenset[str]()
    return ComponentHealth(name, "device", finding.state, (finding,), seen=asked)
