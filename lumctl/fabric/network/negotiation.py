"""Ways for many circuits at once through a network, by negotiated congestion.

It is the bargain of :mod:`lumctl.fabric.negotiation`, over what a network has to share: waveguides, fibres, and the
capacity of bundles. Here prices are losses, and a fibre may cost as much as many PUCs: so what
each round adds grows from round to round, until any detour is cheaper than a fight.
"""

from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush
from math import inf

from lumctl.fabric.geometry import FREE
from lumctl.fabric.negotiation import Pressure, bargain
from lumctl.fabric.network.model import JointNetwork

Step = tuple[int, int]
"""The terminals at which light comes into a PUC or a switch, and at which it leaves it."""
Way = tuple[Step, ...]
_ROUNDS, _GROWTH = 120, 1.06
_PRESSURES = tuple(
    Pressure(price, grudge, _ROUNDS, _ROUNDS, _GROWTH) for price, grudge in ((1.0, 0.15), (0.25, 0.6), (4.0, 0.05))
)
"""How hard is bargained, first and where that failed."""
_WALL = 1e6
"""More than any way costs: what is in the way of another circuit at this price is not to be had."""
_SAME = 1e-6
"""What is closer than this is one price."""
TerminalPair = tuple[int, int]


class NetworkPrices:
    """What ways cost now: passing a PUC in a state, leaving a device's terminal, and using any fibre of a bundle.

    ``inf`` is forbidden. No price ever falls below what it was when :func:`prices_ahead` looked.
    """

    def __init__(self, joint: JointNetwork, turn: list[float], wire: list[float], bundle: list[float]) -> None:
        self.joint = joint
        self.turn = turn
        self.wire = wire
        self.bundle = bundle

    def moves(self, entered: int, goal: int) -> Iterator[tuple[int, float]]:
        """Where light that comes in at a terminal can leave what it came into, and what that costs."""
        joint = self.joint
        if entered < joint.first_switch:
            turns = 2 * (entered >> 2)
            yield entered ^ 2, self.turn[turns]
            yield entered ^ 3, self.turn[turns + 1]
            return
        switch = joint.switch_at[entered]
        cost = joint.crossing[switch]
        for out in joint.linked[switch]:
            if out != entered:
                yield out, cost
        if joint.switch_at.get(goal) == switch:
            yield goal, cost

    def onward(self, out: int) -> float:
        """What it costs to continue from where light left, to whatever is joined there."""
        bundle = self.joint.bundle_at[out]
        return self.wire[out] if bundle < 0 else self.wire[out] + self.bundle[bundle]


def cheapest_way(prices: NetworkPrices, start: int, goal: int, ahead: list[float]) -> Way | None:
    """The cheapest way from port to port, ``None`` if there is none; among equals always the same one.

    It never turns back in a PUC. It may still want one PUC in both states, or one fibre or waveguide twice: that is
    left to the negotiation, so that ``None`` is proof. ``ahead`` is from :func:`prices_ahead`.
    """
    peers = prices.joint.peers
    best = {start: 0.0}
    came: dict[int, Step] = {}
    queue = [(ahead[start], start)] if ahead[start] < inf else []
    settled: set[int] = set()
    while queue:
        _, entered = heappop(queue)
        if entered == goal:
            return _walked_back(came, start, goal)
        if entered in settled:
            continue
        settled.add(entered)
        so_far = best[entered]
        for out, price in prices.moves(entered, goal):
            cost = so_far + price
            if out == goal:
                following, left = goal, 0.0
            elif peers[out] == FREE:
                continue
            else:
                cost += prices.onward(out)
                following = peers[out]
                left = ahead[following]
            if cost + left < inf and cost < best.get(following, inf):
                best[following] = cost
                came[following] = (entered, out)
                heappush(queue, (cost + left, following))
    return None


def _walked_back(came: dict[int, Step], start: int, goal: int) -> Way:
    steps = [came[goal]]
    while steps[-1][0] != start:
        steps.append(came[steps[-1][0]])
    return tuple(reversed(steps))


def price_of(prices: NetworkPrices, way: Way) -> float:
    """What a way costs."""
    moves = sum(next(price for out, price in prices.moves(entered, left) if out == left) for entered, left in way)
    return moves + sum(prices.onward(out) for _, out in way[:-1])


def prices_ahead(prices: NetworkPrices, start: int, goal: int) -> list[float]:
    """For light from ``start`` that comes in at each terminal, what it still pays at least until it leaves at ``goal``.

    A way of light can be walked backwards at the same price, so one search from the goal answers for all terminals.
    """
    peers = prices.joint.peers
    ahead = [inf] * len(peers)
    queue = [(0.0, goal)]
    settled: set[int] = set()
    while queue:
        so_far, entered = heappop(queue)
        if entered in settled:
            continue
        settled.add(entered)
        for out, price in prices.moves(entered, start):
            cost = so_far + price
            if cost < ahead[out]:
                ahead[out] = cost
                if peers[out] != FREE and (on := cost + prices.onward(out)) < inf:
                    heappush(queue, (on, peers[out]))
    return ahead


class NetworkOccupancy:
    """Who uses what, and the prices that others see: everything that is in the way of a circuit costs ``pressure``.

    ``rooms`` is how many circuits each bundle has room for. Waveguides, fibres and bundles are all that is written
    down: a way in bar and a way in cross through one PUC share one of its terminals, so whoever wants a PUC in both
    states also fights over the waveguide there (and a terminal that is a port belongs to one circuit anyway).
    """

    def __init__(self, prices: NetworkPrices, rooms: Sequence[int], pressure: float) -> None:
        self.prices = NetworkPrices(prices.joint, prices.turn, prices.wire.copy(), prices.bundle.copy())
        self._joint = prices.joint
        self._rooms = rooms
        self._pressure = pressure
        self._wires = [0] * len(prices.wire)
        self._bundles = [0] * len(rooms)

    def enter(self, way: Way, count: int = 1) -> None:
        """Write a way in, or with -1 out again."""
        joint, price = self._joint, count * self._pressure
        for out in _wires(joint, way):
            for terminal in (out, joint.peers[out]):
                self._wires[terminal] += count
                self.prices.wire[terminal] += price
            bundle = joint.bundle_at[out]
            if bundle >= 0:
                before = self._excess(bundle, 1)
                self._bundles[bundle] += count
                self.prices.bundle[bundle] += (self._excess(bundle, 1) - before) * self._pressure

    def is_fought_over(self, way: Way) -> bool:
        """Whether a way that is written in wants what another wants too; one alone can be in its own way."""
        return any(
            self._wires[out] > 1 or self._is_crowded(self._joint.bundle_at[out]) for out in _wires(self._joint, way)
        )

    def bear_grudges(self, ways: Iterable[Way], grudge: float) -> None:
        """Make dearer for good whatever these ways are fought over for."""
        wires = {out for way in ways for out in _wires(self._joint, way) if self._wires[out] > 1}
        for terminal in wires | {self._joint.peers[out] for out in wires}:
            self.prices.wire[terminal] += grudge
        for bundle in range(len(self._bundles)):
            if self._is_crowded(bundle):
                self.prices.bundle[bundle] += grudge

    def _is_crowded(self, bundle: int) -> bool:
        return bundle >= 0 and self._excess(bundle) > 0

    def _excess(self, bundle: int, more: int = 0) -> int:
        """By how many circuits a bundle is over its capacity, or would be with some more."""
        return max(0, self._bundles[bundle] + more - self._rooms[bundle])


def _wires(joint: JointNetwork, way: Way) -> Iterable[int]:
    """The terminals at which a way leaves for another."""
    return (out for _, out in way if joint.peers[out] != FREE)


class Negotiation:
    """What one bargain is about: the demands, what they find alone, and who still is in another's way.

    ``alone`` are the ways that each demand would take if there were no others, ``None`` where there is none: that is
    proof.
    """

    def __init__(self, prices: NetworkPrices, rooms: Sequence[int], demands: Sequence[TerminalPair]) -> None:
        self._prices = prices
        self._rooms = rooms
        self._demands = demands
        self._ahead = [prices_ahead(prices, start, goal) for start, goal in demands]
        self.alone = [self._cheapest(at, prices) for at in range(len(demands))]

    def settle(self) -> tuple[list[Way], list[int]]:
        """One way for each demand, and who is in another's way when the rounds are over: nobody, if all went well.

        Each demand must have a way alone.
        """
        alone = [way for way in self.alone if way is not None]
        ways, losers = alone, list(range(len(alone)))
        for pressure in _PRESSURES:
            ways, losers = self._bargain(alone, pressure)
            if not losers:
                return self._shortened(ways), []
        return ways, losers

    def _bargain(self, alone: Sequence[Way], pressure: Pressure) -> tuple[list[Way], list[int]]:
        ways = list(alone)
        occupancy = NetworkOccupancy(self._prices, self._rooms, pressure.price)
        losers = bargain(occupancy, ways, lambda at: self._cheapest(at, occupancy.prices), pressure)
        return ways, losers

    def _shortened(self, ways: Sequence[Way]) -> list[Way]:
        """The same ways, each made as cheap as the others allow: old grudges may have led it astray."""
        occupancy = NetworkOccupancy(self._prices, self._rooms, _WALL)
        shorter = list(ways)
        for way in shorter:
            occupancy.enter(way)
        cheaper = True
        while cheaper:
            cheaper = False
            for at, way in enumerate(shorter):
                occupancy.enter(way, -1)
                other = self._cheapest(at, occupancy.prices) or way
                if price_of(self._prices, other) < price_of(self._prices, way) - _SAME:
                    occupancy.enter(other)
                    if not occupancy.is_fought_over(other):  # with itself: the search does not see that
                        shorter[at], cheaper = other, True
                        continue
                    occupancy.enter(other, -1)
                occupancy.enter(way)
        return shorter

    def _cheapest(self, at: int, prices: NetworkPrices) -> Way | None:
        start, goal = self._demands[at]
        return cheapest_way(prices, start, goal, self._ahead[at])
