"""Fibres between devices: what they are, and from the document to the model."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lumctl.inventory.model import DevicePort, Fibre

if TYPE_CHECKING:
    from lumctl.inventory.document import Document, FibreEndEntry, FibreEntry
    from lumctl.inventory.model import Device
    from lumctl.inventory.problems import Mark
    from lumctl.inventory.scope import Scope

_PLACE = re.compile(r"(.+)/port/([0-9]{1,6})")


def resolve_fibres(document: "Document", scope: "Scope") -> dict[str, Fibre]:
    """The fibres by name; every device port has one fibre or one lane at most."""
    fibres: dict[str, Fibre] = {}
    for entry in document.fibres:
        ends = [_end(end, entry.mark("ends", at, 2), scope) for at, end in enumerate(entry.ends)]
        if not scope.define("fibre", entry.name, entry.mark("name")) or entry.cut("ends", "capacity"):
            continue
        first, second = ends
        if not first or not second or not _fit(entry, (first, second), scope):
            continue
        fibres[entry.name] = Fibre(
            name=entry.name,
            devices=(first[0].device, second[0].device),
            ports=tuple((a.port, b.port) for a, b in zip(first, second, strict=True)),
            loss_db=entry.loss_db,
            capacity=len(first) if entry.capacity is None else entry.capacity,
        )
    return fibres


def _end(written: "str | FibreEndEntry", mark: "Mark", scope: "Scope") -> list[DevicePort] | None:
    """The ports at one end, all of one device; ``None`` if they cannot be determined."""
    if isinstance(written, str):
        found = _places(written, mark, scope)
    else:
        ports = [written.port] if isinstance(written.port, int) else written.port
        found = [DevicePort(written.device, port) for port in ports]
    if not found:
        return None
    device = scope.refer("device", found[0].device, scope.devices, mark)
    return found if device and all(_sound(device, place.port, mark, scope) for place in found) else None


def _places(written: str, mark: "Mark", scope: "Scope") -> list[DevicePort] | None:
    texts = scope.expand(written, mark)
    if texts is None:
        return None
    matches = [_PLACE.fullmatch(text) for text in texts]
    found = [DevicePort(match[1], int(match[2])) for match in matches if match]
    if len(found) < len(texts):
        scope.problems.add(mark, f"found {written!r}, expected DEVICE/port/N")
        return None
    devices = sorted({place.device for place in found})
    if len(devices) > 1:
        scope.problems.add(mark, f"found ports of {' and '.join(devices)} at one end, expected one device")
        return None
    return found


def _sound(device: "Device", port: int, mark: "Mark", scope: "Scope") -> bool:
    """Whether a fibre can be at this port of a device."""
    if port >= device.port_count:
        scope.once("range", mark, f"found port {port} of {device.id}, expected 0 to {device.port_count - 1}")
        return False
    if port in device.blocked_ports:
        scope.once("blocked", mark, f"found port {port} of {device.id}, which is blocked there")
    return True


def _fit(entry: "FibreEntry", ends: tuple[Sequence[DevicePort], Sequence[DevicePort]], scope: "Scope") -> bool:
    """Whether the two ends belong together, and nothing else uses their ports."""
    first, second = ends
    if len(first) != len(second):
        message = f"found {len(first)} ports at one end and {len(second)} at the other, expected as many"
        scope.problems.add(entry.mark("ends"), message)
        return False
    racks = [scope.devices[end[0].device].rack for end in ends]
    if all(racks) and racks[0] != racks[1]:
        place = f"{first[0].device} is in rack {racks[0]}, {second[0].device} in {racks[1]}"
        scope.problems.add(entry.mark("ends"), f"{place}: expected one rack")
    if entry.capacity is not None and entry.capacity > len(first):
        fibres = f"{len(first)} fibre{'s' if len(first) > 1 else ''}"
        message = f"found a capacity of {entry.capacity} for {fibres}, expected at most {len(first)}"
        scope.problems.add(entry.mark("capacity"), message)
    return _take(entry, ends, scope)


def _take(entry: "FibreEntry", ends: tuple[Sequence[DevicePort], Sequence[DevicePort]], scope: "Scope") -> bool:
    free = True
    own: set[DevicePort] = set()
    for at, end in enumerate(ends):
        mark = entry.mark("ends", at, 2)
        for place in end:
            if place in own:
                scope.once("own", mark, f"port {place.port} of {place.device} is used twice by {entry.name}")
                free = False
            own.add(place)
            free &= scope.take(f"port {place.port} of {place.device}", entry.name, mark)
    return free
