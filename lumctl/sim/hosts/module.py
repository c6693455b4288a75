"""What ``ethtool -m`` prints of a simulated module, by the decoders of SFF-8472 (SFP+) and SFF-8636 (QSFP28)."""

import math
from collections.abc import Iterator

from lumctl.sim.world.views import InterfaceView, LinkView

_BIAS_MA = 36.4
VOLTAGE_V = 3.2947
BIAS_LIMITS = (75.0, 10.0, 70.0, 15.0)
TEMPERATURE_LIMITS = (75.0, -5.0, 70.0, 0.0)
VOLTAGE_LIMITS = (3.63, 2.97, 3.465, 3.135)
_CHANNELS = (1, 2, 3, 4)
_LEVELS = ("high alarm", "low alarm", "high warning", "low warning")


def module_text(view: LinkView) -> str:
    """The module of one interface: a QSFP28 behind a duplex port, an SFP+ where transmit and receive are apart."""
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
    """Four optical lanes on four colours of one fibre: they share the path, so they read alike."""
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
        ("Rcvr signal avg optical power(Channel {})", _power(view.rx_power_dbm)),
    ):
        for channel in _CHANNELS:
            yield name.format(channel), value
    for channel in _CHANNELS:
        yield from _flags(view, channel)
    yield from _thresholds(view)


def vendor(view: LinkView) -> Iterator[tuple[str, str]]:
    """Its maker and its serial number."""
    yield "Vendor name", "LUMCTL-SIM"
    yield "Vendor OUI", "02:00:00"
    yield "Vendor PN", "LUM-Q28-100G-LR4" if view.transponder.lane.duplex else "LUM-SFP10G-ER"
    yield "Vendor rev", "A1"
    yield "Vendor SN", view.transponder.id.upper().replace("/", "-")[:16]


def _flags(view: LinkView, channel: int | None = None) -> Iterator[tuple[str, str]]:
    """The module's own judgement of its readings by its own thresholds."""
    for name, mark, reading, limits in (
        ("Laser bias current", "Chan", bias_ma(view), BIAS_LIMITS),
        ("Laser tx power" if channel else "Laser output power", "Channel", view.tx_power_dbm, tx_limits(view)),
        ("Laser rx power", "Channel", view.rx_power_dbm, rx_limits(view)),
    ):
        for level, limit in zip(_LEVELS, limits, strict=True):
            exceeded = reading > limit if level.startswith("high") else reading < limit
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


def _power(dbm: float) -> str:
    return f"{10 ** (dbm / 10):.4f} mW / {dbm:.2f} dBm"


def _bias(milliampere: float) -> str:
    return f"{milliampere:.3f} mA"


def _temperature(celsius: float) -> str:
    return f"{celsius:.2f} degrees C / {celsius * 9 / 5 + 32:.2f} degrees F"


def _voltage(volt: float) -> str:
    return f"{volt:.4f} V"
