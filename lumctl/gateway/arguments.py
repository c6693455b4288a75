"""Whether the arguments of a request are of the types that a driver takes: it is never handed anything else."""

from collections.abc import Callable, Mapping
from typing import Any

from lumctl.devices.recorded_calls import bound, signatures
from lumctl.devices.recorded_values import decode
from lumctl.devices.types import JoinChange, PucChange, PucState, Receipt, Staged

Check = Callable[[Any], bool]


def arguments(kind: str, call: str, said: Any) -> dict[str, Any]:
    """The arguments of a call by name, decoded and checked.

    Raises:
        ValueError: there is no such call, or they are not its.
    """
    if call not in signatures(kind):
        raise ValueError(f"a {kind} has no call {call!r}")
    if not isinstance(said, dict):
        raise ValueError("its arguments are no object")  # noqa: TRY004 - what came is wrong, not who called
    try:
        given = bound(kind, call, (), {name: decode(value) for name, value in said.items()})
    except TypeError as error:
        raise ValueError(str(error)) from None
    for name, value in given.items():
        if not CHECKS[name](value) or (name in {"staged", "receipt"} and not _of(kind, value)):
            raise ValueError(f"{name} of {call} is not what it must be")
    return given


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _number(value: Any) -> bool:
    return _whole(value) or isinstance(value, float)


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _states(value: Any) -> bool:
    return isinstance(value, Mapping) and all(_whole(k) and isinstance(v, PucState) for k, v in value.items())


def _joins(value: Any) -> bool:
    return isinstance(value, Mapping) and all(_whole(k) and (v is None or _whole(v)) for k, v in value.items())


def _ports(value: Any) -> bool:
    return isinstance(value, tuple) and all(map(_whole, value))


def _receipt(value: Any) -> bool:
    return isinstance(value, Receipt) and all(map(_flag, (value.revert_armed, value.complete))) and _text(value.text)


def _of(kind: str, value: Any) -> bool:
    """Whether a change is one of such a device."""
    staged = value.staged if isinstance(value, Receipt) else value
    if not isinstance(staged, Staged) or not _text(staged.token) or not isinstance(staged.changes, tuple):
        return False
    return all(map(_join if kind == "switch" else _puc, staged.changes))


def _puc(change: Any) -> bool:
    return (
        isinstance(change, PucChange)
        and _whole(change.puc)
        and (change.before is None or isinstance(change.before, PucState))
        and isinstance(change.after, PucState)
    )


def _join(change: Any) -> bool:
    return (
        isinstance(change, JoinChange)
        and all(number is None or _whole(number) for number in (change.before, change.after))
        and _whole(change.ingress)
    )


CHECKS: Mapping[str, Check] = {
    "changes": _states,
    "joins": _joins,
    "staged": lambda value: isinstance(value, Staged),
    "receipt": _receipt,
    "revert_after_s": lambda value: value is None or _number(value),
    "ports": _ports,
    "port": _whole,
    "enabled": _flag,
    "label": _text,
    "frequency_mhz": _whole,
    "dbm": _number,
    "mark": _text,
    "on": _flag,
    "force": _flag,
}
"""By the names that the arguments of all protocols have."""
