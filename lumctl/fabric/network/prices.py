"""What the ways through a network cost before anybody bargains, and what is not to be had at any price."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from math import inf

from lumctl.devices.types import PucState
from lumctl.fabric.network.joint import Joint
from lumctl.fabric.network.model import Network
from lumctl.fabric.network.search import Prices
from lumctl.fabric.network.tracing import NetworkStates, NetworkTrace
from lumctl.inventory.fibres import DevicePort

_CHANGE = 1 / 4096
"""What it costs, in losses of one PUC, to change a PUC's state: decides only between ways of equal loss."""


def rooms_left(network: Network, live: Iterable[NetworkTrace]) -> dict[str, int]:
    """How many more circuits each fibre or bundle can carry, by name."""
    carried = Counter(name for found in live for name in found.fibres)
    taken = {place for found in live for place in _fibre_ports(found)}
    rooms: dict[str, int] = {}
    for fibre in network.fibres:
        usable = sum(not (set(pair) & taken or any(is_blocked(network, end) for end in pair)) for pair in fibre.pairs)
        rooms[fibre.name] = max(0, min(usable, fibre.capacity - carried[fibre.name]))
    return rooms


def prices_now(
    network: Network, joint: Joint, states: NetworkStates, live: Sequence[NetworkTrace], rooms: Mapping[str, int]
) -> Prices:
    """Losses, and a little more where a state changes; what is live, stuck, damaged or blocked cannot be had.

    That holds a live circuit's waveguides too: only a PUC in its other state could lead light onto them.
    """
    turn, wire = joint.turn_price.copy(), joint.wire_price.copy()
    _price_pucs(network, joint, states, turn)
    for hop in (hop for found in live for hop in found.hops):
        for puc, state in hop.passes:
            turn[_other_turn(joint.first_of[hop.device] // 4 + puc, state)] = inf
    closed = {place for found in live for place in _fibre_ports(found)}
    closed |= {place for ends in network.across.items() for place in _closed(network, ends[0], ends[1][1])}
    for place in closed:
        wire[joint.terminal_of[place]] = inf
    return Prices(joint, turn, wire, [0.0 if rooms[fibre.name] else inf for fibre in network.fibres])


def _price_pucs(network: Network, joint: Joint, states: NetworkStates, turn: list[float]) -> None:
    for name, device in network.meshes:
        first, condition = joint.first_of[name] // 4, device.condition
        standing = {**states.pucs.get(name, {}), **condition.stuck}
        for puc in range(device.mesh.puc_count):
            turn[_other_turn(first + puc, standing.get(puc, PucState.BAR))] += _CHANGE
        for puc, state in condition.stuck.items():
            turn[_other_turn(first + puc, state)] = inf
        for puc in condition.damaged:
            turn[2 * (first + puc)] = turn[2 * (first + puc) + 1] = inf


def _other_turn(puc: int, state: PucState) -> int:
    """Where the price stands of passing a PUC in the state that it is not in."""
    return 2 * puc + (1 if state is PucState.BAR else 0)


def _closed(network: Network, here: DevicePort, there: DevicePort) -> tuple[DevicePort, ...]:
    """The two ends of a fibre if one of them is blocked."""
    return (here, there) if is_blocked(network, here) or is_blocked(network, there) else ()


def _fibre_ports(found: NetworkTrace) -> Iterator[DevicePort]:
    """The ports with fibres on a way."""
    for before, after in pairwise(found.hops):
        yield DevicePort(before.device, before.ports[1])
        yield DevicePort(after.device, after.ports[0])


def is_blocked(network: Network, place: DevicePort) -> bool:
    """Whether a port must not be used."""
    return place.port in network.devices[place.device].blocked_ports
