"""The linear relaxation, by column generation: a bound that no setting of the mesh can beat.

Circuits may be split into fractions that take different paths, as long as every waveguide carries at most one circuit
in total. The program has only some paths. Its dual values are prices of the waveguides; the cheapest paths at these
prices are added to the program, until none would improve it.

For any prices of at least 0, what all circuits' cheapest paths cost together, minus the sum of the prices, is a lower
bound (Lagrange). So the bound holds whenever the loop is stopped, and it does not depend on the solver's tolerances.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, inf
from typing import TYPE_CHECKING

from lumctl.errors import LumctlError
from lumctl.fabric.geometry import FREE
from lumctl.fabric.research.graph import Graph, Way
from lumctl.fabric.research.integer_program import Column, add_column, has_solution, program, run
from lumctl.fabric.search import Prices, cheapest_path

if TYPE_CHECKING:
    import highspy

# The bound is a sum of floats: without this tolerance, rounding up could raise it by one.
_TOLERANCE = 1e-6
_LEFT_OUT = 20
"""The cost of omitting a circuit, in multiples of the most PUCs that all circuits can pass; high enough to show."""


@dataclass(frozen=True, slots=True)
class DemandSearch:
    """A demand, and for each terminal the number of remaining PUCs for light that enters there: A*'s estimate."""

    graph: Graph
    start: int
    goal: int
    left: tuple[float, ...]

    @property
    def shortest(self) -> float:
        """The PUCs of the demand's shortest path if it is alone; ``inf`` if there is none."""
        return self.left[self.start]


def demand_search(graph: Graph, demand: int) -> DemandSearch:
    """Prepare the search for one demand of the graph."""
    start, goal = graph.demands[demand]
    back = graph.costs(goal, [0.0] * graph.wires)
    left = [min((1 + back[at ^ turn] for turn in turns), default=inf) for at, turns in enumerate(graph.turns)]
    if not graph.turns[goal]:  # light cannot leave at a blocked port, though the reverse search starts there
        left = [inf] * len(left)
    return DemandSearch(graph, start, goal, tuple(left))


def cheapest(search: DemandSearch, prices: Prices) -> tuple[float, Way]:
    """The cost of the cheapest path, and that path. Each PUC passed costs 1, each waveguide its price.

    The path may use a waveguide twice: the prices resolve this, and the cost remains a lower bound. The demand must
    have a path.
    """
    found = cheapest_path(search.graph.mesh.peers, search.start, search.goal, prices, search.left)
    if found is None:
        raise LumctlError("the solver lost the route of a demand that has one", hint="this is a bug: please report it")
    cost, way = found
    return cost, tuple(entered for entered, _ in way)


def _turn_prices(graph: Graph) -> list[float]:
    """The prices of turns for :class:`lumctl.fabric.search.Prices`: 1 for a turn that light may take."""
    return [
        1.0 if any(2 + turn in graph.turns[at] for at in range(4 * puc, 4 * puc + 4)) else inf
        for puc in range(graph.mesh.puc_count)
        for turn in (0, 1)
    ]


@dataclass(frozen=True, slots=True)
class Relaxation:
    """A lower bound of the total of PUCs passed, ``inf`` if the demands are proven impossible.

    ``shortest`` is the length of each demand's shortest path if it is alone, in PUCs. ``prices``, one for each
    waveguide, give the bound. ``ways`` are all ways that were tried, each with the number of its demand. ``converged``:
    more time would not raise the bound.
    """

    shortest: tuple[float, ...]
    bound: float
    prices: tuple[float, ...]
    ways: tuple[tuple[int, Way], ...]
    converged: bool

    @property
    def whole(self) -> float:
        """The bound, rounded up, since the number of passes is an integer."""
        return self.bound if self.bound == inf else ceil(self.bound - _TOLERANCE)


def relax(graph: Graph, left: Callable[[], float]) -> Relaxation:
    """Solve the relaxation, for as long as seconds are ``left``."""
    searches = [demand_search(graph, demand) for demand in range(len(graph.demands))]
    shortest = tuple(found.shortest for found in searches)
    prices = (0.0,) * graph.wires
    bound = sum(shortest)
    if bound == inf:
        return Relaxation(shortest, bound, prices, (), converged=True)
    known: dict[tuple[int, Way], None] = {}
    solver = _without_ways(graph)
    turns = _turn_prices(graph)
    asked = prices
    while True:
        told, ways = _told(searches, asked, turns)
        if told > bound:
            bound, prices = told, asked
        # No routing passes so many PUCs, so there is none.
        if bound > graph.most_passes + 1:
            return Relaxation(shortest, inf, prices, tuple(known), converged=True)
        fresh = [way for way in ways if way not in known]
        for way in fresh:
            known[way] = None
            add_column(solver, _column(graph, *way))
        if not fresh:
            return Relaxation(shortest, bound, prices, tuple(known), converged=True)
        if left() <= 0 or run(solver, left()) != "optimal":
            return Relaxation(shortest, bound, prices, tuple(known), converged=False)
        # The program's optimum is never below the bound: where they meet, more ways do not help.
        if bound > solver.getObjectiveValue() - _TOLERANCE:
            return Relaxation(shortest, bound, prices, tuple(known), converged=True)
        duals = solver.getSolution().row_dual
        # A negative price, which the solver's tolerance allows, would make the bound wrong.
        asked = tuple(max(0.0, -float(value)) for value in duals[len(searches) :])


def chosen(graph: Graph, relaxation: Relaxation, seconds: float) -> tuple[Way, ...] | None:
    """The best whole routing among the paths that the relaxation tried; ``None`` if there is none or time is up."""
    rows = [(1.0, 1.0)] * len(graph.demands) + [(-inf, 1.0)] * graph.wires
    columns = [_column(graph, demand, way) for demand, way in relaxation.ways]
    solver = program(rows, columns, whole=True)
    if run(solver, seconds) == "infeasible" or not has_solution(solver):
        return None
    taken = solver.getSolution().col_value
    ways = dict(way for way, value in zip(relaxation.ways, taken, strict=True) if value > 1 / 2)
    return tuple(ways[demand] for demand in range(len(graph.demands)))


def _told(
    searches: list[DemandSearch], prices: tuple[float, ...], turns: list[float]
) -> tuple[float, list[tuple[int, Way]]]:
    """The bound that prices give, and the cheapest paths at these prices."""
    wires = [0.0 if wire == FREE else prices[wire] for wire in searches[0].graph.wire] if searches else []
    found = [cheapest(one, Prices(turns, wires)) for one in searches]
    ways = [(demand, way) for demand, (_, way) in enumerate(found)]
    return sum(cost for cost, _ in found) - sum(prices), ways


def _without_ways(graph: Graph) -> "highspy.Highs":
    """The program without any paths: every circuit is omitted, at a high cost."""
    demands = range(len(graph.demands))
    rows = [(1.0, 1.0) for _ in demands] + [(-inf, 1.0)] * graph.wires
    dear = float(_LEFT_OUT * graph.most_passes)
    return program(rows, [(dear, [(demand, 1.0)]) for demand in demands], whole=False)


def _column(graph: Graph, demand: int, way: Way) -> Column:
    """A path as a variable: it serves its demand and fills the waveguides between its PUCs."""
    used = Counter(graph.wire[entered] for _, entered in pairwise(way))
    first = len(graph.demands)
    return float(len(way)), [(demand, 1.0), *((first + wire, float(times)) for wire, times in used.items())]
