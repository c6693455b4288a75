"""Runs: every change of a rack, how it ended and who made it."""

from lumctl.health.states import State
from lumctl.store import ACTION_KINDS, StoredRun
from lumctl.tui.look.marks import Marks
from lumctl.tui.panes.rows import AGO, Cell, Column, Pane, Row
from lumctl.tui.views.records import RecordedLook

STATES = {
    "done": State.OK,
    "undone": State.OK,
    "superseded": State.OK,
    "refused": State.OK,
    "rolled-back": State.DEGRADED,
    "running": State.DEGRADED,
    "half-done": State.FAILED,
}
"""The state that shows how a run ended; a half-done run needs an operator."""


def swap_rows(seen: RecordedLook, marks: Marks) -> list[Row]:  # noqa: ARG001 - a run's outcome is its own word
    """Every run that changed devices, newest first."""
    return [_row(run) for run in seen.records.runs if run.kind not in ACTION_KINDS]


def _row(run: StoredRun) -> Row:
    took = "-" if run.seconds is None else f"{run.seconds:.2f} s"
    cells = (Cell(run.id), Cell(run.state), Cell(took), Cell(run.title), Cell(run.who))
    return Row(f"{run.rack}/{run.id}", run.id, STATES.get(run.state, State.UNKNOWN), cells, run.started_at)


SWAPS = Pane(
    "swaps",
    "Swaps",
    "runs",
    "Swaps and other changes: how each ended; enter shows its steps.",
    (
        Column("run", "RUN", 12),
        Column("outcome", "OUTCOME", 11),
        Column("took", "TOOK", 7, right=True),
        AGO,
        Column("title", "TITLE", 30),
        Column("by", "BY", 8),
    ),
    swap_rows,
    lambda seen: tuple(State.FAILED for run in seen.records.runs if run.state == "half-done"),
    goes_stale=False,
    opens="run",
    # Only half-done runs still need an operator; a run that was rolled back has ended.
    counts=frozenset({State.FAILED}),
)


def runbook_rows(seen: RecordedLook, marks: Marks) -> list[Row]:  # noqa: ARG001 - a runbook has no state
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
    "Runbooks: past runs, to read and to replay on the simulator.",
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
    short="Runb",
)
