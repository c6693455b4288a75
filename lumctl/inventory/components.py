"""The components that a device command may name: devices and their ports and PUCs, transponders, machines' power."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from lumctl.errors import UsageError
from lumctl.inventory.model import Device, DeviceKind, Inventory, Lane, Transponder
from lumctl.inventory.problems import nearest


class Part(StrEnum):
    """The kind of component that a name refers to. Messages use the values as words."""

    DEVICE = "device"
    PORT = "port"
    PUC = "puc"
    TRANSPONDER = "transponder"
    POWER = "power"
    """The electrical power of one host."""


@dataclass(frozen=True, slots=True)
class Component:
    """One component. ``device`` is the device itself or the one it belongs to; ``number`` is that of a port or PUC."""

    id: str
    part: Part
    rack: str
    device: str | None = None
    number: int = 0
    host: str | None = None


def find_component(inventory: Inventory, name: str) -> Component:
    """The component of that name: DEVICE, DEVICE/port/N, MESH/puc/N, a transponder, HOST/power (or HOST alone).

    A transponder and a host's power may also have the name that their chassis or controller uses: DEVICE/COMPONENT.

    Raises:
        UsageError: there is no such component; the hint names the nearest one.
    """
    head, slash, rest = name.partition("/")
    # Devices first: a transponder and a host's power may also be named DEVICE/COMPONENT.
    if head in inventory.devices:
        device = inventory.devices[head]
        return _part_of_device(inventory, device, rest) if slash else Component(head, Part.DEVICE, device.rack, head)
    if name in inventory.transponders:
        return _transponder(inventory, inventory.transponders[name])
    if head in inventory.hosts and rest in {"", "power"}:
        return _power(inventory, head)
    if name in inventory.fibres:
        raise UsageError(f"{name} is a fibre, not a device", hint="see what it carries: lumctl fabric show -o wide")
    if name in inventory.accelerators:
        lanes = ", ".join(lane.id for lane in inventory.transponders_of(name))
        raise UsageError(f"{name} is an accelerator, not a device", hint=f"its lanes: {lanes}" if lanes else None)
    raise UsageError(f"{inventory.path} has no device or part of a device called {name!r}", hint=_near(inventory, name))


def managed(inventory: Inventory) -> Iterator[Component]:
    """All components that a driver manages out of band: devices, transponders of a chassis, hosts' power."""
    for device in inventory.devices.values():
        yield Component(device.id, Part.DEVICE, device.rack, device.id)
    for lane in inventory.transponders.values():
        if lane.module is not None:
            yield _transponder(inventory, lane)
    for host in inventory.hosts.values():
        if host.power is not None:
            yield _power(inventory, host.name)


def parts_of(inventory: Inventory, device: str) -> tuple[Component, ...]:
    """The parts of a chassis or a controller: its transponders, or the power of its hosts."""
    return tuple(each for each in managed(inventory) if each.device == device and each.part is not Part.DEVICE)


def lanes_at(inventory: Inventory, device: str) -> dict[int, tuple[tuple[Transponder, str], ...]]:
    """The lanes at each port of a device that is in use, with their direction: ``tx``, ``rx``, or both."""
    found: dict[int, tuple[tuple[Transponder, str], ...]] = {}
    for lane in inventory.transponders.values():
        for port in lane.lane.ports if lane.lane.device == device else ():
            found[port] = (*found.get(port, ()), (lane, _side(lane.lane, port)))
    return dict(sorted(found.items()))


def _side(lane: Lane, port: int) -> str:
    if lane.duplex:
        return "tx, rx"
    return "tx" if port == lane.tx else "rx"


def _transponder(inventory: Inventory, lane: Transponder) -> Component:
    device = lane.module.device if lane.module else None
    return Component(lane.id, Part.TRANSPONDER, inventory.hosts[lane.host].rack, device, host=lane.host)


def _power(inventory: Inventory, name: str) -> Component:
    host = inventory.hosts[name]
    if host.power is None:
        raise UsageError(
            f"{name} is a host, but {inventory.path} gives no controller of its power",
            hint="add `power: DEVICE/SYSTEM` to the host: lumctl-inventory(5)",
        )
    return Component(f"{name}/power", Part.POWER, host.rack, host.power.device, host=name)


def _part_of_device(inventory: Inventory, device: Device, rest: str) -> Component:
    if not device.kind.carries_light:
        return _named_by_device(inventory, device, rest)
    counts = {Part.PORT: device.port_count}
    if device.geometry is not None:
        counts[Part.PUC] = device.geometry.puc_count
    word, _, number = rest.partition("/")
    for part, count in counts.items():
        if word == part:
            if number.isascii() and number.isdecimal() and int(number) < count:
                return Component(f"{device.id}/{part}/{int(number)}", part, device.rack, device.id, int(number))
            raise UsageError(f"{device.id} has no {part} {number!r}", hint=f"valid numbers: 0 to {count - 1}")
    forms = " or ".join(f"{device.id}/{part}/N" for part in counts)
    raise UsageError(f"{device.id} is a {device.kind}: it has no {rest!r}", hint=f"write it as {forms}")


def _named_by_device(inventory: Inventory, device: Device, rest: str) -> Component:
    parts = parts_of(inventory, device.id)
    for each in parts:
        lane, host = inventory.transponders.get(each.id), inventory.hosts.get(each.host or "")
        named = lane.module if lane else host.power if host else None
        if rest in {named.component if named else None, each.id}:
            return each
    what = "no transponder's module" if device.kind is DeviceKind.CHASSIS else "no host's power"
    known = ", ".join(each.id for each in parts)
    raise UsageError(f"{device.id}/{rest} is {what} in {inventory.path}", hint=f"of {device.id}: {known or 'none'}")


def _near(inventory: Inventory, name: str) -> str:
    head, slash, rest = name.partition("/")
    powered = [host.name for host in inventory.hosts.values() if host.power]
    whole = [*inventory.devices, *inventory.transponders, *(f"{host}/power" for host in powered)]
    if slash and (near := nearest(head, [*inventory.devices, *powered])):
        return f"did you mean {near}/{rest}?"
    near = nearest(name, [*whole, *powered])
    return f"did you mean {near}?" if near else "see: lumctl device list, lumctl inventory show"
