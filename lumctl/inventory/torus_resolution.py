"""The torus of a rack, from the document to the model."""

from collections.abc import Mapping
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

from lumctl.inventory.jobs import resolve_control
from lumctl.inventory.torus import RackTorus, TorusEdge, neighbours_along, positions_in

if TYPE_CHECKING:
    from lumctl.inventory.document import Document, RackTorusEntry
    from lumctl.inventory.model import Fibre
    from lumctl.inventory.problems import Mark
    from lumctl.inventory.scope import Scope

    _Named = tuple[Fibre, Mark, bool]
    """The fibre of an edge, where the file names it, and whether the edge wraps around."""

_LANES_PER_DIMENSION = 2


def resolve_tori(document: "Document", scope: "Scope", fibres: Mapping[str, "Fibre"]) -> None:
    """Add the torus of each rack to ``scope.racks``, once hosts, lanes and fibres are known."""
    for name, rack in document.racks.items():
        if rack is None or rack.torus is None:
            continue
        entry = rack.torus
        # What each key names is checked first, so that an error in one does not hide those in the others.
        grid, hosts, named = _grid(entry, scope), _hosts(entry, name, scope), _fibres(entry, scope, fibres)
        if grid is None or hosts is None:
            continue
        if len(hosts) != prod(grid):
            servers = f"{_by(entry.shape)} accelerators in servers of {_by(entry.server)} need {prod(grid)} hosts"
            scope.problems.add(entry.mark("hosts"), f"found {len(hosts)} hosts: {servers}")
            continue
        devices = [_device(host, entry, scope) for host in hosts]
        if any(device is None for device in devices) or entry.cut("edges", "wraps"):
            continue
        at = {str(device): number for number, device in enumerate(devices)}
        if len(at) < len(hosts):
            first = next(device for device in at if devices.count(device) > 1)
            shared = [host for host, device in zip(hosts, devices, strict=True) if device == first]
            found = f"the lanes of {' and '.join(shared[:2])} all end at {first}, expected a device for each server"
            scope.problems.add(entry.mark("hosts"), found)
            continue
        edges = _edges(named, scope, grid, at)
        torus = RackTorus(tuple(entry.shape), tuple(entry.server), tuple(hosts), tuple(at), tuple(edges))
        if entry.slices is not None:
            hook, run = resolve_control(entry.slices, scope)
            torus = replace(torus, hook=hook, needs_no_pause=entry.slices.needs_no_pause, run=run)
        scope.racks[name] = replace(scope.racks[name], torus=torus)


def _grid(entry: "RackTorusEntry", scope: "Scope") -> tuple[int, ...] | None:
    """The number of servers along each dimension."""
    if entry.cut("shape", "server"):
        return None
    if len(entry.server) != len(entry.shape):
        found = f"found a server of {len(entry.server)} dimensions in a torus of {len(entry.shape)}, expected as many"
        scope.problems.add(entry.mark("server"), found)
        return None
    for at, (whole, block) in enumerate(zip(entry.shape, entry.server, strict=True)):
        if whole % block:
            mark = entry.mark("server", at, len(entry.server))
            scope.problems.add(mark, f"found {block}, expected a divisor of {whole}, the extent of that dimension")
            return None
    return tuple(whole // block for whole, block in zip(entry.shape, entry.server, strict=True))


def _hosts(entry: "RackTorusEntry", rack: str, scope: "Scope") -> list[str] | None:
    """The hosts in the order of the grid; ``None`` if one of them cannot be part of this torus."""
    written = [entry.hosts] if isinstance(entry.hosts, str) else entry.hosts
    hosts: list[str] = []
    sound = not entry.cut("hosts")
    for item, text in enumerate(written):
        mark = entry.mark("hosts", item, len(written))
        names = scope.expand(text, mark)
        for name in names or ():
            sound &= _fits(name, rack, mark, scope) and scope.take(f"host {name}", f"place {len(hosts)}", mark)
            hosts.append(name)
        sound &= names is not None
    return hosts if sound else None


def _fits(name: str, rack: str, mark: "Mark", scope: "Scope") -> bool:
    host = scope.refer("host", name, scope.hosts, mark)
    if host is not None and host.rack and host.rack != rack:
        scope.once("torus rack", mark, f"{name} is in rack {host.rack}, expected a host of rack {rack}")
    return host is not None and host.rack == rack


def _device(host: str, entry: "RackTorusEntry", scope: "Scope") -> str | None:
    """The device at which all lanes of a host end, if it has the accelerators and lanes of a server of this torus."""
    mark = entry.mark("hosts")
    accelerators = [each.id for each in scope.accelerators.values() if each.host == host]
    in_doubt = scope.doubts.names.some or any(each in scope.doubts.lanes for each in accelerators)
    if in_doubt:
        return None
    if len(accelerators) != prod(entry.server):
        expected = f"expected {prod(entry.server)}, a server of {_by(entry.server)}"
        scope.problems.add(mark, f"{host} has {len(accelerators)} accelerators, {expected}")
        return None
    ends = [(lane.accelerator, lane.lane.device) for lane in scope.transponders.values() if lane.host == host]
    needed = _LANES_PER_DIMENSION * len(entry.shape)
    for accelerator in accelerators:
        lanes = sum(of == accelerator for of, _ in ends)
        if lanes < needed:
            expected = f"expected {needed}: two for each dimension of the torus"
            scope.problems.add(mark, f"{accelerator} has {lanes} lanes, {expected}")
            return None
    devices = sorted({device for _, device in ends})
    if len(devices) > 1:
        found = f"the lanes of {host} end at {' and '.join(devices)}"
        scope.problems.add(mark, f"{found}, expected one device for each server of a torus")
        return None
    return devices[0]


def _fibres(entry: "RackTorusEntry", scope: "Scope", fibres: Mapping[str, "Fibre"]) -> "list[_Named]":
    """The fibres that the edges are written as; unknown ones and those that are used twice are problems."""
    named: list[_Named] = []
    for key, texts in (("edges", entry.edges), ("wraps", entry.wraps)) if not entry.cut("edges", "wraps") else ():
        for item, text in enumerate(texts):
            mark = entry.mark(key, item, len(texts))
            for name in scope.expand(text, mark) or ():
                fibre = scope.refer("fibre", name, fibres, mark)
                if fibre is not None and scope.take(f"fibre {name}", f"edge {len(named)} of the torus", mark):
                    named.append((fibre, mark, key == "wraps"))
    return named


def _edges(named: "list[_Named]", scope: "Scope", grid: tuple[int, ...], at: Mapping[str, int]) -> list[TorusEdge]:
    """The edges, with the two servers of each in the order of its fibre's ends. ``at``: the server of each device."""
    edges: list[TorusEdge] = []
    for fibre, mark, wraps in named:
        edge = _edge(fibre, grid, at, wraps=wraps)
        if isinstance(edge, str):
            scope.problems.add(mark, edge)
        else:
            edges.append(edge)
    return edges


def _edge(fibre: "Fibre", grid: tuple[int, ...], at: Mapping[str, int], *, wraps: bool) -> TorusEdge | str:
    """The edge that a fibre is; a text says why it cannot be one."""
    if foreign := [device for device in fibre.devices if device not in at]:
        return f"{fibre.name} ends at {foreign[0]}, which is no device of a server of the torus"
    places, (a, b) = positions_in(grid), (at[device] for device in fibre.devices)
    dimension = neighbours_along(grid, places[a], places[b])
    if dimension is not None and _is_step(grid[dimension], places[a], places[b], dimension, wraps=wraps):
        return TorusEdge(fibre.name, (a, b), dimension, wraps)
    first, second = (f"{device} at {_at(places[at[device]])}" for device in fibre.devices)
    expected = "the first and the last server of a row" if wraps else "servers side by side"
    other = "" if dimension is None else f"; write it under {'edges' if wraps else 'wraps'}"
    return f"{fibre.name} joins {first} and {second} of the grid, expected {expected}{other}"


def _is_step(extent: int, a: tuple[int, ...], b: tuple[int, ...], dimension: int, *, wraps: bool) -> bool:
    step = abs(a[dimension] - b[dimension])
    return step == extent - 1 if wraps else step == 1


def _by(shape: list[int]) -> str:
    return "x".join(map(str, shape))


def _at(place: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, place))})"
