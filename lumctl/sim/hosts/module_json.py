"""What ``ethtool --json -m`` prints of a simulated module: what the text says, without units and with keys twice."""

import json
from collections.abc import Iterator

from lumctl.sim.hosts import module
from lumctl.sim.world.views import LinkView

_INDENT = " " * 8
_CHANNELS = 4
_LEVELS = ("high_alarm", "low_alarm", "high_warning", "low_warning")


def module_json(view: LinkView) -> str:
    """The module of one interface, see :func:`lumctl.sim.hosts.module.module_text`."""
    pairs = _qsfp28(view) if view.transponder.lane.duplex else _sfp(view)
    lines = f",\n{_INDENT}".join(f"{json.dumps(key)}: {value}" for key, value in pairs)
    return f"[ {{\n{_INDENT}{lines}\n    }} ]\n"


def _sfp(view: LinkView) -> Iterator[tuple[str, str]]:
    yield "identifier", "3"
    yield "identifier_description", '"SFP"'
    yield "extended_identifier", "4"
    yield "extended_identifier_description", '"GBIC/SFP defined by 2-wire interface ID"'
    yield from _connector()
    yield "transceiver_codes", _row(["128", *["0"] * 8])
    yield "transceiver_type", '"10G Ethernet: 10G Base-ER"'
    yield "encoding", "6"
    yield "encoding_description", '"64B/66B"'
    yield "br_nominal", "10300"
    yield "length_(smf)", "40"
    yield "laser_wavelength", "1550"
    yield from _vendor(view)
    yield "optical_diagnostics_support", "true"
    yield "laser_bias_current", _number(module.bias_ma(view), 3)
    yield "laser_output_power", _milliwatts(view.tx_power_dbm)
    yield "rx_power", _object(value=_milliwatts(view.rx_power_dbm), type='"Receiver signal average optical power"')
    yield from _monitors(view)
    yield "alarm/warning_flags_implemented", "true"
    yield from _flags(view, tx="laser_output_power")
    yield from _thresholds(view)


def _qsfp28(view: LinkView) -> Iterator[tuple[str, str]]:
    yield "identifier", "17"
    yield "identifier_description", '"QSFP28"'
    yield "extended_identifier", _object(value="204", description=_row(['"3.5W max. Power consumption"']))
    yield "power_set", "false"
    yield from _connector()
    yield "transceiver_codes", _row(["128", *["0"] * 7])
    yield "transceiver_type", _row(['"100G Ethernet: 100G Base-LR4"'])
    yield "encoding", "5"
    yield "encoding_description", '"64B/66B"'
    yield "br_nominal", "25500"
    yield "length_(smf)", "10"
    yield "laser_wavelength", "1310"
    yield from _vendor(view)
    yield from _monitors(view)
    yield "alarm/warning_flags_implemented", "true"
    yield "laser_tx_bias_current", _row([_number(module.bias_ma(view), 3)] * _CHANNELS)
    yield "transmit_avg_optical_power", _row([_milliwatts(view.tx_power_dbm)] * _CHANNELS)
    received = _row([_milliwatts(view.rx_power_dbm)] * _CHANNELS)
    yield "rx_power", _object(values=received, type='"Rcvr signal avg optical power"')
    for key, exceeded in _flags(view, tx="laser_tx_power"):
        yield key, _row([exceeded] * _CHANNELS)
    yield from _thresholds(view)


def _connector() -> Iterator[tuple[str, str]]:
    yield "connector", "7"
    yield "connector_description", '"LC"'


def _vendor(view: LinkView) -> Iterator[tuple[str, str]]:
    for name, value in module.vendor(view):
        octets = _row([str(int(octet, 16)) for octet in value.split(":")]) if name == "Vendor OUI" else ""
        yield name.lower().replace(" ", "_"), octets or json.dumps(value)


def _monitors(view: LinkView) -> Iterator[tuple[str, str]]:
    yield "module_temperature", _number(view.temperature_c, 2)
    yield "module_voltage", _number(module.VOLTAGE_V, 4)


def _flags(view: LinkView, *, tx: str) -> Iterator[tuple[str, str]]:
    for name, reading, limits in (
        ("laser_bias_current", module.bias_ma(view), module.BIAS_LIMITS),
        (tx, view.tx_power_dbm, module.tx_limits(view)),
        ("laser_rx_power", view.rx_power_dbm, module.rx_limits(view)),
    ):
        for level, limit in zip(_LEVELS, limits, strict=True):
            exceeded = reading > limit if level.startswith("high") else reading < limit
            yield f"{name}_{level}", json.dumps(exceeded)


def _thresholds(view: LinkView) -> Iterator[tuple[str, str]]:
    for name, limits in (
        ("laser_bias_current", [_number(limit, 3) for limit in module.BIAS_LIMITS]),
        ("laser_output_power", [_milliwatts(limit) for limit in module.tx_limits(view)]),
        ("module_temperature", [_number(limit, 2) for limit in module.TEMPERATURE_LIMITS]),
        ("module_voltage", [_number(limit, 4) for limit in module.VOLTAGE_LIMITS]),
        ("laser_rx_power", [_milliwatts(limit) for limit in module.rx_limits(view)]),
    ):
        yield name, _object(**{f"{level}_threshold": limit for level, limit in zip(_LEVELS, limits, strict=True)})


def _object(**pairs: str) -> str:
    inner = f",\n{_INDENT}    ".join(f'"{key}": {value}' for key, value in pairs.items())
    return f"{{\n{_INDENT}    {inner}\n{_INDENT}}}"


def _row(values: list[str]) -> str:
    return f"[ {','.join(values)} ]"


def _milliwatts(dbm: float) -> str:
    return _number(10 ** (dbm / 10), 4)


def _number(value: float, digits: int) -> str:
    """Six digits that count, of a value that the module stores with so many after the point."""
    return f"{round(value, digits):g}"
