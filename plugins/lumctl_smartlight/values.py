"""What an object of a mesh gives, checked: each function raises :class:`StrangeValueError` for anything strange."""

import math
from collections.abc import Iterable, Mapping
from itertools import islice
from numbers import Integral, Real

from lumctl.devices.types import PucState


class StrangeValueError(Exception):
    """What came cannot be what was asked for."""


TOLERANCE = 0.01
"""A coupling this near to 0 or 1 is bar or cross: a hundredth of the light (-20 dB) goes the other way."""
COUPLING: Mapping[PucState, float] = {PucState.BAR: 0.0, PucState.CROSS: 1.0}

Setting = tuple[float, float]
"""Coupling (0 to 1) and phase (radians) of one PUC."""


def settings_of(given: object) -> dict[int, Setting]:
    """The setting of every PUC, by its number."""
    if not isinstance(given, Mapping):
        raise StrangeValueError(f"a {type(given).__name__} came for the states of the PUCs")
    settings: dict[int, Setting] = {}
    for puc, pair in given.items():
        if isinstance(puc, bool) or not isinstance(puc, Integral):
            raise StrangeValueError(f"{_short(puc)} came for the number of a PUC")
        coupling, phase = _items(pair, 2, "coupling and phase")
        settings[int(puc)] = (_coupling(coupling), _number(phase, "a phase"))
    return settings


def state_of(setting: Setting) -> PucState | None:
    """Bar or cross; ``None`` for a PUC that stands between."""
    coupling, _ = setting
    return next((state for state, ideal in COUPLING.items() if abs(coupling - ideal) <= TOLERANCE), None)


def powers_of(given: object, ports: tuple[int, ...]) -> dict[int, float]:
    """Power at each port in dBm; ``-inf`` is no light."""
    if isinstance(given, Mapping):
        missing = [port for port in ports if port not in given]
        if missing:
            raise StrangeValueError(f"no power came for port {missing[0]}")
        values = [given[port] for port in ports]
    else:
        values = _items(given, len(ports), "powers")
    return {port: _power(value) for port, value in zip(ports, values, strict=True)}


def temperature_of(given: object) -> float:
    """Temperature in degrees Celsius."""
    return _number(given, "a temperature")


def _coupling(value: object) -> float:
    coupling = _number(value, "a coupling")
    if not -TOLERANCE <= coupling <= 1 + TOLERANCE:
        raise StrangeValueError(f"{coupling:g} came for a coupling, which is 0 to 1")
    return coupling


def _power(value: object) -> float:
    if isinstance(value, Real) and float(value) == -math.inf:
        return -math.inf
    return _number(value, "a power")


def _number(value: object, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise StrangeValueError(f"{_short(value)} came for {what}")
    return float(value)


def _items(given: object, count: int, what: str) -> list[object]:
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise StrangeValueError(f"{_short(given)} came for {what}")
    items = list(islice(given, count + 1))
    if len(items) != count:
        raise StrangeValueError(f"{'more' if len(items) > count else 'less'} than {count} values came for {what}")
    return items


def _short(value: object) -> str:
    return repr(value)[:60]
