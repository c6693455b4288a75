"""All-to-all by matchings: searches for few matchings that contain every pair of ports, with all routes.

A port has one circuit at a time. So n ports need at least n - 1 matchings, or n if n is odd; on a crowded mesh,
:mod:`lumctl.fabric.matching_bound` proves a higher bound. The pairs are assigned to matchings at random, and each
matching is routed; one that finds no routes exchanges pairs with others. Pairs that are left over then are packed into
further matchings, so the set is complete unless the time runs out first. Finally the smallest matchings are emptied
into others.
"""

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from math import inf
from random import Random

from lumctl.devices.types import PucState
from lumctl.errors import UsageError
from lumctl.fabric.condition import MeshCondition
from lumctl.fabric.crowded_matchings import Packer
from lumctl.fabric.geometry import Mesh, PortPair
from lumctl.fabric.matching_bound import matching_bound, matchings_at_least
from lumctl.fabric.port_choice import checked_ports, port_sets, shortest
from lumctl.fabric.routing import Route, route
from lumctl.fabric.search import Unroutable, endless

_FAILURES = 12
"""Maximum number of failures in one draw: exchanges that do not help, and matchings that find no routes."""
_HOPELESS = 4
"""If this many matchings find no routes and none finds any, the mesh is crowded: no more are tried."""
_DRAWS, _FAR = 3, 1.2
"""Maximum number of tried sets of ports, or of draws for given ports. For given ports, a result with more than the
factor times the least number of matchings ends the draws."""
_FOR_CHOICE = 0.3
"""The share of the time limit after which no more sets of ports with little crowding are computed."""
_FOR_DRAWING = 0.5
"""The share of the time limit after which the pairs of a draw are packed as they are, so that the set is complete."""


@dataclass(frozen=True, slots=True)
class Matching:
    """Circuits that share no port, with their routes. ``bound`` is the sum of the circuits' shortest paths, in PUCs."""

    routes: tuple[Route, ...]
    bound: int

    @property
    def pucs(self) -> int:
        """The number of PUCs that its circuits pass together."""
        return sum(len(found.passes) for found in self.routes)

    @property
    def states(self) -> Mapping[int, PucState]:
        """The states that the matching needs; omitted PUCs may have either state."""
        return {puc: state for found in self.routes for puc, state in found.passes}


@dataclass(frozen=True, slots=True)
class AllToAll:
    """Matchings that together contain every pair of ``ports``, except pairs that have no path even alone.

    ``least`` is a lower bound of the number of matchings for these ports. ``left`` are pairs that have no route because
    the time ran out.
    """

    ports: tuple[int, ...]
    matchings: tuple[Matching, ...]
    least: int
    unreachable: tuple[PortPair, ...] = ()
    left: tuple[PortPair, ...] = ()

    @property
    def badness(self) -> tuple[int, int, int, int]:
        """A sort key: smaller is better. Complete results come first, then few matchings, then short paths."""
        pucs = sum(matching.pucs for matching in self.matchings)
        return len(self.left), len(self.unreachable), len(self.matchings), pucs

    @property
    def done(self) -> bool:
        """Whether no better result is possible, apart from the lengths of the paths."""
        return len(self.matchings) <= self.least and not self.unreachable and not self.left


def all_to_all(
    mesh: Mesh,
    ports: int | Collection[int],
    *,
    condition: MeshCondition | None = None,
    rng: Random,
) -> AllToAll:
    """Run :class:`AllToAllSearch` without a time limit, for a number of ports, or for given ports.

    Raises:
        UsageError: there are too few ports, or a port cannot be used.
    """
    return AllToAllSearch(mesh, ports, condition=condition, rng=rng).run()


class AllToAllSearch:
    """The search for matchings. It ends ``limit_s`` seconds after the call of :meth:`run`.

    ``clock`` returns seconds. ``tell`` is called with messages about the progress.

    Raises:
        UsageError: there are too few ports, or a port cannot be used.
    """

    def __init__(
        self,
        mesh: Mesh,
        ports: int | Collection[int],
        *,
        condition: MeshCondition | None = None,
        rng: Random,
        limit_s: float = inf,
        clock: Callable[[], float] = time.monotonic,
        tell: Callable[[str], object] = lambda _: None,
    ) -> None:
        self._mesh = mesh
        self._condition = condition or MeshCondition()
        self._given = not isinstance(ports, int)
        self._ports = ports
        self._rng = rng
        self._limit_s = limit_s
        self._clock = clock
        self._tell = tell
        self._best: AllToAll | None = None
        self._draw: _Draw | None = None

    def run(self) -> AllToAll:
        """The best set of matchings that the time allows."""
        ends = self._clock() + self._limit_s

        def left() -> float:
            return ends - self._clock()

        for number, chosen in enumerate(self._port_sets(left)):
            self._tell(f"matchings of {len(chosen)} ports: drawing {number + 1}")
            # A later draw must not use up the time for improving the best one.
            until = self._limit_s * (1 - _FOR_DRAWING) if self._limit_s < inf else 0.0
            self._draw = _Draw(self._mesh, chosen, self._condition, self._rng, left, until, self._tell)
            found = self._draw.routed()
            if self._best is None or found.badness < self._best.badness:
                self._best = found  # kept even if the computation of the bound is interrupted
                self._best = self._bounded(found, left)
            self._draw = None
            if self._is_settled(self._best) or left() <= until:
                break
        if self._best is None:
            raise UsageError("no ports to connect")
        if not self._best.done and not self._best.left:
            self._empty(self._best, left)
        return self._best

    def best(self) -> AllToAll | None:
        """The best set so far, for an interrupted search; its ``left`` has the missing pairs."""
        return self._best or (self._draw.partial() if self._draw else None)

    def _port_sets(self, left: Callable[[], float]) -> Iterable[tuple[int, ...]]:
        if isinstance(self._ports, int):
            choosing = (1 - _FOR_CHOICE) * self._limit_s if self._limit_s < inf else 0.0
            return port_sets(self._mesh, self._ports, self._condition, _DRAWS, lambda: left() - choosing)
        return [checked_ports(self._mesh, self._ports, self._condition)] * _DRAWS

    def _is_settled(self, best: AllToAll) -> bool:
        """Whether no other draw is worth trying. If ports are chosen here, others may have a lower bound."""
        least = matchings_at_least(len(best.ports))
        if self._given:
            return best.done or len(best.matchings) > _FAR * least
        return best.done and len(best.matchings) <= least

    def _bounded(self, found: AllToAll, left: Callable[[], float]) -> AllToAll:
        """The result with a better bound for its ports, unless it is incomplete or already reaches its bound."""
        if found.done or found.left:
            return found
        self._tell(f"{len(found.matchings)} matchings; their bound")
        pairs = [each.ports for matching in found.matchings for each in matching.routes]
        proven = matching_bound(
            self._mesh, found.ports, pairs, condition=self._condition, enough=len(found.matchings), left=left
        )
        # The bound by the ports alone counts unreachable pairs, too, so it holds only without them.
        return replace(found, least=max(found.least, proven) if not found.unreachable else proven)

    def _empty(self, found: AllToAll, left: Callable[[], float]) -> None:
        packer = Packer(self._mesh, self._condition, left, self._tell)
        for fewer in packer.emptied([matching.routes for matching in found.matchings], found.least):
            self._best = replace(found, matchings=matchings_of(self._mesh, fewer))


def matchings_of(mesh: Mesh, routes: Iterable[tuple[Route, ...]]) -> tuple[Matching, ...]:
    """Each set of routes as a matching."""
    return tuple(Matching(each, int(sum(shortest(mesh, found.ports) for found in each))) for each in routes if each)


@dataclass
class _Draw:
    """One set of ports with one random draw of the pairs. Attempts end when fewer than ``until`` seconds are left."""

    mesh: Mesh
    ports: tuple[int, ...]
    condition: MeshCondition
    rng: Random
    left: Callable[[], float] = endless
    until: float = 0.0
    tell: Callable[[str], object] = lambda _: None
    _rounds: list[list[PortPair]] = field(default_factory=list)
    _routes: dict[int, tuple[Route, ...]] = field(default_factory=dict)
    _extra: list[tuple[Route, ...]] = field(default_factory=list)
    _failures: int = 0

    def routed(self) -> AllToAll:
        """The matchings, all proven by tracing."""
        drawn = round_robin(self.ports, self.rng)
        apart = {pair for pairs in drawn for pair in pairs if shortest(self.mesh, pair) == inf}
        self._rounds = [[pair for pair in pairs if pair not in apart] for pairs in drawn]
        for at in range(len(self._rounds)):
            self._attempt(at)
        for at in range(len(self._rounds)):
            while at not in self._routes and self._goes_on and len(self._rounds) > 1:
                self._exchange(at)
        rest = [pair for at, pairs in enumerate(self._rounds) if at not in self._routes for pair in pairs]
        packed = Packer(self.mesh, self.condition, self.left, self.tell).packed(rest, self._extra)
        unreachable = tuple(sorted({*apart, *packed.unreachable}))
        return self._result(unreachable, packed.left)

    def partial(self) -> AllToAll | None:
        """The matchings routed so far, for an interrupted draw; ``None`` if there are none."""
        found = self._result((), ())
        routed = {each.ports for matching in found.matchings for each in matching.routes}
        missing = tuple(pair for pair in combinations(self.ports, 2) if pair not in routed)
        return replace(found, left=missing) if routed else None

    def _result(self, unreachable: tuple[PortPair, ...], left: tuple[PortPair, ...]) -> AllToAll:
        routes = [*(self._routes[at] for at in sorted(self._routes)), *self._extra]
        return AllToAll(
            self.ports, matchings_of(self.mesh, routes), matchings_at_least(len(self.ports)), unreachable, left
        )

    @property
    def _goes_on(self) -> bool:
        most = _FAILURES if self._routes else _HOPELESS
        return self._failures < most and self.left() > self.until

    def _route(self, pairs: Sequence[PortPair]) -> tuple[Route, ...]:
        known = self.condition
        return route(
            self.mesh,
            pairs,
            states={},
            stuck=known.stuck,
            damaged=known.damaged,
            brisk=True,
            left=lambda: self.left() - self.until,
        )

    def _attempt(self, at: int) -> None:
        if self._goes_on:
            try:
                self._routes[at] = self._route(self._rounds[at])
            except Unroutable:
                self._failures += 1

    def _exchange(self, at: int) -> None:
        """Exchange pairs with another matching, if both matchings can be routed afterwards."""
        other = self.rng.choice([each for each in range(len(self._rounds)) if each != at])
        mine, theirs = exchange(self._rounds[at], self._rounds[other], self.rng)
        try:
            routes, their_routes = self._route(mine), self._route(theirs)
        except Unroutable:
            self._failures += 1
            return
        self._rounds[at], self._rounds[other] = mine, theirs
        self._routes[at], self._routes[other] = routes, their_routes


def round_robin(players: Sequence[int], rng: Random) -> list[list[PortPair]]:
    """Rounds in which all players meet: n - 1 rounds for n players, or n if n is odd, with one player resting in each.

    ``rng`` decides which players meet in which round. In the plain order all circuits of a round run side by side, and
    rounds along the mesh have only long ones; in a random order each round has long and short circuits in all
    directions.
    """
    ring: list[int | None] = list(players)
    rng.shuffle(ring)
    if len(ring) % 2:
        ring.append(None)
    fixed = ring.pop()
    count = len(ring)
    rounds: list[list[PortPair]] = []
    # The circle method: one player stays, and the others move on by one place each round.
    for turn in range(count):
        pairs = [(fixed, ring[turn])]
        pairs += [(ring[(turn + step) % count], ring[turn - step]) for step in range(1, count // 2 + 1)]
        rounds.append([(min(a, b), max(a, b)) for a, b in pairs if a is not None and b is not None])
    return rounds


def exchange(one: Sequence[PortPair], other: Sequence[PortPair], rng: Random) -> tuple[list[PortPair], list[PortPair]]:
    """Two new rounds with the same pairs: random components of the two rounds' common graph change sides.

    In the graph of the pairs of both rounds each player has at most two neighbours. So it consists of cycles and
    chains, and each of these can change sides as a whole.
    """
    met: dict[int, list[tuple[PortPair, int]]] = {}
    for side, pairs in enumerate((one, other)):
        for pair in pairs:
            for port in pair:
                met.setdefault(port, []).append((pair, side))
    rounds: tuple[list[PortPair], list[PortPair]] = ([], [])
    seen: set[tuple[PortPair, int]] = set()
    for start in (*((pair, 0) for pair in one), *((pair, 1) for pair in other)):
        if start in seen:
            continue
        swap, reached = rng.random() < 0.5, [start]  # noqa: PLR2004 - even chances
        seen.add(start)
        while reached:
            pair, side = reached.pop()
            rounds[side ^ swap].append(pair)
            # A set has no fixed order, and the same seed must give the same rounds.
            joined = {each for port in pair for each in met[port]} - seen
            seen |= joined
            reached += sorted(joined)
    return rounds
