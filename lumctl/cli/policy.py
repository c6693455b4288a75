"""``lumctl policy``: check policies, explain what they would do about something, and try them on a history."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from lumctl.cli import policy_history
from lumctl.cli.invocation import Invocation
from lumctl.cli.nouns import NOUNS
from lumctl.cli.output import OutputColumn, OutputFormat
from lumctl.cli.status_tables import clock
from lumctl.cli.verbs import noun_app, verb
from lumctl.errors import UsageError

if TYPE_CHECKING:
    from lumctl.context import Context, Observation
    from lumctl.daemon.autopilot.decision import Decision
    from lumctl.inventory.policies import Policy

app = noun_app(NOUNS["policy"].help)

POLICIES = (
    OutputColumn("POLICY", "name"),
    OutputColumn("HOW", "how"),
    OutputColumn("RULES", "rules"),
    OutputColumn("OF", "kinds"),
    OutputColumn("STATES", "states"),
    OutputColumn("HOURS", "hours"),
)
CONDITIONS = (
    OutputColumn("CONDITION", "name"),
    OutputColumn("HOLDS", "holds"),
    OutputColumn("VALUE", "told"),
    OutputColumn("UNTIL", "until"),
)


@verb(app, "validate")
def validate(cx: Invocation) -> None:
    """Check the policies of the inventory, including the names of rules. Exits 2 if there is an error."""
    from lumctl.daemon.autopilot.policy import remarks, require_sound

    require_sound(cx.inventory)
    warnings = list(remarks(cx.inventory))
    rows = [_row(policy) for policy in cx.inventory.policies]
    for warning in warnings:
        cx.out.narrate(f"warning: {warning}")
    if cx.out.structured:
        cx.out.document("policies", {"valid": True, "policies": rows, "warnings": warnings})
    elif cx.out.format is OutputFormat.NAME:
        cx.out.names([policy.name for policy in cx.inventory.policies])
    elif rows:
        shown = [{**row, **{key: ", ".join(row[key]) for key in ("rules", "kinds", "states")}} for row in rows]
        cx.out.table(POLICIES, shown)
    else:
        cx.out.narrate(
            "there are no policies: nothing is ever done unasked; lumctl-inventory(5) has some to begin with"
        )


@verb(app, "explain")
def explain(
    cx: Invocation,
    what: Annotated[str, typer.Argument(metavar="COMPONENT[:RULE]", help="What is at fault, or one finding about it.")],
) -> None:
    """Explain what the autopilot would do about a component now, by which policy and why, after reading it once.

    Every condition is shown with its value; nothing is done. A running daemon decides by the same memory of health.
    """
    from lumctl.cli.components import circuits, rack_of_named
    from lumctl.context import Context
    from lumctl.daemon.autopilot.decision import decision_document
    from lumctl.daemon.autopilot.policy import require_sound

    require_sound(cx.inventory)
    component, colon, rule = what.partition(":")
    with Context(cx.inventory, cx.target) as context:
        rack = rack_of_named(cx.inventory, component, circuits(context))
        seen = context.observe()
        every = decisions(context, seen, rack)
    decided = [d for d in every if d.fault.component == component] or [
        # A lane of it may be the cause, or that of another.
        d
        for d in every
        if component in {a for accelerators in d.fault.jobs.values() for a in accelerators}
    ]
    if colon:
        decided = [d for d in decided if any(f.rule == rule for f in d.fault.findings)]
        if not decided:
            raise UsageError(
                f"{rule} finds no fault of {component} now", hint=f"see: lumctl health explain {component}"
            )
    if cx.out.structured:
        documents = [decision_document(decision) for decision in decided]
        cx.out.document(
            "policy-explanation",
            {"target": str(cx.target), "component": component, "rack": rack, "decisions": documents},
        )
    elif cx.out.format is OutputFormat.NAME:
        cx.out.names([decision.act for decision in decided])
    else:
        if not decided:
            cx.out.text(f"{component}: nothing, for no rule finds a fault of it")
        for remedy in seen.remedies_of(component):
            if remedy.words:
                cx.out.text(f"to repair {remedy.cause}: {remedy.words}")
        for decision in decided:
            _print(cx, decision)


policy_history.register(app)


def decisions(context: "Context", seen: "Observation", rack: str) -> "tuple[Decision, ...]":
    """What would be decided in a rack by a look, with the memory of its store; nothing is done."""
    from dataclasses import replace

    from lumctl.daemon.autopilot import stop_switch
    from lumctl.daemon.autopilot.decision import decide
    from lumctl.daemon.autopilot.journal import AutopilotJournal
    from lumctl.daemon.autopilot.policy import kept_onsets_s, onsets_of

    store, now = context.store(rack), seen.at
    notebook = AutopilotJournal(store)
    memory = notebook.recall(context.inventory.policies, now)
    keep_s = kept_onsets_s(context.inventory.policies)
    onsets = onsets_of(seen, rack, notebook.onsets(since=now - keep_s), keep_s=keep_s)
    stopped = stop_switch.thrown(stop_switch.places([rack], [store.files])) or memory.stopped
    return decide(context.inventory.policies, seen, rack, replace(memory, stopped=stopped), onsets, now=now)


def _print(cx: Invocation, decision: "Decision") -> None:
    policy = f", by policy {decision.policy.name} (how: {decision.policy.how})" if decision.policy else ""
    finding = decision.finding
    cx.out.text(f"{decision.fault.component}  {decision.fault.kind}  {cx.out.state(finding.state)}  {finding.rule}")
    cx.out.text(f"{decision.act}{policy}: {decision.because}")
    rows: list[dict[str, Any]] = [
        {"name": c.name, "holds": "yes" if c.holds else "NO", "told": c.text, "until": clock(c.until)}
        for c in decision.conditions
    ]
    if rows:
        cx.out.table(CONDITIONS, rows)


def _row(policy: "Policy") -> dict[str, Any]:
    from lumctl.daemon.autopilot.policy import hours_text

    meant = policy.matching
    return {
        "name": policy.name,
        "how": policy.how.value,
        "rules": list(meant.rules),
        "kinds": [kind.value for kind in meant.kinds],
        "states": list(meant.states),
        "hours": hours_text(policy),
    }
