"""Paths for many circuits at once through a network, by negotiated congestion.

It is the negotiation of :mod:`lumctl.fabric.negotiation` over the shared parts of a network: waveguides, fibres, and
the capacity of bundles. Prices are losses here, and a fibre may cost as much as many PUCs. So the surcharge grows from
round to round, until any detour is cheaper than a contested place.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heappop, heappush
from math import inf

from lumctl.fabric.geometry import FREE
from lumctl.fabric.negotiation import Pressure, bargain
from lumctl.fabric.network.model import JointNetwork
from lumctl.fabric.search import endless, walked_back

Step = tuple[int, int]
"""The terminals at which light enters and leaves a PUC or a switch."""
Way = tuple[Step, ...]
_ROUNDS, _GROWTH = 120, 1.06
_PRESSURES = tuple(
    Pressure(price, surcharge, _ROUNDS, _ROUNDS, _GROWTH)
    for price, surcharge in ((1.0, 0.15), (0.25, 0.6), (4.0, 0.05))
)
"""Tried in this order; each is tried only if the previous one left circuits that block each other."""
_WALL = 1e6
"""More than any path costs: at this price, blocking another circuit is forbidden."""
_SAME = 1e-6
"""Prices that differ by less than this count as equal."""
TerminalPair = tuple[int, int]


class NetworkPrices:
    """The present prices: of passing a PUC in a state, leaving at a terminal, and using any fibre of a bundle.

    ``inf`` means forbidden. No price may fall below its value at the time when :class:`PricesAhead` read it.
    """

    def __init__(self, joint: JointNetwork, turn: list[float], wire: list[float], bundle: list[float]) -> None:
        self.joint = joint
        self.turn = turn
        self.wire = wire
        self.bundle = bundle

    def moves(self, entered: int, goal: int) -> Iterator[tuple[int, float]]:
        """The terminals at which light that enters a PUC or switch at ``entered`` can leave it, each with its price."""
        joint = self.joint
        if entered < joint.first_switch:
            turns = 2 * (entered >> 2)
            yield entered ^ 2, self.turn[turns]
            yield entered ^ 3, self.turn[turns + 1]
            return
        switch = joint.switch_at[entered]
        cost, first_output = joint.crossing[switch], joint.first_output.get(switch)
        outs = joint.linked[switch]
        # A port of a switch without a fibre is the end of a circuit, so only the goal may be such a port.
        for out in (*outs, goal) if joint.switch_at.get(goal) == switch else outs:
            if out != entered and (first_output is None or (entered < first_output) != (out < first_output)):
                yield out, cost

    def onward(self, out: int) -> float:
        """The price of continuing from the terminal ``out`` to the terminal that is connected to it."""
        bundle = self.joint.bundle_at[out]
        return self.wire[out] if bundle < 0 else self.wire[out] + self.bundle[bundle]


class PricesAhead:
    """For each terminal, a lower bound of the price from there until light leaves at ``goal``.

    A path has the same price in both directions, so one search from the goal serves all terminals. The search only goes
    as far as the requested terminals.
    """

    def __init__(self, prices: NetworkPrices, start: int, goal: int) -> None:
        self._prices = prices
        self._start = start
        self._ahead = [inf] * len(prices.joint.peers)
        self._queue = [(0.0, goal)]
        self._settled: set[int] = set()

    def __getitem__(self, terminal: int) -> float:
        ahead, queue = self._ahead, self._queue
        # An entry in the queue leads only to terminals that cost at least as much.
        while queue and queue[0][0] < ahead[terminal]:
            self._step(*heappop(queue))
        return ahead[terminal]

    def _step(self, so_far: float, entered: int) -> None:
        if entered in self._settled:
            return
        self._settled.add(entered)
        prices, ahead, peers = self._prices, self._ahead, self._prices.joint.peers
        for out, price in prices.moves(entered, self._start):
            cost = so_far + price
            if cost < ahead[out]:
                ahead[out] = cost
                if peers[out] != FREE and (on := cost + prices.onward(out)) < inf:
                    heappush(self._queue, (on, peers[out]))


def cheapest_way(prices: NetworkPrices, start: int, goal: int, ahead: PricesAhead) -> Way | None:
    """The cheapest path from port to port, ``None`` if there is none; among equals always the same one.

    The path never turns back in a PUC. It may need one PUC in both states, or one fibre or waveguide twice: the
    negotiation resolves this, so ``None`` is a proof. ``ahead`` belongs to these two terminals; the prices that it has
    read must not be higher than ``prices``.
    """
    peers = prices.joint.peers
    best = {start: 0.0}
    came: dict[int, Step] = {}
    queue = [(ahead[start], start)] if ahead[start] < inf else []
    settled: set[int] = set()
    while queue:
        _, entered = heappop(queue)
        if entered == goal:
            return walked_back(came, start, goal)
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


def price_of(prices: NetworkPrices, way: Way) -> float:
    """The price of a path."""
    moves = sum(next(price for out, price in prices.moves(entered, left) if out == left) for entered, left in way)
    return moves + sum(prices.onward(out) for _, out in way[:-1])


class NetworkOccupancy:
    """The places that are in use, and the resulting prices: a place that blocks a circuit costs ``pressure`` more.

    ``rooms`` is the number of circuits for which each bundle has room. Only waveguides, fibres and bundles are
    recorded: paths in bar and in cross through one PUC share one of its terminals. So circuits that need a PUC in both
        states also compete for the waveguide there; a terminal that is a port belongs to one circuit anyway.
    """

    def __init__(self, prices: NetworkPrices, rooms: Sequence[int], pressure: float) -> None:
        self.prices = NetworkPrices(prices.joint, prices.turn, prices.wire.copy(), prices.bundle.copy())
        self._joint = prices.joint
        self._rooms = rooms
        self._pressure = pressure
        self._wires = [0] * len(prices.wire)
        self._bundles = [0] * len(rooms)

    def enter(self, way: Way, count: int = 1) -> None:
        """Add a path, or remove it with -1."""
        joint, price = self._joint, count * self._pressure
        for out in _wires(joint, way):
            for terminal in (out, joint.peers[out]):
                self._wires[terminal] += count
                self.prices.wire[terminal] += price
            bundle = joint.bundle_at[out]
            if bundle >= 0:
                # The price is that of one more circuit: a bundle that is just full costs already.
                before = self._excess(bundle, 1)
                self._bundles[bundle] += count
                self.prices.bundle[bundle] += (self._excess(bundle, 1) - before) * self._pressure

    def is_contested(self, way: Way) -> bool:
        """Whether an added path shares a place with another path, or uses one twice itself."""
        return any(
            self._wires[out] > 1 or self._is_crowded(self._joint.bundle_at[out]) for out in _wires(self._joint, way)
        )

    def raise_prices(self, ways: Iterable[Way], surcharge: float) -> None:
        """Make the contested waveguides of these paths more expensive for all later rounds."""
        wires = {out for way in ways for out in _wires(self._joint, way) if self._wires[out] > 1}
        for terminal in wires | {self._joint.peers[out] for out in wires}:
            self.prices.wire[terminal] += surcharge
        for bundle in range(len(self._bundles)):
            if self._is_crowded(bundle):
                self.prices.bundle[bundle] += surcharge

    def _is_crowded(self, bundle: int) -> bool:
        return bundle >= 0 and self._excess(bundle) > 0

    def _excess(self, bundle: int, more: int = 0) -> int:
        """By how many circuits a bundle exceeds its capacity, with ``more`` further circuits."""
        return max(0, self._bundles[bundle] + more - self._rooms[bundle])


def _wires(joint: JointNetwork, way: Way) -> Iterable[int]:
    """The terminals at which a path leaves one PUC or switch for the next."""
    return (out for _, out in way if joint.peers[out] != FREE)


class Negotiation:
    """One negotiation of some demands.

    ``alone`` contains the path of each demand routed alone; ``None`` proves that the demand has no path.
    """

    def __init__(self, prices: NetworkPrices, rooms: Sequence[int], demands: Sequence[TerminalPair]) -> None:
        self._prices = prices
        self._rooms = rooms
        self._demands = demands
        self._ahead = [PricesAhead(prices, start, goal) for start, goal in demands]
        self.alone = [self._cheapest(at, prices) for at in range(len(demands))]

    def settle(self, left: Callable[[], float] = endless) -> tuple[list[Way], list[int]]:
        """One path for each demand, and the indices of demands that block others after all rounds: none on success.

        Each demand must have a path alone. When no seconds are ``left``, the search ends, and paths that were found are
        not made cheaper any more.
        """
        alone = [way for way in self.alone if way is not None]
        ways, losers = alone, list(range(len(alone)))
        for pressure in _PRESSURES:
            ways, losers = self._bargain(alone, pressure, left)
            if not losers:
                return self._shortened(ways, left), []
            if left() <= 0:
                break
        return ways, losers

    def _bargain(
        self, alone: Sequence[Way], pressure: Pressure, left: Callable[[], float]
    ) -> tuple[list[Way], list[int]]:
        ways = list(alone)
        occupancy = NetworkOccupancy(self._prices, self._rooms, pressure.price)
        losers = bargain(occupancy, ways, lambda at: self._cheapest(at, occupancy.prices), pressure, left)
        return ways, losers

    def _shortened(self, ways: Sequence[Way], left: Callable[[], float]) -> list[Way]:
        """The paths, each made as cheap as the others allow: surcharges may have left needless detours."""
        occupancy = NetworkOccupancy(self._prices, self._rooms, _WALL)
        shorter = list(ways)
        for way in shorter:
            occupancy.enter(way)
        cheaper = True
        # This ends: each change makes the total cheaper by at least _SAME.
        while cheaper:
            cheaper = False
            for at, way in enumerate(shorter):
                if left() <= 0:
                    return shorter
                occupancy.enter(way, -1)
                other = self._cheapest(at, occupancy.prices) or way
                if price_of(self._prices, other) < price_of(self._prices, way) - _SAME:
                    occupancy.enter(other)
                    if not occupancy.is_contested(other):  # it may contest itself, which the search does not see
                        shorter[at], cheaper = other, True
                        continue
                    occupancy.enter(other, -1)
                occupancy.enter(way)
        return shorter

    def _cheapest(self, at: int, prices: NetworkPrices) -> Way | None:
        start, goal = self._demands[at]
        return cheapest_way(prices, start, goal, self._ahead[at])
