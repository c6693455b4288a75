"""``lumctl health explain``: which rules and readings put a component into its state, since when, and what to do."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lumctl.cli.components import circuits, rack_of_named
from lumctl.cli.health_rules import appears_text, case_document, clears_text, limit_text
from lumctl.cli.invocation import Invocation
from lumctl.cli.output import OutputColumn, OutputFormat
from lumctl.cli.remedies import remedy_documents, remedy_lines, repair_rows, row_lines
from lumctl.cli.verbs import aimed, verb
from lumctl.errors import UsageError
from lumctl.time_text import age_text, iso_or_none, iso_text, moment_text, moment_with_age

if TYPE_CHECKING:
    from lumctl.context import Context, Observation
    from lumctl.health.explanation import ExplainedFinding, Explanation
    from lumctl.health.readings_text import ReadingText
    from lumctl.health.transitions import Transition

CHECKS = (
    OutputColumn("RULE", "rule"),
    OutputColumn("FINDS", "finds"),
    OutputColumn("READS", "reads"),
    OutputColumn("AGE", "age", right=True),
)
HISTORY = (
    OutputColumn("AT", "at", gives_way=1),
    OutputColumn("AGE", "age", right=True),
    OutputColumn("KIND", "kind", wide=True),
    OutputColumn("FROM", "before"),
    OutputColumn("TO", "after"),
    OutputColumn("RULES", "rules", gives_way=2),
    OutputColumn("EVIDENCE", "evidence"),
)
MARKDOWN = "md"
MOST_TRANSITIONS = 20
_UNDER = " " * 16
"""Indentation that aligns further lines of a finding's text with the first."""


def register(app: typer.Typer) -> None:
    """Add ``explain`` to the commands of ``health``."""
    verb(app, "explain", formats=(MARKDOWN,), pages=True)(explain)


def explain(
    cx: Invocation,
    component: Annotated[
        str, typer.Argument(metavar="COMPONENT", help="An accelerator, host, transponder, device, circuit or fibre.")
    ],
) -> None:
    """Explain a component's state, after reading it once: rules, readings, since when, and what to do.

    Nothing reads a fibre itself: the circuits that it carries are explained. ``-o md`` prints a ticket: what failed,
    where, since when, the evidence, the affected jobs, what was done, and the next command.
    """
    from lumctl.context import Context
    from lumctl.health.explanation import explain as explanations_of
    from lumctl.runbook.ticket import ticket_text

    with Context(cx.inventory, cx.target) as context:
        rack = rack_of_named(cx.inventory, component, circuits(context))
        if component in cx.inventory.racks:
            raise UsageError(f"{component} is a rack: its state follows from its components", hint="see: lumctl status")
        seen = context.observe()
        remedies = remedy_documents(cx, context, seen, seen.remedies_of(component))
        repairs = repair_rows(cx, context, seen, {component})
        named = _carried(seen, component) if component in cx.inventory.fibres else [component]
        explained = [
            explanation
            for name in named
            for explanation in explanations_of(
                seen.report, name, inventory=cx.inventory, snapshot=seen.snapshot, devices=seen.devices
            )
        ]
        if repairs:
            explained = [replace(each, because=_where(context, seen, each)) for each in explained]
        history = context.store(rack).health.transitions(component, limit=MOST_TRANSITIONS)
        ticket = ticket_text(seen, component, context.store(rack).runs.all()) if cx.out.own_format == MARKDOWN else ""
    if ticket:
        cx.out.text(aimed(cx, ticket.rstrip()))
    elif cx.out.structured:
        told = [{**explanation_document(each), "remedies": remedies, "repairs": repairs} for each in explained]
        past = [transition_document(row) for row in history]
        cx.out.document(
            "explanation", {"target": str(cx.target), "component": component, "explanations": told, "history": past}
        )
    elif cx.out.format is OutputFormat.NAME:
        cx.out.names(list(dict.fromkeys(each.finding.rule for one in explained for each in one.standing)))
    else:
        if not explained:
            cx.out.text(f"{component} carries no circuit that a job needs, so no reading shows its state")
        for each in explained:
            # Not the command that printed this.
            others = [remedy | {"explain": ""} if _explains(remedy, component) else remedy for remedy in remedies]
            _print(cx, each, seen, others, repairs)
        if history:
            cx.out.text()
            cx.out.table(
                HISTORY, [_history_row(row, seen.at) for row in reversed(history)], title="history, newest first"
            )


def _carried(seen: "Observation", fibre: str) -> list[str]:
    """The circuits whose recorded path passes a fibre."""
    return [name for name, path in seen.paths.items() if path is not None and fibre in path.fibres]


def _where(context: "Context", seen: "Observation", explained: "Explanation") -> str:
    """The reason for the state of an accelerator that a swap took out of its job, with the run and its replacement."""
    from lumctl.spares.ledger_text import entry_words
    from lumctl.swap.spare_pool import ledger_entries

    name = explained.component
    if explained.kind != "accelerator":
        return explained.because
    (entry,), _ = ledger_entries(context, seen, seen.inventory.accelerators[name].rack, [name])
    return f"{explained.because}; {entry_words(replace(entry, reasons=(), unproven=()), seen.at)}"


def explanation_document(explained: "Explanation") -> dict[str, Any]:
    """Why a component is in its state, as data."""
    from lumctl.cli.views import finding_document, incident_document

    return {
        "id": explained.component,
        "kind": explained.kind,
        "state": explained.state.value,
        "because": explained.because,
        "read_at": iso_or_none(explained.read_at),
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
                "readings": [
                    {"name": r.name, "value": r.value, "taken_at": iso_or_none(r.taken_at)} for r in check.readings
                ],
            }
            for check in explained.checks
        ],
    }


def transition_document(row: "Transition") -> dict[str, Any]:
    """One state change as data."""
    return {
        "at": iso_text(row.at),
        "component": row.component,
        "kind": row.kind,
        "before": row.before.value if row.before else None,
        "after": row.after.value,
        "rules": list(row.rules),
        "evidence": row.evidence,
    }


def _print(
    cx: Invocation,
    explained: "Explanation",
    seen: "Observation",
    remedies: Sequence[Mapping[str, Any]],
    repairs: Sequence[Mapping[str, Any]],
) -> None:
    now = seen.at
    # A component without a reading may still have findings: the kernel log names a lost GPU.
    age = "no reading" if explained.read_at is None else f"read {age_text(now - explained.read_at)} ago"
    cx.out.text(f"{explained.component}  {explained.kind}  {cx.out.state(explained.state)}  target: {cx.target}  {age}")
    ends = [w.ends for w in seen.windows if w.open_at(now) and w.told == explained.maintenance]
    cx.out.text(f"{explained.because} (until {moment_with_age(max(ends), now)})" if ends else explained.because)
    from lumctl.cli.views import incident_line

    for incident in explained.incidents:
        since = "" if seen.is_new(incident.since) else f" since {moment_with_age(incident.since, now)}"
        cx.out.text(f"part of an incident{since}: {incident_line(incident)}")
    if remedies or repairs:
        cx.out.text()
        cx.out.styled("to do", "bold")
    for line in (line for each in remedies for line in remedy_lines(cx.out, each, "  ")):
        cx.out.text(line)
    for line in (line for each in repairs for line in row_lines(cx.out, each)):
        cx.out.text(line)
    for standing in explained.standing:
        cx.out.text()
        for line in _finding_lines(cx, standing, seen):
            cx.out.text(cx.out.wrapped(line, _UNDER))
    rows = [
        {
            "rule": check.rule,
            # A rule whose probes gave no readings has not found the component ok.
            "finds": "yes" if check.found else "no" if check.told and check.readings else "not read",
            "reads": f"{r.name} {r.value}" if r else None,
            "age": _age(r, now) if r else None,
        }
        for check in explained.checks
        for r in check.readings or (None,)
    ]
    if rows:
        cx.out.text()
        cx.out.table(CHECKS, rows, title="rules that check it")


def _finding_lines(cx: Invocation, standing: "ExplainedFinding", seen: "Observation") -> Iterator[str]:
    finding, line = standing.finding, standing.line
    began = (
        "found by this reading" if seen.is_new(finding.since) else f"since {moment_with_age(finding.since, seen.at)}"
    )
    yield f"{cx.out.state(finding.state)}  {finding.rule} ({line.case}) {began}"
    yield f"  evidence      {finding.evidence}"
    if (limit := limit_text(line)) is not None:
        yield f"  limit         {limit}"
    yield f"  appears       {appears_text(line)}; clears {clears_text(line)}"
    yield f"  what to do    {finding.advice}"
    if finding.acknowledged:
        yield f"  acknowledged  {finding.acknowledged}"
    yield f"  origin        {line.origin}" + (f" (edition {line.edition})" if line.edition else "")


def _explains(remedy: Mapping[str, Any], component: str) -> bool:
    return str(remedy["explain"]).endswith(f"health explain {component}")


def _age(reading: "ReadingText", now: float) -> str | None:
    return None if reading.taken_at is None else age_text(now - reading.taken_at)


def _history_row(row: "Transition", now: float) -> dict[str, Any]:
    return {
        **transition_document(row),
        "at": moment_text(row.at),
        "age": age_text(now - row.at),
        "rules": ", ".join(row.rules),
    }
