"""Ways for many circuits at once, by negotiated congestion.

Every circuit first takes the cheapest way for itself. Where several want the same waveguide, those circuits look
again, round by round: getting in the way of another circuit has a price, and what is fought over becomes dearer for
good, until nobody is in anybody's way. What stands already (live circuits, stuck PUCs) is not up for negotiation: it
cannot be had at any price.

The lower the price of getting in the way, the shorter the ways that are found, and the more rounds it takes: it is low
at first, and higher where the rounds run out.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from lumctl.fabric.geometry import Mesh, PortPair
from lumctl.fabric.search import Prices, Unroutable, Way, cheapest_way, named

AnyWay = TypeVar("AnyWay")
AnyWay_contra = TypeVar("AnyWay_contra", contravariant=True)


@dataclass(frozen=True, slots=True)
class Pressure:
    """How hard is bargained: the price of being in the way of one circuit at one place, and what each round adds to it.

    ``rounds`` is how many there are, ``stall`` how many without fewer losers end it. From round to round what is added
    grows by the factor ``growth``.
    """

    price: float
    grudge: float
    rounds: int
    stall: int
    growth: float = 1.0


GENTLE = (Pressure(0.25, 0.12, 200, 100),)
HARDER = (Pressure(1.0, 1.0, 80, 80), Pressure(2.0, 0.5, 80, 80), Pressure(0.5, 0.3, 100, 100))
BRISK = (Pressure(0.3, 0.15, 150, 80),)
"""For those who have other demands to try: most that can be routed are within so many rounds."""


class Occupancy:
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
        occupancy = Occupancy(mesh, prices, pressure.price, sharing)
        losers = bargain(occupancy, ways, _rerouting(mesh, demands, occupancy.prices), pressure)
        if not losers:
            return ways
    left, rounds = tuple(demands[at] for at in losers), sum(each.rounds for each in pressures)
    raise Unroutable(
        left,
        f"no way found for {named(left)}: gave up after {rounds} rounds, which does not prove that there is none",
        proven=False,
        hint="try other ports or another spare, or program the whole mesh afresh",
    )


class Occupied(Protocol[AnyWay_contra]):
    """What a negotiation asks of a record of who uses what: a mesh's, or a whole network's."""

    def enter(self, way: AnyWay_contra, count: int = 1) -> None:
        """Write a way in, or with -1 out again."""

    def is_fought_over(self, way: AnyWay_contra) -> bool:
        """Whether a way that is written in wants what another wants too."""

    def bear_grudges(self, ways: Sequence[AnyWay_contra], grudge: float) -> None:
        """Make whatever these ways are fought over for dearer for good."""


def bargain(
    occupied: Occupied[AnyWay],
    ways: list[AnyWay],
    reroute: Callable[[int], AnyWay | None],
    pressure: Pressure,
) -> list[int]:
    """Change ``ways`` until no two want the same; return those that still do when the rounds are over.

    ``reroute`` finds the cheapest way of one demand at the prices of ``occupied`` as it is then.
    """
    for way in ways:
        occupied.enter(way)
    fewest, fewest_at, grudge = len(ways) + 1, 0, pressure.grudge
    for round_ in range(pressure.rounds):
        losers = [at for at, way in enumerate(ways) if occupied.is_fought_over(way)]
        if not losers:
            return []
        if len(losers) < fewest:
            fewest, fewest_at = len(losers), round_
        elif round_ - fewest_at > pressure.stall:
            return losers
        occupied.bear_grudges([ways[at] for at in losers], grudge)
        grudge *= pressure.growth
        for at in losers:
            occupied.enter(ways[at], -1)
            ways[at] = reroute(at) or ways[at]
            occupied.enter(ways[at])
    return [at for at, way in enumerate(ways) if occupied.is_fought_over(way)]


def _rerouting(mesh: Mesh, demands: Sequence[PortPair], prices: Prices) -> Callable[[int], Way | None]:
    return lambda at: cheapest_way(mesh, demands[at], prices)


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
