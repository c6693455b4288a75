"""What cables join: hosts with their power, lanes and fibres with ports; from the document to the model."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from lumctl.inventory.document import Document, FibreEndEntry, FibreEntry, TransponderDefaults, TransponderEntry
from lumctl.inventory.model import Device, DeviceKind, DevicePort, Evidence, Fibre, Lane, PartOf, Transponder
from lumctl.inventory.problems import Mark
from lumctl.inventory.scope import Scope


def part_of(written: str, kind: DeviceKind, mark: Mark, scope: Scope) -> PartOf | None:
    """The part that a text refers to: a device of one kind, and the part's name on that device."""
    name, _, component = written.partition("/")
    device = scope.refer("device", name, scope.devices, mark)
    if device is None:
        return None
    if device.kind is not kind:
        scope.once("kind", mark, f"{name} is of kind {device.kind}, expected one of kind {kind}")
        return None
    return PartOf(name, component)


def resolve_power(document: Document, scope: Scope) -> None:
    """Fill in ``power`` of ``scope.hosts``. This is a separate step because devices are known only after the hosts."""
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


# Planning values if the file has none: the launch power and the sensitivity of a 10GBASE-ER module.
TX_POWER_DBM = 2.0
RX_SENSITIVITY_DBM = -15.8

# Interface names become words of commands on hosts, so they must have no characters that a shell interprets.
# The kernel allows 15 characters.
_INTERFACE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,14}")


class _Common(NamedTuple):
    """The settings of a transponder that has none of its own."""

    driver: str
    verify: tuple[Evidence, ...]
    tx_power_dbm: float
    rx_sensitivity_dbm: float

    def overlaid(self, entry: TransponderEntry | TransponderDefaults | None) -> "_Common":
        """The same settings, overridden by those of ``entry``."""
        if entry is None:
            return self
        return _Common(
            driver=entry.driver or self.driver,
            verify=self.verify if entry.verify is None else tuple(dict.fromkeys(entry.verify)),
            tx_power_dbm=self.tx_power_dbm if entry.tx_power_dbm is None else entry.tx_power_dbm,
            rx_sensitivity_dbm=self.rx_sensitivity_dbm
            if entry.rx_sensitivity_dbm is None
            else entry.rx_sensitivity_dbm,
        )


def resolve_transponders(document: Document, scope: Scope) -> None:
    """Fill ``scope.transponders``. A device port may carry at most one lane."""
    common = _Common("hostport", (Evidence.LLDP,), TX_POWER_DBM, RX_SENSITIVITY_DBM)
    common = common.overlaid(document.defaults.transponder if document.defaults else None)
    lanes = _LanePorts(scope)
    for entry in document.transponders:
        names = scope.expand(entry.id, entry.mark("id"))
        if names is None:
            scope.doubts.names.add(entry.id)
        if names is None or not _resolve_entry(entry, names, common.overlaid(entry), lanes):
            written = entry.accelerator
            for accelerator in [written] if isinstance(written, str) else written:
                scope.doubts.lanes.add(accelerator)
    lanes.report_beyond()


def _resolve_entry(entry: TransponderEntry, names: list[str], settings: _Common, lanes: "_LanePorts") -> bool:
    """Resolve the lanes of an entry; return whether all could be resolved."""
    scope = lanes.scope
    accelerators = scope.texts(entry, "accelerator", names)
    interfaces = scope.texts(entry, "interface", names)
    devices = scope.texts(entry, "device", names)
    ports = _ports(entry, names, scope)
    modules = scope.texts(entry, "module", names) if entry.module is not None else None
    if not (accelerators and interfaces and devices and ports):
        return False
    complete = True
    count = len(names)
    for at, name in enumerate(names):
        new = scope.define("transponder", name, entry.mark("id"))
        accelerator = scope.refer(
            "accelerator", accelerators[at], scope.accelerators, entry.mark("accelerator", at, count)
        )
        device = scope.refer("device", devices[at], scope.devices, entry.mark("device", at, count))
        if accelerator is None or device is None or not new:
            complete = False
            continue
        if not device.kind.carries_light:
            mark = entry.mark("device", at, count)
            scope.once("kind", mark, f"{device.id} is of kind {device.kind}, expected a mesh or a switch")
            complete = False
            continue
        if accelerator.rack and device.rack and accelerator.rack != device.rack:
            mark = entry.mark("device", at, count)
            place = f"{device.id} is in rack {device.rack}, but {accelerator.id} is in {accelerator.rack}"
            scope.once("rack", mark, f"{place}: expected one rack")
        interface, interface_mark = interfaces[at], entry.mark("interface", at, count)
        if not _INTERFACE.fullmatch(interface):
            scope.once("interface", interface_mark, f"found {interface!r}, expected an interface such as eth2")
        scope.take(f"interface {interface} of {accelerator.host}", name, interface_mark)
        lane = Lane(device.id, *ports[at])
        for key in ("port",) if entry.port is not None else ("tx", "rx"):
            port = lane.rx if key == "rx" else lane.tx
            complete &= lanes.take(device, port, name, entry.mark(key, at, count))
        module = _module(modules[at], name, entry.mark("module", at, count), scope) if modules else None
        scope.transponders[name] = Transponder(
            *(name, accelerator.id, accelerator.host, interface, lane),
            *settings,
            module=module,
            rate_gb_s=entry.rate_gb_s,
            rate_lanes=entry.rate_lanes,
            module_part=entry.module_part,
        )
    return complete


def _module(written: str, user: str, mark: Mark, scope: Scope) -> PartOf | None:
    """The part of a chassis that manages a transponder. Each part may belong to one transponder only."""
    part = part_of(written, DeviceKind.CHASSIS, mark, scope)
    if part:
        scope.take(f"{part.device}/{part.component}", user, mark)
    return part


def _ports(entry: TransponderEntry, names: list[str], scope: Scope) -> list[tuple[int, int]] | None:
    """The (tx, rx) device ports of each lane."""
    if entry.cut("port", "tx", "rx"):
        return None
    if entry.port is not None and entry.tx is None and entry.rx is None:
        ports = scope.numbers(entry, "port", names)
        return [(port, port) for port in ports] if ports else None
    if entry.port is None and entry.tx is not None and entry.rx is not None:
        tx, rx = scope.numbers(entry, "tx", names), scope.numbers(entry, "rx", names)
        return list(zip(tx, rx, strict=True)) if tx and rx else None
    said = [key for key in ("port", "tx", "rx") if getattr(entry, key) is not None]
    mark = entry.mark(said[0]) if said else entry.at
    found = ", ".join(repr(key) for key in said) or "no ports"
    scope.problems.add(mark, f"found {found}, expected 'port' (a duplex lane) or both 'tx' and 'rx'")
    return None


class _LanePorts:
    """The ports that lanes take, and those that their devices do not have."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self._wanted: dict[str, set[int]] = {}
        self._beyond: dict[str, list[tuple[int, Mark]]] = {}

    def take(self, device: Device, port: int, user: str, mark: Mark) -> bool:
        """Take a port for a lane; return whether the port exists and is free."""
        self._wanted.setdefault(device.id, set()).add(port)
        if port >= device.port_count:
            self._beyond.setdefault(device.id, []).append((port, mark))
            return False
        if port in device.blocked_ports:
            self.scope.once("blocked", mark, f"found port {port} of {device.id}, which is blocked there")
        return self.scope.take(f"port {port} of {device.id}", user, mark)

    def report_beyond(self) -> None:
        """Report ports that do not exist; once for a device that has too few of them, whatever their numbers."""
        for name, places in self._beyond.items():
            device, needed = self.scope.devices[name], len(self._wanted[name])
            if needed <= device.port_count:
                for port, mark in places:
                    _exists(device, port, mark, self.scope)
                continue
            parts = -(-needed // device.port_count)
            self.scope.problems.add(
                places[0][1],
                f"the lanes at {name} need {needed} ports, but it has {device.port_count}",
                f"split it into at least {parts} devices with at most {device.port_count} lane ports each; each fibre "
                "between two of them takes a port of both",
            )


_PLACE = re.compile(r"(.+)/port/([0-9]{1,6})")


def resolve_fibres(document: Document, scope: Scope) -> dict[str, Fibre]:
    """The fibres by name. A device port may have at most one fibre or lane."""
    fibres: dict[str, Fibre] = {}
    for entry in document.fibres:
        ends = [_end(end, entry.mark("ends", at, 2), scope) for at, end in enumerate(entry.ends)]
        first, second = ends
        sound = scope.define("fibre", entry.name, entry.mark("name")) and not entry.cut("ends", "capacity")
        if not sound or not first or not second or not _fit(entry, (first, second), scope):
            scope.doubts.names.add(entry.name)
            continue
        fibres[entry.name] = Fibre(
            name=entry.name,
            devices=(first[0].device, second[0].device),
            ports=tuple((a.port, b.port) for a, b in zip(first, second, strict=True)),
            loss_db=entry.loss_db,
            capacity=len(first) if entry.capacity is None else entry.capacity,
        )
    return fibres


def _end(written: str | FibreEndEntry, mark: Mark, scope: Scope) -> list[DevicePort] | None:
    """The ports at one end, all of one device; ``None`` if they cannot be determined."""
    if isinstance(written, str):
        found = _places(written, mark, scope)
    else:
        ports = [written.port] if isinstance(written.port, int) else written.port
        found = [DevicePort(written.device, port) for port in ports]
    if not found:
        return None
    device = scope.refer("device", found[0].device, scope.devices, mark)
    return found if device and all(_exists(device, place.port, mark, scope) for place in found) else None


def _places(written: str, mark: Mark, scope: Scope) -> list[DevicePort] | None:
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


def _exists(device: Device, port: int, mark: Mark, scope: Scope) -> bool:
    """Whether a device has this port."""
    if port >= device.port_count:
        scope.once("range", mark, f"found port {port} of {device.id}, expected 0 to {device.port_count - 1}")
        return False
    return True


def _check_blocked(entry: FibreEntry, ends: tuple[Sequence[DevicePort], Sequence[DevicePort]], scope: Scope) -> None:
    """Report a fibre at a blocked port. A bundle has room for fewer circuits then, as long as one fibre is left."""
    blocked = [
        [place.port in scope.devices[place.device].blocked_ports for place in pair] for pair in zip(*ends, strict=True)
    ]
    for at, end in enumerate(ends) if all(any(pair) for pair in blocked) else ():
        for place, is_blocked in zip(end, (pair[at] for pair in blocked), strict=True):
            if is_blocked:
                mark = entry.mark("ends", at, 2)
                scope.once("blocked", mark, f"found port {place.port} of {place.device}, which is blocked there")


def _fit(entry: FibreEntry, ends: tuple[Sequence[DevicePort], Sequence[DevicePort]], scope: Scope) -> bool:
    """Whether the two ends fit each other, and nothing else uses their ports."""
    first, second = ends
    if len(first) != len(second):
        message = f"found {len(first)} ports at one end but {len(second)} at the other, expected equal numbers"
        scope.problems.add(entry.mark("ends"), message)
        return False
    racks = [scope.devices[end[0].device].rack for end in ends]
    if all(racks) and racks[0] != racks[1]:
        place = f"{first[0].device} is in rack {racks[0]}, but {second[0].device} is in {racks[1]}"
        expected = "expected one rack: write racks that fibres join as one, for a change holds the lease of one"
        scope.problems.add(entry.mark("ends"), f"{place}: {expected}")
    if entry.capacity is not None and entry.capacity > len(first):
        fibres = f"{len(first)} fibre{'s' if len(first) > 1 else ''}"
        message = f"found a capacity of {entry.capacity} for {fibres}, expected at most {len(first)}"
        scope.problems.add(entry.mark("capacity"), message)
    _check_blocked(entry, ends, scope)
    return _take(entry, ends, scope)


def _take(entry: FibreEntry, ends: tuple[Sequence[DevicePort], Sequence[DevicePort]], scope: Scope) -> bool:
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
