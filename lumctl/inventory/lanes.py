"""The lanes that meet the fabric: transponders, from the document to the model."""

import re
from dataclasses import replace
from typing import NamedTuple

from lumctl.inventory.document import Document, TransponderDefaults, TransponderEntry
from lumctl.inventory.model import Device, DeviceKind, Evidence, Lane, PartOf, Transponder
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


# Planning values if the file has none: the launch power and the sensitivity of a 10GBASE-ER module.
TX_POWER_DBM = 2.0
RX_SENSITIVITY_DBM = -15.8

# Interface names become words of commands on hosts: nothing that a shell could read otherwise.
_INTERFACE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,14}")


class _Common(NamedTuple):
    """The settings of a transponder without its own."""

    driver: str
    verify: tuple[Evidence, ...]
    tx_power_dbm: float
    rx_sensitivity_dbm: float

    def overlaid(self, entry: TransponderEntry | TransponderDefaults | None) -> "_Common":
        """The same, overridden by ``entry``."""
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
    """Fill ``scope.transponders``; every device port carries one lane at most."""
    common = _Common("hostport", (Evidence.LLDP,), TX_POWER_DBM, RX_SENSITIVITY_DBM)
    common = common.overlaid(document.defaults.transponder if document.defaults else None)
    for entry in document.transponders:
        names = scope.expand(entry.id, entry.mark("id"))
        if names is None:
            scope.doubts.names.add(entry.id)
        if names is None or not _resolve_entry(entry, names, common.overlaid(entry), scope):
            written = entry.accelerator
            for accelerator in [written] if isinstance(written, str) else written:
                scope.doubts.lanes.add(accelerator)


def _resolve_entry(entry: TransponderEntry, names: list[str], settings: _Common, scope: Scope) -> bool:
    """Whether all lanes of the entry could be resolved."""
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
            place = f"{device.id} is in rack {device.rack}, {accelerator.id} in {accelerator.rack}"
            scope.once("rack", mark, f"{place}: expected one rack")
        interface, interface_mark = interfaces[at], entry.mark("interface", at, count)
        if not _INTERFACE.fullmatch(interface):
            scope.once("interface", interface_mark, f"found {interface!r}, expected an interface such as eth2")
        scope.take(f"interface {interface} of {accelerator.host}", name, interface_mark)
        lane = Lane(device.id, *ports[at])
        for key in ("port",) if entry.port is not None else ("tx", "rx"):
            port = lane.rx if key == "rx" else lane.tx
            complete &= _check_port(device, port, name, entry.mark(key, at, count), scope)
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
    """Where a transponder is managed; every part of a chassis is one transponder."""
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


def _check_port(device: Device, port: int, user: str, mark: Mark, scope: Scope) -> bool:
    if port >= device.port_count:
        scope.once("range", mark, f"found port {port} of {device.id}, expected 0 to {device.port_count - 1}")
        return False
    if port in device.blocked_ports:
        scope.once("blocked", mark, f"found port {port} of {device.id}, which is blocked there")
    return scope.take(f"port {port} of {device.id}", user, mark)
