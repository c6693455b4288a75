"""Exact answers: the best routing of many circuits at once, or the proof that there is none.

First the linear relaxation gives a bound and, among the ways it tried, often a routing that meets it. If not, the
integer program over arcs decides between the two. Slow beside :func:`lumctl.fabric.routing.route`, and never wrong:
what it calls optimal is, what it calls infeasible cannot be, and when time is up it says how far it came.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import inf
from time import perf_counter
from types import MappingProxyType

from lumctl.devices.types import PucState
from lumctl.errors import LumctlError
from lumctl.fabric.geometry import TURN, Mesh, Pass, PortPair, trace
from lumctl.fabric.research.graph import Graph, Way, graph
from lumctl.fabric.research.integer_program import ProgramResult, shorter, solve_arcs, useful
from lumctl.fabric.research.relaxation import Relaxation, chosen, relax
from lumctl.fabric.routing import Route

_NEAR = 4.0
"""While no routing is known: how far from the bound one is looked for before it is looked for everywhere."""
_NO_STUCK: Mapping[int, PucState] = MappingProxyType({})
_STATE = {turn: state for state, turn in TURN.items()}


class Status(StrEnum):
    """How an exact search ended."""

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    GAVE_UP = "gave-up"


class ExactObjective(StrEnum):
    """What the best routing is: the fewest passes in all, any routing, or the one whose longest way is shortest."""

    TOTAL = "total"
    FEASIBLE = "feasible"
    LONGEST = "longest"


@dataclass(frozen=True, slots=True)
class SearchResult:
    """How the search ended: the ways, ``None`` if there are none or none was found, and what is proven."""

    status: Status
    ways: tuple[Way, ...] | None
    bound: float


@dataclass(frozen=True, slots=True)
class ExactSearch:
    """One search: what may be used, and how many seconds are left."""

    graph: Graph
    left: Callable[[], float]

    def best(self, objective: ExactObjective) -> SearchResult:
        """The best ways for all demands, as far as the time allows."""
        if not self.graph.demands:
            return SearchResult(Status.OPTIMAL, (), 0.0)
        relaxed = relax(self.graph, self.left)
        if relaxed.bound == inf:
            return SearchResult(Status.INFEASIBLE, None, inf)
        ways = chosen(self.graph, relaxed, self.left()) if self.left() > 0 else None
        if ways is None or (objective is ExactObjective.TOTAL and _total(ways) > relaxed.whole):
            found = self._by_arcs(relaxed, ways, first=objective is not ExactObjective.TOTAL)
        else:
            found = _judged(ways, relaxed)
        if objective is ExactObjective.LONGEST and found.status is not Status.INFEASIBLE:
            return self._shortened(found.ways, relaxed)
        return found

    def _by_arcs(self, relaxed: Relaxation, ways: tuple[Way, ...] | None, *, first: bool) -> SearchResult:
        """Look for a routing better than ``ways``, if there are any yet. A better one costs less by 1 at least."""
        slack = _NEAR if ways is None else _total(ways) - 1 - relaxed.bound
        while self.left() > 0:
            answer = self._within(relaxed, slack, first=first)
            if answer.ways is not None and (ways is None or _total(answer.ways) < _total(ways)):
                ways = answer.ways
            if not answer.done:
                break
            if ways is not None and _total(ways) - 1 - relaxed.bound <= slack:
                return SearchResult(Status.OPTIMAL, ways, float(_total(ways)))
            if ways is None and slack == inf:
                return SearchResult(Status.INFEASIBLE, None, inf)
            slack = inf if ways is None else _total(ways) - 1 - relaxed.bound
        return _judged(ways, relaxed)

    def _within(self, relaxed: Relaxation, slack: float, *, first: bool) -> ProgramResult:
        arcs = [useful(self.graph, demand, relaxed.prices, slack) for demand in range(len(self.graph.demands))]
        return solve_arcs(self.graph, arcs, seconds=self.left(), first=first)

    def _shortened(self, ways: tuple[Way, ...] | None, relaxed: Relaxation) -> SearchResult:
        """The routing whose longest way is shortest: every length is tried, from the least thinkable one up."""
        if ways is None:
            return SearchResult(Status.GAVE_UP, None, relaxed.farthest)
        length = relaxed.farthest
        while length < max(map(len, ways), default=0):
            arcs = [shorter(self.graph, demand, length) for demand in range(len(self.graph.demands))]
            answer = solve_arcs(self.graph, arcs, seconds=self.left(), longest=length, first=True)
            if answer.ways is not None:
                ways = answer.ways
            elif answer.done:
                length += 1
            else:
                return SearchResult(Status.FEASIBLE, ways, length)
        return SearchResult(Status.OPTIMAL, ways, length)


def _judged(ways: tuple[Way, ...] | None, relaxed: Relaxation) -> SearchResult:
    if ways is None:
        return SearchResult(Status.GAVE_UP, None, relaxed.whole)
    return SearchResult(Status.OPTIMAL if _total(ways) <= relaxed.whole else Status.FEASIBLE, ways, relaxed.whole)


def _total(ways: Sequence[Way]) -> int:
    return sum(map(len, ways))


@dataclass(frozen=True, slots=True)
class Exact:
    """What is known of some demands when the search ended.

    ``bound`` is proven: no routing has a smaller total (with the objective ``longest``: a shorter longest way).
    ``optimal``: ``routes`` meet it. ``feasible``: ``routes`` stand, and may not be the best. ``infeasible``: proven
    that there are none. ``gave-up``: time was up before a routing was found.
    """

    status: Status
    routes: tuple[Route, ...]
    objective: ExactObjective
    bound: float
    seconds: float

    @property
    def total(self) -> int:
        """The PUCs passed by all routes together; one that two circuits pass counts twice."""
        return sum(len(route.passes) for route in self.routes)

    @property
    def longest(self) -> int:
        """The PUCs passed by the longest route."""
        return max((len(route.passes) for route in self.routes), default=0)

    @property
    def gap(self) -> float | None:
        """How far the routes may be from the best, as a share of the bound; ``None`` if there are no routes."""
        if self.status in {Status.INFEASIBLE, Status.GAVE_UP}:
            return None
        value = self.longest if self.objective is ExactObjective.LONGEST else self.total
        return (value - self.bound) / self.bound if value > self.bound else 0.0


@dataclass(frozen=True, slots=True)
class Bound:
    """A proven lower bound of the total of PUCs passed; ``inf`` if the demands are proven impossible.

    ``alone`` is the trivial bound: the sum of the shortest ways, each as if there were no other circuit.
    """

    value: float
    alone: float
    method: str
    seconds: float


def solve(  # noqa: PLR0913 - what may be used, what is wanted, and for how long
    mesh: Mesh,
    demands: Sequence[PortPair],
    *,
    stuck: Mapping[int, PucState] = _NO_STUCK,
    damaged: Collection[int] = (),
    live: Collection[Route] = (),
    blocked_ports: Collection[int] = (),
    time_limit_s: float = 60.0,
    objective: str = ExactObjective.TOTAL,
    clock: Callable[[], float] = perf_counter,
) -> Exact:
    """Find the best routes for all demands at once, around live circuits, or prove that there are none.

    ``damaged`` PUCs and ``blocked_ports`` are not used, ``stuck`` PUCs only as they stand. The routes have been traced
    before they are returned.

    Raises:
        UsageError: the solver is not installed; a port or PUC is not on the mesh, or a port is wanted twice.
        InconsistentFabricError: live circuits contradict each other or a stuck PUC.
    """
    began = clock()
    asked = ExactObjective(objective)
    usable = graph(mesh, demands, stuck=stuck, damaged=damaged, live=live, blocked_ports=blocked_ports)
    found = ExactSearch(usable, lambda: began + time_limit_s - clock()).best(asked)
    ways = () if found.ways is None else zip(demands, found.ways, strict=True)
    routes = tuple(Route(ports, _passes(mesh, ports, way)) for ports, way in ways)
    _prove(mesh, (*live, *routes), stuck)
    return Exact(found.status, routes, asked, found.bound, clock() - began)


def lower_bound(
    mesh: Mesh,
    demands: Sequence[PortPair],
    *,
    stuck: Mapping[int, PucState] = _NO_STUCK,
    damaged: Collection[int] = (),
    live: Collection[Route] = (),
    blocked_ports: Collection[int] = (),
    time_limit_s: float = 60.0,
    clock: Callable[[], float] = perf_counter,
) -> Bound:
    """A proven lower bound of the total of PUCs passed, by the linear relaxation: see :func:`solve`."""
    began = clock()
    usable = graph(mesh, demands, stuck=stuck, damaged=damaged, live=live, blocked_ports=blocked_ports)
    found = relax(usable, lambda: began + time_limit_s - clock())
    method = "linear relaxation" if found.converged else "linear relaxation, stopped early"
    return Bound(found.whole, sum(found.shortest), method, clock() - began)


def _passes(mesh: Mesh, ports: PortPair, way: Way) -> tuple[Pass, ...]:
    """The PUCs of a way with their states: a turn is told by where light comes in and where it comes in next."""
    outs = [*(mesh.peers[entered] for entered in way[1:]), mesh.ports[ports[1]]]
    return tuple((entered >> 2, _STATE[entered ^ out]) for entered, out in zip(way, outs, strict=True))


def _prove(mesh: Mesh, routes: Collection[Route], stuck: Mapping[int, PucState]) -> None:
    """Trace the new circuits and the live ones together: each must be there, as it was planned."""
    states = {puc: state for route in routes for puc, state in route.passes} | dict(stuck)
    for route in routes:
        found = trace(mesh, states, route.ports[0])
        if (found.exit, found.passes) != (route.ports[1], route.passes):
            a, b = route.ports
            raise LumctlError(f"the route of {a}:{b} does not trace", hint="a defect: please report it")
