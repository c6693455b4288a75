"""The resolved inventory as data for JSON and as rows for tables."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import date
from pathlib import Path
from typing import Any

from lumctl.inventory.folded_names import fold
from lumctl.inventory.model import Device, Fibre, Inventory, Job, Lane, PairLinks, RingLinks, TorusLinks
from lumctl.inventory.wiring import job_circuits

SECTIONS = {
    "racks": "name",
    "hosts": "name",
    "accelerators": "id",
    "devices": "id",
    "fibres": "name",
    "transponders": "id",
    "jobs": "name",
}
"""The sections of an inventory, with the field that names a component of each."""

_KINDS: Mapping[type, str] = {RingLinks: "ring", PairLinks: "pairs", TorusLinks: "torus"}

Row = dict[str, Any]


def as_data(inventory: Inventory) -> dict[str, Any]:
    """The whole inventory as JSON values: the document ``lumctl/inventory/v1``."""
    return {
        "path": str(inventory.path),
        "digest": inventory.digest,
        **{section: [_plain(value) for value in getattr(inventory, section).values()] for section in SECTIONS},
        "thresholds": _plain(inventory.thresholds),
        "probes": {kind: _plain(times) for kind, times in inventory.probes.items()},
    }


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        data = {item.name: _plain(getattr(value, item.name)) for item in fields(value)}
        return {"kind": _KINDS[type(value)], **data} if type(value) in _KINDS else data
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, (str, Path, date)) else value


def _racks(inventory: Inventory) -> list[Row]:
    return [_plain(rack) for rack in inventory.racks.values()]


def _hosts(inventory: Inventory) -> list[Row]:
    return [
        _plain(host)
        | {"accelerators": len(inventory.accelerators_of(host.name)), "ssh": None}
        | {key: value for key, value in _plain(host.ssh).items() if key in {"user", "port", "jump"}}
        | {"sudo": "yes" if host.ssh.sudo else "no"}
        for host in inventory.hosts.values()
    ]


def _accelerators(inventory: Inventory) -> list[Row]:
    return [
        _plain(accelerator) | {"memory_gib": f"{accelerator.memory_gib:g}"}
        for accelerator in inventory.accelerators.values()
    ]


def _devices(inventory: Inventory) -> list[Row]:
    return [_device(inventory, device) for device in inventory.devices.values()]


def _device(inventory: Inventory, device: Device) -> Row:
    used = {
        port for lane in inventory.transponders.values() if lane.lane.device == device.id for port in lane.lane.ports
    }
    shape = device.geometry
    row: Row = _plain(device)
    return row | {
        "shape": shape.described if shape else None,
        "pucs": shape.puc_count if shape else None,
        "ports": device.port_count,
        "used": len(used),
        "stuck": ", ".join(f"{puc} {state}" for puc, state in device.stuck.items()),
        "damaged": ", ".join(str(puc) for puc in sorted(device.damaged)),
        "blocked": ", ".join(str(port) for port in sorted(device.blocked_ports)),
        "excess": ", ".join(
            f"{noun} {number} {loss:g}"
            for noun, losses in (("PUC", device.puc_loss_db), ("port", device.port_loss_db))
            for number, loss in losses.items()
        ),
    }


def _fibres(inventory: Inventory) -> list[Row]:
    return fibre_rows(inventory.fibres)


def _transponders(inventory: Inventory) -> list[Row]:
    return [
        _plain(transponder)
        | {
            "device": transponder.lane.device,
            "lane": _lane(transponder.lane),
            "verify": ", ".join(transponder.verify),
        }
        for transponder in inventory.transponders.values()
    ]


def _lane(lane: Lane) -> str:
    return f"port {lane.tx}" if lane.duplex else f"tx {lane.tx} rx {lane.rx}"


def _jobs(inventory: Inventory) -> list[Row]:
    return [_job(inventory, job) for job in inventory.jobs.values()]


def _job(inventory: Inventory, job: Job) -> Row:
    return {
        "name": job.name,
        "rack": job.rack,
        "ranks": len(job.ranks),
        "accelerators": _folded_text(job.ranks),
        "links": "; ".join(f"{each.name}: {_all_links(each.links)}" for each in job.phases) or _all_links(job.links),
        "circuits": len(job_circuits(inventory, job, job.ranks)),
    }


def _all_links(links: Iterable[RingLinks | PairLinks | TorusLinks]) -> str:
    return ", ".join(map(_links, links))


def _links(links: RingLinks | PairLinks | TorusLinks) -> str:
    match links:
        case RingLinks(ranks):
            return f"ring of {len(ranks)}"
        case PairLinks(pairs):
            return f"{len(pairs)} pairs"
        case TorusLinks(shape=shape, widths=widths):
            wide = f", {' x '.join(map(str, widths))} circuits" if widths else ""
            return f"torus of {' x '.join(map(str, shape))}{wide}"


_LONG = 12

_ROWS: Mapping[str, tuple[Callable[[Inventory], list[Row]], tuple[str, ...]]] = {
    "racks": (_racks, ()),
    "hosts": (_hosts, ("address",)),
    "accelerators": (_accelerators, ("host", "index", "pci", "uuid")),
    "devices": (_devices, ("address",)),
    "fibres": (_fibres, ("from", "to")),
    "transponders": (_transponders, ("accelerator", "host", "interface", "lane")),
    "jobs": (_jobs, ()),
}
"""For each section: how its rows are made, and which fields follow the name. These fields are folded with the name: a
difference in them does not keep rows apart in a folded table.
"""


def rows_of(inventory: Inventory, section: str, *, folded: bool) -> list[Row]:
    """The rows of one section's table. If ``folded``, a long table has one row for all similar components."""
    make, following = _ROWS[section]
    rows = make(inventory)
    return _folded(rows, (SECTIONS[section], *following)) if folded and len(rows) > _LONG else rows


def _folded(rows: list[Row], merged: tuple[str, ...]) -> list[Row]:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        # As text, because a row may hold lists, which cannot be keys.
        groups.setdefault(repr({key: value for key, value in row.items() if key not in merged}), []).append(row)
    return [
        group[0] | {key: _folded_text(str(row[key]) for row in group if row[key] is not None) for key in merged}
        for group in groups.values()
    ]


def _folded_text(values: Iterable[str]) -> str:
    return ", ".join(fold(values))


def fibre_rows(fibres: Mapping[str, Fibre]) -> list[dict[str, Any]]:
    """The rows of the table of fibres."""
    return [
        {
            "name": fibre.name,
            "from": _written(fibre.devices[0], [a for a, _ in fibre.ports]),
            "to": _written(fibre.devices[1], [b for _, b in fibre.ports]),
            "loss_db": fibre.loss_db,
            "capacity": fibre.capacity,
        }
        for fibre in fibres.values()
    ]


def _written(device: str, ports: Sequence[int]) -> str:
    return f"{device}:{','.join(str(port) for port in ports)}"
