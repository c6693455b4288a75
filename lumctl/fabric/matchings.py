"""All-to-all by matchings: the smallest set of them in which every pair of ports has its circuit, with all routes.

So many ports less one are needed at least (as many as ports if their number is odd), for a port has one circuit at a
time. The pairs are drawn by lot, each matching is routed, and one that finds no routes exchanges pairs with others.
What is left over after that goes into matchings of its own, so the set is always complete; its size is told beside the
bound.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from random import Random

from lumctl.devices.types import PucState
from lumctl.errors import UsageError
from lumctl.fabric.condition import MeshCondition
from lumctl.fabric.geometry import Mesh, PortPair
from lumctl.fabric.routing import Route, route
from lumctl.fabric.search import Unroutable, pucs_ahead

_FAILURES = 12
"""How many attempts may fail in one drawing: exchanges that do not help, and matchings that find no routes."""
_DRAWS, _FAR = 3, 1.2
"""How many sets of ports, or drawings of pairs, are tried while one leaves something over; of ports that are given,
none after one that takes so many times the matchings that would be needed."""
_FAR_PORTS = 5
"""To how many others a port is tried before it is held to be cut off."""


@dataclass(frozen=True, slots=True)
class Matching:
    """Circuits that share no port, with their routes. ``bound`` is how many PUCs they pass at least, each alone."""

    routes: tuple[Route, ...]
    bound: int

    @property
    def pucs(self) -> int:
        """How many PUCs its circuits pass together."""
        return sum(len(found.passes) for found in self.routes)

    @property
    def states(self) -> Mapping[int, PucState]:
        """The states it needs; PUCs that are not named may stand in any."""
        return {puc: state for found in self.routes for puc, state in found.passes}


@dataclass(frozen=True, slots=True)
class AllToAll:
    """Every pair of ``ports`` in one of the matchings, but for those that have no way at all, even alone.

    ``least`` is the number of matchings below which it cannot be done.
    """

    ports: tuple[int, ...]
    matchings: tuple[Matching, ...]
    least: int
    unreachable: tuple[PortPair, ...] = ()


def all_to_all(
    mesh: Mesh,
    ports: int | Collection[int],
    *,
    condition: MeshCondition | None = None,
    rng: Random,
) -> AllToAll:
    """Matchings for so many ports, chosen here, or for those given.

    Raises:
        UsageError: there are not so many ports, or one cannot be used.
    """
    condition = condition or MeshCondition()
    draws = _choices(mesh, ports, condition) if isinstance(ports, int) else [_checked(mesh, ports, condition)] * _DRAWS
    best: AllToAll | None = None
    for chosen in draws[:_DRAWS]:
        found = _Draw(mesh, chosen, condition, rng).routed()
        if best is None or _badness(found) < _badness(best):
            best = found
        done = len(best.matchings) == best.least and not best.unreachable
        if done or (not isinstance(ports, int) and len(best.matchings) > _FAR * best.least):
            break
    if best is None:
        raise UsageError("no ports to connect")
    return best


def _badness(found: AllToAll) -> tuple[int, int, int]:
    return len(found.unreachable), len(found.matchings), sum(matching.pucs for matching in found.matchings)


def _choices(mesh: Mesh, count: int, condition: MeshCondition) -> list[tuple[int, ...]]:
    """Sets of ports to choose from, spread over the rim.

    First in twos that face each other across an edge of the rim: light that leaves by one runs on past the other, so
    the two use each other's corner of the mesh rather than a third one's. Then one by one.
    """
    dead = {port for port in range(mesh.port_count) if _is_dead(mesh, port, condition)}
    usable = [port for port in range(mesh.port_count) if port not in dead]
    if not 2 <= count <= len(usable):  # noqa: PLR2004 - a pair
        raise UsageError(
            f"{count} ports of {mesh.name} cannot be connected",
            hint=f"it has {len(usable)} that can be used; 2 at least",
        )
    sets: list[tuple[int, ...]] = []
    places, twos = mesh.port_count // 2, (count + 1) // 2
    for first in range(places):
        edges = {(first + at * places // twos) % places for at in range(twos)}
        facing = [port % mesh.port_count for edge in sorted(edges) for port in (2 * edge + 1, 2 * edge + 2)]
        if dead.isdisjoint(facing):
            sets.append(tuple(sorted(facing)[:count]))
    sets.sort(key=lambda chosen: _hardships(mesh, chosen))
    spread = tuple(usable[at * len(usable) // count] for at in range(count))
    return [*sets[: _DRAWS - 1], spread]


def _is_dead(mesh: Mesh, port: int, condition: MeshCondition) -> bool:
    """Whether a port is blocked, or damage cuts it off: it has no way to any of some ports far away."""
    if port in condition.blocked_ports or not (condition.stuck or condition.damaged):
        return port in condition.blocked_ports
    for steps in range(1, _FAR_PORTS + 1):
        other = (port + steps * mesh.port_count // (_FAR_PORTS + 1)) % mesh.port_count
        try:
            route(mesh, [(port, other)], states={}, stuck=condition.stuck, damaged=condition.damaged, brisk=True)
        except Unroutable:
            continue
        return False
    return True


def _hardships(mesh: Mesh, ports: Sequence[int]) -> float:
    """How far the ports are from each other: the sum of the shortest ways of all pairs."""
    return sum(_shortest(mesh, (a, b)) for at, a in enumerate(ports) for b in ports[:at])


def _checked(mesh: Mesh, ports: Collection[int], condition: MeshCondition) -> tuple[int, ...]:
    chosen = tuple(sorted(ports))
    for port in chosen:
        if not 0 <= port < mesh.port_count:
            raise UsageError(f"port {port} is not on the mesh", hint=f"its ports are 0 to {mesh.port_count - 1}")
        if port in condition.blocked_ports:
            raise UsageError(f"port {port} is blocked")
    if len(set(chosen)) < len(chosen) or len(chosen) < 2:  # noqa: PLR2004 - a pair
        raise UsageError("all-to-all needs two ports or more, each named once")
    return chosen


def _shortest(mesh: Mesh, pair: PortPair) -> float:
    return pucs_ahead(mesh, mesh.ports[pair[1]])[mesh.ports[pair[0]]]


@dataclass
class _Draw:
    """One set of ports, with the pairs drawn once."""

    mesh: Mesh
    ports: tuple[int, ...]
    condition: MeshCondition
    rng: Random
    _rounds: list[list[PortPair]] = field(default_factory=list)
    _routes: dict[int, tuple[Route, ...]] = field(default_factory=dict)
    _failures: int = 0

    def routed(self) -> AllToAll:
        """The matchings, all proven by tracing."""
        drawn = round_robin(self.ports, self.rng)
        apart = [pair for pairs in drawn for pair in pairs if _shortest(self.mesh, pair) == inf]
        self._rounds = [[pair for pair in pairs if pair not in apart] for pairs in drawn]
        for at in range(len(self._rounds)):
            self._attempt(at)
        for at in range(len(self._rounds)):
            while at not in self._routes and self._failures < _FAILURES and len(self._rounds) > 1:
                self._exchange(at)
        left: list[PortPair] = []
        for at in range(len(self._rounds)):
            if at not in self._routes:
                self._routes[at], others = self._most_of(self._rounds[at])
                left += others
        extra, unreachable = self._packed(left)
        matchings = [*(self._routes[at] for at in sorted(self._routes)), *extra]
        return AllToAll(
            self.ports,
            tuple(self._matching(routes) for routes in matchings if routes),
            len(self.ports) - 1 + len(self.ports) % 2,
            tuple(sorted((*apart, *unreachable))),
        )

    def _matching(self, routes: tuple[Route, ...]) -> Matching:
        return Matching(routes, int(sum(_shortest(self.mesh, found.ports) for found in routes)))

    def _route(self, pairs: Sequence[PortPair], *, brisk: bool = True) -> tuple[Route, ...]:
        known = self.condition
        return route(self.mesh, pairs, states={}, stuck=known.stuck, damaged=known.damaged, brisk=brisk)

    def _attempt(self, at: int) -> None:
        if self._failures < _FAILURES:
            try:
                self._routes[at] = self._route(self._rounds[at])
            except Unroutable:
                self._failures += 1

    def _exchange(self, at: int) -> None:
        """Exchange pairs with another matching, if this one and the other both have routes then."""
        other = self.rng.choice([each for each in range(len(self._rounds)) if each != at])
        mine, theirs = exchange(self._rounds[at], self._rounds[other], self.rng)
        try:
            routes, their_routes = self._route(mine), self._route(theirs)
        except Unroutable:
            self._failures += 1
            return
        self._rounds[at], self._rounds[other] = mine, theirs
        self._routes[at], self._routes[other] = routes, their_routes

    def _most_of(self, pairs: Sequence[PortPair]) -> tuple[tuple[Route, ...], list[PortPair]]:
        """Routes for as many of these pairs as go together, and the others."""
        together, left = list(pairs), list[PortPair]()
        while together:
            try:
                return self._route(together), left
            except Unroutable as refused:
                lost = refused.demands if refused.proven else refused.demands[: (len(refused.demands) + 1) // 2]
                left += lost
                together = [pair for pair in together if pair not in lost]
        return (), left

    def _packed(self, left: Sequence[PortPair]) -> tuple[list[tuple[Route, ...]], list[PortPair]]:
        """Matchings for the pairs that are left over, and the pairs that have no way even alone."""
        extra: list[tuple[Route, ...]] = []
        unreachable = [pair for pair in left if not self._has_a_way(pair)]
        left = [pair for pair in left if pair not in unreachable]
        while left:
            apart = _port_disjoint(left)
            routes, _ = self._most_of(apart)
            # Alone the first of them has a way.
            extra.append(routes or self._route(apart[:1], brisk=False))
            done = {found.ports for found in extra[-1]}
            left = [pair for pair in left if pair not in done]
        return extra, unreachable

    def _has_a_way(self, pair: PortPair) -> bool:
        try:
            self._route([pair], brisk=False)
        except Unroutable:
            return False
        return True


def _port_disjoint(pairs: Sequence[PortPair]) -> list[PortPair]:
    """Those pairs, first come first served, that share no port."""
    taken: set[int] = set()
    apart: list[PortPair] = []
    for pair in pairs:
        if taken.isdisjoint(pair):
            apart.append(pair)
            taken.update(pair)
    return apart


def round_robin(players: Sequence[int], rng: Random) -> list[list[PortPair]]:
    """So many rounds as there are players, less one if their number is even; in each everybody plays once, or rests.

    Who meets whom in which round is left to ``rng``. In the plain order all circuits of a round run side by side, and
    those along the mesh are all long: drawn by lot each round has its share of long and short ones, in all directions.
    """
    ring: list[int | None] = list(players)
    rng.shuffle(ring)
    if len(ring) % 2:
        ring.append(None)
    fixed = ring.pop()
    count = len(ring)
    rounds: list[list[PortPair]] = []
    for turn in range(count):
        pairs = [(fixed, ring[turn])]
        pairs += [(ring[(turn + step) % count], ring[turn - step]) for step in range(1, count // 2 + 1)]
        rounds.append([(min(a, b), max(a, b)) for a, b in pairs if a is not None and b is not None])
    return rounds


def exchange(one: Sequence[PortPair], other: Sequence[PortPair], rng: Random) -> tuple[list[PortPair], list[PortPair]]:
    """Two other rounds with the same pairs: some of the cycles that two rounds make together change sides.

    In the graph of the pairs of both rounds everybody has at most two others, so it falls into cycles and chains, and
    each can be handed over as a whole.
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
            joined = {each for port in pair for each in met[port]} - seen
            seen |= joined
            reached += sorted(joined)
    return rounds
