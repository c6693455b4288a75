"""The output of ``ethtool -m`` for a simulated module, by the decoders of SFF-8472 (SFP+) and SFF-8636 (QSFP28).

As JSON (``ethtool --json -m``) it is as the text, but without units, and some keys occur twice.
"""

import json
import math
from collections.abc import Iterator

from lumctl.sim.world.links import InterfaceView, LinkView

_BIAS_MA = 36.4
VOLTAGE_V = 3.2947
BIAS_LIMITS = (75.0, 10.0, 70.0, 15.0)
TEMPERATURE_LIMITS = (75.0, -5.0, 70.0, 0.0)
VOLTAGE_LIMITS = (3.63, 2.97, 3.465, 3.135)
_CHANNELS = (1, 2, 3, 4)
_LEVELS = ("high alarm", "low alarm", "high warning", "low warning")


def module_text(view: LinkView) -> str:
    """The module of one interface: a QSFP28 for a duplex port, an SFP+ if transmit and receive ports differ."""
    lines = _qsfp28(view) if view.transponder.lane.duplex else _sfp(view)
    return "".join(f"\t{name:<41} : {value}\n" for name, value in lines)


def speed_mbps(view: InterfaceView) -> int:
    """The speed of the module's interface."""
    return 100_000 if view.transponder.lane.duplex else 10_000


def _sfp(view: LinkView) -> Iterator[tuple[str, str]]:
    yield "Identifier", "0x03 (SFP)"
    yield "Extended identifier", "0x04 (GBIC/SFP defined by 2-wire interface ID)"
    yield "Connector", "0x07 (LC)"
    yield "Transceiver codes", "0x80 0x00 0x00 0x00 0x00 0x00 0x00 0x00 0x00"
    yield "Transceiver type", "10G Ethernet: 10G Base-ER"
    yield "Encoding", "0x06 (64B/66B)"
    yield "BR, Nominal", "10300MBd"
    yield "Length (SMF,km)", "40km"
    yield "Laser wavelength", "1550nm"
    yield from vendor(view)
    yield "Optical diagnostics support", "Yes"
    yield "Laser bias current", _bias(bias_ma(view))
    yield "Laser output power", _power(view.tx_power_dbm)
    yield "Receiver signal average optical power", _power(view.rx_power_dbm)
    yield "Module temperature", _temperature(view.temperature_c)
    yield "Module voltage", _voltage(VOLTAGE_V)
    yield "Alarm/warning flags implemented", "Yes"
    yield from _flags(view)
    yield from _thresholds(view)


def _qsfp28(view: LinkView) -> Iterator[tuple[str, str]]:
    """A QSFP28: four optical lanes on four wavelengths of one fibre. They share the path, so their powers are alike."""
    yield "Identifier", "0x11 (QSFP28)"
    yield "Extended identifier", "0xcc"
    yield "Extended identifier description", "3.5W max. Power consumption"
    yield "Power set", "Off"
    yield "Connector", "0x07 (LC)"
    yield "Transceiver codes", "0x80 0x00 0x00 0x00 0x00 0x00 0x00 0x00"
    yield "Transceiver type", "100G Ethernet: 100G Base-LR4"
    yield "Encoding", "0x05 (64B/66B)"
    yield "BR, Nominal", "25500Mbps"
    yield "Length (SMF,km)", "10km"
    yield "Laser wavelength", "1310.000nm"
    yield from vendor(view)
    yield "Module temperature", _temperature(view.temperature_c)
    yield "Module voltage", _voltage(VOLTAGE_V)
    yield "Alarm/warning flags implemented", "Yes"
    for name, value in (
        ("Laser tx bias current (Channel {})", _bias(bias_ma(view))),
        ("Transmit avg optical power (Channel {})", _power(view.tx_power_dbm)),
        # As ethtool prints it: without a space before this parenthesis.
        ("Rcvr signal avg optical power(Channel {})", _power(view.rx_power_dbm)),
    ):
        for channel in _CHANNELS:
            yield name.format(channel), value
    for channel in _CHANNELS:
        yield from _flags(view, channel)
    yield from _thresholds(view)


def vendor(view: LinkView) -> Iterator[tuple[str, str]]:
    """The vendor and the serial number of a module."""
    yield "Vendor name", "LUMCTL-SIM"
    yield "Vendor OUI", "02:00:00"
    yield "Vendor PN", "LUM-Q28-100G-LR4" if view.transponder.lane.duplex else "LUM-SFP10G-ER"
    yield "Vendor rev", "A1"
    yield "Vendor SN", view.transponder.id.upper().replace("/", "-")[:16]


def _flags(view: LinkView, channel: int | None = None) -> Iterator[tuple[str, str]]:
    """The module's alarm and warning flags, from its readings and its own thresholds."""
    for name, mark, reading, limits in (
        ("Laser bias current", "Chan", bias_ma(view), BIAS_LIMITS),
        ("Laser tx power" if channel else "Laser output power", "Channel", view.tx_power_dbm, tx_limits(view)),
        ("Laser rx power", "Channel", view.rx_power_dbm, rx_limits(view)),
    ):
        for level, limit in zip(_LEVELS, limits, strict=True):
            exceeded = _exceeds(level, reading, limit)
            yield f"{name} {level}" + (f"   ({mark} {channel})" if channel else ""), "On" if exceeded else "Off"


def _thresholds(view: LinkView) -> Iterator[tuple[str, str]]:
    for name, limits, form in (
        ("Laser bias current", BIAS_LIMITS, _bias),
        ("Laser output power", tx_limits(view), _power),
        ("Module temperature", TEMPERATURE_LIMITS, _temperature),
        ("Module voltage", VOLTAGE_LIMITS, _voltage),
        ("Laser rx power", rx_limits(view), _power),
    ):
        for level, limit in zip(_LEVELS, limits, strict=True):
            yield f"{name} {level} threshold", form(limit)


def tx_limits(view: LinkView) -> tuple[float, float, float, float]:
    """High and low alarm, high and low warning of the power that it sends, in dBm."""
    nominal = view.transponder.tx_power_dbm
    return (nominal + 3, nominal - 4, nominal + 2, nominal - 3)


def rx_limits(view: LinkView) -> tuple[float, float, float, float]:
    """High and low alarm, high and low warning of the power that it receives, in dBm."""
    floor, ceiling = view.transponder.rx_sensitivity_dbm, view.transponder.tx_power_dbm
    return (ceiling + 3, floor - 1, ceiling + 2, floor)


def bias_ma(view: LinkView) -> float:
    """The laser's current."""
    return _BIAS_MA if view.tx_power_dbm > -math.inf else 0.0


def _exceeds(level: str, reading: float, limit: float) -> bool:
    return reading > limit if level.startswith("high") else reading < limit


def _power(dbm: float) -> str:
    return f"{10 ** (dbm / 10):.4f} mW / {dbm:.2f} dBm"


def _bias(milliampere: float) -> str:
    return f"{milliampere:.3f} mA"


def _temperature(celsius: float) -> str:
    return f"{celsius:.2f} degrees C / {celsius * 9 / 5 + 32:.2f} degrees F"


def _voltage(volt: float) -> str:
    return f"{volt:.4f} V"


_INDENT = " " * 8
_JSON_LEVELS = tuple(level.replace(" ", "_") for level in _LEVELS)


def module_json(view: LinkView) -> str:
    """The module of one interface, see :func:`module_text`."""
    pairs = _json_qsfp28(view) if view.transponder.lane.duplex else _json_sfp(view)
    lines = f",\n{_INDENT}".join(f"{json.dumps(key)}: {value}" for key, value in pairs)
    return f"[ {{\n{_INDENT}{lines}\n    }} ]\n"


def _json_sfp(view: LinkView) -> Iterator[tuple[str, str]]:
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
    yield from _json_vendor(view)
    yield "optical_diagnostics_support", "true"
    yield "laser_bias_current", _number(bias_ma(view), 3)
    yield "laser_output_power", _milliwatts(view.tx_power_dbm)
    yield "rx_power", _object(value=_milliwatts(view.rx_power_dbm), type='"Receiver signal average optical power"')
    yield from _monitors(view)
    yield "alarm/warning_flags_implemented", "true"
    yield from _json_flags(view, tx="laser_output_power")
    yield from _json_thresholds(view)


def _json_qsfp28(view: LinkView) -> Iterator[tuple[str, str]]:
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
    yield from _json_vendor(view)
    yield from _monitors(view)
    yield "alarm/warning_flags_implemented", "true"
    yield "laser_tx_bias_current", _row([_number(bias_ma(view), 3)] * len(_CHANNELS))
    yield "transmit_avg_optical_power", _row([_milliwatts(view.tx_power_dbm)] * len(_CHANNELS))
    received = _row([_milliwatts(view.rx_power_dbm)] * len(_CHANNELS))
    yield "rx_power", _object(values=received, type='"Rcvr signal avg optical power"')
    for key, exceeded in _json_flags(view, tx="laser_tx_power"):
        yield key, _row([exceeded] * len(_CHANNELS))
    yield from _json_thresholds(view)


def _connector() -> Iterator[tuple[str, str]]:
    yield "connector", "7"
    yield "connector_description", '"LC"'


def _json_vendor(view: LinkView) -> Iterator[tuple[str, str]]:
    for name, value in vendor(view):
        octets = _row([str(int(octet, 16)) for octet in value.split(":")]) if name == "Vendor OUI" else ""
        yield name.lower().replace(" ", "_"), octets or json.dumps(value)


def _monitors(view: LinkView) -> Iterator[tuple[str, str]]:
    yield "module_temperature", _number(view.temperature_c, 2)
    yield "module_voltage", _number(VOLTAGE_V, 4)


def _json_flags(view: LinkView, *, tx: str) -> Iterator[tuple[str, str]]:
    for name, reading, limits in (
        ("laser_bias_current", bias_ma(view), BIAS_LIMITS),
        (tx, view.tx_power_dbm, tx_limits(view)),
        ("laser_rx_power", view.rx_power_dbm, rx_limits(view)),
    ):
        for level, limit in zip(_JSON_LEVELS, limits, strict=True):
            exceeded = _exceeds(level, reading, limit)
            yield f"{name}_{level}", json.dumps(exceeded)


def _json_thresholds(view: LinkView) -> Iterator[tuple[str, str]]:
    for name, limits in (
        ("laser_bias_current", [_number(limit, 3) for limit in BIAS_LIMITS]),
        ("laser_output_power", [_milliwatts(limit) for limit in tx_limits(view)]),
        ("module_temperature", [_number(limit, 2) for limit in TEMPERATURE_LIMITS]),
        ("module_voltage", [_number(limit, 4) for limit in VOLTAGE_LIMITS]),
        ("laser_rx_power", [_milliwatts(limit) for limit in rx_limits(view)]),
    ):
        yield name, _object(**{f"{level}_threshold": limit for level, limit in zip(_JSON_LEVELS, limits, strict=True)})


def _object(**pairs: str) -> str:
    inner = f",\n{_INDENT}    ".join(f'"{key}": {value}' for key, value in pairs.items())
    return f"{{\n{_INDENT}    {inner}\n{_INDENT}}}"


def _row(values: list[str]) -> str:
    return f"[ {','.join(values)} ]"


def _milliwatts(dbm: float) -> str:
    return _number(10 ** (dbm / 10), 4)


def _number(value: float, digits: int) -> str:
    """A value rounded to the decimals that the module stores, with six significant digits."""
    return f"{round(value, digits):g}"
