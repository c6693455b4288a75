"""The facts that SONiC reports of a module, under the names of its database, and the reading made from them."""

import math
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

from lumctl.devices.formats.ethtool import Lane, has_no_monitors, module_of
from lumctl.devices.types import OpticsReading

Facts = Mapping[str, str]

_LANE_VALUE = re.compile(r"(?:(?P<side>rx|tx)(?P<lane>[0-9]{0,2})power|tx(?P<biased>[0-9]{0,2})bias)")
_LIMIT = re.compile(r"(?P<what>rxpower|txpower|txbias|temp|vcc)(?P<side>high|low)(?P<level>alarm|warning)")
_LIMITED = {"rxpower": "rx_power", "txpower": "tx_power", "txbias": "bias", "temp": "temperature", "vcc": "voltage"}
_NUMBER = re.compile(r"([+-]?(?:[0-9]{1,9}(?:\.[0-9]{1,20})?|inf))\s*(?:dBm|mA|C|Volts|GHz)?")
_KINDS = ("type", "specification_compliance", "media_interface_technology")
_COPPER = re.compile(r"copper|passive.?cable|rj45|base-?(?:t|cx|cr)[0-9]*\b", re.IGNORECASE)
_NOT_TOLD = frozenset({"", "N/A", "Unknown"})


def reading_of(facts: Facts, taken_at: float) -> OpticsReading:
    """The reading of a plugged-in module. Values that SONiC does not know (``N/A``) are ``None``."""
    vendor, part = _word(facts, "manufacturer"), _word(facts, "model")
    state, fault = _word(facts, "module_state"), _word(facts, "module_fault_cause")
    about = OpticsReading(taken_at, vendor=vendor, part=part, module_state=state, module_fault=fault)
    if any(_COPPER.search(facts.get(key, "")) for key in _KINDS):
        return replace(about, optical=False)
    lanes = _lanes(facts)
    if has_no_monitors(lanes):
        return about
    frequency = _number(facts.get("laser_config_freq"))
    return replace(
        module_of(lanes, taken_at),
        vendor=vendor,
        part=part,
        thresholds=_thresholds(facts),
        module_state=state,
        module_fault=fault,
        frequency_mhz=round(frequency * 1000) if frequency else None,
        target_power_dbm=_number(facts.get("tx_config_power")),
    )


def _lanes(facts: Facts) -> list[Lane]:
    """The module's own temperature and voltage, then the values of each lane; an SFP's only lane has no number."""
    found: dict[str, Lane] = defaultdict(dict)
    for key, text in facts.items():
        match = _LANE_VALUE.fullmatch(key)
        value = _number(text) if match else None
        if match and value is not None:
            kind = f"{match['side']}_power" if match["side"] else "bias"
            found[(match["lane"] or match["biased"]) or "1"][kind] = value
    own = {key: value for key in ("temperature", "voltage") if (value := _number(facts.get(key))) is not None}
    return [{key: value for key, value in own.items() if math.isfinite(value)}, *found.values()]


def _thresholds(facts: Facts) -> dict[str, float]:
    found: dict[str, float] = {}
    for key, text in facts.items():
        match = _LIMIT.fullmatch(key)
        value = _number(text) if match else None
        if match and value is not None and math.isfinite(value):
            found[f"{_LIMITED[match['what']]}_{match['side']}_{match['level']}"] = value
    return found


def _number(text: str | None) -> float | None:
    match = _NUMBER.fullmatch(text.strip()) if text is not None else None
    return float(match[1]) if match else None


def _word(facts: Facts, key: str) -> str | None:
    text = "".join(character for character in facts.get(key, "") if character.isprintable()).strip()
    return None if text in _NOT_TOLD else text[:80]
