"""The integer program over arcs: light of each demand enters here and turns so, or it does not.

Only arcs that a better answer could use are in it. At the prices of the linear relaxation every demand has a cheapest
way; a way that costs more than that by more than the ``slack`` between the bound and what is known already cannot be
part of a better answer, and an arc on no other way is left out (fixing by reduced costs).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

from lumctl.errors import UsageError
from lumctl.fabric.research.graph import Graph, Way

if TYPE_CHECKING:
    import highspy

Column = tuple[float, Sequence[tuple[int, float]]]
"""One variable of a program: its cost, and its weight in each row that it stands in."""

_WHOLE = 0.9
"""Costs are whole numbers here: a solution that may be this far from the best is the best."""


def program(rows: Sequence[tuple[float, float]], columns: Iterable[Column], *, whole: bool) -> "highspy.Highs":
    """A program that minimises cost. Each row lies between two bounds, each variable between 0 and 1.

    ``whole``: variables are whole numbers. It runs on one thread, so that an answer is the same every time.

    Raises:
        UsageError: the solver is not installed.
    """
    try:
        import highspy  # noqa: PLC0415 - an extra
        import numpy as np  # noqa: PLC0415 - comes with it
    except ImportError as error:
        raise UsageError(
            "exact answers need the HiGHS solver, which is not installed", hint="pip install 'lumctl[optimal]'"
        ) from error
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    solver.setOptionValue("output_flag", False)  # noqa: FBT003 - HiGHS takes options by position
    solver.setOptionValue("threads", 1)
    nothing, none = np.array([], dtype=np.int32), np.array([])
    lower, upper = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    solver.addRows(len(rows), lower, upper, 0, nothing, nothing, none)
    costs: list[float] = []
    starts: list[int] = []
    at: list[int] = []
    weights: list[float] = []
    for cost, entries in columns:
        costs.append(cost)
        starts.append(len(at))
        at += (row for row, _ in entries)
        weights += (weight for _, weight in entries)
    count = len(costs)
    solver.addCols(
        count,
        np.array(costs),
        np.zeros(count),
        np.ones(count),
        len(at),
        np.array(starts, dtype=np.int32),
        np.array(at, dtype=np.int32),
        np.array(weights),
    )
    if whole:
        kinds = np.array([highspy.HighsVarType.kInteger] * count)
        solver.changeColsIntegrality(count, np.arange(count, dtype=np.int32), kinds)
        # Presolving of HiGHS 1.15.1 now and then reduces a sound program to a wrong one; answers here are proofs.
        solver.setOptionValue("presolve", "off")
        solver.setOptionValue("mip_rel_gap", 0.0)
        solver.setOptionValue("mip_abs_gap", _WHOLE)
    return solver


def add_column(solver: "highspy.Highs", column: Column) -> None:
    """Put one more variable, 0 or more, into a program."""
    import numpy as np  # noqa: PLC0415 - `program` has imported it

    cost, entries = column
    rows = np.array([row for row, _ in entries], dtype=np.int32)
    solver.addCol(cost, 0.0, inf, len(entries), rows, np.array([weight for _, weight in entries]))


def run(solver: "highspy.Highs", seconds: float) -> str:
    """Solve for at most so long: ``"optimal"``, ``"infeasible"``, or ``"stopped"`` with or without a solution."""
    import highspy  # noqa: PLC0415 - `program` has imported it

    solver.setOptionValue("time_limit", solver.getRunTime() + max(seconds, 0.01))
    solver.run()
    status = solver.getModelStatus()
    if status in {highspy.HighsModelStatus.kOptimal, highspy.HighsModelStatus.kModelEmpty}:
        return "optimal"
    return "infeasible" if status == highspy.HighsModelStatus.kInfeasible else "stopped"


def has_solution(solver: "highspy.Highs") -> bool:
    """Whether the last run left values that keep to all rows."""
    import highspy  # noqa: PLC0415 - `program` has imported it

    return bool(solver.getInfo().primal_solution_status == int(highspy.SolutionStatus.kSolutionStatusFeasible))


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
