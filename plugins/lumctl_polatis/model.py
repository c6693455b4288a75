"""The switch's data model as XML: what is asked for, what is written, and what comes back as values.

The model is the public one (namespace ``optical-switch``, and ``polatis-switch`` for alarms), of 2017-08-04 and later:
before, joins stood in a list of another name. What cannot be read as what it should be is a ``ValueError``.
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
"""Labels that every switch takes and XML brings back as they are: printable ASCII, no space at either end."""

PRODUCT = f'<product-information xmlns="{NS}"/>'
JOINS = f'<cross-connects xmlns="{NS}"/>'
PORTS = f'<port-config xmlns="{NS}"/>'
POWERS = f'<opm-power xmlns="{NS}"/>'
ALARMS = f'<system-alarms xmlns="{ALARM_NS}"/>'

_ENABLED = {"ENABLED": True, "DISABLED": False}
_MODEL_SIZE = re.compile(r"-([0-9]{1,4})x([0-9]{1,4}|CC)\b")


def edit_joins(remove: Iterable[tuple[int, int]], add: Iterable[tuple[int, int]]) -> str:
    """Joins to take away and to make. An ingress that only gets another egress keeps its entry."""
    made = dict(add)
    gone = (f'<pair nc:operation="delete"><ingress>{i + 1}</ingress></pair>' for i, _ in remove if i not in made)
    new = (f"<pair><ingress>{i + 1}</ingress><egress>{e + 1}</egress></pair>" for i, e in made.items())
    return f'<cross-connects xmlns="{NS}">{"".join(gone)}{"".join(new)}</cross-connects>'


def edit_label(port: int, label: str) -> str:
    """A label to set; an empty one, which is the default, is taken away."""
    leaf = f"<label>{escape(label)}</label>" if label else '<label nc:operation="delete"/>'
    return f'<port-config xmlns="{NS}"><port><port-id>{port + 1}</port-id>{leaf}</port></port-config>'


def set_state(port: int, *, enabled: bool) -> str:
    """The operation that lets light through a port or not: it is no part of the configuration."""
    leaf = "port-enab" if enabled else "port-disab"
    return f'<port-set-state xmlns="{NS}"><{leaf}>{port + 1}</{leaf}></port-set-state>'


def read_joins(data: Element) -> dict[int, int]:
    """Ingress -> egress; an entry without an egress joins nothing."""
    joins: dict[int, int] = {}
    for entry in _entries(data, "cross-connects"):
        if entry.tag != _name("pair"):
            raise ValueError("its joins are not in the list that they are in since 2017-08-04")
        ingress, egress = (entry.findtext(_name(leaf)) for leaf in ("ingress", "egress"))
        if egress is not None:
            joins[_port(ingress)] = _port(egress)
    if len({*joins, *joins.values()}) != 2 * len(joins):
        raise ValueError("a port is joined twice")
    return joins


def read_ports(data: Element) -> dict[int, PortReading]:
    """The ports that are told of."""
    ports: dict[int, PortReading] = {}
    for entry in _entries(data, "port-config"):
        port, status = _port(entry.findtext(_name("port-id"))), entry.findtext(_name("status"), "").strip()
        label = entry.findtext(_name("label")) or ""
        ports[port] = PortReading(port, _ENABLED.get(status), failed=status == "FAILED", label=label)
    return ports


def read_powers(data: Element) -> dict[int, float]:
    """What the power monitors show, in dBm; what is as good as nothing is ``-inf``."""
    powers: dict[int, float] = {}
    for entry in _entries(data, "opm-power"):
        dbm = float(entry.findtext(_name("power")) or "")
        if math.isnan(dbm):
            raise ValueError("a power that is no number")
        powers[_port(entry.findtext(_name("port-id")))] = dbm if dbm > DARK_DBM else -math.inf
    return powers


def read_alarms(data: Element) -> tuple[Alarm, ...]:
    """The alarms that are active."""
    return tuple(
        Alarm(
            text=" ".join(entry.findtext(f"{{{ALARM_NS}}}alarm-message", "").split()) or "an alarm without a message",
            source=entry.findtext(f"{{{ALARM_NS}}}alarm-type", "").strip(),
            since=_epoch(entry.findtext(f"{{{ALARM_NS}}}alarm-time")),
        )
        for entry in data.findall(f"{{{ALARM_NS}}}system-alarms/{{{ALARM_NS}}}alarm")
    )


def read_product(data: Element) -> Mapping[str, str]:
    """Maker, model, serial number and version, as far as they are told."""
    found = data.find(_name("product-information"))
    return {
        leaf.tag.rpartition("}")[2]: " ".join((leaf.text or "").split()) for leaf in (() if found is None else found)
    }


def inputs_of(model_name: str) -> int | None:
    """How many inputs a switch of this model has; the name says (``-16x16-``, ``-32xCC-``), or ``None``."""
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
        raise ValueError("a port that is none")
    return port


def _epoch(text: str | None) -> float | None:
    try:
        return datetime.fromisoformat((text or "").strip()).timestamp()
    except (ValueError, OverflowError):
        return None
