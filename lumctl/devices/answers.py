"""Checks that a driver's answers have the types and units of its Protocol; a wrong answer is not used as a reading."""

import math
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

from lumctl.devices.protocols import PROTOCOLS, DriverContext
from lumctl.devices.types import (
    Change,
    JoinChange,
    Neighbour,
    OpticsReading,
    PowerReading,
    Progress,
    PucChange,
    Receipt,
    Staged,
    cell_of,
)

MOST_DBM, LEAST_DBM = 50.0, -100.0
"""Limits in dBm: no optical port of a rack carries more than 100 W; a monitor shows less than -100 dBm as no light."""
MOST_C, LEAST_C = 200.0, -80.0


def fault_of(kind: str, call: str, answer: Any, arguments: Mapping[str, Any], context: DriverContext) -> str | None:
    """The fault in the answer to a call of a driver of that kind, as text; ``None`` if the answer is valid."""
    wrong = _mistyped(answer, _annotation(kind, call))
    if wrong:
        return f"returned {wrong}"
    sound = _SOUND.get(call)
    return sound(answer, arguments, context) if sound else None


@cache
def _annotation(kind: str, call: str) -> Any:
    return get_type_hints(getattr(PROTOCOLS[kind], call))["return"]


def _mistyped(value: Any, hint: Any) -> str | None:
    """The found and the expected type of a value, as text; ``None`` if the type is right."""
    if _check(hint)(value):
        return None
    name = getattr(hint, "__name__", None) if get_origin(hint) is None else None
    return f"{_shown(value)}, expected {name or str(hint).replace('lumctl.devices.types.', '')}"


_Check = Callable[[Any], bool]


@cache
def _check(hint: Any) -> _Check:
    """Checks whether a value is of a type; built once for each type, because every answer is checked."""
    if hint in _PLAIN:
        return _PLAIN[hint]
    origin, given = get_origin(hint), get_args(hint)
    of: Any = origin or hint
    if origin in {Union, types.UnionType}:
        any_of = [_check(each) for each in given]
        return lambda value: any(check(value) for check in any_of)
    if origin is tuple:
        item = _check(given[0])
        return lambda value: isinstance(value, tuple) and all(map(item, value))
    if origin in {dict, Mapping}:
        key, item = (_check(each) for each in given)
        return lambda value: isinstance(value, of) and all(map(key, value)) and all(map(item, value.values()))
    with_fields = is_dataclass(of)
    return lambda value: isinstance(value, of) and (not with_fields or _fields_are(value))


def _fields_are(value: Any) -> bool:
    of: Any = type(value)
    for name, exactly, check in _field_checks(of):
        found = getattr(value, name)
        # Nearly every field has exactly its declared class; this spares it the slower check.
        if type(found) not in exactly and not check(found):
            return False
    return True


@cache
def _field_checks(of: Any) -> tuple[tuple[str, frozenset[type], _Check], ...]:
    hints = get_type_hints(of)
    return tuple((field.name, _exactly(hints[field.name]), _check(hints[field.name])) for field in fields(of))


def _exactly(hint: Any) -> frozenset[type]:
    """The classes whose instances fit a type whatever they contain, so that a check of the class is enough."""
    if get_origin(hint) in {Union, types.UnionType}:
        return frozenset().union(*map(_exactly, get_args(hint)))
    if hint is None:
        return frozenset({type(None)})
    simple = isinstance(hint, type) and (hint in {int, float, str, bool, type(None)} or issubclass(hint, Enum))
    return frozenset({hint}) if simple else frozenset()


_PLAIN: Mapping[Any, _Check] = {
    None: lambda value: value is None,
    type(None): lambda value: value is None,
    # In Python True is an int: it must not pass for port 1.
    int: lambda value: isinstance(value, int) and not isinstance(value, bool),
    float: lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    Change: lambda value: isinstance(value, PucChange | JoinChange) and _fields_are(value),
}


def _shown(value: Any) -> str:
    try:
        said = repr(value)
    except Exception:  # noqa: BLE001 - the class belongs to the plug-in
        said = ""
    kind = type(value).__name__
    return said if said and len(said) < 60 else f"a {kind}"  # noqa: PLR2004 - a longer one does not fit in a message


Sound = Callable[[Any, Mapping[str, Any], DriverContext], str | None]


def _states(answer: Mapping[int, Any], _: Mapping[str, Any], context: DriverContext) -> str | None:
    return _outside(answer, context.puc_count, "PUC")


def _circuits(answer: Mapping[int, int], _: Mapping[str, Any], context: DriverContext) -> str | None:
    if len(set(answer.values())) < len(answer):
        return "returned two circuits that leave at one port"
    return _outside([*answer, *answer.values()], context.port_count, "port")


def _ports(answer: Mapping[int, Any], _: Mapping[str, Any], context: DriverContext) -> str | None:
    if any(number != reading.port for number, reading in answer.items()):
        return "returned the reading of one port for another"
    return _outside(answer, context.port_count, "port")


def _outside(numbers: Iterable[int], count: int, what: str) -> str | None:
    # A count of 0 means that the inventory states none: then there is no upper limit.
    wrong = [number for number in numbers if number < 0 or (count and number >= count)]
    return f"returned {what} {wrong[0]}; numbers start at 0, and there are {count}" if wrong else None


def _powers(answer: Mapping[int, float], arguments: Mapping[str, Any], _: DriverContext) -> str | None:
    extra = set(answer) - set(arguments["ports"])
    if extra:
        return f"returned port {min(extra)}, which was not requested"
    return _first(_dbm(value) for value in answer.values())


def _dbm(value: float | None) -> str | None:
    # NaN fails both comparisons, so it is reported too.
    if value is None or value == -math.inf or LEAST_DBM <= value <= MOST_DBM:
        return None
    return f"returned {value:g} dBm, which is not a possible port power"


def _celsius(value: float | None) -> str | None:
    if value is None or LEAST_C <= value <= MOST_C:
        return None
    return f"returned {value:g} degrees Celsius"


def _not_negative(value: float | None, what: str) -> str | None:
    return None if value is None or (math.isfinite(value) and value >= 0) else f"returned {value:g} {what}"


def _optics(answer: OpticsReading, _: Mapping[str, Any], __: DriverContext) -> str | None:
    return _first(
        (
            _not_negative(answer.taken_at, "as the time of a reading"),
            _dbm(answer.rx_power_dbm),
            _dbm(answer.tx_power_dbm),
            _celsius(answer.temperature_c),
            _not_negative(answer.bias_ma, "mA of bias"),
            _not_negative(answer.voltage_v, "V"),
            _not_negative(answer.pre_fec_ber, "as a bit error rate"),
            _not_negative(answer.post_fec_ber, "as a bit error rate"),
        )
    )


def _power(answer: PowerReading, _: Mapping[str, Any], __: DriverContext) -> str | None:
    return _first((_not_negative(answer.taken_at, "as the time of a reading"), _not_negative(answer.watts, "W")))


def _progress(answer: Progress | None, _: Mapping[str, Any], __: DriverContext) -> str | None:
    if answer is None:
        return None
    counts = [count for count in (answer.done, answer.total) if count is not None]
    # Sorted means that `done` is not greater than `total`.
    if min(counts, default=0) < 0 or counts != sorted(counts):
        return f"returned {answer.done} of {answer.total} cells done"
    return None


def _heard(answer: tuple[Neighbour, ...], _: Mapping[str, Any], __: DriverContext) -> str | None:
    return _first(_not_negative(each.age_s, "s as the age of a neighbour") for each in answer)


def _staged(answer: Staged[Any], arguments: Mapping[str, Any], _: DriverContext) -> str | None:
    # stage() of a mesh takes `changes`, that of a switch `joins`.
    wanted = arguments.get("changes", arguments.get("joins", {}))
    told = {cell_of(change): change.after for change in answer.changes}
    if len(told) < len(answer.changes):
        return "staged a cell twice"
    return None if told == dict(wanted) else "staged a different change than requested"


def _difference(answer: tuple[Any, ...], arguments: Mapping[str, Any], _: DriverContext) -> str | None:
    wanted = {cell_of(change): change.after for change in arguments["staged"].changes}
    # A cell that was not staged gives the change itself, which equals no value, so it counts as strange.
    strange = [change for change in answer if wanted.get(cell_of(change), change) != change.after]
    return "compared a different change than requested" if strange else None


def _receipt(answer: Receipt[Any], arguments: Mapping[str, Any], _: DriverContext) -> str | None:
    if answer.staged.changes != arguments["staged"].changes:
        return "returned a receipt for a different change than was committed"
    return None


def _first(wrongs: Iterable[str | None]) -> str | None:
    return next((wrong for wrong in wrongs if wrong), None)


_SOUND: Mapping[str, Sound] = {
    "read_states": _states,
    "read_circuits": _circuits,
    "read_ports": _ports,
    "read_powers": _powers,
    "read_temperature": lambda answer, *_: _celsius(answer),
    "read_optics": _optics,
    "read_power": _power,
    "neighbours": _heard,
    "read_progress": _progress,
    "stage": _staged,
    "compare": _difference,
    "commit": _receipt,
}
