"""Makes the paths that a negotiation found cheaper; no two paths share a waveguide at any time.

A circuit takes a cheaper path if the circuits that block it find other paths. :func:`shorten` requires that these
become more expensive by less than the circuit gains. :func:`level` requires that none becomes as expensive as the
circuit was.
"""

from collections.abc import Callable, Sequence
from functools import partial
from math import inf

from lumctl.fabric.geometry import Mesh, PortPair
from lumctl.fabric.negotiation import Occupancy
from lumctl.fabric.search import Prices, Way, cheapest_way, endless, pucs_ahead, wires_of

_SOFT = (0.6, 1.2, 2.4)
"""Prices of blocking another circuit, tried in turn in the search for a cheaper path."""
# More than any way costs: a way at this price blocks another.
_HARD = 1e6
# Costs are sums of floats: a smaller gain may be a rounding error, and two circuits could exchange ways for ever.
_LEAST_GAIN = 1e-9

_Agree = Callable[[float, float, float], bool]
"""Whether a blocking circuit may move, given the remaining gain, its present cost, and its new cost."""


def shorten(
    mesh: Mesh,
    demands: Sequence[PortPair],
    ways: Sequence[Way],
    prices: Prices,
    passes: int = 3,
    left: Callable[[], float] = endless,
) -> list[Way]:
    """Paths for the same demands with a total cost that is not higher; ends when no seconds are ``left``."""
    table = _Table(mesh, demands, ways, prices)
    for _ in range(passes):
        tried = [left() > 0 and table.improve(at, lambda gain, cost, new: new - cost < gain) for at in range(len(ways))]
        if not any(tried):
            break
    return table.ways


def level(
    mesh: Mesh,
    demands: Sequence[PortPair],
    ways: Sequence[Way],
    prices: Prices,
    left: Callable[[], float] = endless,
) -> list[Way]:
    """Paths for the same demands, none above the highest cost before; ends when no seconds are ``left``."""
    table = _Table(mesh, demands, ways, prices)
    while table.ways and left() > 0:
        most = max(map(table.cost, table.ways))
        for at, way in enumerate(table.ways):
            # A way that moved for another one is cheaper than that by now.
            if table.cost(way) == most and not table.improve(at, partial(_stays_below, most)):
                return table.ways
    return table.ways


def _stays_below(most: float, _gain: float, _cost: float, new: float) -> bool:
    return new < most - _LEAST_GAIN


class _Table:
    """The paths and their occupancies: ``hard`` forbids blocking, those in ``soft`` give it a price."""

    def __init__(self, mesh: Mesh, demands: Sequence[PortPair], ways: Sequence[Way], prices: Prices) -> None:
        self.ways = list(ways)
        self._mesh = mesh
        self._demands = demands
        self._prices = prices
        self._hard = Occupancy(mesh, prices, _HARD)
        self._soft = [Occupancy(mesh, prices, price) for price in _SOFT]
        for way in ways:
            self._enter(way)

    def cost(self, way: Way) -> float:
        """The cost of a path that no circuit blocks."""
        return _cost(way, self._prices)

    def improve(self, at: int, agree: _Agree) -> bool:
        """Give one circuit a cheaper path, if all circuits that block it accept others; return whether it was done."""
        start, goal = (self._mesh.ports[port] for port in self._demands[at])
        old = self.ways[at]
        # Each pass costs at least 1, so no way is cheaper than the shortest one on an idle mesh.
        if self.cost(old) <= pucs_ahead(self._mesh, goal)[start]:
            return False
        self._enter(old, -1)
        for occupancy in self._soft:
            way = cheapest_way(self._mesh, self._demands[at], occupancy.prices)
            if way is None or crosses_itself(self._mesh, way):
                continue
            gain = self.cost(old) - self.cost(way)
            moved = self._make_room(at, way, gain, agree) if gain > _LEAST_GAIN else None
            if moved is not None:
                self.ways[at] = way
                self._enter(way)
                for other, new in moved.items():
                    self.ways[other] = new
                return True
        self._enter(old)
        return False

    def _make_room(self, at: int, way: Way, gain: float, agree: _Agree) -> dict[int, Way] | None:
        """New paths, already entered, for the circuits that block ``way``; ``None`` if not found: nothing changed."""
        blockers = [other for other in self._hard.blockers(way, self.ways) if other != at]
        for other in blockers:
            self._enter(self.ways[other], -1)
        # So that the blockers do not look for their ways on this one.
        self._hard.enter(way)
        moved: dict[int, Way] = {}
        for other in sorted(blockers, key=lambda other: -len(self.ways[other])):
            new = cheapest_way(self._mesh, self._demands[other], self._hard.prices)
            if new is None or _cost(new, self._hard.prices) >= _HARD or crosses_itself(self._mesh, new):
                break
            before, after = self.cost(self.ways[other]), self.cost(new)
            if not agree(gain, before, after):
                break
            gain -= after - before
            moved[other] = new
            self._enter(new)
        self._hard.enter(way, -1)
        if len(moved) == len(blockers):
            return moved
        for new in moved.values():
            self._enter(new, -1)
        for other in blockers:
            self._enter(self.ways[other])
        return None

    def _enter(self, way: Way, count: int = 1) -> None:
        for occupancy in (self._hard, *self._soft):
            occupancy.enter(way, count)


def _cost(way: Way, prices: Prices) -> float:
    if not way:
        return inf
    turn, wire = prices.turn, prices.wire
    return sum(turn[(terminal >> 2) * 2 + k] for terminal, k in way) + sum(wire[terminal] for terminal, _ in way[1:])


def crosses_itself(mesh: Mesh, way: Way) -> bool:
    """Whether a path uses one waveguide twice."""
    wires = list(wires_of(mesh, way))
    return len(set(wires)) < len(wires)
