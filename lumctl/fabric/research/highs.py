"""The solver of linear and integer programs, HiGHS: an extra, imported when the first program is set up."""

from collections.abc import Iterable, Sequence
from math import inf
from typing import TYPE_CHECKING

from lumctl.errors import UsageError

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
