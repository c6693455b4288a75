"""The integer program over arcs: light of each demand enters here and turns so, or it does not.

Only arcs that a better answer could use are in it. At the prices of the linear relaxation every demand has a cheapest
way; a way that costs more than that by more than the ``slack`` between the bound and what is known already cannot be
part of a better answer, and an arc on no other way is left out (fixing by reduced costs).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

from lumctl.fabric.research.graph import Graph, Way
from lumctl.fabric.research.highs import Column, has_solution, program, run

_TOLERANCE = 1e-6

Arc = tuple[int, int]
"""The terminal at which light enters a PUC, and the one at which it leaves at the other end."""


@dataclass(frozen=True, slots=True)
class ProgramResult:
    """The routing found. ``done``: the program was solved to the end, so ``ways=None`` proves that there is none."""

    ways: tuple[Way, ...] | None
    done: bool


def useful(graph: Graph, demand: int, prices: Sequence[float], slack: float) -> list[Arc]:
    """The arcs of one demand on ways that cost at most ``slack`` more than its cheapest."""
    start, goal = graph.demands[demand]
    if not graph.turns[goal]:
        return []
    out, back = graph.costs(start, prices), graph.costs(goal, prices)
    through = {
        (entered, entered ^ turn): out[entered] + 1 + back[entered ^ turn]
        for entered, turns in enumerate(graph.turns)
        for turn in turns
        if out[entered] + back[entered ^ turn] < inf
    }
    most = min(through.values(), default=inf) + slack + _TOLERANCE
    return [arc for arc, cost in through.items() if cost <= most]


def shorter(graph: Graph, demand: int, longest: float) -> list[Arc]:
    """The arcs of one demand on ways of at most ``longest`` PUCs."""
    idle = [0.0] * graph.wires
    start, goal = graph.demands[demand]
    least = graph.costs(goal, idle)
    nearest = min((1 + least[start ^ turn] for turn in graph.turns[start]), default=inf)
    return useful(graph, demand, idle, longest - nearest) if nearest <= longest else []


def solve_arcs(
    graph: Graph,
    arcs: Sequence[Sequence[Arc]],
    *,
    seconds: float,
    longest: float = inf,
    first: bool = False,
) -> ProgramResult:
    """The routing with the fewest passes over the ``arcs`` of each demand, none longer than ``longest``.

    ``first``: any routing will do, the first one found is taken.
    """
    rows: dict[tuple[int, int], int] = {}
    bounds: list[tuple[float, float]] = []
    columns: list[Column] = []

    def row(kind: int, number: int, lower: float, upper: float) -> int:
        at = rows.setdefault((kind, number), len(bounds))
        if at == len(bounds):
            bounds.append((lower, upper))
        return at

    for demand, (start, goal) in enumerate(graph.demands):
        row(demand, start, 1.0, 1.0)
        row(demand, goal, -1.0, -1.0)
        for entered, left in arcs[demand]:
            entries = [(row(demand, entered, 0.0, 0.0), 1.0)]
            entries.append((row(demand, goal if left == goal else graph.mesh.peers[left], 0.0, 0.0), -1.0))
            if entered != start:
                entries.append((row(_WIRE, graph.wire[entered], -inf, 1.0), 1.0))
            if longest < inf:
                entries.append((row(_LENGTH, demand, -inf, longest), 1.0))
            columns.append((1.0, entries))
    solver = program(bounds, columns, whole=True)
    if first:
        solver.setOptionValue("mip_rel_gap", inf)
    ended = run(solver, seconds)
    if ended == "infeasible" or not has_solution(solver):
        return ProgramResult(None, done=ended == "infeasible")
    values = iter(solver.getSolution().col_value)
    taken = [{entered: left for entered, left in own if next(values) > 1 / 2} for own in arcs]
    ways = tuple(_walked(graph, *ends, turned) for ends, turned in zip(graph.demands, taken, strict=True))
    return ProgramResult(ways, done=ended == "optimal" and not first)


_WIRE = -1
_LENGTH = -2
"""Rows that belong to a waveguide, or to the length of a demand's way, and not to a demand's flow at a terminal."""


def _walked(graph: Graph, start: int, goal: int, turned: Mapping[int, int]) -> Way:
    """The way from start to goal. Circles beside it, which a program may leave behind, are dropped."""
    way = [start]
    while turned[way[-1]] != goal:
        way.append(graph.mesh.peers[turned[way[-1]]])
    return tuple(way)
