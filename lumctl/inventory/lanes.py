"""Meshes, switches and the lanes that meet them, from the document to the model."""

import re
from typing import NamedTuple

from lumctl.inventory.document import DeviceEntry, Document, TransponderDefaults, TransponderEntry
from lumctl.inventory.geometries import resolve_geometry
from lumctl.inventory.geometry import Geometry
from lumctl.inventory.model import Device, DeviceKind, Evidence, Lane, Transponder
from lumctl.inventory.problems import Mark
from lumctl.inventory.scope import Scope

# Planning values where the file says nothing: the launch power and the sensitivity of a 10GBASE-ER module.
TX_POWER_DBM = 2.0
RX_SENSITIVITY_DBM = -15.8

_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_][A-Za-z0-9_.-]*):([0-9]{1,5})")
_MAX_TCP_PORT = 65535
# Interface names become words of commands on hosts: nothing that a shell could read otherwise.
_INTERFACE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,14}")


def resolve_devices(document: Document, scope: Scope) -> None:
    """Fill ``scope.devices``."""
    for entry in document.devices:
        names = scope.expand(entry.id, entry.mark("id"))
        geometry, port_count = _size(entry, scope)
        if names is None or not port_count:
            scope.doubts.names.add(entry.id)
            continue
        _check_numbers(entry, geometry, port_count, scope)
        racks = scope.racks_of(entry, names)
        addresses = scope.texts(entry, "address", names)
        for at, name in enumerate(names):
            if not scope.define(entry.kind, name, entry.mark("id")):
                continue
            scope.devices[name] = Device(
                id=name,
                rack=racks[at],
                kind=entry.kind,
                driver=entry.driver,
                address=_address(addresses[at], name, entry.mark("address", at, len(names)), scope)
                if addresses
                else "",
                geometry=geometry,
                port_count=port_count,
                loss_per_puc_db=entry.loss_per_puc_db,
                loss_per_port_db=entry.loss_per_port_db,
                settle_ms=entry.settle_ms,
                stuck=dict(entry.stuck),
                blocked_ports=frozenset(entry.blocked_ports),
                damaged=frozenset(entry.damaged),
                puc_loss_db=dict(entry.puc_loss_db),
                port_loss_db=dict(entry.port_loss_db),
            )


def _size(entry: DeviceEntry, scope: Scope) -> tuple[Geometry | None, int]:
    """Geometry and port count; a count of 0 means that they are not known."""
    needed, other = ("geometry", "port_count") if entry.kind is DeviceKind.MESH else ("port_count", "geometry")
    if getattr(entry, other) is not None:
        scope.problems.add(entry.mark(other), f"a {entry.kind} has no {other!r}, expected {needed!r}")
    elif getattr(entry, needed) is None and not entry.cut(needed):
        scope.problems.add(entry.at, f"key {needed!r} is missing here: a {entry.kind} needs it")
    if entry.kind is DeviceKind.SWITCH:
        return None, entry.port_count or 0
    geometry = resolve_geometry(entry.geometry, scope) if entry.geometry is not None else None
    return geometry, geometry.port_count if geometry else 0


def _check_numbers(entry: DeviceEntry, geometry: Geometry | None, port_count: int, scope: Scope) -> None:
    """PUCs and ports that the entry itself names lie within its size."""
    for key, fate in (("stuck", "be stuck"), ("damaged", "be damaged"), ("puc_loss_db", "lose light")):
        if getattr(entry, key) and geometry is None:
            scope.problems.add(entry.mark(key), f"a switch has no PUCs that could {fate}")
    pucs = geometry.puc_count if geometry else None
    for key, noun, count in (
        ("stuck", "PUC", pucs),
        ("puc_loss_db", "PUC", pucs),
        ("port_loss_db", "port", port_count),
    ):
        for number in getattr(entry, key) if count else ():
            _check_number(number, noun, count, entry.item_mark(key, number), scope)
    for key, noun, count in (("damaged", "PUC", pucs), ("blocked_ports", "port", port_count)):
        numbers: list[int] = getattr(entry, key)
        for at, number in enumerate(numbers) if count else ():
            _check_number(number, noun, count, entry.mark(key, at, len(numbers)), scope)


def _check_number(number: int, noun: str, count: int | None, mark: Mark, scope: Scope) -> None:
    if count is not None and not 0 <= number < count:
        scope.problems.add(mark, f"found {noun} {number}, expected 0 to {count - 1}")


def _address(written: str, name: str, mark: Mark, scope: Scope) -> str:
    address = scope.fill(written, mark, "id", name)
    if address is None:
        return written
    match = _ADDRESS.fullmatch(address)
    if not match or not 0 < int(match[2]) <= _MAX_TCP_PORT:
        scope.once("address", mark, f"found {address!r}, expected HOST:PORT")
    else:
        scope.take(f"address {address}", name, mark)
    return address


class _Common(NamedTuple):
    """What a transponder is unless it says otherwise."""

    driver: str
    verify: tuple[Evidence, ...]
    tx_power_dbm: float
    rx_sensitivity_dbm: float

    def overlaid(self, entry: TransponderEntry | TransponderDefaults | None) -> "_Common":
        """The same, with what ``entry`` says."""
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
        scope.transponders[name] = Transponder(name, accelerator.id, accelerator.host, interface, lane, *settings)
    return complete


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
