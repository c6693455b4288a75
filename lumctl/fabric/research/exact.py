"""Exact answers: the best routing of many circuits at once, or the proof that there is none.

First the linear relaxation gives a bound and, among the paths that it tried, often a routing that meets it. If not, the
integer program over arcs searches for a better one. This is slower than :func:`lumctl.fabric.routing.route`, but
``optimal`` and ``infeasible`` are proven. When time runs out, the result states the bound that is proven so far.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import inf
from time import perf_counter
from types import MappingProxyType

from lumctl.devices.types import PucState
from lumctl.errors import LumctlError
from lumctl.fabric.condition import MeshCondition
from lumctl.fabric.geometry import TURN, Mesh, Pass, PortPair, trace
from lumctl.fabric.research.graph import Graph, Way, graph
from lumctl.fabric.research.integer_program import ProgramResult, shorter, solve_arcs, useful
from lumctl.fabric.research.relaxation import Relaxation, chosen, relax
from lumctl.fabric.routing import Route

_NEAR = 4.0
"""If no routing is known: the first search is for totals up to this much above the bound, the next for any total."""
_NO_STUCK: Mapping[int, PucState] = MappingProxyType({})
_STATE = {turn: state for state, turn in TURN.items()}


class Status(StrEnum):
    """How an exact search ended."""

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    GAVE_UP = "gave-up"


class ExactObjective(StrEnum):
    """The criterion for the best routing.

    In this order: the fewest passes in total; any routing; the shortest longest path; the least loss of the worst path.
    """

    TOTAL = "total"
    FEASIBLE = "feasible"
    LONGEST = "longest"
    LOSS = "loss"


_PER_DB = 1000
"""Losses are integers here, in thousandths of a dB, so that an optimum can be proven."""


@dataclass(frozen=True, slots=True)
class Lengths:
    """The measure of a path's length, in integers: the cost of passing each PUC, and of each demand's ends."""

    passes: tuple[int, ...]
    ends: tuple[int, ...]

    def of(self, demand: int, way: Way) -> int:
        """The length of a path."""
        return self.ends[demand] + sum(self.passes[entered >> 2] for entered in way)


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The result of a search: how it ended, the paths (``None`` if none were found), and the proven bound."""

    status: Status
    ways: tuple[Way, ...] | None
    bound: float


@dataclass(frozen=True, slots=True)
class ExactSearch:
    """One search: the graph that may be used, and the seconds that are left."""

    graph: Graph
    left: Callable[[], float]

    def best(
        self, objective: ExactObjective, start: tuple[Way, ...] | None = None, lengths: Lengths | None = None
    ) -> SearchResult:
        """The best paths for all demands that are found in time; never worse than the paths in ``start``.

        ``lengths`` are needed for the objectives about the longest or the worst path.
        """
        if not self.graph.demands:
            return SearchResult(Status.OPTIMAL, (), 0.0)
        if lengths is not None:
            return self._levelled(objective, start, lengths)
        if start is not None and objective is ExactObjective.FEASIBLE:
            return SearchResult(Status.OPTIMAL, start, float(_total(start)))
        return self._fewest(objective, start)

    def _fewest(self, objective: ExactObjective, start: tuple[Way, ...] | None) -> SearchResult:
        relaxed = relax(self.graph, self.left)
        if relaxed.bound == inf:
            return SearchResult(Status.INFEASIBLE, None, inf)
        ways = start
        if self.left() > 0 and (ways is None or _total(ways) > relaxed.whole):
            picked = chosen(self.graph, relaxed, self.left())
            ways = min((each for each in (picked, ways) if each is not None), key=_total, default=None)
        if ways is None or (objective is ExactObjective.TOTAL and _total(ways) > relaxed.whole):
            return self._by_arcs(relaxed, ways, first=objective is not ExactObjective.TOTAL)
        return _judged(ways, relaxed)

    def _by_arcs(self, relaxed: Relaxation, ways: tuple[Way, ...] | None, *, first: bool) -> SearchResult:
        """Search for a routing better than ``ways`` (``None``: any routing). A better one costs at least 1 less."""
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

    def _levelled(self, objective: ExactObjective, start: tuple[Way, ...] | None, lengths: Lengths) -> SearchResult:
        """The routing with the shortest longest path, by bisection between possible and impossible lengths."""
        demands = range(len(self.graph.demands))
        # No routing beats the longest of the circuits' own shortest ways.
        least = max(lengths.ends[demand] + self._shortest(demand, lengths) for demand in demands)
        ways = start
        if ways is None:
            found = self._fewest(objective, None)
            if found.ways is None:
                return SearchResult(found.status, None, inf if found.status is Status.INFEASIBLE else least)
            ways = found.ways
        most = _longest(ways, lengths)
        while least < most:
            length = int(least + most) // 2
            longest = [length - end for end in lengths.ends]
            arcs = [shorter(self.graph, demand, longest[demand], lengths.passes) for demand in demands]
            answer = (
                solve_arcs(self.graph, arcs, seconds=self.left(), longest=longest, passes=lengths.passes, first=True)
                if self.left() > 0
                else ProgramResult(None, done=False)
            )
            if answer.ways is not None and _longest(answer.ways, lengths) < most:
                ways = answer.ways
                most = _longest(ways, lengths)
            elif answer.ways is None and answer.done:
                least = length + 1
            else:
                return SearchResult(Status.FEASIBLE, ways, least)
        return SearchResult(Status.OPTIMAL, ways, most)

    def _shortest(self, demand: int, lengths: Lengths) -> float:
        """The length of a demand's shortest path if it is alone; ``inf`` if there is none."""
        start, goal = self.graph.demands[demand]
        if not self.graph.turns[goal]:
            return inf
        back = self.graph.costs(goal, [0.0] * self.graph.wires, lengths.passes)
        first = lengths.passes[start >> 2]
        return min((first + back[start ^ turn] for turn in self.graph.turns[start]), default=inf)


def _longest(ways: Sequence[Way], lengths: Lengths) -> int:
    return max(lengths.of(demand, way) for demand, way in enumerate(ways))


def _judged(ways: tuple[Way, ...] | None, relaxed: Relaxation) -> SearchResult:
    if ways is None:
        return SearchResult(Status.GAVE_UP, None, relaxed.whole)
    return SearchResult(Status.OPTIMAL if _total(ways) <= relaxed.whole else Status.FEASIBLE, ways, relaxed.whole)


def _total(ways: Sequence[Way]) -> int:
    return sum(map(len, ways))


@dataclass(frozen=True, slots=True)
class Exact:
    """The result of an exact search.

    ``bound`` is proven: no routing has a smaller total (with the objective ``longest``: a shorter longest path; with
    ``loss``: a worst path that loses less, in dB). ``worst_loss_db`` is known only with the objective ``loss``. Status
    ``optimal``: ``routes`` meet the bound. ``feasible``: ``routes`` are valid, but may not be the best. ``infeasible``:
    it is proven that there are none. ``gave-up``: the time was up before a routing was found.
    """

    status: Status
    routes: tuple[Route, ...]
    objective: ExactObjective
    bound: float
    seconds: float
    worst_loss_db: float | None = None

    @property
    def total(self) -> int:
        """The PUCs passed by all routes together; a PUC that two circuits pass counts twice."""
        return sum(len(route.passes) for route in self.routes)

    @property
    def longest(self) -> int:
        """The PUCs passed by the longest route."""
        return max((len(route.passes) for route in self.routes), default=0)

    @property
    def gap(self) -> float | None:
        """The largest possible distance of the routes from the best, relative to the bound; ``None`` without routes."""
        if self.status in {Status.INFEASIBLE, Status.GAVE_UP}:
            return None
        if self.value <= self.bound:
            return 0.0
        return (self.value - self.bound) / self.bound if self.bound > 0 else inf

    @property
    def value(self) -> float:
        """The value of the objective, in PUCs or dB."""
        if self.objective is ExactObjective.LOSS:
            return self.worst_loss_db or 0.0
        return self.longest if self.objective is ExactObjective.LONGEST else self.total


@dataclass(frozen=True, slots=True)
class Bound:
    """A proven lower bound of the total of PUCs passed; ``inf`` if the demands are proven impossible.

    ``alone`` is the trivial bound: the sum of the shortest paths of all circuits, each one alone.
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
    start: Sequence[Route] | None = None,
    losses: MeshCondition | None = None,
    clock: Callable[[], float] = perf_counter,
) -> Exact:
    """Find the best routes for all demands at once, around live circuits, or prove that there are none.

    ``damaged`` PUCs and ``blocked_ports`` are not used, ``stuck`` PUCs only in their state. ``start`` may hold known
    routes for all demands, in their order: the result is not worse. ``losses`` gives the losses for the objective
    ``loss``. The routes have been traced before they are returned.

    Raises:
        UsageError: the solver is not installed; a port or PUC is not on the mesh, or a port is used twice.
        InconsistentFabricError: live circuits contradict each other or a stuck PUC.
    """
    began = clock()
    asked = ExactObjective(objective)
    usable = graph(mesh, demands, stuck=stuck, damaged=damaged, live=live, blocked_ports=blocked_ports)
    known = None if start is None else tuple(_way(mesh, each) for each in start)
    lengths = _lengths(mesh, demands, asked, losses or MeshCondition())
    found = ExactSearch(usable, lambda: began + time_limit_s - clock()).best(asked, known, lengths)
    ways = () if found.ways is None else zip(demands, found.ways, strict=True)
    routes = tuple(Route(ports, _passes(mesh, ports, way)) for ports, way in ways)
    _prove(mesh, (*live, *routes), stuck)
    if asked is not ExactObjective.LOSS or lengths is None:
        return Exact(found.status, routes, asked, found.bound, clock() - began)
    worst = None if not found.ways else _longest(found.ways, lengths) / _PER_DB
    return Exact(found.status, routes, asked, found.bound / _PER_DB, clock() - began, worst)


def _lengths(
    mesh: Mesh, demands: Sequence[PortPair], objective: ExactObjective, losses: MeshCondition
) -> Lengths | None:
    if objective is ExactObjective.LONGEST:
        return Lengths((1,) * mesh.puc_count, (0,) * len(demands))
    if objective is not ExactObjective.LOSS:
        return None
    passes = tuple(round(_PER_DB * losses.pass_loss_db(puc)) for puc in range(mesh.puc_count))
    return Lengths(passes, tuple(round(_PER_DB * losses.loss_db(pair, ())) for pair in demands))


def _way(mesh: Mesh, route: Route) -> Way:
    """The terminals at which a route enters its PUCs."""
    way, entered = [], mesh.ports[route.ports[0]]
    for _, state in route.passes:
        way.append(entered)
        entered = mesh.peers[entered ^ TURN[state]]
    return tuple(way)


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
    """The PUCs of a path with their states; a state follows from where light enters the PUC and the next one."""
    outs = [*(mesh.peers[entered] for entered in way[1:]), mesh.ports[ports[1]]]
    return tuple((entered >> 2, _STATE[entered ^ out]) for entered, out in zip(way, outs, strict=True))


def _prove(mesh: Mesh, routes: Collection[Route], stuck: Mapping[int, PucState]) -> None:
    """Trace the new circuits and the live ones together: each must take its planned path."""
    states = {puc: state for route in routes for puc, state in route.passes} | dict(stuck)
    for route in routes:
        found = trace(mesh, states, route.ports[0])
        if (found.exit, found.passes) != (route.ports[1], route.passes):
            a, b = route.ports
            raise LumctlError(f"the route of {a}:{b} cannot be traced", hint="this is a bug: please report it")
