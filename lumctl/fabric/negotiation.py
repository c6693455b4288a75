"""Paths for many circuits at once, by negotiated congestion.

Every circuit first takes its own cheapest path. Circuits that compete for a waveguide are routed again, round by round:
blocking another circuit has a price, and a contested waveguide becomes more expensive for all later rounds, until no
circuit blocks another. Live circuits and stuck PUCs are not negotiable: their price is infinite.

The lower the price of blocking, the shorter the paths and the more rounds are needed. So the price is low at first, and
higher if the rounds run out.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from lumctl.fabric.geometry import Mesh, PortPair
from lumctl.fabric.search import NO_ROUTE_HINT, Prices, Unroutable, Way, cheapest_way, endless, named

AnyWay = TypeVar("AnyWay")
AnyWay_contra = TypeVar("AnyWay_contra", contravariant=True)


@dataclass(frozen=True, slots=True)
class Pressure:
    """The price of blocking one circuit at one place, and the ``surcharge`` that each round adds to contested places.

    ``rounds`` is the maximum number of rounds; ``stall`` consecutive rounds without fewer losers end the negotiation.
    The surcharge grows by the factor ``growth`` each round.
    """

    price: float
    surcharge: float
    rounds: int
    stall: int
    growth: float = 1.0


GENTLE = (Pressure(0.25, 0.12, 200, 100),)
HARDER = (Pressure(1.0, 1.0, 80, 80), Pressure(2.0, 0.5, 80, 80), Pressure(0.5, 0.3, 100, 100))
BRISK = (Pressure(0.3, 0.15, 150, 80),)
"""For callers that can try other demands instead: most routable demands need no more rounds than this."""


class Occupancy:
    """The waveguides that are in use, and the prices that follow: a used waveguide costs ``price`` more.

    A path in bar and one in cross through the same PUC always meet at one of its four terminals, so two paths that
    exclude each other always share a waveguide. ``sharing`` is the price of passing a PUC in the same state as another
    circuit, which passes it on the other side.
    """

    def __init__(self, mesh: Mesh, prices: Prices, price: float, sharing: float = 0.0) -> None:
        self.prices = prices.copy()
        self._peers = mesh.peers
        self._price = price
        self._sharing = sharing
        self._users = [0] * len(prices.wire)

    def enter(self, way: Way, count: int = 1) -> None:
        """Add a path, or remove it with -1."""
        wire_price, users, peers = self.prices.wire, self._users, self._peers
        price = count * self._price
        # The first terminal is a port: no waveguide lies before it.
        for terminal, _ in way[1:]:
            peer = peers[terminal]
            users[terminal] += count
            users[peer] += count
            wire_price[terminal] += price
            wire_price[peer] += price
        if self._sharing:
            for terminal, turn in way:
                self.prices.turn[(terminal >> 2) * 2 + turn] += count * self._sharing

    def is_contested(self, way: Way) -> bool:
        """Whether an added path shares a waveguide with another path, or uses one twice itself."""
        users = self._users
        return any(users[terminal] > 1 for terminal, _ in way[1:])

    def raise_prices(self, ways: Sequence[Way], surcharge: float) -> None:
        """Make the contested waveguides of these paths more expensive for all later rounds."""
        contested = {terminal for way in ways for terminal, _ in way[1:] if self._users[terminal] > 1}
        for terminal in contested | {self._peers[terminal] for terminal in contested}:
            self.prices.wire[terminal] += surcharge

    def blockers(self, way: Way, ways: Sequence[Way]) -> list[int]:
        """The indices in ``ways`` of those that block a path; the path itself is not added."""
        wires = {wire for terminal, _ in way[1:] for wire in (terminal, self._peers[terminal])}
        return [at for at, other in enumerate(ways) if any(terminal in wires for terminal, _ in other[1:])]


def negotiate(
    mesh: Mesh,
    demands: Sequence[PortPair],
    prices: Prices,
    *,
    sharing: float = 0.0,
    pressures: Sequence[Pressure] = (*GENTLE, *HARDER),
    left: Callable[[], float] = endless,
) -> list[Way]:
    """One path for each demand; no path blocks another.

    Raises:
        Unroutable: a demand has no path even alone (proven), or the rounds or the seconds ``left`` ran out (not
            proven).
    """
    alone = _alone(mesh, demands, prices)
    losers: list[int] = []
    for pressure in pressures:
        ways = list(alone)
        occupancy = Occupancy(mesh, prices, pressure.price, sharing)
        losers = bargain(occupancy, ways, _rerouting(mesh, demands, occupancy.prices), pressure, left)
        if not losers:
            return ways
    lost, rounds = tuple(demands[at] for at in losers), sum(each.rounds for each in pressures)
    after = "time ran out" if left() <= 0 else f"gave up after {rounds} rounds"
    raise Unroutable(
        lost,
        f"no route found for {named(lost)}: {after}, which does not prove that none exists",
        proven=False,
        hint=NO_ROUTE_HINT,
    )


class Occupied(Protocol[AnyWay_contra]):
    """The record of used places that a negotiation needs, for a mesh or a whole network."""

    def enter(self, way: AnyWay_contra, count: int = 1) -> None:
        """Add a path, or remove it with -1."""

    def is_contested(self, way: AnyWay_contra) -> bool:
        """Whether an added path shares a place with another."""

    def raise_prices(self, ways: Sequence[AnyWay_contra], surcharge: float) -> None:
        """Make contested places of these paths more expensive for all later rounds."""


def bargain(
    occupied: Occupied[AnyWay],
    ways: list[AnyWay],
    reroute: Callable[[int], AnyWay | None],
    pressure: Pressure,
    left: Callable[[], float] = endless,
) -> list[int]:
    """Change ``ways`` until no two share a place; return the indices of those that still do when rounds or time end.

    ``reroute`` finds the cheapest path of one demand at the present prices of ``occupied``.
    """
    for way in ways:
        occupied.enter(way)
    fewest, fewest_at, surcharge = len(ways) + 1, 0, pressure.surcharge
    for round_ in range(pressure.rounds):
        losers = [at for at, way in enumerate(ways) if occupied.is_contested(way)]
        if not losers:
            return []
        if len(losers) < fewest:
            fewest, fewest_at = len(losers), round_
        elif round_ - fewest_at > pressure.stall:
            return losers
        if left() <= 0:
            return losers
        occupied.raise_prices([ways[at] for at in losers], surcharge)
        surcharge *= pressure.growth
        # One after the other, so that each finds the present ways of the others.
        for at in losers:
            occupied.enter(ways[at], -1)
            ways[at] = reroute(at) or ways[at]
            occupied.enter(ways[at])
    return [at for at, way in enumerate(ways) if occupied.is_contested(way)]


def _rerouting(mesh: Mesh, demands: Sequence[PortPair], prices: Prices) -> Callable[[int], Way | None]:
    return lambda at: cheapest_way(mesh, demands[at], prices)


def _alone(mesh: Mesh, demands: Sequence[PortPair], prices: Prices) -> list[Way]:
    """The path that each demand takes if it is alone."""
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
            f"no route exists for {named(lost)}, even alone, around the live circuits and stuck PUCs",
            proven=True,
            hint=NO_ROUTE_HINT,
        )
    return ways
