"""Where light goes in a network: from device to device as all of them stand, to the port it leaves by."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from lumctl.devices.types import PucState
from lumctl.errors import UsageError
from lumctl.fabric.geometry import Pass, PortPair, trace
from lumctl.fabric.network.model import Ends, MeshDevice, Network, SwitchDevice
from lumctl.inventory.model import DevicePort


@dataclass(frozen=True, slots=True)
class NetworkStates:
    """How all devices stand: the PUCs of each mesh (bar where nothing is said), the connected ports of each switch."""

    pucs: Mapping[str, Mapping[int, PucState]] = field(default_factory=dict)
    connects: Mapping[str, frozenset[PortPair]] = field(default_factory=dict)

    def partner(self, switch: str, port: int) -> int | None:
        """The port that a switch connects with this one, if any.

        Raises:
            UsageError: several are said to be.
        """
        found = [b if a == port else a for a, b in self.connects.get(switch, ()) if port in {a, b}]
        if len(found) > 1:
            raise UsageError(f"port {port} of {switch} is connected twice", hint="a port has one partner at most")
        return found[0] if found else None


@dataclass(frozen=True, slots=True)
class NetworkHop:
    """The way through one device, from port to port; ``passes`` is empty for a switch."""

    device: str
    ports: PortPair
    passes: tuple[Pass, ...] = ()


@dataclass(frozen=True, slots=True)
class NetworkTrace:
    """The way of light from ``start`` to ``exit``, which is ``None`` where it ends at an unconnected switch port.

    ``fibres[i]`` names the fibre between ``hops[i]`` and the next; ``ends_in`` is the switch at which light ends.
    """

    start: DevicePort
    exit: DevicePort | None
    hops: tuple[NetworkHop, ...]
    fibres: tuple[str, ...]
    ends_in: str | None = None


def trace_network(network: Network, states: NetworkStates, start: DevicePort) -> NetworkTrace:
    """Follow light from ``start`` through every device on its way. What is stuck stands as it is stuck.

    Raises:
        UsageError: there is no such port, or it is not a way in because a fibre joins it with another.
    """
    network.check(start)
    if start in network.across:
        fibre, there = network.across[start]
        raise UsageError(f"{start} is no way in: fibre {fibre.name} joins it with {there}")
    hops: list[NetworkHop] = []
    fibres: list[str] = []
    place = start
    # This ends: every step can be walked back, so light that came in from outside cannot be caught in a loop.
    while True:
        hop = _through(network.devices[place.device], states, place)
        if hop is None:
            return NetworkTrace(start, None, tuple(hops), tuple(fibres), ends_in=place.device)
        hops.append(hop)
        out = DevicePort(place.device, hop.ports[1])
        if out not in network.across:
            return NetworkTrace(start, out, tuple(hops), tuple(fibres))
        fibre, place = network.across[out]
        fibres.append(fibre.name)


def _through(device: MeshDevice | SwitchDevice, states: NetworkStates, place: DevicePort) -> NetworkHop | None:
    if isinstance(device, MeshDevice):
        standing = {**states.pucs.get(place.device, {}), **device.condition.stuck}
        found = trace(device.mesh, standing, place.port)
        return NetworkHop(place.device, (place.port, found.exit), found.passes)
    partner = states.partner(place.device, place.port)
    return None if partner is None else NetworkHop(place.device, (place.port, partner))


def circuits_made(network: Network, states: NetworkStates) -> tuple[NetworkTrace, ...]:
    """Every circuit that the devices make between two ports without fibres, each once, in the order of the devices."""
    made: list[NetworkTrace] = []
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


def hops_loss_db(network: Network, found: NetworkTrace) -> float:
    """What light loses on its way: in every device, at every mesh port, and in every fibre, in dB."""
    by_name = {fibre.name: fibre.loss_db for fibre in network.fibres}
    return sum(hop_loss_db(network, hop) for hop in found.hops) + sum(by_name[name] for name in found.fibres)


def hop_loss_db(network: Network, hop: NetworkHop) -> float:
    """What light loses in one device, from port to port, in dB."""
    device = network.devices[hop.device]
    if isinstance(device, SwitchDevice):
        return device.loss_db
    return device.condition.loss_db(hop.ports, [puc for puc, _ in hop.passes])


@dataclass(frozen=True, slots=True)
class NetworkRoute:
    """The way of a circuit: device by device, with the fibre from each to the next, and what light loses on it."""

    ends: Ends
    hops: tuple[NetworkHop, ...]
    fibres: tuple[str, ...]
    loss_db: float


@dataclass(frozen=True, slots=True)
class NetworkChanges:
    """What to set: PUCs by mesh, port pairs to connect by switch, and pairs to part first, to free their ports."""

    pucs: Mapping[str, Mapping[int, PucState]]
    connect: Mapping[str, tuple[PortPair, ...]]
    disconnect: Mapping[str, tuple[PortPair, ...]]

    def applied(self, states: NetworkStates) -> NetworkStates:
        """How the devices stand once this is set."""
        pucs = dict(states.pucs)
        for name, changed in self.pucs.items():
            pucs[name] = {**pucs.get(name, {}), **changed}
        connects = dict(states.connects)
        for name in {*self.connect, *self.disconnect}:
            standing = connects.get(name, frozenset()) - set(self.disconnect.get(name, ()))
            connects[name] = standing | set(self.connect.get(name, ()))
        return NetworkStates(pucs, connects)


def network_changes(network: Network, states: NetworkStates, routes: Iterable[NetworkRoute]) -> NetworkChanges:
    """What must be set so that the devices make these routes; nothing that stands so already is named."""
    hops = [hop for found in routes for hop in found.hops]
    pucs: dict[str, dict[int, PucState]] = {}
    for name, device in network.meshes:
        wanted = dict(passed for hop in hops if hop.device == name for passed in hop.passes)
        standing = {**states.pucs.get(name, {}), **device.condition.stuck}
        pucs[name] = {puc: wanted[puc] for puc in sorted(wanted) if standing.get(puc, PucState.BAR) is not wanted[puc]}
    connect: dict[str, tuple[PortPair, ...]] = {}
    disconnect: dict[str, tuple[PortPair, ...]] = {}
    for name, _ in network.switches:
        pairs = {_low_first(hop.ports) for hop in hops if hop.device == name}
        ports = {port for pair in pairs for port in pair}
        standing_pairs = {_low_first(pair) for pair in states.connects.get(name, ())}
        connect[name] = tuple(sorted(pairs - standing_pairs))
        disconnect[name] = tuple(sorted(pair for pair in standing_pairs - pairs if not ports.isdisjoint(pair)))
    return NetworkChanges(
        {name: changed for name, changed in pucs.items() if changed},
        {name: changed for name, changed in connect.items() if changed},
        {name: changed for name, changed in disconnect.items() if changed},
    )


def _low_first(pair: PortPair) -> PortPair:
    return (min(pair), max(pair))
