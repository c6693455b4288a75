"""References to a part of a device, written ``DEVICE/COMPONENT``, from the document to the model."""

from dataclasses import replace

from lumctl.inventory.document import Document
from lumctl.inventory.model import DeviceKind, PartOf
from lumctl.inventory.problems import Mark
from lumctl.inventory.scope import Scope


def part_of(written: str, kind: DeviceKind, mark: Mark, scope: Scope) -> PartOf | None:
    """What a text refers to: a device of one kind, and what it calls the part."""
    name, _, component = written.partition("/")
    device = scope.refer("device", name, scope.devices, mark)
    if device is None:
        return None
    if device.kind is not kind:
        scope.once("kind", mark, f"{name} is of kind {device.kind}, expected one of kind {kind}")
        return None
    return PartOf(name, component)


def resolve_power(document: Document, scope: Scope) -> None:
    """Fill in ``power`` of ``scope.hosts``: the devices are known only after the hosts."""
    for entry in document.hosts:
        names = scope.expand(entry.name, entry.mark("name")) if entry.power is not None else None
        parts = scope.texts(entry, "power", names) if names else None
        if not names or not parts:
            continue
        for at, (name, written) in enumerate(zip(names, parts, strict=True)):
            mark = entry.mark("power", at, len(names))
            filled = scope.fill(written, mark, "name", name)
            part = part_of(filled, DeviceKind.POWER, mark, scope) if filled and name in scope.hosts else None
            if part and scope.take(f"power {part.device}/{part.component}", name, mark):
                scope.hosts[name] = replace(scope.hosts[name], power=part)
