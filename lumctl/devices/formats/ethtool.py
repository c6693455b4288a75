"""Parses ``ethtool -m IFACE``: the optical module of an interface, of type SFP (SFF-8472), QSFP (SFF-8636) or CMIS.

Power lines give milliwatts and dBm; a module with several lanes gives one line per channel. The reading has one value
per module, that of the worst lane in use (see :func:`module_of`).

Alarm flags are not read. A module latches them until they are read, so a flag may be a week old, or may be gone because
another program read it. Some versions of ethtool also show a CMIS lane's flag from the wrong bit. The values and limits
show the present state. Only a transmitter's fault flag is read, because no value shows it.
"""

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from lumctl.devices.types import OpticsReading

DARK_DBM = -40.0
"""The lowest power that a module can report (0.1 uW): ethtool prints this or ``-inf`` for a laser that is off."""

Lane = dict[str, float]
"""The values of one lane; the values of the whole module, temperature and voltage, belong to no lane."""


def module_of(lanes: list[Lane], taken_at: float) -> OpticsReading:
    """A module's reading from its lanes: lowest powers, highest ``bias`` and ``ber``, ``temperature``, ``voltage``."""
    used = _used(lanes)
    tx_powers = _each(used, "tx_power")
    return OpticsReading(
        taken_at=taken_at,
        optical=True,
        transmitting=max(tx_powers) > DARK_DBM if tx_powers else None,
        rx_power_dbm=min(_each(used, "rx_power"), default=None),
        tx_power_dbm=min(tx_powers, default=None),
        bias_ma=max(_each(used, "bias"), default=None),
        temperature_c=next(iter(_each(lanes, "temperature")), None),
        voltage_v=next(iter(_each(lanes, "voltage")), None),
        pre_fec_ber=max(_each(used, "ber"), default=None),
    )


def has_no_monitors(lanes: list[Lane]) -> bool:
    """Whether a module has no monitors and fills their fields with zeros: a working module is never at 0 V."""
    stated = {kind for lane in lanes for kind in lane}
    nothing = not any(lane.get("temperature") or lane.get("voltage") for lane in lanes)
    return {"temperature", "voltage"} <= stated and nothing and not any(map(_is_lit, lanes))


def _each(lanes: Iterable[Lane], kind: str) -> list[float]:
    return [lane[kind] for lane in lanes if kind in lane]


def _used(lanes: list[Lane]) -> list[Lane]:
    """The lanes in use: if one lane has light, a lane that neither sends nor receives is not wired.

    If no lane has light, all lanes count. A lane that sends always counts: its receiver may have lost its light.
    """
    lit = [lane for lane in lanes if _is_lit(lane)]
    return [lane for lane in lanes if _is_lit(lane) or not {"tx_power", "bias"} & lane.keys()] if lit else lanes


def _is_lit(lane: Lane) -> bool:
    powers = (lane.get("tx_power", -math.inf), lane.get("rx_power", -math.inf))
    return max(powers) > DARK_DBM or lane.get("bias", 0.0) > 0


_LINE = re.compile(r"\s*(?P<key>[^:]{1,80}?)\s*:\s?(?P<value>.*)")
_LANE = re.compile(r"\s*\((?:channel|chan|lane)\s*(\d+)\)", re.IGNORECASE)
_JSON = re.compile(r"^\s*\[\s*\{", re.MULTILINE)
_LISTED = {"laser_tx_bias_current", "transmit_avg_optical_power", "values"}
"""The keys that list a value for each lane; a module of many lanes repeats them for every bank of eight."""
_RECEIVED, _DESCRIPTION = "rx_power", "_description"
_LEVELS = ("high_alarm", "low_alarm", "high_warning", "low_warning")


class Fact(NamedTuple):
    """One fact: its key in lower case with single spaces, its lane (empty for the whole module), its value."""

    key: str
    lane: str
    value: str


def facts_of(text: str) -> list[Fact] | None:
    """All facts in order; limits have the names of the text form. ``None`` if the JSON is incomplete."""
    begins = _JSON.search(text)
    if begins is None:
        return [_fact(match) for line in text.splitlines() if (match := _LINE.match(line))]
    try:
        # As pairs, because a dictionary would keep only the last of two values under one key.
        document, _ = json.JSONDecoder(object_pairs_hook=_Pairs).raw_decode(text, begins.start())
    except (ValueError, RecursionError):
        return None
    return [fact for module in document for fact in _facts(module)] if isinstance(document, list) else None


class _Pairs(list[tuple[str, Any]]):
    """A JSON object as pairs of key and value."""


def _fact(match: re.Match[str]) -> Fact:
    lane = _LANE.search(match["key"])
    return Fact(" ".join(_LANE.sub("", match["key"]).lower().split()), lane[1] if lane else "", match["value"].strip())


def _facts(module: object) -> Iterator[Fact]:
    lanes: Counter[str] = Counter()
    pairs = module if isinstance(module, _Pairs) else _Pairs()
    described = {name.removesuffix(_DESCRIPTION) for name, _ in pairs if name.endswith(_DESCRIPTION)}
    for name, value in pairs:
        # This is the number; the text form has only the description next to it.
        if name in described:
            continue
        if isinstance(value, _Pairs):
            if name == _RECEIVED:
                yield from _received(value, lanes)
            else:
                yield from _limits(name, value)
        elif isinstance(value, list) and name in _LISTED:
            yield from _of_lanes(_key(name), name, value, lanes)
        elif isinstance(value, list):
            yield from (Fact(_key(name), "", str(item)) for item in value)
        else:
            yield Fact(_key(name), "", _with_unit(name, value))


def _received(value: _Pairs, lanes: Counter[str]) -> Iterator[Fact]:
    """Facts of ``{"value": 0.05, "type": "Receiver signal OMA"}``, or of a list of ``values``."""
    kind = next((str(item) for name, item in value if name == "type"), "")
    for name, item in value:
        if name == "value":
            yield Fact(_key(kind), "", _with_unit("power", item))
        elif name == "values" and isinstance(item, list):
            yield from _of_lanes(_key(kind), "power", item, lanes)


def _of_lanes(key: str, name: str, values: list[Any], lanes: Counter[str]) -> Iterator[Fact]:
    for value in values:
        lanes[key] += 1
        yield Fact(key, str(lanes[key]), _with_unit(name, value))


def _limits(name: str, value: _Pairs) -> Iterator[Fact]:
    """Facts of ``"laser_bias_current": {"high_alarm_threshold": 75}``; newer versions order the words differently."""
    what = name.removesuffix("_threshold")
    for level, limit in value:
        if level.removesuffix("_threshold") in _LEVELS:
            yield Fact(_key(f"{what}_{level.removesuffix('_threshold')}_threshold"), "", _with_unit(what, limit))


def _key(name: str) -> str:
    """A JSON key in the form of the text, where a description stands next to the number that it describes."""
    key = " ".join(name.replace("_", " ").lower().split())
    return key.removesuffix(" description").removesuffix(" measurement")


_MOST_MW = 1e9


def _with_unit(name: str, value: object) -> str:
    # A number this large is not a power: without a unit it counts as unread.
    if "power" in name and isinstance(value, float | int) and not isinstance(value, bool) and abs(value) < _MOST_MW:
        return f"{value:.4f} mW"
    return str(value)


_DBM = re.compile(r"([+-]?(?:[0-9]{1,6}(?:\.[0-9]{1,9})?|inf))\s*dBm", re.IGNORECASE)
_MILLIWATT = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,9})?)\s*mW")
# The lookahead refuses part of a number: of 1.2.3, or of one with too many digits.
_NUMBER = re.compile(r"[+-]?[0-9]{1,9}(?:\.[0-9]{1,9})?(?![0-9.])")
_RATE = re.compile(r"[0-9](?:\.[0-9]{1,9})?(?:[eE]-?[0-9]{1,3})?")
_THRESHOLD = re.compile(r"(?P<what>.+) (?P<side>high|low) (?P<level>alarm|warning) threshold")
_DESCRIBED = re.compile(r"(?:0x[0-9a-f]+ )?\(?([^()]+)\)?", re.IGNORECASE)
_NOT_TOLD = re.compile(r"(?:n/a|none|unknown|not supported|unsupported|invalid|)$", re.IGNORECASE)

_VALUES = {
    "laser bias current": "bias",
    "laser tx bias current": "bias",
    "laser output power": "tx_power",
    "transmit avg optical power": "tx_power",
    "receiver signal average optical power": "rx_power",
    "rcvr signal avg optical power": "rx_power",
    # Printed instead if the module measures the amplitude of the modulation, not the average.
    "receiver signal oma": "rx_power",
    "module temperature": "temperature",
    "module voltage": "voltage",
    "pre-fec ber": "ber",
    "pre fec ber": "ber",
}
_THRESHOLDS = {
    "laser bias current": "bias",
    "laser output power": "tx_power",
    "laser rx power": "rx_power",
    "module temperature": "temperature",
    "module voltage": "voltage",
}
_POWERS = frozenset({"tx_power", "rx_power"})
# Fields that show whether a module is copper. "Length (Copper)" is not one: optical modules print it too, as 0 m.
_KIND_KEYS = ("connector", "transmitter technology", "transceiver type", "cable technology", "media type")
_COPPER = re.compile(r"copper|passive cable|rj45|base-(?:t|cx|cr)", re.IGNORECASE)
_STATES_POWER = re.compile(r"qsfp(?!.*(?:dd|cmis))", re.IGNORECASE)
"""Identifiers of modules that always state the received power."""
_LAST_LIMIT = "laser rx power low warning threshold"
_FAULT = re.compile(r"\b(?:yes|on|true)\b", re.IGNORECASE)
_STEP_MW, _STEP_DBM = 6e-5, 0.02
"""Rounding steps of one power in its two units: milliwatts have four decimals, dBm two."""


@dataclass(frozen=True, slots=True)
class ModuleAnswer:
    """A parsed answer. ``reading`` is ``None`` if it is not a module; ``unread`` is an unreadable value."""

    reading: OpticsReading | None
    unread: str | None = None


def parse_ethtool_module(text: str, taken_at: float) -> OpticsReading:
    """Parse a module's page. Values that it does not print are ``None``; copper is not optical and has no powers."""
    return _reading(facts_of(text) or [], taken_at)


def read_ethtool_module(text: str, taken_at: float) -> ModuleAnswer:
    """Parse a module's page; also return whether it is a module's page and whether all of it could be read."""
    facts = facts_of(text) or []
    if not any(fact.key == "identifier" and fact.value for fact in facts):
        return ModuleAnswer(None)
    reading = _reading(facts, taken_at)
    unread = [f"{fact.key}: {fact.value}" for fact in facts if _is_unread(fact)]
    if _lacks_received_power(facts):
        unread.append("it lacks the received power of some lanes")
    if _lacks_limits(facts):
        unread.append("the answer ends before the module's limits")
    return ModuleAnswer(reading, next(iter(unread), None) if reading.optical else None)


def _lacks_received_power(facts: list[Fact]) -> bool:
    """Whether an answer was cut before the received powers that such a module states.

    Under CMIS a module may omit the powers, but then the later part of the answer must be present.
    """
    words = {fact.key: fact.value.lower() for fact in reversed(facts)}
    sending, receiving = ({f.lane for f in facts if _VALUES.get(f.key) == kind} for kind in ("bias", "rx_power"))
    if receiving:
        return not sending <= receiving
    if "module state" in words:
        return bool(sending) and not any(key.endswith(("alarm", "threshold")) for key in words)
    supported = words.get("optical diagnostics support") in {"yes", "true"}
    return supported or bool(sending) or _STATES_POWER.search(words["identifier"]) is not None


def _lacks_limits(facts: list[Fact]) -> bool:
    """Whether an answer was cut before or within the limits that the module has: ethtool prints them last.

    A module reports whether it has limits: in a separate field or, under CMIS, by having alarm and warning flags.
    """
    words = {fact.key: fact.value.lower() for fact in facts}
    said = words.get("alarm/warning flags implemented")
    if said is None and words.get("optical diagnostics support") in {"yes", "true"}:
        return any(_VALUES.get(fact.key) == "bias" for fact in facts)
    by_flags = "module state" in words and any(key.endswith((" alarm", " warning", " threshold")) for key in words)
    return (by_flags or said in {"yes", "true"}) and _LAST_LIMIT not in words


def _reading(facts: list[Fact], taken_at: float) -> OpticsReading:
    # Reversed, so that the first of several values under one key counts, as it does in _values().
    words = {fact.key: fact.value for fact in reversed(facts)}
    vendor, part = words.get("vendor name") or None, words.get("vendor pn") or None
    if _is_copper(facts):
        return OpticsReading(taken_at=taken_at, optical=False, vendor=vendor, part=part)
    lanes = _values(facts)
    state, fault = _described(words, "module state"), _described(words, "module fault cause")
    if has_no_monitors(lanes):
        return OpticsReading(taken_at, vendor=vendor, part=part, module_state=state, module_fault=fault)
    return replace(
        module_of(lanes, taken_at),
        vendor=vendor,
        part=part,
        thresholds=_thresholds(facts),
        module_state=state,
        module_fault=fault,
        tx_fault=_tx_fault(facts),
    )


def _tx_fault(facts: Iterable[Fact]) -> bool | None:
    """Whether a transmitter reports a fault; ``None`` if unknown. The value may be ``[ No, Yes ]``."""
    said = [fact.value for fact in facts if fact.key == "tx fault"]
    return any(_FAULT.search(value) for value in said) if said else None


def _is_copper(facts: Iterable[Fact]) -> bool:
    return any(f.key.startswith("passive cu") or (f.key in _KIND_KEYS and _COPPER.search(f.value)) for f in facts)


def _described(words: dict[str, str], key: str) -> str | None:
    """The word in a value: ``ModuleReady`` in ``0x03 (ModuleReady)``."""
    found = _DESCRIBED.fullmatch(words.get(key, ""))
    return found[1].strip() if found else None


def _values(facts: Iterable[Fact]) -> list[Lane]:
    """The values of each lane, and those of the whole module."""
    found: dict[str, Lane] = defaultdict(dict)
    for fact in facts:
        kind = _VALUES.get(fact.key)
        value = _quantity(kind, fact.value) if kind else None
        if kind and value is not None:
            found[fact.lane].setdefault(kind, value)
    return list(found.values())


def _thresholds(facts: Iterable[Fact]) -> dict[str, float]:
    found: dict[str, float] = {}
    for fact in facts:
        match = _THRESHOLD.fullmatch(fact.key)
        kind = _THRESHOLDS.get(match["what"]) if match else None
        value = _quantity(kind, fact.value) if kind else None
        if match and value is not None:
            found[f"{kind}_{match['side']}_{match['level']}"] = value
    return found


def _is_unread(fact: Fact) -> bool:
    """Whether a fact should be a quantity but cannot be read as one."""
    match = _THRESHOLD.fullmatch(fact.key)
    kind = _THRESHOLDS.get(match["what"]) if match else _VALUES.get(fact.key)
    return kind is not None and not _NOT_TOLD.match(fact.value) and _quantity(kind, fact.value) is None


def _quantity(kind: str | None, text: str) -> float | None:
    """A power in dBm (``-inf`` is no light), or another quantity in the first unit that is printed."""
    if kind in _POWERS:
        return _power(text)
    number = (_RATE.fullmatch if kind == "ber" else _NUMBER.match)(text)
    return float(number[0]) if number else None


def _power(text: str) -> float | None:
    """A power that is given in both units or in one; ``None`` if the two values differ."""
    in_dbm, in_milliwatt = _DBM.search(text), _MILLIWATT.search(text)
    milliwatt = float(in_milliwatt[1]) if in_milliwatt else None
    if in_dbm is None:
        # After a slash ethtool prints the same power in dBm; here that part could not be read.
        return None if milliwatt is None or "/" in text else _dbm(milliwatt)
    dbm = float(in_dbm[1])
    if milliwatt is None:
        return dbm
    least, most = _dbm(milliwatt - _STEP_MW), _dbm(milliwatt + _STEP_MW)
    return dbm if least - _STEP_DBM <= dbm <= most + _STEP_DBM else None


def _dbm(milliwatt: float) -> float:
    return 10 * math.log10(milliwatt) if milliwatt > 0 else -math.inf
