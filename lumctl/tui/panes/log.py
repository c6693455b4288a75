"""The log: what was done, decided and said, and how health changed, of all racks, newest first."""

from lumctl.health.states import State
from lumctl.tui.look.marks import STATE_STYLES, Marks, clock
from lumctl.tui.panes.rows import COMPONENT, Cell, Column, Pane, Row
from lumctl.tui.views.records import Line, Seen


def log_rows(seen: Seen, marks: Marks) -> list[Row]:
    """Every line, newest first; what asks for a look has the mark of that."""
    now, count = seen.observation.at, len(seen.records.log)
    # Numbered from the oldest: a new line leaves the others their keys, so that the cursor stays on its line.
    return [_row(line, count - number, now, marks) for number, line in enumerate(seen.records.log)]


def _row(line: Line, number: int, now: float, marks: Marks) -> Row:
    state = State.DEGRADED if line.grave else State.OK
    mark = f"{marks.glyphs.get(state, '!')} " if line.grave else "  "
    style = STATE_STYLES[state] if line.grave else ""
    cells = (Cell(clock(line.at, now)), Cell(line.rack), Cell(line.who), Cell(f"{mark}{line.text}", style))
    opens = ("run", f"{line.rack}/{line.run}") if line.run else (COMPONENT, line.component or line.rack)
    return Row(f"{line.at}/{line.rack}/{number}", line.component or line.rack, state, cells, line.at, opens)


LOG = Pane(
    "log",
    "Log",
    "lines",
    "The log: what was done, decided and said, and how health changed.",
    (
        Column("at", "TIME", 8),
        Column("rack", "RACK", 4),
        Column("who", "WHO", 8),
        Column("text", "  WHAT", 40),
    ),
    log_rows,
    goes_stale=False,
)
