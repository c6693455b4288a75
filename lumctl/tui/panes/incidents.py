"""What an operator is called for: each incident, and each component in trouble that is part of none."""

from lumctl.daemon.notifications.message import Case, cases_of
from lumctl.health.states import State
from lumctl.tui.look.marks import Marks
from lumctl.tui.panes.rows import FOR, STATE, Cell, Column, Pane, Row, state_cell, worst_first
from lumctl.tui.views.incidents import accelerator_of, case_of, remedy_of
from lumctl.tui.views.records import Seen


def incident_rows(seen: Seen, marks: Marks) -> list[Row]:
    """Every case, worst first: its cause, how many components it touches, and what is to be seen of it."""
    return worst_first(_row(seen, case, marks) for case in cases_of(seen.observation.report).values())


def _row(seen: Seen, case: Case, marks: Marks) -> Row:
    state = State.DISABLED if case.out_of_service else case.state
    known = "out of service; " if case.out_of_service else "known to a person; " if case.silent else ""
    said = f"{case.summary}\n{known}{_what_to_do(seen, case)}"
    cells = (state_cell(state, marks), Cell(case.component), Cell(str(len(case.members))), Cell(said))
    return Row(case.key, case.component, state, cells, case.since)


def _what_to_do(seen: Seen, case: Case) -> str:
    """A swap where that may be planned for one accelerator that runs a job, else what the worst finding advises."""
    accelerator = accelerator_of(seen, case)
    if accelerator is not None and not seen.forbidden and seen.observation.place_of(accelerator) is not None:
        return f"p: put a spare in the place of {accelerator}"
    remedy = remedy_of(seen, case)
    advice = case.findings[0].advice if case.findings else ""
    return remedy.words or advice if remedy is not None else advice


def _accelerator(seen: Seen, row: Row) -> str | None:
    case = case_of(seen, row.key)
    return accelerator_of(seen, case) if case is not None else None


INCIDENTS = Pane(
    "incidents",
    "Incidents",
    "incidents",
    "Incidents: findings with one cause, and what to do.",
    (
        STATE,
        Column("cause", "CAUSE", 12),
        Column("members", "TOUCHES", 7, right=True),
        FOR,
        Column("summary", "WHAT, AND WHAT TO DO", 30),
    ),
    incident_rows,
    lambda seen: tuple(case.state for case in cases_of(seen.observation.report).values() if not case.silent),
    goes_stale=False,
    lines=2,
    opens="incident",
    swaps=_accelerator,
)
