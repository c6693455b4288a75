"""Traces light through a network: from device to device, by their states, to the port at which it leaves."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from lumctl.devices.types import PucState
from lumctl.errors import UsageError
from lumctl.fabric.geometry import Pass, PortPair, trace
from lumctl.fabric.network.model import MeshDevice, Network, SwitchDevice
from lumctl.fabric.paths import LightPath, Segment
from lumctl.inventory.model import DevicePort, Inventory
from lumctl.inventory.wiring import FREE


@dataclass(frozen=True, slots=True)
class NetworkStates:
    """The states of all devices: the PUCs of each mesh (bar unless given), the connected ports of each switch."""

    pucs: Mapping[str, Mapping[int, PucState]] = field(default_factory=dict)
    connects: Mapping[str, frozenset[PortPair]] = field(default_factory=dict)

    def partner(self, switch: str, port: int) -> int | None:
        """The port that a switch connects with this one; ``None`` if there is none.

        Raises:
            UsageError: the states connect this port with several others.
        """
        found = [b if a == port else a for a, b in self.connects.get(switch, ()) if port in {a, b}]
        if len(found) > 1:
            raise UsageError(f"port {port} of {switch} is connected twice", hint="a port has at most one partner")
        return found[0] if found else None


def network_states(inventory: Inventory, cells: Mapping[str, Mapping[int, str]]) -> NetworkStates:
    """Convert states from the form of the store and the drivers, by PUC or by ingress port."""
    pucs: dict[str, dict[int, PucState]] = {}
    connects: dict[str, frozenset[PortPair]] = {}
    for name, held in cells.items():
        if inventory.devices[name].geometry is None:
            connects[name] = frozenset(_low_first((at, int(to))) for at, to in held.items() if to != FREE)
        else:
            pucs[name] = {puc: PucState(state) for puc, state in held.items()}
    return NetworkStates(pucs, connects)


def trace_network(network: Network, states: NetworkStates, start: DevicePort) -> LightPath:
    """Follow light from ``start`` through every device on its way. A stuck PUC has the state in which it is stuck.

    Raises:
        UsageError: there is no such port, or a fibre connects it to another port.
    """
    network.check(start)
    if start in network.across:
        fibre, there = network.across[start]
        raise UsageError(f"{start} cannot be an entry: fibre {fibre.name} connects it to {there}")
    segments: list[Segment] = []
    fibres: list[str] = []
    place = start
    # This ends: every step is reversible, so light that came in from outside cannot be caught in a loop.
    while True:
        segment = _through(network.devices[place.device], states, place)
        if segment is None:
            return LightPath(start, None, tuple(segments), tuple(fibres), ends_in=place.device)
        segments.append(segment)
        out = DevicePort(place.device, segment.ports[1])
        if out not in network.across:
            return LightPath(start, out, tuple(segments), tuple(fibres))
        fibre, place = network.across[out]
        fibres.append(fibre.name)


def _through(device: MeshDevice | SwitchDevice, states: NetworkStates, place: DevicePort) -> Segment | None:
    if isinstance(device, MeshDevice):
        found = trace(device.mesh, puc_states(states, place.device, device), place.port)
        return Segment(place.device, (place.port, found.exit), found.pucs)
    partner = states.partner(place.device, place.port)
    return None if partner is None else Segment(place.device, (place.port, partner))


def puc_states(states: NetworkStates, name: str, device: MeshDevice) -> dict[int, PucState]:
    """The PUC states of one mesh; a stuck PUC has the state in which it is stuck, an omitted PUC is in bar."""
    return {**states.pucs.get(name, {}), **device.condition.stuck}


def circuits_made(network: Network, states: NetworkStates) -> tuple[LightPath, ...]:
    """All circuits that the devices form between two ports without fibres, each once, in the order of the devices."""
    made: list[LightPath] = []
    seen: set[DevicePort] = set()
    for name, device in network.devices.items():
        for port in range(device.port_count):
            place = DevicePort(name, port)
            if place not in network.across and place not in seen:
                found = trace_network(network, states, place)
                if found.exit is not None:
                    made.append(found)
                    seen.add(found.exit)
    return tuple(made)


def network_loss_db(network: Network, path: LightPath) -> float:
    """The loss of a path: in every device, at every mesh port, and in every fibre, in dB."""
    by_name = {fibre.name: fibre.loss_db for fibre in network.fibres}
    inside = sum(_segment_loss_db(network, segment) for segment in path.segments)
    return inside + sum(by_name[name] for name in path.fibres)


def _segment_loss_db(network: Network, segment: Segment) -> float:
    device = network.devices[segment.device]
    if isinstance(device, SwitchDevice):
        return device.loss_db
    return device.condition.loss_db(segment.ports, segment.pucs)


@dataclass(frozen=True, slots=True)
class NetworkRoute:
    """The light path of a planned circuit, the states that it needs (by mesh and PUC), and its loss."""

    path: LightPath
    states: Mapping[str, Mapping[int, PucState]]
    loss_db: float

    def passes(self, segment: Segment) -> tuple[Pass, ...]:
        """The PUCs of one segment in order, each with the state that it needs; none in a switch."""
        return tuple((puc, self.states[segment.device][puc]) for puc in segment.pucs)


@dataclass(frozen=True, slots=True)
class NetworkChanges:
    """The changes to make: PUCs by mesh, pairs to connect by switch, and pairs to disconnect first, to free ports."""

    pucs: Mapping[str, Mapping[int, PucState]]
    connect: Mapping[str, tuple[PortPair, ...]]
    disconnect: Mapping[str, tuple[PortPair, ...]]

    def applied(self, states: NetworkStates) -> NetworkStates:
        """The states of the devices after these changes."""
        pucs = dict(states.pucs)
        for name, changed in self.pucs.items():
            pucs[name] = {**pucs.get(name, {}), **changed}
        connects = dict(states.connects)
        for name in {*self.connect, *self.disconnect}:
            kept = connects.get(name, frozenset()) - set(self.disconnect.get(name, ()))
            connects[name] = kept | set(self.connect.get(name, ()))
        return NetworkStates(pucs, connects)


def network_changes(network: Network, states: NetworkStates, routes: Iterable[NetworkRoute]) -> NetworkChanges:
    """The changes that make these routes; states that are already right are omitted."""
    routes = tuple(routes)
    segments = [segment for found in routes for segment in found.path.segments]
    pucs: dict[str, dict[int, PucState]] = {}
    for name, device in network.meshes:
        wanted = {puc: state for found in routes for puc, state in found.states.get(name, {}).items()}
        present = puc_states(states, name, device)
        pucs[name] = {puc: wanted[puc] for puc in sorted(wanted) if present.get(puc, PucState.BAR) is not wanted[puc]}
    connect: dict[str, tuple[PortPair, ...]] = {}
    disconnect: dict[str, tuple[PortPair, ...]] = {}
    for name, _ in network.switches:
        pairs = {_low_first(segment.ports) for segment in segments if segment.device == name}
        ports = {port for pair in pairs for port in pair}
        present_pairs = {_low_first(pair) for pair in states.connects.get(name, ())}
        connect[name] = tuple(sorted(pairs - present_pairs))
        disconnect[name] = tuple(sorted(pair for pair in present_pairs - pairs if not ports.isdisjoint(pair)))
    return NetworkChanges(
        {name: changed for name, changed in pucs.items() if changed},
        {name: changed for name, changed in connect.items() if changed},
        {name: changed for name, changed in disconnect.items() if changed},
    )


def _low_first(pair: PortPair) -> PortPair:
    return (min(pair), max(pair))
