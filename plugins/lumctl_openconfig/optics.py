"""What a chassis shows of a transponder, as a reading. What it leaves out is ``None``."""

import math
from collections.abc import Callable, Iterable, Iterator
from xml.etree.ElementTree import Element

from lumctl.devices.types import OpticsReading
from lumctl_openconfig.leaf import NAMES, text_at
from lumctl_openconfig.place import PortPlace, told

NO_LIGHT_DBM = -40.0
"""A decimal of these models cannot be minus infinity: devices show the least power that their modules can state, which
is 0.1 microwatt, or less."""
_ALARM, _WARNING = ("CRITICAL", "MAJOR"), ("WARNING", "MINOR")
_LIMITED = {"input-power": "rx_power", "output-power": "tx_power", "laser-bias-current": "bias"}


def reading(place: PortPlace, transmitting: bool | None, taken_at: float) -> OpticsReading:
    """Put a reading together.

    Powers and bias come from the optical channel where that states them, else from its lanes (the worst), else from
    the transceiver as a whole; so do the other values, in this order.
    """
    optical = place.channel.find("t:optical-channel", NAMES)
    module = place.transceiver.find("x:transceiver", NAMES) if place.transceiver is not None else None
    laser_c = _worst(max, (_measured(lane, "x", "laser-temperature") for lane in place.lanes))
    case_c = _measured(place.transceiver, "p", "temperature")
    holder = place.transceiver if place.transceiver is not None else place.channel
    return OpticsReading(
        taken_at=taken_at,
        transmitting=transmitting,
        rx_power_dbm=_light(_power(place, optical, module, "input-power")),
        tx_power_dbm=_light(_power(place, optical, module, "output-power")),
        bias_ma=_first(
            _measured(optical, "t", "laser-bias-current"),
            _worst(max, (_measured(lane, "x", "laser-bias-current") for lane in place.lanes)),
            _measured(module, "x", "laser-bias-current"),
        ),
        temperature_c=_first(laser_c, case_c),
        voltage_v=_measured(module, "x", "supply-voltage"),
        vendor=_state(module, "x", "vendor") or _state(holder, "p", "mfg-name"),
        part=_state(module, "x", "vendor-part") or _state(holder, "p", "part-no"),
        thresholds=dict(_thresholds(module, "laser-temperature" if laser_c is not None else "module-temperature")),
        pre_fec_ber=_error_rate(place, module, "pre-fec-ber"),
        post_fec_ber=_error_rate(place, module, "post-fec-ber"),
        fec_uncorrectable=_uncorrectable(place, module),
        rx_los=_flag(place.lanes, "rx-los"),
        tx_fault=_flag(place.lanes, "tx-failure"),
        frequency_mhz=_frequency(place, optical),
        target_power_dbm=_number(told(optical, "t", "target-output-power") if optical is not None else None),
    )


def _power(place: PortPlace, optical: Element | None, module: Element | None, name: str) -> float | None:
    return _first(
        _measured(optical, "t", name),
        _worst(min, (_measured(lane, "x", name) for lane in place.lanes)),
        _measured(module, "x", name),
    )


def _light(dbm: float | None) -> float | None:
    return -math.inf if dbm is not None and dbm <= NO_LIGHT_DBM else dbm


def _error_rate(place: PortPlace, module: Element | None, name: str) -> float | None:
    return _first(
        _worst(max, (_measured(each.find("t:otn", NAMES), "t", name) for each in place.logical)),
        _measured(module, "x", name),
    )


def _uncorrectable(place: PortPlace, module: Element | None) -> int | None:
    for holder, prefix in [(each.find("t:otn", NAMES), "t") for each in place.logical] + [(module, "x")]:
        for name in ("fec-uncorrectable-blocks", "fec-uncorrectable-words"):
            text = _state(holder, prefix, name)
            if text is not None and text.isascii() and text.isdecimal():
                return int(text[:20])
    return None


def _frequency(place: PortPlace, optical: Element | None) -> int | None:
    texts = [told(optical, "t", "frequency") if optical is not None else None]
    texts += [_state(lane, "x", "output-frequency") for lane in place.lanes]
    return next((int(value) for text in texts if (value := _number(text)) is not None and value > 0), None)


def _thresholds(module: Element | None, temperature: str) -> Iterator[tuple[str, float]]:
    """The module's limits by our names. Of two severities that would get one name the graver is taken."""
    if module is None:
        return
    by_severity: dict[str, Element] = {}
    for each in module.iterfind("x:thresholds/x:threshold", NAMES):
        severity = _state(each, "x", "severity") or text_at(each, "x:severity") or ""
        by_severity.setdefault(severity.rpartition(":")[2], each)
    for level, severities in (("alarm", _ALARM), ("warning", _WARNING)):
        stated = next((by_severity[name] for name in severities if name in by_severity), None)
        for theirs, ours in (_LIMITED | {temperature: "temperature"}).items():
            for edge, side in (("upper", "high"), ("lower", "low")):
                limit = _number(_state(stated, "x", f"{theirs}-{edge}"))
                if limit is not None:
                    yield f"{ours}_{side}_{level}", limit


def _measured(element: Element | None, prefix: str, name: str) -> float | None:
    """A measured value: the present one, or where the device only keeps statistics, the mean."""
    if element is None:
        return None
    path = f"{prefix}:state/{prefix}:{name}"
    return _first(*(_number(text_at(element, f"{path}/{prefix}:{kind}")) for kind in ("instant", "avg")))


def _flag(lanes: Iterable[Element], name: str) -> bool | None:
    """Whether any lane raises a flag."""
    said = {_state(lane, "x", name) for lane in lanes}
    return True if said & {"true", "1"} else False if said & {"false", "0"} else None


def _state(element: Element | None, prefix: str, name: str) -> str | None:
    return text_at(element, f"{prefix}:state/{prefix}:{name}") if element is not None else None


def _number(text: str | None) -> float | None:
    try:
        value = float(text) if text is not None else math.nan
    except ValueError:
        return None
    return None if math.isnan(value) or value == math.inf else value


def _first(*values: float | None) -> float | None:
    return next((value for value in values if value is not None), None)


def _worst(which: Callable[[list[float]], float], values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return which(known) if known else None
