"""What ``lldpctl -f json`` of lldpd 1.0.16 prints on a simulated host."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from lumctl.inventory.model import Transponder
from lumctl.sim.world.links import LLDP_TTL_S
from lumctl.sim.world.views import Neighbours


def neighbours_json(heard: Mapping[str, Neighbours]) -> str:
    """All neighbours of a host.

    ``interface`` is a list; with one neighbour in all it is that neighbour itself, with none it is absent.
    """
    entries: list[dict[str, Any]] = []
    for name, neighbours in heard.items():
        for sender, age_s, mark in neighbours:
            entries.append({name: _entry(len(entries) + 1, sender, age_s, mark)})
    table: dict[str, Any] = {"interface": entries[0] if len(entries) == 1 else entries} if entries else {}
    return json.dumps({"lldp": table}, indent=2) + "\n"


def _entry(rid: int, sender: Transponder, age_s: float, mark: str) -> dict[str, Any]:
    chassis = {
        "id": {"type": "mac", "value": _mac(sender.host)},
        "descr": "Debian GNU/Linux 12 (bookworm) Linux 6.1.0-28-amd64 x86_64",
        "capability": [
            {"type": "Bridge", "enabled": False},
            {"type": "Router", "enabled": False},
            {"type": "Wlan", "enabled": False},
            {"type": "Station", "enabled": True},
        ],
    }
    port = {
        "id": {"type": "mac", "value": _mac(f"{sender.host}/{sender.interface}")},
        "descr": sender.interface,
        "ttl": f"{LLDP_TTL_S:.0f}",
    }
    entry = {"via": "LLDP", "rid": str(rid), "age": _age(age_s), "chassis": {sender.host: chassis}, "port": port}
    if mark:
        oui, subtype, value = mark.split("/")
        tlv = {"oui": oui.upper(), "subtype": subtype, "len": str(len(value.split(","))), "value": value.upper()}
        entry["unknown-tlvs"] = {"unknown-tlv": tlv}
    return entry


def _age(seconds: float) -> str:
    days, rest = divmod(int(seconds), 86_400)
    return f"{days} day, {rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"


def _mac(host: str) -> str:
    """A locally administered address that is always the same for a host."""
    digest = hashlib.sha256(host.encode()).digest()
    return ":".join(f"{octet:02x}" for octet in (0x02, *digest[:5]))
