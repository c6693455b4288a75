"""The torus of a rack as the allocator sees it: from the inventory, where the jobs run, and what was just read."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from lumctl.context import Observation
from lumctl.fabric import condition_of, mesh_of
from lumctl.fabric.port_choice import is_cut_off
from lumctl.health.states import State
from lumctl.inventory.model import Device, DeviceKind, Fibre, Inventory, Role
from lumctl.inventory.torus import RackTorus, positions_in
from lumctl.slices.torus import Coordinates, Extents, FibreEdge, Torus

_WELL = frozenset({State.OK, State.DISABLED})


@dataclass(frozen=True)
class RackState:
    """A rack with a torus at one moment.

    ``accelerators`` are all of the torus by place. ``kept_from`` says of each that a slice may not take why not.
    """

    rack: str
    torus: Torus
    accelerators: Mapping[Coordinates, str]
    kept_from: Mapping[str, str]
    devices: Mapping[str, Coordinates]
    """The server of each mesh or switch."""

    @property
    def free(self) -> tuple[str, ...]:
        """The accelerators that a slice may take, in the order of their places."""
        return tuple(name for place, name in sorted(self.accelerators.items()) if place in self.torus.free)

    def without(self, device: str) -> "RackState":
        """The rack if a slice may not use the accelerators of a device's server, or else not its fibres either."""
        server = self.devices[device]
        on_it = {place for place in self.torus.free if self.torus.server_of(place) == server}
        edges = tuple(
            replace(edge, capacity=min(edge.capacity, edge.used)) if server in edge.ends and not on_it else edge
            for edge in self.torus.edges
        )
        why = f"is at {device}, which has no way for the circuits"
        return replace(
            self,
            torus=replace(self.torus, free=self.torus.free - on_it, edges=edges),
            kept_from={**self.kept_from, **{self.accelerators[place]: why for place in on_it}},
        )

    def servers_of(self, inventory: Inventory, hosts: Collection[str]) -> frozenset[Coordinates]:
        """The places of hosts in the grid of servers."""
        return frozenset(
            self.torus.server_of(place)
            for place, name in self.accelerators.items()
            if inventory.accelerators[name].host in hosts
        )


def rack_state(
    seen: Observation,
    rack: str,
    is_known: Callable[[str], object],
    *,
    model: str | None = None,
    memory_gib: float = 0.0,
) -> RackState:
    """The state of a rack with a torus; only accelerators of this ``model`` and with this memory count as free.

    ``is_known`` says of a mesh or switch whether its states are certain.

    Raises:
        ValueError: the rack has no torus.
    """
    inventory, written = seen.inventory, seen.inventory.racks[rack].torus
    if written is None:
        raise ValueError(f"rack {rack} has no torus")
    accelerators = _places(inventory, written)
    known = {device: bool(is_known(device)) for device in written.devices}
    kept_from: dict[str, str] = {}
    for name in accelerators.values():
        why = _why_not_free(seen, name, known[written.devices[written.hosts.index(inventory.accelerators[name].host)]])
        asked = inventory.accelerators[name]
        if why is None and model is not None and asked.model != model:
            why = f"is a {asked.model}"
        if why is None and asked.memory_gib < memory_gib:
            why = f"has {asked.memory_gib:g} GiB"
        if why is not None:
            kept_from[name] = why
    return RackState(
        rack,
        Torus(
            shape=_padded(written.shape),
            server_shape=_padded(written.server),
            free=frozenset(place for place, name in accelerators.items() if name not in kept_from),
            edges=_edges(seen, written, known),
        ),
        accelerators,
        kept_from,
        dict(zip(written.devices, _servers(written), strict=True)),
    )


def _servers(written: RackTorus) -> list[Coordinates]:
    """The place of each server in the grid, in the order of hosts."""
    return [(place[0], place[1], place[2]) for place in positions_in(_padded(written.grid))]


def _padded(shape: tuple[int, ...]) -> Extents:
    """Three extents; the allocator's tori have three dimensions."""
    x, y, z = (*shape, 1, 1, 1)[:3]
    return x, y, z


def _places(inventory: Inventory, written: RackTorus) -> dict[Coordinates, str]:
    """The accelerators of a torus by place: hosts in row-major order, and their accelerators too."""
    server = _padded(written.server)
    found: dict[Coordinates, str] = {}
    for host, corner in zip(written.hosts, positions_in(_padded(written.grid)), strict=True):
        for accelerator, inside in zip(inventory.accelerators_of(host), positions_in(server), strict=True):
            x, y, z = (at * extent + step for at, extent, step in zip(corner, server, inside, strict=True))
            found[x, y, z] = accelerator.id
    return found


def _why_not_free(seen: Observation, name: str, mesh_is_known: bool) -> str | None:
    """Why a slice may not take an accelerator; ``None`` if it may."""
    place = seen.place_of(name)
    if place is not None:
        return f"runs rank {place[1]} of {place[0]}"
    if seen.inventory.accelerators[name].role is Role.SPARE:
        return "is a spare"
    if seen.role_of(name) is not Role.ACTIVE:
        return "is out of service"
    health = seen.report.accelerators[name]
    if health.state is not State.OK:
        return f"is {health.maintenance or health.state}"
    for lane in seen.inventory.transponders_of(name):
        if seen.report.links[lane.id].state not in _WELL:
            return f"has a lane that is {seen.report.links[lane.id].state}: {lane.id}"
    return None if mesh_is_known else "is at a mesh whose states are not certain"


def _edges(seen: Observation, written: RackTorus, known: Mapping[str, bool]) -> tuple[FibreEdge, ...]:
    inventory = seen.inventory
    used = Counter(name for path in seen.paths.values() if path is not None for name in path.fibres)
    silent = {device for device in written.devices if not known[device] or _is_down(seen, device)}
    places = _servers(written)
    cut_off = {device: cut_off_ports(inventory, inventory.devices[device]) for device in written.devices}
    return tuple(
        FibreEdge(
            edge.fibre,
            (places[edge.servers[0]], places[edge.servers[1]]),
            0 if silent & set(fibre.devices) else _capacity(fibre, cut_off),
            used[edge.fibre],
        )
        for edge in written.edges
        for fibre in (inventory.fibres[edge.fibre],)
    )


def _is_down(seen: Observation, device: str) -> bool:
    reading = seen.devices.get(device)
    return reading is not None and reading.problem is not None


def _capacity(fibre: Fibre, cut_off: Mapping[str, frozenset[int]]) -> int:
    usable = sum(all(end.port not in cut_off[end.device] for end in pair) for pair in fibre.pairs)
    return min(fibre.capacity, usable)


def cut_off_ports(inventory: Inventory, device: Device) -> frozenset[int]:
    """The ports of a device whose fibres cannot be used: they are blocked, or damage leaves no path from them."""
    if device.kind is not DeviceKind.MESH:
        return device.blocked_ports
    condition = condition_of(device)
    if not (condition.stuck or condition.damaged or condition.blocked_ports):
        return frozenset()
    mesh = mesh_of(device)
    ports = {place.port for place in inventory.fibre_at if place.device == device.id}
    return frozenset(port for port in ports if is_cut_off(mesh, port, condition))
