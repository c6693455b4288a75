"""Routes through a network, and what must be set on its devices for them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lumctl.devices.types import PucState
from lumctl.fabric.geometry import PortPair
from lumctl.fabric.network.model import Ends, Network
from lumctl.fabric.network.tracing import NetworkHop, NetworkStates


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
