"""Routes for new circuits through a network, around live circuits."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import inf

from lumctl.devices.types import PucState
from lumctl.errors import LumctlError, UsageError
from lumctl.fabric.network.model import Ends, JointNetwork, Network, joint_of, written
from lumctl.fabric.network.negotiation import Negotiation, NetworkPrices, Way
from lumctl.fabric.network.tracing import (
    NetworkRoute,
    NetworkStates,
    network_changes,
    network_loss_db,
    puc_states,
    trace_network,
)
from lumctl.fabric.paths import LightPath, Segment
from lumctl.fabric.search import InconsistentFabricError, Unroutable, endless, other_turn
from lumctl.inventory.model import DevicePort
from lumctl.inventory.problems import listing

_IDLE = NetworkStates()
_CHANGE = 1 / 4096
"""The price of changing a PUC's state, in losses of one PUC; it decides only between paths of equal loss."""
_EVERY_CUT = 10
"""Up to this many devices, all cuts are tried."""


class NetworkUnroutable(Unroutable):
    """No path through a network was found for some circuits; ``ends`` are their ends, ``demands`` only the ports."""

    def __init__(self, ends: Sequence[Ends], message: str, *, proven: bool, hint: str | None = None) -> None:
        super().__init__(tuple((a.port, b.port) for a, b in ends), message, proven=proven, hint=hint)
        self.ends = tuple(ends)


def route_network(
    network: Network,
    demands: Sequence[Ends],
    *,
    states: NetworkStates = _IDLE,
    live: Collection[Ends] = (),
    left: Callable[[], float] = endless,
) -> tuple[NetworkRoute, ...]:
    """Find routes with little loss for all demands at once, without changing the ``live`` circuits.

    A live circuit keeps all PUC states, waveguides, fibres and switch connections that it uses. Routes pass stuck PUCs
    in the state in which they are stuck, and no damaged PUCs. When no seconds are ``left``, the search ends, and routes
    that were found are not improved any more. The result has been traced through all devices.

    Raises:
        UsageError: a port does not exist, has a fibre, or is used twice. InconsistentFabricError: the states do not
            form a live circuit. NetworkUnroutable: no route exists, or none was found; ``proven`` tells which.
    """
    _check_ports(network, demands, live)
    blocked = [ends for ends in demands if any(is_blocked(network, place) for place in ends)]
    if blocked:
        raise NetworkUnroutable(blocked, f"no route exists for {written(blocked)}: a port is blocked", proven=True)
    carried = _live_traces(network, states, live)
    rooms = rooms_left(network, carried)
    joint = joint_of(network)
    prices = prices_now(network, joint, states, carried, rooms)
    terminals = [(joint.terminal_of[a], joint.terminal_of[b]) for a, b in demands]
    negotiation = Negotiation(prices, [rooms[fibre.name] for fibre in network.fibres], terminals)
    _refuse_what_cannot_be(network, demands, negotiation, rooms)
    ways, losers = negotiation.settle(left)
    if losers:
        lost = [demands[at] for at in losers]
        after = "time ran out" if left() <= 0 else "gave up looking"
        said = f"no route found for {written(lost)}: {after}, which does not prove that none exists"
        raise NetworkUnroutable(lost, said, proven=False, hint="try other ports, or route fewer circuits at once")
    routes = tuple(_route(network, joint, ends, way) for ends, way in zip(demands, ways, strict=True))
    _prove(network, network_changes(network, states, routes).applied(states), routes, carried)
    return routes


def _check_ports(network: Network, demands: Iterable[Ends], live: Iterable[Ends]) -> None:
    used: set[DevicePort] = set()
    for place in (place for ends in (*live, *demands) for place in ends):
        network.check(place)
        if place in network.across:
            raise UsageError(
                f"{place} cannot be an end of a circuit: fibre {network.across[place][0].name} is connected there"
            )
        if place in used:
            raise UsageError(f"{place} is used twice", hint="a port can be the end of only one circuit")
        used.add(place)


def _live_traces(network: Network, states: NetworkStates, live: Iterable[Ends]) -> tuple[LightPath, ...]:
    carried: list[LightPath] = []
    for start, expected in live:
        found = trace_network(network, states, start)
        if found.exit != expected:
            leaves = f"leaves at {found.exit}" if found.exit else f"ends in {found.ends_in}"
            raise InconsistentFabricError(
                f"circuit {start},{expected} should be live, but light from {start} {leaves}",
                hint="read or re-assert the states of the devices first",
            )
        carried.append(found)
    return tuple(carried)


def _refuse_what_cannot_be(
    network: Network, demands: Sequence[Ends], negotiation: Negotiation, rooms: Mapping[str, int]
) -> None:
    lost = [ends for ends, way in zip(demands, negotiation.alone, strict=True) if way is None]
    if lost:
        said = (
            f"no route exists for {written(lost)}, even alone, around the live circuits and the stuck or damaged parts"
        )
        raise NetworkUnroutable(lost, said, proven=True, hint="try other ports, or connect the devices by more fibres")
    cut = full_cut(network, demands, rooms)
    if cut is not None:
        room = f"the fibres out of {listing(cut.devices)} have room for {cut.room} of them"
        said = f"no routes exist for {len(cut.crossing)} circuits at once ({written(cut.crossing)}): {room}"
        raise NetworkUnroutable(cut.crossing, said, proven=True, hint="route fewer circuits, or add fibres there")


def _route(network: Network, joint: JointNetwork, ends: Ends, way: Way) -> NetworkRoute:
    segments: list[Segment] = []
    fibres: list[str] = []
    states: dict[str, dict[int, PucState]] = {}
    came_in = ends[0]
    pucs: list[int] = []
    for entered, out in way:
        if entered < joint.first_switch:
            puc = (entered - joint.first_of[came_in.device]) >> 2
            pucs.append(puc)
            states.setdefault(came_in.device, {})[puc] = PucState.CROSS if (entered ^ out) & 1 else PucState.BAR
        place = joint.place_of.get(out)
        if place is not None:  # light leaves the device here
            segments.append(Segment(came_in.device, (came_in.port, place.port), tuple(pucs)))
            pucs = []
            if place in network.across:
                fibre, came_in = network.across[place]
                fibres.append(fibre.name)
    path = LightPath(*ends, tuple(segments), tuple(fibres))
    return NetworkRoute(path, states, network_loss_db(network, path))


def _prove(network: Network, states: NetworkStates, routes: Sequence[NetworkRoute], live: Sequence[LightPath]) -> None:
    """Trace the planned states: every circuit must take its planned path, and no bundle may exceed its capacity."""
    planned = [found.path for found in routes]
    for expected in (*planned, *live):
        if trace_network(network, states, expected.start) != expected:
            defect = f"the route of {expected.start},{expected.exit} cannot be traced"
            raise LumctlError(defect, hint="this is a bug: please report it")
    carried = Counter(name for found in (*planned, *live) for name in found.fibres)
    spent = Counter(name for found in live for name in found.fibres)
    for fibre in network.fibres:
        # Live circuits may be more than the capacity: it is 0 for a fibre that new ones must avoid.
        if carried[fibre.name] > max(fibre.capacity, spent[fibre.name]):
            raise LumctlError(f"too many circuits in fibre {fibre.name}", hint="this is a bug: please report it")


def rooms_left(network: Network, live: Iterable[LightPath]) -> dict[str, int]:
    """How many more circuits each fibre or bundle can carry, by name."""
    carried = Counter(name for found in live for name in found.fibres)
    taken = {place for found in live for pair in found.fibre_ports for place in pair}
    rooms: dict[str, int] = {}
    for fibre in network.fibres:
        usable = sum(not (set(pair) & taken or any(is_blocked(network, end) for end in pair)) for pair in fibre.pairs)
        rooms[fibre.name] = max(0, min(usable, fibre.capacity - carried[fibre.name]))
    return rooms


def prices_now(
    network: Network, joint: JointNetwork, states: NetworkStates, live: Sequence[LightPath], rooms: Mapping[str, int]
) -> NetworkPrices:
    """The prices: losses, a little more where a state changes, and ``inf`` for live, stuck, damaged or blocked parts.

    This also protects the waveguides of live circuits: only a PUC in its other state could lead light onto them.
    """
    turn, wire = joint.turn_price.copy(), joint.wire_price.copy()
    _price_pucs(network, joint, states, turn)
    present = {name: puc_states(states, name, device) for name, device in network.meshes}
    for segment in (segment for found in live for segment in found.segments):
        for puc in segment.pucs:
            state = present[segment.device].get(puc, PucState.BAR)
            turn[other_turn(joint.first_of[segment.device] // 4 + puc, state)] = inf
    closed = {place for found in live for pair in found.fibre_ports for place in pair}
    closed |= {place for ends in network.across.items() for place in _closed(network, ends[0], ends[1][1])}
    for place in closed:
        wire[joint.terminal_of[place]] = inf
    return NetworkPrices(joint, turn, wire, [0.0 if rooms[fibre.name] else inf for fibre in network.fibres])


def _price_pucs(network: Network, joint: JointNetwork, states: NetworkStates, turn: list[float]) -> None:
    for name, device in network.meshes:
        first, condition = joint.first_of[name] // 4, device.condition
        present = puc_states(states, name, device)
        for puc in range(device.mesh.puc_count):
            turn[other_turn(first + puc, present.get(puc, PucState.BAR))] += _CHANGE
        for puc, state in condition.stuck.items():
            turn[other_turn(first + puc, state)] = inf
        for puc in condition.damaged:
            turn[2 * (first + puc)] = turn[2 * (first + puc) + 1] = inf


def _closed(network: Network, here: DevicePort, there: DevicePort) -> tuple[DevicePort, ...]:
    """The two ends of a fibre if one of them is blocked."""
    return (here, there) if is_blocked(network, here) or is_blocked(network, there) else ()


def is_blocked(network: Network, place: DevicePort) -> bool:
    """Whether a port must not be used."""
    return place.port in network.devices[place.device].blocked_ports


@dataclass(frozen=True, slots=True)
class NetworkCut:
    """A set of devices that ``crossing`` circuits must leave or enter; its outer fibres have ``room`` for fewer."""

    devices: tuple[str, ...]
    crossing: tuple[Ends, ...]
    room: int


def full_cut(network: Network, demands: Sequence[Ends], rooms: Mapping[str, int]) -> NetworkCut | None:
    """Find a part of the network that not all demands can leave; ``None`` if none was found, which proves nothing.

    ``rooms`` is the number of further circuits that each fibre or bundle can carry, by name. In a network of few
    devices all cuts are tried. In a larger network parts are grown from each device, each time by the device that makes
    the cut worst: this finds the full fibres of stars, chains and trees.
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
    """By how many circuits the demands between a part and the rest exceed the room."""
    return sum(excess for pair, excess in weight.items() if len(pair & part) == 1)


def _all_parts(devices: Sequence[str]) -> Iterator[frozenset[str]]:
    """All parts, the smaller ones first; the last device is always in the rest, so that no cut occurs twice."""
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
                    # A link to the new member no longer begins to cross, but stops to: it counts twice.
                    gain[name] -= 2 * excess
            grown = max(gain, key=gain.__getitem__, default=None)
