"""Ways for many circuits at once, by negotiated congestion.

Every circuit first takes the cheapest way for itself. Where several want the same waveguide, those circuits look
again, round by round: getting in the way of another circuit has a price, and what is fought over becomes dearer for
good, until nobody is in anybody's way. What stands already (live circuits, stuck PUCs) is not up for negotiation: it
cannot be had at any price.

The lower the price of getting in the way, the shorter the ways that are found, and the more rounds it takes: it is low
at first, and higher where the rounds run out.
"""

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


@dataclass(frozen=True, slots=True)
class Pressure:
    """How hard is bargained: the price of being in the way of one circuit at one place, and what each round adds to it.

    ``rounds`` is how many there are, ``stall`` how many without fewer losers end it.
    """

    price: float
    grudge: float
    rounds: int
    stall: int


GENTLE = (Pressure(0.25, 0.12, 200, 100),)
HARDER = (Pressure(1.0, 1.0, 80, 80), Pressure(2.0, 0.5, 80, 80), Pressure(0.5, 0.3, 100, 100))
BRISK = (Pressure(0.3, 0.15, 150, 80),)
"""For those who have other demands to try: most that can be routed are within so many rounds."""


@dataclass(frozen=True)
class Prices:
    """What a way costs: ``turn[2 * puc + turn]`` for passing a PUC, ``wire[t]`` for coming in at terminal ``t``.

    ``inf`` is forbidden. Passing a PUC costs at least 1 and coming in at least 0: the search relies on it.
    """

    turn: list[float]
    wire: list[float]

    def pass_costs(self, puc: int, more: float) -> None:
        """Make a PUC dearer, in whichever state."""
        self.turn[2 * puc] += more
        self.turn[2 * puc + 1] += more

    def copy(self) -> "Prices":
        """The same prices, to be changed freely."""
        return Prices(self.turn.copy(), self.wire.copy())


class Ledger:
    """Who uses what, and the prices that others see: everything that is in the way of a circuit costs ``price``.

    A way in bar and one in cross through the same PUC always meet at one of its four terminals, so whoever is in
    somebody's way uses a waveguide that he uses. ``sharing`` is the price of passing a PUC that another circuit passes
    in the same state, on its other side.
    """

    def __init__(self, mesh: Mesh, prices: Prices, price: float, sharing: float = 0.0) -> None:
        self.prices = prices.copy()
        self._peers = mesh.peers
        self._price = price
        self._sharing = sharing
        self._users = [0] * len(prices.wire)

    def enter(self, way: Way, count: int = 1) -> None:
        """Write a way in, or with -1 out again."""
        wire_price, users, peers = self.prices.wire, self._users, self._peers
        price = count * self._price
        for terminal, _ in way[1:]:
            peer = peers[terminal]
            users[terminal] += count
            users[peer] += count
            wire_price[terminal] += price
            wire_price[peer] += price
        if self._sharing:
            for terminal, turn in way:
                self.prices.turn[(terminal >> 2) * 2 + turn] += count * self._sharing

    def is_fought_over(self, way: Way) -> bool:
        """Whether a way that is written in wants what another wants too; one alone can be in its own way."""
        users = self._users
        return any(users[terminal] > 1 for terminal, _ in way[1:])

    def bear_grudges(self, ways: Sequence[Way], grudge: float) -> None:
        """Make dearer for good whatever these ways are fought over for."""
        fought = {terminal for way in ways for terminal, _ in way[1:] if self._users[terminal] > 1}
        for terminal in fought | {self._peers[terminal] for terminal in fought}:
            self.prices.wire[terminal] += grudge

    def blockers(self, way: Way, ways: Sequence[Way]) -> list[int]:
        """Which of the ways stand in the way of one that is not written in."""
        wires = {wire for terminal, _ in way[1:] for wire in (terminal, self._peers[terminal])}
        return [at for at, other in enumerate(ways) if any(terminal in wires for terminal, _ in other[1:])]


def negotiate(
    mesh: Mesh,
    demands: Sequence[PortPair],
    prices: Prices,
    *,
    sharing: float = 0.0,
    pressures: Sequence[Pressure] = (*GENTLE, *HARDER),
) -> list[Way]:
    """One way for each demand, none in the way of another.

    Raises:
        Unroutable: a demand has no way even alone (proven), or the rounds ran out (not proven).
    """
    alone = _alone(mesh, demands, prices)
    losers: list[int] = []
    for pressure in pressures:
        ways = list(alone)
        losers = _bargain(mesh, demands, Ledger(mesh, prices, pressure.price, sharing), ways, pressure)
        if not losers:
            return ways
    left, rounds = tuple(demands[at] for at in losers), sum(each.rounds for each in pressures)
    raise Unroutable(
        left,
        f"no way found for {named(left)}: gave up after {rounds} rounds, which does not prove that there is none",
        proven=False,
        hint="try other ports or another spare, or program the whole mesh afresh",
    )


def _bargain(mesh: Mesh, demands: Sequence[PortPair], ledger: Ledger, ways: list[Way], pressure: Pressure) -> list[int]:
    """Change ``ways`` until nobody is in anybody's way; who still is when the rounds are over."""
    for way in ways:
        ledger.enter(way)
    fewest, fewest_at = len(ways) + 1, 0
    for round_ in range(pressure.rounds):
        losers = [at for at, way in enumerate(ways) if ledger.is_fought_over(way)]
        if not losers:
            return []
        if len(losers) < fewest:
            fewest, fewest_at = len(losers), round_
        elif round_ - fewest_at > pressure.stall:
            return losers
        ledger.bear_grudges([ways[at] for at in losers], pressure.grudge)
        for at in losers:
            ledger.enter(ways[at], -1)
            ways[at] = cheapest_way(mesh, demands[at], ledger.prices) or ways[at]
            ledger.enter(ways[at])
    return [at for at, way in enumerate(ways) if ledger.is_fought_over(way)]


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


def cheapest_way(mesh: Mesh, demand: PortPair, prices: Prices) -> Way | None:
    """The cheapest way by A*, ``None`` if there is none; among equals always the same one.

    It never turns back in a PUC. It may still want one PUC in both states or one waveguide both ways: that is left to
    the negotiation, so that ``None`` is proof.
    """
    start, goal = mesh.ports[demand[0]], mesh.ports[demand[1]]
    peers, turn_price, wire_price = mesh.peers, prices.turn, prices.wire
    ahead = pucs_ahead(mesh, goal)
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
        so_far, first = best[terminal], terminal >> 1 & -2
        for turn in (0, 1):
            out = terminal ^ (2 + turn)
            cost = so_far + turn_price[first + turn]
            if out == goal:
                entered, left = goal, 0.0
            else:
                entered = peers[out]
                if entered == FREE:
                    continue
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
def pucs_ahead(mesh: Mesh, goal: int) -> tuple[float, ...]:
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


def wires_of(mesh: Mesh, way: Way) -> Iterator[int]:
    """The waveguides between the PUCs of a way, each by the lower of its two terminals."""
    return (min(terminal, mesh.peers[terminal]) for terminal, _ in way[1:])
