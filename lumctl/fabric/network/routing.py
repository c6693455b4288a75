"""Routes for new circuits through a network, around those that are live."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from lumctl.devices.types import PucState
from lumctl.errors import LumctlError, UsageError
from lumctl.fabric.errors import InconsistentFabricError, Unroutable
from lumctl.fabric.network.changes import NetworkRoute, network_changes
from lumctl.fabric.network.cuts import full_cut
from lumctl.fabric.network.joint import Joint, joint_of
from lumctl.fabric.network.model import Ends, Network, written
from lumctl.fabric.network.negotiation import Negotiation
from lumctl.fabric.network.prices import is_blocked, prices_now, rooms_left
from lumctl.fabric.network.search import Way
from lumctl.fabric.network.tracing import Hop, NetworkStates, NetworkTrace, hops_loss_db, trace_network
from lumctl.inventory.problems import listing

if TYPE_CHECKING:
    from lumctl.fabric.tracing import Pass
    from lumctl.inventory.fibres import DevicePort

_IDLE = NetworkStates()


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


def _route(network: Network, joint: Joint, ends: Ends, way: Way) -> NetworkRoute:
    hops: list[Hop] = []
    fibres: list[str] = []
    came_in = ends[0]
    passes: list[Pass] = []
    for entered, out in way:
        if entered < joint.first_switch:
            puc = (entered - joint.first_of[came_in.device]) >> 2
            passes.append((puc, PucState.CROSS if (entered ^ out) & 1 else PucState.BAR))
        place = joint.place_of.get(out)
        if place is not None:  # it leaves the device here
            hops.append(Hop(came_in.device, (came_in.port, place.port), tuple(passes)))
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
