"""Meshes, switches and other devices with an address of their own, from the document to the model."""

import re
from collections.abc import Mapping

from lumctl.inventory.document import DeviceEntry, Document, GeometryEntry
from lumctl.inventory.files import read_bytes
from lumctl.inventory.geometry import Geometry, Shape
from lumctl.inventory.mesh_file import read_mesh
from lumctl.inventory.model import Device, DeviceKind, DeviceLogin
from lumctl.inventory.problems import Mark
from lumctl.inventory.scope import Scope

_NEEDS: Mapping[str, tuple[str, ...]] = {
    "parallelogram": ("columns", "rows"),
    "hexagon": ("side",),
    "square": ("columns", "rows"),
}
_SIZES = ("columns", "rows", "side")


def resolve_geometry(entry: GeometryEntry, scope: Scope) -> Geometry | None:
    """The geometry of a mesh; ``None`` if it cannot be determined, which is reported."""
    if entry.mesh is not None:
        return _from_file(entry, entry.mesh, scope)
    if entry.cut("shape", "mesh") or not _sized(entry, scope):
        return None
    if entry.shape == "hexagon":
        return Geometry.hexagon(entry.side) if entry.side is not None else None
    if entry.columns is None or entry.rows is None:
        return None
    return Geometry(entry.columns, entry.rows, Shape(entry.shape))


def _sized(entry: GeometryEntry, scope: Scope) -> bool:
    """Whether the entry has exactly the sizes that its shape needs."""
    needed = _NEEDS[entry.shape]
    complete = True
    for key in _SIZES:
        if key in needed and getattr(entry, key) is None:
            complete = False
            if not entry.cut(key):
                scope.problems.add(entry.at, f"key {key!r} is missing here: a {entry.shape} needs it")
        elif key not in needed and getattr(entry, key) is not None:
            complete = False
            expected = " and ".join(repr(other) for other in needed)
            scope.problems.add(entry.mark(key), f"a {entry.shape} has no {key!r}, expected {expected}")
    return complete


def _from_file(entry: GeometryEntry, name: str, scope: Scope) -> Geometry | None:
    others = [key for key in ("shape", *_SIZES) if key in entry.model_fields_set]
    if others:
        scope.problems.add(entry.mark(others[0]), f"found {others[0]!r} as well as 'mesh', expected one of them")
        return None
    mark = entry.mark("mesh")
    path = scope.path(name, mark)
    if path not in scope.meshes:
        # Only a regular file is read: reading a FIFO or a device could wait or go on for ever.
        content = read_bytes(path) if path.is_file() or not path.exists() else "is not a file"
        if isinstance(content, str):
            scope.problems.add(mark, f"mesh {name} {content}")
            return None
        scope.contents.append(content)
        scope.meshes[path] = read_mesh(content, path, scope.problems)
    data = scope.meshes[path]
    return None if data is None else Geometry.given(data)


_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_][A-Za-z0-9_.-]*):([0-9]{1,5})")
_HTTP = "http://"
"""A driver that uses HTTP uses TLS unless the address begins so. Both forms name the same device."""
_MAX_TCP_PORT = 65535
_OWN_KEYS: dict[DeviceKind, str | None] = {
    DeviceKind.MESH: "geometry",
    DeviceKind.SWITCH: "port_count",
    DeviceKind.CHASSIS: None,
    DeviceKind.POWER: None,
}
"""The key that states the size of a device of each kind; the other key is not allowed."""


def resolve_devices(document: Document, scope: Scope) -> None:
    """Fill ``scope.devices``."""
    for entry in document.devices:
        names = scope.expand(entry.id, entry.mark("id"))
        geometry, port_count = _size(entry, scope)
        # Otherwise each lane and fibre at it would be reported as well.
        if names is None or port_count is None:
            scope.doubts.names.add(entry.id)
            continue
        _check_numbers(entry, geometry, port_count, scope)
        via = scope.refer("host", entry.via, scope.hosts, entry.mark("via")) if entry.via else None
        login, inputs = _login(entry, scope), _input_count(entry, port_count, scope)
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
                timeout_s=entry.timeout_s,
                stuck=dict(entry.stuck),
                blocked_ports=frozenset(entry.blocked_ports),
                damaged=frozenset(entry.damaged),
                puc_loss_db=dict(entry.puc_loss_db),
                port_loss_db=dict(entry.port_loss_db),
                input_count=inputs,
                via=via.name if via else None,
                login=login,
            )


def _size(entry: DeviceEntry, scope: Scope) -> tuple[Geometry | None, int | None]:
    """Geometry and port count; a count of ``None`` means that the size is unknown."""
    needed = _OWN_KEYS[entry.kind]
    for key in ("geometry", "port_count"):
        if key != needed and getattr(entry, key) is not None:
            expected = f", expected {needed!r}" if needed else ""
            scope.problems.add(entry.mark(key), f"a {entry.kind} has no {key!r}{expected}")
    if needed is None:
        return None, 0
    if getattr(entry, needed) is None and not entry.cut(needed):
        scope.problems.add(entry.at, f"key {needed!r} is missing here: a {entry.kind} needs it")
    if entry.kind is DeviceKind.SWITCH:
        return None, entry.port_count
    geometry = resolve_geometry(entry.geometry, scope) if entry.geometry is not None else None
    return geometry, geometry.port_count if geometry else None


def _input_count(entry: DeviceEntry, port_count: int, scope: Scope) -> int:
    """The number of a switch's ports at which light enters."""
    if entry.kind is not DeviceKind.SWITCH:
        if entry.input_count is not None:
            scope.problems.add(entry.mark("input_count"), f"a {entry.kind} has no 'input_count'")
        return 0
    if entry.input_count is not None and entry.input_count > port_count:
        scope.problems.add(entry.mark("input_count"), f"found {entry.input_count}, expected 1 to {port_count}")
    return entry.input_count or port_count // 2


def _login(entry: DeviceEntry, scope: Scope) -> DeviceLogin:
    login = entry.login
    if login is None:
        return DeviceLogin()
    return DeviceLogin(
        user=login.user,
        key_file=scope.path(login.key_file, login.mark("key_file")) if login.key_file else None,
        secret_file=scope.path(login.secret_file, login.mark("secret_file")) if login.secret_file else None,
        secret_variable=login.secret_variable,
    )


def _check_numbers(entry: DeviceEntry, geometry: Geometry | None, port_count: int, scope: Scope) -> None:
    """Check that the PUCs and ports that the entry names are within the device's size."""
    for key, fate in (("stuck", "be stuck"), ("damaged", "be damaged"), ("puc_loss_db", "lose light")):
        if getattr(entry, key) and geometry is None:
            scope.problems.add(entry.mark(key), f"a {entry.kind} has no PUCs that could {fate}")
    for key in ("blocked_ports", "port_loss_db") if not entry.kind.carries_light else ():
        if getattr(entry, key):
            scope.problems.add(entry.mark(key), f"a {entry.kind} has no ports")
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
    if not is_address(address):
        scope.once("address", mark, f"found {address!r}, expected HOST:PORT")
    else:
        scope.take(f"address {address.removeprefix(_HTTP)}", name, mark)
    return address


def is_address(text: str) -> bool:
    """Whether a text is the address of a device: ``HOST:PORT``, also after ``http://``."""
    match = _ADDRESS.fullmatch(text.removeprefix(_HTTP))
    return match is not None and 0 < int(match[2]) <= _MAX_TCP_PORT
