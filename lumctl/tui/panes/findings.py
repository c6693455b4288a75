"""Every finding: what is wrong, how it shows, and what to do or who knows of it."""

from collections import Counter

from lumctl.tui.look.marks import Marks
from lumctl.tui.panes.rows import FOR, STATE, Cell, Column, Pane, Row, state_cell
from lumctl.tui.views.records import Seen


def finding_rows(seen: Seen, marks: Marks) -> list[Row]:
    """Every finding, worst first: what is wrong, how it shows, and what to do or who knows of it."""
    rows = []
    told: Counter[tuple[str, str]] = Counter()
    for finding in seen.observation.report.findings():
        # A rule may speak of one component twice (two error numbers in one log), and a row's key must be its own.
        told[finding.component, finding.rule] += 1
        key = f"{finding.component}|{finding.rule}|{told[finding.component, finding.rule]}"
        said = f"acknowledged {finding.acknowledged}" if finding.acknowledged else finding.advice
        texts = (finding.component, finding.rule, f"{finding.evidence}\n{said}")
        cells = (state_cell(finding.state, marks), *map(Cell, texts))
        rows.append(Row(key, finding.component, finding.state, cells, finding.since))
    return rows


FINDINGS = Pane(
    "findings",
    "Findings",
    "findings",
    "Findings: what is wrong, how it shows, what to do.",
    (
        STATE,
        Column("component", "COMPONENT", 12),
        Column("rule", "RULE", 12),
        FOR,
        Column("evidence", "EVIDENCE, AND WHAT TO DO", 30),
    ),
    finding_rows,
    lambda seen: tuple(finding.state for finding in seen.observation.report.findings() if finding.acknowledged is None),
    goes_stale=False,
    lines=2,
)
