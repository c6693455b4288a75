"""The switch's data model as XML: filters, edits, and the parsing of replies.

The model is the public one (namespace ``optical-switch``, and ``polatis-switch`` for alarms) of 2017-08-04 and later;
earlier revisions have the joins in a list of another name. An invalid value raises ``ValueError``.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from xml.etree.ElementTree import Element
from xml.sax.saxutils import escape

from lumctl.devices.types import Alarm, PortReading
from lumctl_polatis.words import DARK_DBM

NS = "http://www.polatis.com/yang/optical-switch"
ALARM_NS = "http://www.polatis.com/yang/polatis-switch"
LABEL = re.compile(r"(?:[!-~](?:[ -~]{0,126}[!-~])?)?")
"""Labels that every switch accepts and that XML preserves: printable ASCII, no space at either end."""

PRODUCT = f'<product-information xmlns="{NS}"/>'
JOINS = f'<cross-connects xmlns="{NS}"/>'
PORTS = f'<port-config xmlns="{NS}"/>'
POWERS = f'<opm-power xmlns="{NS}"/>'
ALARMS = f'<system-alarms xmlns="{ALARM_NS}"/>'

_ENABLED = {"ENABLED": True, "DISABLED": False}
_MODEL_SIZE = re.compile(r"-([0-9]{1,4})x([0-9]{1,4}|CC)\b")


def edit_joins(remove: Iterable[tuple[int, int]], add: Iterable[tuple[int, int]]) -> str:
    """The edit that removes and adds joins. An ingress that only gets another egress keeps its entry."""
    made = dict(add)
    gone = (f'<pair nc:operation="delete"><ingress>{i + 1}</ingress></pair>' for i, _ in remove if i not in made)
    new = (f"<pair><ingress>{i + 1}</ingress><egress>{e + 1}</egress></pair>" for i, e in made.items())
    return f'<cross-connects xmlns="{NS}">{"".join(gone)}{"".join(new)}</cross-connects>'


def edit_label(port: int, label: str) -> str:
    """The edit that sets a label; an empty label, which is the default, removes it."""
    # A delete fails if there is no label; the driver sends nothing then.
    leaf = f"<label>{escape(label)}</label>" if label else '<label nc:operation="delete"/>'
    return f'<port-config xmlns="{NS}"><port><port-id>{port + 1}</port-id>{leaf}</port></port-config>'


def set_state(port: int, *, enabled: bool) -> str:
    """The operation that enables or disables a port; it is not part of the configuration."""
    leaf = "port-enab" if enabled else "port-disab"
    return f'<port-set-state xmlns="{NS}"><{leaf}>{port + 1}</{leaf}></port-set-state>'


def read_joins(data: Element) -> dict[int, int]:
    """The joins as ingress -> egress; an entry without an egress is not a join."""
    joins: dict[int, int] = {}
    for entry in _entries(data, "cross-connects"):
        if entry.tag != _name("pair"):
            raise ValueError("its connections are not in the list that has contained them since 2017-08-04")
        ingress, egress = (entry.findtext(_name(leaf)) for leaf in ("ingress", "egress"))
        if egress is not None:
            joins[_port(ingress)] = _port(egress)
    if len({*joins, *joins.values()}) != 2 * len(joins):
        raise ValueError("a port is connected twice")
    return joins


def read_ports(data: Element) -> dict[int, PortReading]:
    """The readings of the ports in a reply, by port."""
    ports: dict[int, PortReading] = {}
    for entry in _entries(data, "port-config"):
        port, status = _port(entry.findtext(_name("port-id"))), entry.findtext(_name("status"), "").strip()
        label = entry.findtext(_name("label")) or ""
        ports[port] = PortReading(port, _ENABLED.get(status), failed=status == "FAILED", label=label)
    return ports


def read_powers(data: Element) -> dict[int, float]:
    """The powers of the power monitors, in dBm; ``-inf`` for no light."""
    powers: dict[int, float] = {}
    for entry in _entries(data, "opm-power"):
        dbm = float(entry.findtext(_name("power")) or "")
        if math.isnan(dbm):
            raise ValueError("a power that is not a number")
        powers[_port(entry.findtext(_name("port-id")))] = dbm if dbm > DARK_DBM else -math.inf
    return powers


def read_alarms(data: Element) -> tuple[Alarm, ...]:
    """The active alarms."""
    return tuple(
        Alarm(
            text=" ".join(entry.findtext(f"{{{ALARM_NS}}}alarm-message", "").split()) or "an alarm without a message",
            source=entry.findtext(f"{{{ALARM_NS}}}alarm-type", "").strip(),
            since=_epoch(entry.findtext(f"{{{ALARM_NS}}}alarm-time")),
        )
        for entry in data.findall(f"{{{ALARM_NS}}}system-alarms/{{{ALARM_NS}}}alarm")
    )


def read_product(data: Element) -> Mapping[str, str]:
    """Maker, model, serial number and version, as far as the switch states them."""
    found = data.find(_name("product-information"))
    return {
        leaf.tag.rpartition("}")[2]: " ".join((leaf.text or "").split()) for leaf in (() if found is None else found)
    }


def inputs_of(model_name: str) -> int | None:
    """The number of inputs, from the model name (``-16x16-``, ``-32xCC-``); ``None`` if the name does not say."""
    # With a dash before it, because a name may begin with its size.
    match = _MODEL_SIZE.search(f"-{model_name}")
    return int(match[1]) if match else None


def _entries(data: Element, container: str) -> Iterator[Element]:
    for found in data.findall(_name(container)):
        yield from found


def _name(leaf: str) -> str:
    return f"{{{NS}}}{leaf}"


def _port(text: str | None) -> int:
    port = int((text or "").strip()) - 1
    if port < 0:
        raise ValueError("a port number that is not valid")
    return port


def _epoch(text: str | None) -> float | None:
    try:
        return datetime.fromisoformat((text or "").strip()).timestamp()
    except (ValueError, OverflowError):
        return None
