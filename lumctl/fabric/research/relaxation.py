"""The linear relaxation, by column generation: a bound that no setting of the mesh can beat.

Circuits may be split into fractions that go different ways, as long as every waveguide carries at most one circuit in
all. The program knows only some ways; its dual values price the waveguides, and the cheapest ways at those prices join
it, until none would help.

For any prices, each circuit's cheapest way together, less the sum of the prices, is a bound already (Lagrange). So the
bound holds whenever the loop is stopped, and it does not hang on the solver's tolerances.
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

_TOLERANCE = 1e-6
_LEFT_OUT = 20
"""What leaving a circuit out costs, in times the most that all circuits can ever pass: dear, so that it shows."""


@dataclass(frozen=True, slots=True)
class DemandSearch:
    """A demand, and for each terminal how many PUCs light that enters there still has to pass: A*'s estimate."""

    graph: Graph
    start: int
    goal: int
    left: tuple[float, ...]

    @property
    def shortest(self) -> float:
        """The PUCs passed by the shortest way when no other circuit is there; ``inf`` if there is none."""
        return self.left[self.start]


def demand_search(graph: Graph, demand: int) -> DemandSearch:
    """Prepare the search for one demand of the graph."""
    start, goal = graph.demands[demand]
    back = graph.costs(goal, [0.0] * graph.wires)
    left = [min((1 + back[at ^ turn] for turn in turns), default=inf) for at, turns in enumerate(graph.turns)]
    if not graph.turns[goal]:  # a blocked port lets nothing out, though a way back into the mesh begins there
        left = [inf] * len(left)
    return DemandSearch(graph, start, goal, tuple(left))


def cheapest(search: DemandSearch, prices: Prices) -> tuple[float, Way]:
    """The cost of the cheapest way, and the way: 1 for each PUC passed and the price of each waveguide.

    The way may use a waveguide twice: that is left to who sets the prices, so that no way is cheaper than told. The
    demand must have a way.
    """
    found = cheapest_path(search.graph.mesh.peers, search.start, search.goal, prices, search.left)
    if found is None:
        raise LumctlError("a demand that has a way has none", hint="a defect: please report it")
    cost, way = found
    return cost, tuple(entered for entered, _ in way)


def _turn_prices(graph: Graph) -> list[float]:
    """1 for passing a PUC in a state that light may use, by :class:`lumctl.fabric.search.Prices`."""
    return [
        1.0 if any(2 + turn in graph.turns[at] for at in range(4 * puc, 4 * puc + 4)) else inf
        for puc in range(graph.mesh.puc_count)
        for turn in (0, 1)
    ]


@dataclass(frozen=True, slots=True)
class Relaxation:
    """A lower bound of the total of PUCs passed, ``inf`` if the demands are proven impossible.

    ``shortest`` is the way of each demand if there were no others, in PUCs. ``prices``, one for each waveguide, give
    the bound, ``ways`` are all ways that were tried, each with the number of its demand, and ``converged`` tells
    whether more time would not raise it.
    """

    shortest: tuple[float, ...]
    bound: float
    prices: tuple[float, ...]
    ways: tuple[tuple[int, Way], ...]
    converged: bool

    @property
    def farthest(self) -> float:
        """The longest of the shortest ways: no routing's longest way is shorter."""
        return max(self.shortest, default=0.0)

    @property
    def whole(self) -> float:
        """The bound, rounded up: passes are whole numbers."""
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
        if bound > solver.getObjectiveValue() - _TOLERANCE:
            return Relaxation(shortest, bound, prices, tuple(known), converged=True)
        duals = solver.getSolution().row_dual
        asked = tuple(max(0.0, -float(value)) for value in duals[len(searches) :])


def chosen(graph: Graph, relaxation: Relaxation, seconds: float) -> tuple[Way, ...] | None:
    """The best whole routing among the ways that the relaxation tried; ``None`` if there is none or time is up."""
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
    """The bound that prices give, and the ways that are cheapest at them."""
    wires = [0.0 if wire == FREE else prices[wire] for wire in searches[0].graph.wire] if searches else []
    found = [cheapest(one, Prices(turns, wires)) for one in searches]
    ways = [(demand, way) for demand, (_, way) in enumerate(found)]
    return sum(cost for cost, _ in found) - sum(prices), ways


def _without_ways(graph: Graph) -> "highspy.Highs":
    """The program before it knows a way: every circuit is left out, at a high cost."""
    demands = range(len(graph.demands))
    rows = [(1.0, 1.0) for _ in demands] + [(-inf, 1.0)] * graph.wires
    dear = float(_LEFT_OUT * graph.most_passes)
    return program(rows, [(dear, [(demand, 1.0)]) for demand in demands], whole=False)


def _column(graph: Graph, demand: int, way: Way) -> Column:
    """A way as a variable: it serves its demand and fills the waveguides between its PUCs."""
    used = Counter(graph.wire[entered] for _, entered in pairwise(way))
    first = len(graph.demands)
    return float(len(way)), [(demand, 1.0), *((first + wire, float(times)) for wire, times in used.items())]
