"""The integer program over arcs: a variable says whether the light of a demand enters at a terminal and takes a turn.

The program has only arcs that a better answer could use (fixing by reduced costs). At the prices of the linear
relaxation every demand has a cheapest path. Let ``slack`` be the difference between the bound and the best known
answer. A path that costs more than the cheapest one plus ``slack`` cannot be part of a better answer, so an arc that is
only on such paths is omitted.
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
"""One variable of a program: its cost, and its coefficients, by row."""

_WHOLE = 0.9
"""Costs are integers here, so a solution within this distance of the optimum is optimal."""


def program(
    rows: Sequence[tuple[float, float]], columns: Iterable[Column], *, whole: bool, most: Sequence[float] = ()
) -> "highspy.Highs":
    """Make a program that minimises cost. Each row lies between two bounds, each variable between 0 and ``most``.

    ``most`` has a number for each variable; by default each is 1 at most.
    ``whole``: variables are integers. The program runs on one thread, so that its answers are reproducible.

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
        np.array(most) if len(most) else np.ones(count),
        len(at),
        np.array(starts, dtype=np.int32),
        np.array(at, dtype=np.int32),
        np.array(weights),
    )
    if whole:
        kinds = np.array([highspy.HighsVarType.kInteger] * count)
        solver.changeColsIntegrality(count, np.arange(count, dtype=np.int32), kinds)
        # The presolve of HiGHS 1.15.1 sometimes reduces a correct program to a wrong one; answers here are proofs.
        solver.setOptionValue("presolve", "off")
        solver.setOptionValue("mip_rel_gap", 0.0)
        solver.setOptionValue("mip_abs_gap", _WHOLE)
        solver.HandleUserInterrupt = True  # see run
    return solver


def add_column(solver: "highspy.Highs", column: Column) -> None:
    """Add a variable, which is 0 or more, to a program."""
    import numpy as np  # noqa: PLC0415 - `program` has imported it

    cost, entries = column
    rows = np.array([row for row, _ in entries], dtype=np.int32)
    solver.addCol(cost, 0.0, inf, len(entries), rows, np.array([weight for _, weight in entries]))


def run(solver: "highspy.Highs", seconds: float) -> str:
    """Solve within ``seconds``: ``"optimal"``, ``"infeasible"``, or ``"stopped"`` with or without a solution.

    An integer program may take minutes. Ctrl-C ends it at once; the solver alone would not notice it.
    """
    import highspy  # noqa: PLC0415 - `program` has imported it

    # The limit counts all runs of this solver together.
    solver.setOptionValue("time_limit", solver.getRunTime() + max(seconds, 0.01))
    if solver.HandleUserInterrupt:
        _run_apart(solver)
    else:
        solver.run()
    status = solver.getModelStatus()
    if status in {highspy.HighsModelStatus.kOptimal, highspy.HighsModelStatus.kModelEmpty}:
        return "optimal"
    return "infeasible" if status == highspy.HighsModelStatus.kInfeasible else "stopped"


def _run_apart(solver: "highspy.Highs") -> None:
    solving = solver.startSolve()
    try:
        while solving.is_alive():
            solving.join(_LOOK_S)
    except KeyboardInterrupt:
        solver.cancelSolve()  # type: ignore[no-untyped-call]
        solving.join()
        raise


def has_solution(solver: "highspy.Highs") -> bool:
    """Whether the last run left values that satisfy all rows."""
    import highspy  # noqa: PLC0415 - `program` has imported it

    return bool(solver.getInfo().primal_solution_status == int(highspy.SolutionStatus.kSolutionStatusFeasible))


_LOOK_S = 0.1
"""The time within which an interrupt reaches a waiting thread: a wait without a time limit would not notice it."""
_TOLERANCE = 1e-6

Arc = tuple[int, int]
"""The terminal at which light enters a PUC, and the terminal at which it leaves at the other end."""


@dataclass(frozen=True, slots=True)
class ProgramResult:
    """The routing found. ``done``: the program was solved to the end, so ``ways=None`` proves that there is none."""

    ways: tuple[Way, ...] | None
    done: bool


def useful(graph: Graph, demand: int, prices: Sequence[float], slack: float, passes: Sequence[float] = ()) -> list[Arc]:
    """The arcs of one demand on paths that cost at most ``slack`` more than its cheapest; see :meth:`Graph.costs`."""
    through = _through(graph, demand, prices, passes)
    most = min(through.values(), default=inf) + slack + _TOLERANCE
    return [arc for arc, cost in through.items() if cost <= most]


def shorter(graph: Graph, demand: int, longest: float, passes: Sequence[float] = ()) -> list[Arc]:
    """The arcs of one demand on paths of at most ``longest`` PUCs; with ``passes``, of at most that cost."""
    through = _through(graph, demand, [0.0] * graph.wires, passes)
    return [arc for arc, cost in through.items() if cost <= longest + _TOLERANCE]


def _through(graph: Graph, demand: int, prices: Sequence[float], passes: Sequence[float]) -> dict[Arc, float]:
    """For each arc of one demand, the cost of the cheapest path through the arc."""
    start, goal = graph.demands[demand]
    if not graph.turns[goal]:
        return {}
    out, back = graph.costs(start, prices, passes), graph.costs(goal, prices, passes)
    return {
        (entered, entered ^ turn): out[entered] + (passes[entered >> 2] if passes else 1) + back[entered ^ turn]
        for entered, turns in enumerate(graph.turns)
        for turn in turns
        if out[entered] + back[entered ^ turn] < inf
    }


def solve_arcs(
    graph: Graph,
    arcs: Sequence[Sequence[Arc]],
    *,
    seconds: float,
    longest: Sequence[float] = (),
    passes: Sequence[float] = (),
    first: bool = False,
) -> ProgramResult:
    """The routing with the fewest passes over the ``arcs`` of each demand, none longer than its ``longest``, if given.

    ``passes`` are the costs of the PUCs that make up a path's length, 1 each by default. ``first``: the first routing
    that is found is returned.
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
            # The first terminal is a port and has no waveguide.
            if entered != start:
                entries.append((row(_WIRE, graph.wire[entered], -inf, 1.0), 1.0))
            if longest:
                weight = passes[entered >> 2] if passes else 1.0
                entries.append((row(_LENGTH, demand, -inf, longest[demand]), weight))
            columns.append((1.0, entries))
    solver = program(bounds, columns, whole=True)
    if first:
        # Any solution is within an infinite gap, so the first one ends the search.
        solver.setOptionValue("mip_rel_gap", inf)
    ended = run(solver, seconds)
    if ended == "infeasible" or not has_solution(solver):
        return ProgramResult(None, done=ended == "infeasible")
    values = iter(solver.getSolution().col_value)
    # The solver returns integers as floats.
    taken = [{entered: left for entered, left in own if next(values) > 1 / 2} for own in arcs]
    ways = tuple(_walked(graph, *ends, turned) for ends, turned in zip(graph.demands, taken, strict=True))
    return ProgramResult(ways, done=ended == "optimal" and not first)


_WIRE = -1
_LENGTH = -2
"""Kinds of rows: of a waveguide, and of the length of a demand's path. Other rows are a demand's flow at a terminal."""


def _walked(graph: Graph, start: int, goal: int, turned: Mapping[int, int]) -> Way:
    """The path from start to goal. Separate cycles, which a solution may contain, are dropped."""
    way = [start]
    while turned[way[-1]] != goal:
        way.append(graph.mesh.peers[turned[way[-1]]])
    return tuple(way)
