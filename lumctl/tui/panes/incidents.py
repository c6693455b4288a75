"""The tables of incidents, findings, the log and an incident's members.

The table of incidents has a row for each case: an incident, or a component at fault that is part of no incident.
"""

from collections import Counter
from functools import partial

from lumctl.daemon.notifications.message import Case, cases_of
from lumctl.health.states import Health, State
from lumctl.tui.look.marks import STATE_STYLES, Marks, clock
from lumctl.tui.panes.rows import COMPONENT, FOR, STATE, Cell, Column, Pane, Row, state_cell, worst_first
from lumctl.tui.views.incidents import (
    accelerators_of,
    before_a_swap,
    case_of,
    instead_of_swap,
    kind_of,
    members_of,
    put_spares,
    remedy_of,
    replaced_now,
)
from lumctl.tui.views.records import Line, RecordedLook
from lumctl.tui.views.spares import swap_obstacle


def incident_rows(seen: RecordedLook, marks: Marks) -> list[Row]:
    """Every case, worst first, as the headline orders them: its cause, the number of components, its evidence."""
    parts, cases = seen.observation.job_parts, cases_of(seen.observation.report).values()
    ordered = sorted(cases, key=lambda case: parts.isdisjoint((case.component, *case.members)))
    return worst_first(_row(seen, case, marks) for case in ordered)


def _row(seen: RecordedLook, case: Case, marks: Marks) -> Row:
    state = State.DISABLED if case.out_of_service else case.state
    known = "out of service; " if case.out_of_service else "acknowledged; " if case.silent else ""
    said = f"{case.summary}\n{known}{seen.aimed(_what_to_do(seen, case))}"
    cells = (state_cell(state, marks), Cell(case.component), Cell(str(len(case.members))), Cell(said))
    return Row(case.key, case.component, state, cells, case.since, known=case.silent)


def _what_to_do(seen: RecordedLook, case: Case) -> str:
    """The swap, if accelerators that run a job can be replaced; else the remedy, or the worst finding's advice."""
    accelerators, remedy = accelerators_of(seen, case), remedy_of(seen, case)
    if run := replaced_now(seen, accelerators):
        return run
    if accelerators and not seen.forbidden and seen.observation.place_of(accelerators[0]) is not None:
        if obstacle := swap_obstacle(seen, accelerators):
            return instead_of_swap(obstacle, remedy)
        spares = f"{before_a_swap(case)}p: {put_spares(accelerators)}"
        return f"{remedy.by_hand}; else {spares}" if remedy is not None and remedy.hand_first else spares
    advice = case.findings[0].advice if case.findings else ""
    return remedy.words or advice if remedy is not None else advice


INCIDENTS = Pane(
    "incidents",
    "Incidents",
    "incidents",
    "Incidents: findings with one cause, and what to do.",
    (
        STATE,
        Column("cause", "CAUSE", 12, is_name=True),
        Column("members", "TOUCHES", 7, right=True),
        FOR,
        Column("summary", "WHAT, AND WHAT TO DO", 30),
    ),
    incident_rows,
    lambda seen: tuple(case.state for case in cases_of(seen.observation.report).values() if not case.silent),
    goes_stale=False,
    lines=2,
    can_act=True,
    opens="incident",
    short="Incid",
)


def finding_rows(seen: RecordedLook, marks: Marks) -> list[Row]:
    """Every finding, worst first: its component, rule and evidence, and the advice or who acknowledged it.

    Those of components out of service are ``disabled``, as their incidents are: nothing has to be done for a job.
    """
    rows, out = [], _out_of_service(seen)
    told: Counter[tuple[str, str]] = Counter()
    for finding in seen.observation.report.findings():
        # A rule may find one component twice (two error numbers in one log); each row needs its own key.
        told[finding.component, finding.rule] += 1
        key = f"{finding.component}|{finding.rule}|{told[finding.component, finding.rule]}"
        state = State.DISABLED if finding.component in out else finding.state
        said = f"acknowledged {finding.acknowledged}" if finding.acknowledged else finding.advice
        said = f"out of service; {said}" if finding.component in out else said
        texts = (finding.component, finding.rule, f"{finding.evidence}\n{seen.aimed(said)}")
        cells = (state_cell(state, marks), *map(Cell, texts))
        known = finding.acknowledged is not None or finding.component in out
        rows.append(Row(key, finding.component, state, cells, finding.since, known=known))
    return worst_first(rows)


def _finding_states(seen: RecordedLook) -> tuple[State, ...]:
    """The states of the findings that need attention."""
    out, found = _out_of_service(seen), seen.observation.report.findings()
    return tuple(each.state for each in found if each.acknowledged is None and each.component not in out)


def _out_of_service(seen: RecordedLook) -> set[str]:
    return {health.id for health in seen.observation.report.with_findings if health.state is State.DISABLED}


FINDINGS = Pane(
    "findings",
    "Findings",
    "findings",
    "Findings: what is wrong, the evidence, what to do.",
    (
        STATE,
        Column("component", "COMPONENT", 12, is_name=True),
        Column("rule", "RULE", 12),
        FOR,
        Column("evidence", "EVIDENCE, AND WHAT TO DO", 30),
    ),
    finding_rows,
    _finding_states,
    goes_stale=False,
    lines=2,
    can_act=True,
    short="Find",
)


def log_rows(seen: RecordedLook, marks: Marks) -> list[Row]:
    """Every line of the log, newest first, with the mark of the state that it reports, if any."""
    now, count = seen.observation.at, len(seen.records.log)
    # Numbered from the oldest: a new line does not change the keys of the others, so the cursor stays on its line.
    return [_log_row(line, count - number, now, marks) for number, line in enumerate(seen.records.log)]


def _log_row(line: Line, number: int, now: float, marks: Marks) -> Row:
    state = line.state or State.OK
    mark = f"{marks.glyphs.get(state, '!')} " if line.state else "  "
    style = STATE_STYLES[state] if line.state else ""
    cells = (Cell(clock(line.at, now)), Cell(line.rack), Cell(line.who), Cell(f"{mark}{line.text}", style))
    opens = ("run", f"{line.rack}/{line.run}") if line.run else (COMPONENT, line.component or line.rack)
    return Row(f"{line.at}/{line.rack}/{number}", line.component or line.rack, state, cells, line.at, opens)


LOG = Pane(
    "log",
    "Log",
    "lines",
    "The log: actions, decisions and messages, and how health changed.",
    (
        Column("at", "TIME", 8),
        Column("rack", "RACK", 4),
        Column("who", "WHO", 8),
        Column("text", "  WHAT", 40),
    ),
    log_rows,
    goes_stale=False,
    counts=frozenset(),
)


def members_pane(key: str) -> Pane:
    """The table of an incident's members."""
    return Pane(
        "members",
        "Members",
        "components",
        "",
        (
            STATE,
            Column("component", "COMPONENT", 14, is_name=True),
            Column("kind", "KIND", 11),
            FOR,
            Column("rules", "FOUND", 16),
        ),
        partial(_member_rows, key),
        goes_stale=False,
    )


def _member_rows(key: str, seen: RecordedLook, marks: Marks) -> list[Row]:
    """The members of an incident: its cause first, then the others, worst first."""
    if (case := case_of(seen, key)) is None:
        return []
    rows = worst_first(_member_row(health, marks) for health in members_of(seen, case))
    return sorted(rows, key=lambda row: row.component != case.component)


def _member_row(health: Health, marks: Marks) -> Row:
    kind, rules = kind_of(health), ", ".join(dict.fromkeys(finding.rule for finding in health.findings))
    since = min((finding.since for finding in health.findings), default=None)
    cells = (state_cell(health.state, marks), Cell(health.id), Cell(kind), Cell(rules or "-"))
    return Row(f"{kind}:{health.id}", health.id, health.state, cells, since)
