"""What an incident touches: the table on its screen."""

from functools import partial

from lumctl.tui.look.marks import Marks
from lumctl.tui.panes.rows import FOR, STATE, Cell, Column, Pane, Row, state_cell, worst_first
from lumctl.tui.views.incidents import Health, case_of, kind_of, members_of
from lumctl.tui.views.records import Seen


def members_pane(key: str) -> Pane:
    """The table of an incident's members."""
    return Pane(
        "members",
        "Members",
        "components",
        "",
        (
            STATE,
            Column("component", "COMPONENT", 14),
            Column("kind", "KIND", 11),
            FOR,
            Column("rules", "FOUND", 16),
        ),
        partial(_member_rows, key),
        goes_stale=False,
    )


def _member_rows(key: str, seen: Seen, marks: Marks) -> list[Row]:
    """The cause first, then worst first."""
    if (case := case_of(seen, key)) is None:
        return []
    rows = worst_first(_row(health, marks) for health in members_of(seen, case))
    return sorted(rows, key=lambda row: row.component != case.component)


def _row(health: Health, marks: Marks) -> Row:
    kind, rules = kind_of(health), ", ".join(dict.fromkeys(finding.rule for finding in health.findings))
    since = min((finding.since for finding in health.findings), default=None)
    cells = (state_cell(health.state, marks), Cell(health.id), Cell(kind), Cell(rules or "-"))
    return Row(f"{kind}:{health.id}", health.id, health.state, cells, since)
