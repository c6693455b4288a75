"""Where light goes in a network: from device to device as all of them stand, to the port it leaves by."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from lumctl.devices.types import PucState
from lumctl.errors import UsageError
from lumctl.fabric.geometry import PortPair
from lumctl.fabric.network.model import MeshDevice, Network, SwitchDevice
from lumctl.fabric.tracing import Pass, trace
from lumctl.inventory.fibres import DevicePort


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
