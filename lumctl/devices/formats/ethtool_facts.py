"""What ``ethtool -m`` states, one fact at a time, from its text or from its JSON (``ethtool --json -m``).

The JSON leaves units out, gives the lanes of a value as a list, and uses a key twice in one object: for a value, and
for its limits.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

_LINE = re.compile(r"\s*(?P<key>[^:]{1,80}?)\s*:\s?(?P<value>.*)")
_LANE = re.compile(r"\s*\((?:channel|chan|lane)\s*(\d+)\)", re.IGNORECASE)
_JSON = re.compile(r"^\s*\[\s*\{", re.MULTILINE)
_LISTED = {"laser_tx_bias_current", "transmit_avg_optical_power", "values"}
"""The keys that list a value for each lane; a module of many lanes repeats them for every bank of eight."""
_RECEIVED, _DESCRIPTION = "rx_power", "_description"
_LEVELS = ("high_alarm", "low_alarm", "high_warning", "low_warning")


class Fact(NamedTuple):
    """One fact: its key in lower case and single-spaced, its lane (empty for what the module has once), its value."""

    key: str
    lane: str
    value: str


def facts_of(text: str) -> list[Fact] | None:
    """All facts of an answer, in its order, limits by their names in the text form; ``None`` for JSON cut short."""
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
    """An object of JSON."""


def _fact(match: re.Match[str]) -> Fact:
    lane = _LANE.search(match["key"])
    return Fact(" ".join(_LANE.sub("", match["key"]).lower().split()), lane[1] if lane else "", match["value"].strip())


def _facts(module: object) -> Iterator[Fact]:
    lanes: Counter[str] = Counter()
    pairs = module if isinstance(module, _Pairs) else _Pairs()
    described = {name.removesuffix(_DESCRIPTION) for name, _ in pairs if name.endswith(_DESCRIPTION)}
    for name, value in pairs:
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
    """``{"value": 0.05, "type": "Receiver signal OMA"}``, or a list of ``values``."""
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
    """``"laser_bias_current": {"high_alarm_threshold": 75}``, whose words newer versions put the other way round."""
    what = name.removesuffix("_threshold")
    for level, limit in value:
        if level.removesuffix("_threshold") in _LEVELS:
            yield Fact(_key(f"{what}_{level.removesuffix('_threshold')}_threshold"), "", _with_unit(what, limit))


def _key(name: str) -> str:
    """A key of the JSON as it stands in the text, where a description stands beside the number that it describes."""
    key = " ".join(name.replace("_", " ").lower().split())
    return key.removesuffix(" description").removesuffix(" measurement")


_MOST_MW = 1e9


def _with_unit(name: str, value: object) -> str:
    # A number that no float holds is no power: as text it counts as unread.
    if "power" in name and isinstance(value, float | int) and not isinstance(value, bool) and abs(value) < _MOST_MW:
        return f"{value:.4f} mW"
    return str(value)
