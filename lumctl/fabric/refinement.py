"""Makes the ways that a negotiation found cheaper; at no time do two of them want the same waveguide.

A circuit takes a cheaper way where those who stand in it find others. :func:`shorten` asks that they lose less together
than it gains, :func:`level` that none of them becomes as dear as it was.
"""

from collections.abc import Callable, Sequence
from functools import partial
from math import inf

from lumctl.fabric.geometry import Mesh, PortPair
from lumctl.fabric.negotiation import Occupancy
from lumctl.fabric.search import Prices, Way, cheapest_way, pucs_ahead, wires_of

_SOFT = (0.6, 1.2, 2.4)
"""What getting in the way of another circuit costs while a cheaper way is looked for."""
_HARD = 1e6
_LEAST_GAIN = 1e-9

_Agree = Callable[[float, float, float], bool]
"""Whether one who has to move agrees: what is left of the gain, its cost, and what it is to cost."""


def shorten(mesh: Mesh, demands: Sequence[PortPair], ways: Sequence[Way], prices: Prices, passes: int = 3) -> list[Way]:
    """The same demands by ways that are together not dearer."""
    table = _Table(mesh, demands, ways, prices)
    for _ in range(passes):
        tried = [table.improve(at, lambda gain, cost, new: new - cost < gain) for at in range(len(ways))]
        if not any(tried):
            break
    return table.ways


def level(mesh: Mesh, demands: Sequence[PortPair], ways: Sequence[Way], prices: Prices) -> list[Way]:
    """The same demands by ways of which the dearest is not dearer; others may be."""
    table = _Table(mesh, demands, ways, prices)
    while table.ways:
        most = max(map(table.cost, table.ways))
        for at, way in enumerate(table.ways):
            # A way that moved for another one is not as dear any more.
            if table.cost(way) == most and not table.improve(at, partial(_stays_below, most)):
                return table.ways
    return table.ways


def _stays_below(most: float, _gain: float, _cost: float, new: float) -> bool:
    return new < most - _LEAST_GAIN


class _Table:
    """The ways as they are, and who would be in whose way: ``hard`` forbids it, the ``soft`` ones have a price."""

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
        """What a way costs if nobody stands in it."""
        return _cost(way, self._prices)

    def improve(self, at: int, agree: _Agree) -> bool:
        """Let one circuit take a cheaper way if all who stand in it agree to others."""
        start, goal = (self._mesh.ports[port] for port in self._demands[at])
        old = self.ways[at]
        if self.cost(old) <= pucs_ahead(self._mesh, goal)[start]:
            return False
        self._enter(old, -1)
        for occupancy in self._soft:
            way = cheapest_way(self._mesh, self._demands[at], occupancy.prices)
            if way is None or _crosses_itself(self._mesh, way):
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
        """New ways, entered, for those who stand in ``way``; or nothing is changed."""
        blockers = [other for other in self._hard.blockers(way, self.ways) if other != at]
        for other in blockers:
            self._enter(self.ways[other], -1)
        self._hard.enter(way)
        moved: dict[int, Way] = {}
        for other in sorted(blockers, key=lambda other: -len(self.ways[other])):
            new = cheapest_way(self._mesh, self._demands[other], self._hard.prices)
            if new is None or _cost(new, self._hard.prices) >= _HARD or _crosses_itself(self._mesh, new):
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


def _crosses_itself(mesh: Mesh, way: Way) -> bool:
    """Whether it wants one waveguide twice."""
    wires = list(wires_of(mesh, way))
    return len(set(wires)) < len(wires)
