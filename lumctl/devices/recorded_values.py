"""Encodes arguments and answers of drivers as JSON, and decodes them.

Values that JSON lacks are objects with one key: ``{"float": "-inf"}``, ``{"map": [[0, "a"]]}``,
``{"PucState": "x"}``, ``{"Neighbour": {...}}``. A list represents a tuple.
"""

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from lumctl.devices import errors, types
from lumctl.devices.errors import DeviceError
from lumctl.errors import LumctlError

_RECORDS: Mapping[str, type[Any]] = {
    each.__name__: each
    for each in (
        types.PucChange,
        types.JoinChange,
        types.Staged,
        types.Receipt,
        types.PortReading,
        types.Alarm,
        types.Progress,
        types.PowerReading,
        types.OpticsReading,
        types.Neighbour,
    )
}
_ERRORS: Mapping[str, type[DeviceError]] = {
    each.__name__: each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, DeviceError)
}
_DEEPEST = 20


def encode(value: object) -> Any:
    """A value as JSON. A value of a type that the contract does not allow becomes a note of its type."""
    if value is None or isinstance(value, bool | int | float | str):
        return _scalar(value)
    if isinstance(value, Mapping):
        pairs = [[encode(key), encode(item)] for key, item in value.items()]
        # Sorted, because replays compare calls as JSON; right-aligned, so that port 10 follows port 9.
        return {"map": sorted(pairs, key=lambda pair: (str(type(pair[0])), str(pair[0]).rjust(20)))}
    if isinstance(value, list | tuple):
        return [encode(item) for item in value]
    if is_dataclass(value) and type(value).__name__ in _RECORDS:
        return {type(value).__name__: {each.name: encode(getattr(value, each.name)) for each in fields(value)}}
    return {"unrecorded": type(value).__name__}


def _scalar(value: object) -> Any:
    # Asked first, because a PucState is also a str.
    if isinstance(value, types.PucState):
        return {"PucState": value.value}
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(float(value))}
    return value


def decode(said: Any, depth: int = 0) -> Any:
    """The value that was encoded.

    Raises:
        ValueError: the JSON is not an encoded value.
    """
    if depth > _DEEPEST:
        raise ValueError("it is nested too deeply")
    if isinstance(said, list):
        return tuple(decode(item, depth + 1) for item in said)
    if not isinstance(said, dict):
        return said
    if len(said) != 1:
        raise ValueError("an object of one key was expected")
    ((kind, content),) = said.items()
    if kind == "float" and isinstance(content, str):
        return float(content)
    if kind == "PucState" and isinstance(content, str):
        return types.PucState(content)
    if kind == "map" and isinstance(content, list):
        return _mapping(content, depth)
    if kind in _RECORDS and isinstance(content, dict):
        try:
            return _RECORDS[kind](**{name: decode(item, depth + 1) for name, item in content.items()})
        except TypeError as error:
            raise ValueError(f"{kind}: {error}") from None
    raise ValueError(f"{kind!r} is not a word of a recording")


def encode_error(error: Exception) -> dict[str, Any]:
    """An error as JSON; for an error that no driver may raise, only the text is stored."""
    if isinstance(error, LumctlError):
        return {"kind": type(error).__name__, "message": error.message, "hint": error.hint}
    return {"kind": type(error).__name__, "message": str(error), "hint": None}


def decode_error(said: Mapping[str, Any]) -> DeviceError:
    """The recorded error; an error that no driver may raise becomes a ``DeviceError``."""
    kind, message, hint = str(said["kind"]), str(said["message"]), said.get("hint")
    if kind not in _ERRORS:
        return DeviceError(f"the recorded driver failed with {kind}: {message}")
    return _ERRORS[kind](message, hint=None if hint is None else str(hint))


def _mapping(pairs: list[Any], depth: int) -> dict[Any, Any]:
    if not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):  # noqa: PLR2004 - a key and its item
        raise ValueError("a map must be a list of pairs")
    try:
        return {decode(key, depth + 1): decode(item, depth + 1) for key, item in pairs}
    except TypeError as error:
        raise ValueError(f"a map: {error}") from None
