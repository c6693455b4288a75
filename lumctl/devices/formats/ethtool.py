"""``ethtool -m IFACE``: the module of an interface, as SFP (SFF-8472), QSFP (SFF-8636) or CMIS prints it.

Power lines give milliwatts and dBm; a module with several lanes gives one line per channel. The reading is one value
per module: the weakest lane's powers (a dark lane must show) and the highest bias (an ageing laser must show). Lanes
that the module has and the port does not use are left out.
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterable

from lumctl.devices.types import OpticsReading

_LINE = re.compile(r"\s*(?P<key>[^:]{1,80}?)\s*:\s?(?P<value>.*)")
_LANE = re.compile(r"\s*\((?:channel|chan|lane)\s*(\d+)\)", re.IGNORECASE)
_DBM = re.compile(r"([+-]?(?:[0-9]{1,6}(?:\.[0-9]{1,9})?|inf))\s*dBm", re.IGNORECASE)
_MILLIWATT = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,9})?)\s*mW")
_NUMBER = re.compile(r"[+-]?[0-9]{1,9}(?:\.[0-9]{1,9})?")
_THRESHOLD = re.compile(r"(?P<what>.+) (?P<side>high|low) (?P<level>alarm|warning) threshold")

_VALUES = {
    "laser bias current": "bias",
    "laser tx bias current": "bias",
    "laser output power": "tx_power",
    "transmit avg optical power": "tx_power",
    "receiver signal average optical power": "rx_power",
    "rcvr signal avg optical power": "rx_power",
    # Printed instead where the module measures the modulation's amplitude and not the average.
    "receiver signal oma": "rx_power",
    "module temperature": "temperature",
    "module voltage": "voltage",
}
_THRESHOLDS = {
    "laser bias current": "bias",
    "laser output power": "tx_power",
    "laser rx power": "rx_power",
    "module temperature": "temperature",
    "module voltage": "voltage",
}
# Where a module says what it is made of. "Length (Copper)" is not among them: optical modules print it too, as 0 m.
_KIND_KEYS = ("connector", "transmitter technology", "transceiver type", "cable technology", "media type")
_COPPER = re.compile(r"copper|passive cable|rj45|base-(?:t|cx|cr)", re.IGNORECASE)
_DARK_DBM = -40.0
"""The least power that a module can state, 0.1 uW: a laser that is off is printed as this or as ``-inf``."""

_Lane = dict[str, float]
"""What one lane states; what is the module's own, temperature and voltage, stands under no lane."""


def parse_ethtool_module(text: str, taken_at: float) -> OpticsReading:
    """Read a module's page. What it does not print is ``None``; copper is not optical and has no powers."""
    lines = [_normal(match) for line in text.splitlines() if (match := _LINE.match(line))]
    words = dict(reversed(lines))
    vendor, part = words.get("vendor name") or None, words.get("vendor pn") or None
    if _is_copper(lines):
        return OpticsReading(taken_at=taken_at, optical=False, vendor=vendor, part=part)
    lanes = _values(text)
    if _has_no_monitors(lanes):
        return OpticsReading(taken_at=taken_at, optical=True, vendor=vendor, part=part)
    used = _used(lanes)
    tx_powers = _each(used, "tx_power")
    return OpticsReading(
        taken_at=taken_at,
        optical=True,
        transmitting=max(tx_powers) > _DARK_DBM if tx_powers else None,
        rx_power_dbm=min(_each(used, "rx_power"), default=None),
        tx_power_dbm=min(tx_powers, default=None),
        bias_ma=max(_each(used, "bias"), default=None),
        temperature_c=next(iter(_each(lanes, "temperature")), None),
        voltage_v=next(iter(_each(lanes, "voltage")), None),
        vendor=vendor,
        part=part,
        thresholds=_thresholds(lines),
    )


def _normal(match: re.Match[str]) -> tuple[str, str]:
    """A line's key in lower case, single-spaced and without its lane, and its value."""
    return " ".join(_LANE.sub("", match["key"]).lower().split()), match["value"].strip()


def _is_copper(lines: Iterable[tuple[str, str]]) -> bool:
    return any(key.startswith("passive cu") or (key in _KIND_KEYS and _COPPER.search(value)) for key, value in lines)


def _values(text: str) -> list[_Lane]:
    """What each lane states, and what is stated of none."""
    found: dict[str, _Lane] = defaultdict(dict)
    for line in text.splitlines():
        if match := _LINE.match(line):
            key, stated = _normal(match)
            kind, lane = _VALUES.get(key), _LANE.search(match["key"])
            value = _quantity(kind, stated) if kind else None
            if kind and value is not None:
                found[lane[1] if lane else ""].setdefault(kind, value)
    return list(found.values())


def _each(lanes: Iterable[_Lane], kind: str) -> list[float]:
    return [lane[kind] for lane in lanes if kind in lane]


def _has_no_monitors(lanes: list[_Lane]) -> bool:
    """Whether a module only fills its monitors' places: none that works is at 0 V."""
    stated = {kind for lane in lanes for kind in lane}
    nothing = not any(lane.get("temperature") or lane.get("voltage") for lane in lanes)
    return {"temperature", "voltage"} <= stated and nothing and not any(map(_is_lit, lanes))


def _used(lanes: list[_Lane]) -> list[_Lane]:
    """The lanes in use: beside one that is lit, one that neither sends nor receives is not wired to anything.

    Where nothing is lit all of them stay, and so does a lane that sends: its receiver may have lost its light.
    """
    lit = [lane for lane in lanes if _is_lit(lane)]
    return [lane for lane in lanes if _is_lit(lane) or not {"tx_power", "bias"} & lane.keys()] if lit else lanes


def _is_lit(lane: _Lane) -> bool:
    powers = (lane.get("tx_power", -math.inf), lane.get("rx_power", -math.inf))
    return max(powers) > _DARK_DBM or lane.get("bias", 0.0) > 0


def _thresholds(lines: Iterable[tuple[str, str]]) -> dict[str, float]:
    found: dict[str, float] = {}
    for key, text in lines:
        match = _THRESHOLD.fullmatch(key)
        kind = _THRESHOLDS.get(match["what"]) if match else None
        value = _quantity(kind, text) if kind else None
        if match and value is not None:
            found[f"{kind}_{match['side']}_{match['level']}"] = value
    return found


def _quantity(kind: str | None, text: str) -> float | None:
    """A power in dBm (``-inf`` is no light), anything else in the first unit that is printed."""
    if kind in {"tx_power", "rx_power"}:
        if dbm := _DBM.search(text):
            return float(dbm[1])
        milliwatt = _MILLIWATT.search(text)
        return _dbm(float(milliwatt[1])) if milliwatt else None
    number = _NUMBER.match(text)
    return float(number[0]) if number else None


def _dbm(milliwatt: float) -> float:
    return 10 * math.log10(milliwatt) if milliwatt > 0 else -math.inf
