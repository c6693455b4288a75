"""Routes for new circuits through a network, around those that are live."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from math import inf
from typing import TYPE_CHECKING

from lumctl.devices.types import PucState
from lumctl.errors import LumctlError, UsageError
from lumctl.fabric.network.model import Ends, JointNetwork, Network, joint_of, written
from lumctl.fabric.network.negotiation import Negotiation, NetworkPrices, Way
from lumctl.fabric.network.tracing import (
    NetworkHop,
    NetworkRoute,
    NetworkStates,
    NetworkTrace,
    hops_loss_db,
    network_changes,
    trace_network,
)
from lumctl.fabric.search import InconsistentFabricError, Unroutable
from lumctl.inventory.model import DevicePort
from lumctl.inventory.problems import listing

if TYPE_CHECKING:
    from lumctl.fabric.geometry import Pass

_IDLE = NetworkStates()
_CHANGE = 1 / 4096
"""What it costs, in losses of one PUC, to change a PUC's state: decides only between ways of equal loss."""
_EVERY_CUT = 10
"""Up to so many devices every way to part them is tried."""


class NetworkUnroutable(Unroutable):
    """Some circuits were not found a way through a network; ``ends`` are theirs, ``demands`` only the ports of them."""

    def __init__(self, ends: Sequence[Ends], message: str, *, proven: bool, hint: str | None = None) -> None:
        super().__init__(tuple((a.port, b.port) for a, b in ends), message, proven=proven, hint=hint)
        self.ends = tuple(ends)


def route_network(
    network: Network, demands: Sequence[Ends], *, states: NetworkStates = _IDLE, live: Collection[Ends] = ()
) -> tuple[NetworkRoute, ...]:
    """Find a route for every demand, all at once, that leaves the ``live`` circuits untouched, and loses little.

    A live circuit keeps every PUC's state, waveguide, fibre and switch connection that it uses. Stuck PUCs are passed
    as they stand, damaged ones not at all. The result has been traced through all devices before it is returned.

    Raises:
        UsageError: a port is not there, has a fibre, or is wanted twice.
        InconsistentFabricError: a live circuit is not what the states make.
        NetworkUnroutable: there is no way, or none was found; ``proven`` tells which.
    """
    _check_ports(network, demands, live)
    blocked = [ends for ends in demands if any(is_blocked(network, place) for place in ends)]
    if blocked:
        raise NetworkUnroutable(blocked, f"there is no way for {written(blocked)}: a port is blocked", proven=True)
    carried = _live_traces(network, states, live)
    rooms = rooms_left(network, carried)
    joint = joint_of(network)
    prices = prices_now(network, joint, states, carried, rooms)
    terminals = [(joint.terminal_of[a], joint.terminal_of[b]) for a, b in demands]
    negotiation = Negotiation(prices, [rooms[fibre.name] for fibre in network.fibres], terminals)
    _refuse_what_cannot_be(network, demands, negotiation, rooms)
    ways, losers = negotiation.settle()
    if losers:
        left = [demands[at] for at in losers]
        said = f"no way found for {written(left)}: gave up looking, which does not prove that there is none"
        raise NetworkUnroutable(left, said, proven=False, hint="try other ports, or route fewer circuits at once")
    routes = tuple(_route(network, joint, ends, way) for ends, way in zip(demands, ways, strict=True))
    _prove(network, network_changes(network, states, routes).applied(states), routes, carried)
    return routes


def _check_ports(network: Network, demands: Iterable[Ends], live: Iterable[Ends]) -> None:
    used: set[DevicePort] = set()
    for place in (place for ends in (*live, *demands) for place in ends):
        network.check(place)
        if place in network.across:
            raise UsageError(f"{place} is no end of a circuit: fibre {network.across[place][0].name} is there")
        if place in used:
            raise UsageError(f"{place} is wanted twice", hint="a port is the end of one circuit")
        used.add(place)


def _live_traces(network: Network, states: NetworkStates, live: Iterable[Ends]) -> tuple[NetworkTrace, ...]:
    carried: list[NetworkTrace] = []
    for start, expected in live:
        found = trace_network(network, states, start)
        if found.exit != expected:
            leaves = f"leaves at {found.exit}" if found.exit else f"ends in {found.ends_in}"
            raise InconsistentFabricError(
                f"circuit {start},{expected} is said to be live, but light from {start} {leaves}",
                hint="read or re-assert the states of the devices first",
            )
        carried.append(found)
    return tuple(carried)


def _refuse_what_cannot_be(
    network: Network, demands: Sequence[Ends], negotiation: Negotiation, rooms: Mapping[str, int]
) -> None:
    lost = [ends for ends, way in zip(demands, negotiation.alone, strict=True) if way is None]
    if lost:
        said = f"there is no way for {written(lost)}, even alone, around the live circuits and what is stuck or damaged"
        raise NetworkUnroutable(lost, said, proven=True, hint="try other ports, or join the devices by more fibres")
    cut = full_cut(network, demands, rooms)
    if cut is not None:
        room = f"the fibres out of {listing(cut.devices)} have room for {cut.room} of them"
        said = f"there is no way for {len(cut.crossing)} circuits at once ({written(cut.crossing)}): {room}"
        raise NetworkUnroutable(cut.crossing, said, proven=True, hint="route fewer circuits, or add fibres there")


def _route(network: Network, joint: JointNetwork, ends: Ends, way: Way) -> NetworkRoute:
    hops: list[NetworkHop] = []
    fibres: list[str] = []
    came_in = ends[0]
    passes: list[Pass] = []
    for entered, out in way:
        if entered < joint.first_switch:
            puc = (entered - joint.first_of[came_in.device]) >> 2
            passes.append((puc, PucState.CROSS if (entered ^ out) & 1 else PucState.BAR))
        place = joint.place_of.get(out)
        if place is not None:  # it leaves the device here
            hops.append(NetworkHop(came_in.device, (came_in.port, place.port), tuple(passes)))
            passes = []
            if place in network.across:
                fibre, came_in = network.across[place]
                fibres.append(fibre.name)
    found = NetworkTrace(ends[0], ends[1], tuple(hops), tuple(fibres))
    return NetworkRoute(ends, found.hops, found.fibres, hops_loss_db(network, found))


def _prove(
    network: Network, states: NetworkStates, routes: Sequence[NetworkRoute], live: Sequence[NetworkTrace]
) -> None:
    """Trace what would be programmed: every circuit must be there as planned, and no bundle be over its capacity."""
    planned = [NetworkTrace(*found.ends, found.hops, found.fibres) for found in routes]
    for expected in (*planned, *live):
        if trace_network(network, states, expected.start) != expected:
            defect = f"the route of {expected.start},{expected.exit} does not trace"
            raise LumctlError(defect, hint="a defect: please report it")
    carried = Counter(name for found in (*planned, *live) for name in found.fibres)
    spent = Counter(name for found in live for name in found.fibres)
    for fibre in network.fibres:
        if carried[fibre.name] > max(fibre.capacity, spent[fibre.name]):
            raise LumctlError(f"too many circuits in fibre {fibre.name}", hint="a defect: please report it")


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
    network: Network, joint: JointNetwork, states: NetworkStates, live: Sequence[NetworkTrace], rooms: Mapping[str, int]
) -> NetworkPrices:
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
    return NetworkPrices(joint, turn, wire, [0.0 if rooms[fibre.name] else inf for fibre in network.fibres])


def _price_pucs(network: Network, joint: JointNetwork, states: NetworkStates, turn: list[float]) -> None:
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


@dataclass(frozen=True, slots=True)
class NetworkCut:
    """Devices that ``crossing`` circuits must leave or enter, with ``room`` for fewer in the fibres out of them."""

    devices: tuple[str, ...]
    crossing: tuple[Ends, ...]
    room: int


def full_cut(network: Network, demands: Sequence[Ends], rooms: Mapping[str, int]) -> NetworkCut | None:
    """A part of the network that not all demands can leave; ``None`` if none was found, which proves nothing.

    ``rooms`` is how many more circuits each fibre or bundle can carry, by name. In a network of few devices every cut
    is looked at. In a larger one parts are grown from each device, always by the one that makes the cut worse: that
    finds the full fibres of stars, chains and trees.
    """
    weight: Counter[frozenset[str]] = Counter(frozenset((a.device, b.device)) for a, b in demands)
    for fibre in network.fibres:
        weight[frozenset(fibre.devices)] -= rooms[fibre.name]
    weight = Counter({pair: excess for pair, excess in weight.items() if len(pair) > 1})
    devices = list(network.devices)
    parts = _all_parts(devices) if len(devices) <= _EVERY_CUT else _grown_parts(devices, weight)
    worst = max(parts, key=lambda part: _excess(weight, part))
    if _excess(weight, worst) <= 0:
        return None
    crossing = tuple(ends for ends in demands if (ends[0].device in worst) != (ends[1].device in worst))
    room = len(crossing) - _excess(weight, worst)
    return NetworkCut(tuple(name for name in devices if name in worst), crossing, room)


def _excess(weight: Mapping[frozenset[str], int], part: frozenset[str]) -> int:
    """How many circuits too many cross between a part and the rest."""
    return sum(excess for pair, excess in weight.items() if len(pair & part) == 1)


def _all_parts(devices: Sequence[str]) -> Iterator[frozenset[str]]:
    """Every part, the smaller ones first; the last device is always in the rest, for a cut has two sides."""
    for size in range(len(devices)):
        yield from (frozenset(part) for part in combinations(devices[:-1], size))


def _grown_parts(devices: Sequence[str], weight: Mapping[frozenset[str], int]) -> Iterator[frozenset[str]]:
    around: dict[str, dict[str, int]] = {name: {} for name in devices}
    for pair, excess in weight.items():
        a, b = pair
        around[a][b] = around[b][a] = excess
    for start in devices:
        gain = {name: sum(near.values()) for name, near in around.items()}
        part: set[str] = set()
        grown: str | None = start
        while grown is not None:
            del gain[grown]
            part.add(grown)
            yield frozenset(part)
            for name, excess in around[grown].items():
                if name in gain:
                    gain[name] -= 2 * excess
            grown = max(gain, key=gain.__getitem__, default=None)
