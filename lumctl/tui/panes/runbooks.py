"""Runbooks: what was done, each to be read and replayed on the simulator."""

from lumctl.health.states import State
from lumctl.tui.look.marks import Marks
from lumctl.tui.panes.rows import AGO, Cell, Column, Pane, Row
from lumctl.tui.views.records import Seen


def runbook_rows(seen: Seen, marks: Marks) -> list[Row]:  # noqa: ARG001 - a runbook has no state
    """The runbook of every run that has ended, newest first."""
    return [
        Row(
            f"{run.rack}/{run.id}",
            run.id,
            State.OK,
            (Cell(run.id), Cell(run.kind), Cell(str(len(run.plan.get("steps", ())))), Cell(run.title)),
            run.started_at,
        )
        for run in seen.records.runs
        if run.ended_at is not None
    ]


RUNBOOKS = Pane(
    "runbooks",
    "Runbooks",
    "runbooks",
    "Runbooks: what was done, to be read and replayed on the simulator.",
    (
        Column("run", "RUN", 12),
        Column("kind", "KIND", 8),
        Column("steps", "STEPS", 5, right=True),
        AGO,
        Column("title", "TITLE", 30),
    ),
    runbook_rows,
    goes_stale=False,
    opens="runbook",
)
