"""``lumctl health explain``: which rules and readings put a component into its state, since when, and what to do."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lumctl.cli.components import circuits, rack_of_named
from lumctl.cli.health_rules import appears_text, case_document, clears_text, limit_text
from lumctl.cli.invocation import Invocation
from lumctl.cli.output import OutputColumn, OutputFormat
from lumctl.cli.status_tables import clock
from lumctl.cli.times import to_the_second
from lumctl.cli.verbs import verb
from lumctl.errors import UsageError

if TYPE_CHECKING:
    from lumctl.context import Observation
    from lumctl.health.explanation import ExplainedFinding, Explanation
    from lumctl.health.readings_text import ReadingText
    from lumctl.health.transitions import Transition

CHECKS = (
    OutputColumn("RULE", "rule"),
    OutputColumn("FINDS", "finds"),
    OutputColumn("READS", "reads"),
    OutputColumn("AGE s", "age", right=True),
)
HISTORY = (
    OutputColumn("AT", "at"),
    OutputColumn("KIND", "kind", wide=True),
    OutputColumn("FROM", "before"),
    OutputColumn("TO", "after"),
    OutputColumn("RULES", "rules"),
    OutputColumn("EVIDENCE", "evidence"),
)
MOST_TRANSITIONS = 20


def register(app: typer.Typer) -> None:
    """Add ``explain`` to the commands of ``health``."""
    verb(app, "explain")(explain)


def explain(
    cx: Invocation,
    component: Annotated[
        str, typer.Argument(metavar="COMPONENT", help="An accelerator, host, transponder, device or circuit.")
    ],
) -> None:
    """Explain a component's state, after reading it once: rules, readings, since when, and what to do."""
    from lumctl.cli.views import remedy_document
    from lumctl.context import Context
    from lumctl.health.explanation import explain as explanations_of
    from lumctl.swap.suggestions import suggested_command

    with Context(cx.inventory, cx.target) as context:
        rack = rack_of_named(cx.inventory, component, circuits(context))
        if component in cx.inventory.racks:
            raise UsageError(f"{component} is a rack: its state is that of its components", hint="see: lumctl status")
        seen = context.observe()
        touching = seen.remedies_of(component)
        commands = {remedy.key: suggested_command(context, seen, [remedy]) for remedy in touching if remedy.command}
        remedies = [{**remedy_document(r), "command": commands.get(r.key, "")} for r in touching]
        explained = explanations_of(
            seen.report, component, inventory=cx.inventory, snapshot=seen.snapshot, devices=seen.devices
        )
        history = context.store(rack).health.transitions(component, limit=MOST_TRANSITIONS)
    if cx.out.structured:
        told = [{**explanation_document(each), "remedies": remedies} for each in explained]
        past = [transition_document(row) for row in history]
        cx.out.document(
            "explanation", {"target": str(cx.target), "component": component, "explanations": told, "history": past}
        )
    elif cx.out.format is OutputFormat.NAME:
        cx.out.names(list(dict.fromkeys(each.finding.rule for one in explained for each in one.standing)))
    else:
        for each in explained:
            _print(cx, each, seen, commands)
        if history:
            cx.out.text()
            cx.out.table(HISTORY, [_history_row(row) for row in reversed(history)], title="history, newest first")


def explanation_document(explained: "Explanation") -> dict[str, Any]:
    """Why a component is in its state, as data."""
    from lumctl.cli.views import finding_document, incident_document

    return {
        "id": explained.component,
        "kind": explained.kind,
        "state": explained.state.value,
        "because": explained.because,
        "read_at": explained.read_at,
        "maintenance": explained.maintenance,
        "findings": [
            {**finding_document(each.finding), "line": case_document(each.line)} for each in explained.standing
        ],
        "incidents": [incident_document(incident) for incident in explained.incidents],
        "rules": [
            {
                "rule": check.rule,
                "told": check.told,
                "found": check.found,
                "cases": [case_document(line) for line in check.cases],
                "readings": [{"name": r.name, "value": r.value, "taken_at": r.taken_at} for r in check.readings],
            }
            for check in explained.checks
        ],
    }


def transition_document(row: "Transition") -> dict[str, Any]:
    """One change of a state as data."""
    return {
        "at": row.at,
        "component": row.component,
        "kind": row.kind,
        "before": row.before.value if row.before else None,
        "after": row.after.value,
        "rules": list(row.rules),
        "evidence": row.evidence,
    }


def _print(cx: Invocation, explained: "Explanation", seen: "Observation", commands: Mapping[str, str]) -> None:
    now = seen.at
    # A component without a reading may still be known: the kernel log names a lost one.
    age = "no reading" if explained.read_at is None else f"read {max(now - explained.read_at, 0.0):.1f} s ago"
    cx.out.text(f"{explained.component}  {explained.kind}  {cx.out.state(explained.state)}  target: {cx.target}  {age}")
    ends = [w.ends for w in seen.windows if w.open_at(now) and w.told == explained.maintenance]
    cx.out.text(f"{explained.because} (until {clock(max(ends))})" if ends else explained.because)
    from lumctl.cli.views import incident_line

    for incident in explained.incidents:
        cx.out.text(f"part of an incident since {clock(incident.since)}: {incident_line(incident)}")
    for remedy in seen.remedies_of(explained.component):
        words = [part for part in (commands.get(remedy.key, ""), remedy.by_hand) if part]
        if words:
            cx.out.text(f"to repair {remedy.cause}: {'; '.join(words)}")
    for standing in explained.standing:
        cx.out.text()
        for line in _finding_lines(cx, standing):
            cx.out.text(line)
    rows = [
        {
            "rule": check.rule,
            # A rule whose probes brought nothing has not found that all is well.
            "finds": "yes" if check.found else "no" if check.told and check.readings else "not read",
            "reads": f"{r.name} {r.value}" if r else None,
            "age": _age(r, now) if r else None,
        }
        for check in explained.checks
        for r in check.readings or (None,)
    ]
    if rows:
        cx.out.text()
        cx.out.table(CHECKS, rows, title="rules that look at it")


def _finding_lines(cx: Invocation, standing: "ExplainedFinding") -> Iterator[str]:
    finding, line = standing.finding, standing.line
    yield f"{cx.out.state(finding.state)}  {finding.rule} ({line.case}) since {clock(finding.since)}"
    yield f"  evidence      {finding.evidence}"
    if (limit := limit_text(line)) is not None:
        yield f"  limit         {limit}"
    yield f"  stands        {appears_text(line)}; clears {clears_text(line)}"
    yield f"  what to do    {finding.advice}"
    if finding.acknowledged:
        yield f"  acknowledged  {finding.acknowledged}"
    yield f"  origin        {line.origin}" + (f" (edition {line.edition})" if line.edition else "")


def _age(reading: "ReadingText", now: float) -> str | None:
    return None if reading.taken_at is None else f"{max(now - reading.taken_at, 0.0):.1f}"


def _history_row(row: "Transition") -> dict[str, Any]:
    return {**transition_document(row), "at": to_the_second(row.at), "rules": ", ".join(row.rules)}
