"""Ways for many circuits at once through a network, by negotiated congestion.

It is the bargain of :mod:`lumctl.fabric.negotiation`, over what a network has to share: waveguides, fibres, and the
capacity of bundles. Here prices are losses, and a fibre may cost as much as many PUCs: so what
each round adds grows from round to round, until any detour is cheaper than a fight.
"""

from collections.abc import Iterable, Sequence

from lumctl.fabric.geometry import FREE
from lumctl.fabric.network.joint import Joint
from lumctl.fabric.network.search import Prices, Way, cheapest_way, price_of, prices_ahead

_ROUNDS = 120
_BARGAINS = ((1.0, 0.15), (0.25, 0.6), (4.0, 0.05))
"""How hard is bargained, first and where that failed: the price of getting in the way of one circuit at one place, and
what the first round adds to the price of everything that is fought over."""
_GROWTH = 1.06
"""How much more each round adds than the one before."""
_WALL = 1e6
"""More than any way costs: what is in the way of another circuit at this price is not to be had."""

_SAME = 1e-6
"""What is closer than this is one price."""

TerminalPair = tuple[int, int]


class Ledger:
    """Who uses what, and the prices that others see: everything that is in the way of a circuit costs ``pressure``.

    ``rooms`` is how many circuits each bundle has room for. Waveguides, fibres and bundles are all that is written
    down: a way in bar and a way in cross through one PUC share one of its terminals, so whoever wants a PUC in both
    states also fights over the waveguide there (and a terminal that is a port belongs to one circuit anyway).
    """

    def __init__(self, prices: Prices, rooms: Sequence[int], pressure: float) -> None:
        self.prices = Prices(prices.joint, prices.turn, prices.wire.copy(), prices.bundle.copy())
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


def _wires(joint: Joint, way: Way) -> Iterable[int]:
    """The terminals at which a way leaves for another."""
    return (out for _, out in way if joint.peers[out] != FREE)


class Negotiation:
    """What one bargain is about: the demands, what they find alone, and who still is in another's way.

    ``alone`` are the ways that each demand would take if there were no others, ``None`` where there is none: that is
    proof.
    """

    def __init__(self, prices: Prices, rooms: Sequence[int], demands: Sequence[TerminalPair]) -> None:
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
        for pressure, grudge in _BARGAINS:
            ways, losers = self._bargain(alone, pressure, grudge)
            if not losers:
                return self._shortened(ways), []
        return ways, losers

    def _bargain(self, alone: Sequence[Way], pressure: float, grudge: float) -> tuple[list[Way], list[int]]:
        ways = list(alone)
        ledger = Ledger(self._prices, self._rooms, pressure)
        for way in ways:
            ledger.enter(way)
        for _ in range(_ROUNDS):
            losers = [at for at, way in enumerate(ways) if ledger.is_fought_over(way)]
            if not losers:
                return ways, []
            ledger.bear_grudges([ways[at] for at in losers], grudge)
            grudge *= _GROWTH
            for at in losers:
                ledger.enter(ways[at], -1)
                ways[at] = self._cheapest(at, ledger.prices) or ways[at]
                ledger.enter(ways[at])
        return ways, [at for at, way in enumerate(ways) if ledger.is_fought_over(way)]

    def _shortened(self, ways: Sequence[Way]) -> list[Way]:
        """The same ways, each made as cheap as the others allow: old grudges may have led it astray."""
        ledger = Ledger(self._prices, self._rooms, _WALL)
        shorter = list(ways)
        for way in shorter:
            ledger.enter(way)
        cheaper = True
        while cheaper:
            cheaper = False
            for at, way in enumerate(shorter):
                ledger.enter(way, -1)
                other = self._cheapest(at, ledger.prices) or way
                if price_of(self._prices, other) < price_of(self._prices, way) - _SAME:
                    ledger.enter(other)
                    if not ledger.is_fought_over(other):  # with itself: the search does not see that
                        shorter[at], cheaper = other, True
                        continue
                    ledger.enter(other, -1)
                ledger.enter(way)
        return shorter

    def _cheapest(self, at: int, prices: Prices) -> Way | None:
        start, goal = self._demands[at]
        return cheapest_way(prices, start, goal, self._ahead[at])
