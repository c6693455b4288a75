"""Ways for many circuits at once, by negotiated congestion.

Every circuit first takes the cheapest way for itself. Where several want the same waveguide, or one PUC in both states,
those circuits look again, round by round: getting in the way of another circuit has a price, and what is fought over
becomes dearer for good, until nobody is in anybody's way. What stands already (live circuits, stuck PUCs) is not up for
negotiation: it cannot be had at any price.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from heapq import heappop, heappush
from math import inf

from lumctl.fabric.errors import Unroutable, named
from lumctl.fabric.geometry import FREE, Mesh, PortPair

Step = tuple[int, int]
"""A terminal at which a way enters a PUC, and the turn it takes there: 0 as in bar, 1 as in cross."""

Way = tuple[Step, ...]

ROUNDS = 100
_PRESSURE = 1.0
"""The price of getting in the way of one circuit at one place."""
_GRUDGE = 0.2
"""What each round adds to the price of everything that is fought over."""


@dataclass(frozen=True)
class Prices:
    """What a way costs: ``turn[2 * puc + turn]`` for passing a PUC, ``wire[t]`` for coming in at terminal ``t``.

    ``inf`` is forbidden. Passing a PUC costs at least 1 and coming in at least 0: the search relies on it.
    """

    turn: list[float]
    wire: list[float]

    def copy(self) -> "Prices":
        """The same prices, to be changed freely."""
        return Prices(self.turn.copy(), self.wire.copy())

    def charge(self, mesh: Mesh, way: Way) -> None:
        """Set a price on getting in the way of ``way``: on its waveguides, and on its PUCs in their other state."""
        for terminal, turn in way:
            self.turn[(terminal >> 2) * 2 + 1 - turn] += _PRESSURE
        for wire in _wires(mesh, way):
            self.raise_wire(mesh, wire, _PRESSURE)

    def raise_wire(self, mesh: Mesh, wire: int, price: float) -> None:
        """Make a waveguide dearer, whichever way light runs in it."""
        self.wire[wire] += price
        self.wire[mesh.peers[wire]] += price


def negotiate(mesh: Mesh, demands: Sequence[PortPair], prices: Prices) -> list[Way]:
    """One way for each demand, none in the way of another.

    Raises:
        Unroutable: a demand has no way even alone (proven), or the rounds ran out (not proven).
    """
    ways = _alone(mesh, demands, prices)
    grown = prices.copy()
    losers: list[int] = []
    for _ in range(ROUNDS):
        wires, pucs = _fought_over(mesh, ways)
        losers = [at for at, way in enumerate(ways) if _touches(mesh, way, wires, pucs)]
        if not losers:
            return ways
        for puc in pucs:
            grown.turn[2 * puc] += _GRUDGE
            grown.turn[2 * puc + 1] += _GRUDGE
        for wire in wires:
            grown.raise_wire(mesh, wire, _GRUDGE)
        for at in losers:
            now = grown.copy()
            for other, way in enumerate(ways):
                if other != at:
                    now.charge(mesh, way)
            ways[at] = cheapest_way(mesh, demands[at], now) or ways[at]
    left = tuple(demands[at] for at in losers)
    raise Unroutable(
        left,
        f"no way found for {named(left)}: gave up after {ROUNDS} rounds, which does not prove that there is none",
        proven=False,
        hint="try other ports or another spare, or program the whole mesh afresh",
    )


def _alone(mesh: Mesh, demands: Sequence[PortPair], prices: Prices) -> list[Way]:
    """The way each demand would take if there were no others."""
    ways: list[Way] = []
    lost: list[PortPair] = []
    for demand in demands:
        way = cheapest_way(mesh, demand, prices)
        if way is None:
            lost.append(demand)
        else:
            ways.append(way)
    if lost:
        raise Unroutable(
            tuple(lost),
            f"there is no way for {named(lost)}, even alone, around the live circuits and stuck PUCs",
            proven=True,
            hint="try other ports or another spare, or program the whole mesh afresh",
        )
    return ways


def _wires(mesh: Mesh, way: Way) -> Iterator[int]:
    """The waveguides between the PUCs of a way, each by the lower of its two terminals."""
    return (min(terminal, mesh.peers[terminal]) for terminal, _ in way[1:])


def _fought_over(mesh: Mesh, ways: Sequence[Way]) -> tuple[set[int], set[int]]:
    """Waveguides used more than once, and PUCs wanted in both states; one way alone can do either to itself."""
    users = Counter(wire for way in ways for wire in _wires(mesh, way))
    wanted = {(terminal >> 2, turn) for way in ways for terminal, turn in way}
    return (
        {wire for wire, count in users.items() if count > 1},
        {puc for puc, turn in wanted if (puc, 1 - turn) in wanted},
    )


def _touches(mesh: Mesh, way: Way, wires: set[int], pucs: set[int]) -> bool:
    return any(terminal >> 2 in pucs for terminal, _ in way) or not wires.isdisjoint(_wires(mesh, way))


def cheapest_way(mesh: Mesh, demand: PortPair, prices: Prices) -> Way | None:
    """The cheapest way by A*, ``None`` if there is none; among equals always the same one.

    It never turns back in a PUC. It may still want one PUC in both states or one waveguide both ways: that is left to
    the negotiation, so that ``None`` is proof.
    """
    start, goal = mesh.ports[demand[0]], mesh.ports[demand[1]]
    peers, turn_price, wire_price = mesh.peers, prices.turn, prices.wire
    ahead = _pucs_ahead(mesh, goal)
    best = {start: 0.0}
    came: dict[int, Step] = {}
    queue = [(ahead[start], ahead[start], start)]
    settled: set[int] = set()
    while queue:
        _, _, terminal = heappop(queue)
        if terminal == goal:
            return _walked_back(came, start, goal)
        if terminal in settled:
            continue
        settled.add(terminal)
        for turn in (0, 1):
            out = terminal ^ (2 + turn)
            entered = peers[out]
            cost = best[terminal] + turn_price[(terminal >> 2) * 2 + turn]
            if out == goal:
                entered, left = goal, 0.0
            elif entered == FREE:
                continue
            else:
                cost += wire_price[entered]
                left = ahead[entered]
            if cost < best.get(entered, inf):
                best[entered] = cost
                came[entered] = (terminal, turn)
                heappush(queue, (cost + left, left, entered))
    return None


def _walked_back(came: dict[int, Step], start: int, goal: int) -> Way:
    steps = [came[goal]]
    while steps[-1][0] != start:
        steps.append(came[steps[-1][0]])
    return tuple(reversed(steps))


@lru_cache(maxsize=256)
def _pucs_ahead(mesh: Mesh, goal: int) -> tuple[float, ...]:
    """For light that comes in at each terminal of an idle mesh, the fewest PUCs it passes before it leaves at ``goal``.

    A way of light can be walked backwards, so one search from the goal answers for all terminals.
    """
    ahead = [inf] * len(mesh.peers)
    seen = {goal}
    frontier, distance = {goal}, 0.0
    while frontier:
        distance += 1
        outs = {terminal ^ turn for terminal in frontier for turn in (2, 3)}
        for out in outs:
            ahead[out] = min(ahead[out], distance)
        frontier = {mesh.peers[out] for out in outs} - seen - {FREE}
        seen |= frontier
    return tuple(ahead)
