"""Parses ``lldpctl -f json``: the neighbours that each interface hears.

lldpd's JSON follows its data, not a schema: ``interface`` is an object for one entry, a list for several, and absent
for none; a chassis is listed under its name, or without a name if it sent none.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from lumctl.devices.types import Neighbour

MARK_OUI, MARK_SUBTYPE = "02,6c,6d", "1"
"""The custom TLV that contains a mark: its organisation is in the locally administered range, so no vendor uses it."""

_BEGINS = re.compile(r"^[ \t]*\{", re.MULTILINE)
_DECODER = json.JSONDecoder()
_LONGEST_NAME = 512
"""A field of LLDP contains at most 511 bytes."""
_AGE = re.compile(r"(?:([0-9]{1,6}) days?, )?([0-9]{1,4}):([0-9]{2}):([0-9]{2})")


def parse_lldp(text: str) -> dict[str, tuple[Neighbour, ...]]:
    """Neighbours by local interface, freshest first; empty if the text is not an answer of lldpctl."""
    return neighbours_of(read_lldp(text) or {})


def read_lldp(text: str) -> dict[str, Any] | None:
    """The JSON document of an answer, which warnings may surround; ``None`` if there is none."""
    begins = _BEGINS.search(text)
    try:
        document, _ = _DECODER.raw_decode(text, begins.end() - 1 if begins else 0)
    except (ValueError, RecursionError):
        return None
    whole = isinstance(document, dict) and (not document or isinstance(document.get("lldp"), dict))
    return document if whole else None


def neighbours_of(document: Mapping[str, Any]) -> dict[str, tuple[Neighbour, ...]]:
    """The result of :func:`parse_lldp`, from a document of :func:`read_lldp`."""
    found: dict[str, list[Neighbour]] = defaultdict(list)
    for interface, entry in _entries(document):
        # lldpd also hears CDP and similar protocols, in which a switch may use other names than in LLDP.
        if entry.get("via", "LLDP") != "LLDP":
            continue
        neighbour = _neighbour(entry)
        if neighbour is not None:
            # lldpd adds new neighbours at the end, and ages are whole seconds: of two with the same age, the later
            # entry is the fresher. Marks begin with the time, so they order entries more exactly.
            found[interface].insert(0, neighbour)
    for seen in found.values():
        seen.sort(key=lambda n: n.mark or "", reverse=True)
        # Sorting is stable: entries of the same age stay in the order of their marks.
        seen.sort(key=lambda n: n.age_s)
    return {interface: tuple(seen) for interface, seen in found.items()}


def mark_command(mark: str) -> str:
    """The command that makes lldpd send a mark at once on every interface of its host."""
    content = ",".join(mark[at : at + 2] for at in range(0, len(mark), 2))
    return f"lldpcli configure lldp custom-tlv replace oui {MARK_OUI} subtype {MARK_SUBTYPE} oui-info {content}"


def _entries(document: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for group in _listed(_at(_at(document, "lldp"), "interface")):
        if isinstance(group, dict):
            for interface, entries in group.items():
                for entry in _listed(entries):
                    if isinstance(entry, dict):
                        yield interface, entry


def _neighbour(entry: Mapping[str, Any]) -> Neighbour | None:
    system, port, age = _system(entry.get("chassis")), _port(entry.get("port")), _age(entry.get("age"))
    if system is None or port is None or age is None:
        return None
    return Neighbour(system=system, port=port, age_s=age, mark=_said_mark(entry))


def _said_mark(entry: Mapping[str, Any]) -> str | None:
    for tlv in _listed(_at(entry.get("unknown-tlvs"), "unknown-tlv")):
        oui, value = _text(_at(tlv, "oui")), _text(_at(tlv, "value"))
        if oui and value and oui.lower() == MARK_OUI and _at(tlv, "subtype") == MARK_SUBTYPE:
            return value.replace(",", "").lower()
    return None


def _system(chassis: Any) -> str | None:
    if not isinstance(chassis, dict):
        return None
    own_id = _text(_at(_at(chassis, "id"), "value"))
    if own_id is not None:
        return own_id
    return next((name[:_LONGEST_NAME] for name, about in chassis.items() if isinstance(about, dict)), None)


def _port(port: Any) -> str | None:
    """The far interface's name: its id if that is a name, else its description (lldpd's own id is a MAC)."""
    own_id, kind = _text(_at(_at(port, "id"), "value")), _at(_at(port, "id"), "type")
    return own_id if kind == "ifname" and own_id else _text(_at(port, "descr")) or own_id


def _age(age: Any) -> float | None:
    found = _AGE.search(age) if isinstance(age, str) else None
    if found is None:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


def _at(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, dict) else None


def _text(value: Any) -> str | None:
    return value[:_LONGEST_NAME] if isinstance(value, str) and value else None


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]
