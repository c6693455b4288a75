"""``lumctl policy``: check policies, explain what they would do about a fault, and test them on a history."""

import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lumctl.cli.invocation import Invocation
from lumctl.cli.nouns import NOUNS
from lumctl.cli.output import OutputColumn, OutputFormat
from lumctl.cli.times import beginning
from lumctl.cli.verbs import noun_app, verb
from lumctl.errors import UsageError
from lumctl.printable import counted
from lumctl.time_text import iso_times, length_s, moment_text, moment_with_age

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lumctl.context import Context, Observation
    from lumctl.daemon.autopilot.decision import Decision
    from lumctl.health.transitions import Transition
    from lumctl.inventory.model import Inventory
    from lumctl.inventory.policies import Policy

app = noun_app(NOUNS["policy"].help)

POLICIES = (
    OutputColumn("POLICY", "name"),
    OutputColumn("HOW", "how"),
    OutputColumn("RULES", "rules"),
    OutputColumn("OF", "kinds", gives_way=1),
    OutputColumn("STATES", "states", gives_way=3),
    OutputColumn("HOURS", "hours", gives_way=2),
)
CONDITIONS = (
    OutputColumn("CONDITION", "name"),
    OutputColumn("HOLDS", "holds"),
    OutputColumn("VALUE", "told"),
    OutputColumn("UNTIL", "until"),
)


@verb(app, "validate")
def validate(cx: Invocation) -> None:
    """Check the policies of the inventory, including the names of rules. Exits 2 if there is an error.

    The sharing policy, which decides who gets which spares, is loaded if it belongs to a plug-in.
    """
    from lumctl.daemon.autopilot.policy import remarks, require_sound

    require_sound(cx.inventory)
    warnings = list(remarks(cx.inventory))
    rows = [_row(policy) for policy in cx.inventory.policies]
    for warning in warnings:
        cx.out.narrate(f"warning: {warning}")
    if cx.out.structured:
        sharing = {"policy": cx.inventory.sharing.policy, "reserve": dict(cx.inventory.sharing.reserve)}
        cx.out.document("policies", {"valid": True, "policies": rows, "sharing": sharing, "warnings": warnings})
    elif cx.out.format is OutputFormat.NAME:
        cx.out.names([policy.name for policy in cx.inventory.policies])
    elif rows:
        shown = [{**row, **{key: ", ".join(row[key]) for key in ("rules", "kinds", "states")}} for row in rows]
        cx.out.table(POLICIES, shown)
    else:
        cx.out.narrate("there are no policies: nothing is ever done automatically; lumctl-inventory(5) has examples")


@verb(app, "explain", pages=True)
def explain(
    cx: Invocation,
    what: Annotated[
        str, typer.Argument(metavar="COMPONENT[:RULE]", help="The faulty component, or one finding about it.")
    ],
) -> None:
    """Explain what the autopilot would do about a component now, by which policy and why, after reading it once.

    Every condition is shown with its value; nothing is done. A running daemon uses the same memory of health.
    """
    from lumctl.cli.components import circuits, rack_of_named
    from lumctl.cli.remedies import remedy_documents, remedy_lines
    from lumctl.context import Context
    from lumctl.daemon.autopilot.decision import decision_document
    from lumctl.daemon.autopilot.policy import require_sound

    require_sound(cx.inventory)
    component, colon, rule = what.partition(":")
    with Context(cx.inventory, cx.target) as context:
        rack = rack_of_named(cx.inventory, component, circuits(context))
        seen = context.observe()
        every = decisions(context, seen, rack)
        remedies = remedy_documents(cx, context, seen, seen.remedies_of(component))
    decided = [d for d in every if d.fault.component == component] or [
        # The cause may be another component that affects this accelerator, such as a lane.
        d
        for d in every
        if component in {a for accelerators in d.fault.jobs.values() for a in accelerators}
    ]
    if colon:
        decided = [d for d in decided if any(f.rule == rule for f in d.fault.findings)]
        if not decided:
            raise UsageError(
                f"{rule} finds no fault in {component} now", hint=f"see: lumctl health explain {component}"
            )
    if cx.out.structured:
        documents = iso_times([decision_document(decision) for decision in decided], "at", "since", "until")
        cx.out.document(
            "policy-explanation",
            {"target": str(cx.target), "component": component, "rack": rack, "decisions": documents},
        )
    elif cx.out.format is OutputFormat.NAME:
        cx.out.names([decision.act for decision in decided])
    else:
        if not decided:
            cx.out.text(f"{component}: no action, because no rule finds a fault in it")
        for remedy in remedies:
            for line in remedy_lines(cx.out, remedy):
                cx.out.text(line)
        for decision in decided:
            _print(cx, decision, seen.at)


def decisions(context: "Context", seen: "Observation", rack: str) -> "tuple[Decision, ...]":
    """The decisions that follow from an observation and the rack's stored autopilot memory; nothing is done."""
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
    # As the daemon decides it: a stop file counts even if the journal could not be written.
    stopped = stop_switch.thrown(stop_switch.places([rack], [store.files])) or memory.stopped
    return decide(context.inventory.policies, seen, rack, replace(memory, stopped=stopped), onsets, now=now)


def _print(cx: Invocation, decision: "Decision", now: float) -> None:
    policy = f", by policy {decision.policy.name} (how: {decision.policy.how})" if decision.policy else ""
    finding = decision.finding
    cx.out.text(f"{decision.fault.component}  {decision.fault.kind}  {cx.out.state(finding.state)}  {finding.rule}")
    cx.out.text(f"{decision.act}{policy}: {decision.because}")
    rows: list[dict[str, Any]] = [
        {
            "name": c.name,
            "holds": "yes" if c.holds else "NO",
            "told": c.text,
            "until": None if c.until is None else moment_with_age(c.until, now),
        }
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


HAPPENINGS = (
    OutputColumn("AT", "at", gives_way=1),
    OutputColumn("COMPONENT", "component"),
    OutputColumn("DID", "what"),
    OutputColumn("POLICY", "policy"),
    OutputColumn("BECAUSE", "because"),
)
MOST_TRANSITIONS = 100_000
NOT_SEEN = (
    "findings that made no state worse",
    "acknowledgements",
    "swaps and other changes by operators",
)
"""What the daemon takes into account but a history does not contain."""


@verb(app, "test")
def on_history(
    cx: Invocation,
    history: Annotated[
        Path | None, typer.Option("--history", metavar="FILE", help="A history: one state change on each line.")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="TIME", help="Test on what the racks' stores recorded: 7d, or a start time."),
    ] = None,
    capture: Annotated[
        Path | None, typer.Option("--from-capture", metavar="DIR", help="Test on the faults of a capture, at its time.")
    ] = None,
    goes_on: Annotated[
        str, typer.Option("--for", metavar="TIME", help="How long the test continues after the last change.")
    ] = "2h",
    approve_after: Annotated[
        str | None,
        typer.Option("--approve-after", metavar="TIME", help="An operator approves each plan after this time."),
    ] = None,
    year: Annotated[
        bool, typer.Option("--year", help="Compare the sharing policies in simulated years of failures instead.")
    ] = False,
    accelerators: Annotated[
        int | None,
        typer.Option("--accelerators", metavar="N", min=1, max=20_000, help="For --year: accelerators of the pool."),
    ] = None,
    spares: Annotated[
        str,
        typer.Option(
            "--spares",
            metavar="CLASS=N,...",
            help="For --year: spares of each class, common ones first.",
            show_default=False,
        ),
    ] = "",
    needs: Annotated[
        str,
        typer.Option(
            "--needs", metavar="CLASS=N,...", help="For --year: how often each class is needed.", show_default=False
        ),
    ] = "",
    mtbf: Annotated[
        str, typer.Option("--mtbf", metavar="TIME", help="For --year: mean time between failures of an accelerator.")
    ] = "30000h",
    repair: Annotated[
        str, typer.Option("--repair", metavar="TIME[-TIME]", help="For --year: how long a repair takes.")
    ] = "1d-10d",
    largest_group: Annotated[
        int,
        typer.Option(
            "--largest-group", metavar="N", min=1, max=64, help="For --year: most accelerators of one failure."
        ),
    ] = 8,
    policy: Annotated[
        str,
        typer.Option("--policy", metavar="NAME", help="For --year: also the policy of a plug-in.", show_default=False),
    ] = "",
    years: Annotated[
        int, typer.Option("--years", metavar="N", min=1, max=1000, help="For --year: how many years are simulated.")
    ] = 20,
) -> None:
    """Test the policies on a history: what they would have done, when, and why not. No device is touched.

    The decisions are those of the daemon, at the times of the history; a swap is assumed to succeed if there is a spare
    of the same kind. A history has one JSON document on each line: at (ISO 8601 with zone, or seconds since the epoch),
    component, kind (accelerator, host, link, device, circuit), before, after (a state), rules, evidence. lumctl health
    explain -o json writes its history in this form; with --target sim and --because it is that of the simulator. A
    history has the rules that were active when a state changed. It lacks later findings that did not worsen the state,
    acknowledgements, and changes by operators.

    With --year no history is needed: failures, repairs and waits for spares are simulated, with the same failures for
    every sharing policy. A class serves what it and the classes before it need. A failure takes a group, of k
    accelerators with a probability in proportion to 1/k**2, which is served whole or not at all. The pool is the first
    rack and model of the inventory that has spares, unless --spares names one.
    """
    if year:
        if history or since or capture:
            raise UsageError("--year simulates failures, so it needs no history", hint="leave out the history")
        from lumctl.cli.policy_year import YearOptions, print_year

        print_year(cx, YearOptions(accelerators, spares, needs, mtbf, repair, largest_group, years, policy))
        return
    of_year = {"--accelerators": accelerators, "--spares": spares, "--needs": needs, "--policy": policy}
    if given := [option for option, value in of_year.items() if value]:
        raise UsageError(f"{given[0]} is for simulated years only", hint=f"add --year, or leave out {given[0]}")
    from lumctl.daemon.autopilot.policy import require_sound
    from lumctl.daemon.autopilot.rehearsal import Rehearsal

    require_sound(cx.inventory)
    rows, begins = _history(cx, history, since, capture)
    if not cx.inventory.policies:
        cx.out.narrate("there are no policies: nothing is ever done automatically")
    for name in _strangers(cx.inventory, rows):
        cx.out.narrate(f"warning: {name} is not in {cx.inventory.path}: its history is ignored")
    approves_s = length_s(approve_after) if approve_after else None
    ends_at = (rows[-1].at if rows else 0.0) + length_s(goes_on)
    rehearsal = Rehearsal(cx.inventory, cx.target, approve_after_s=approves_s)
    told = [each for each in rehearsal.run(rows, ends_at=ends_at) if each.at >= begins]
    counts = Counter(each.what for each in told)
    if cx.out.structured:
        document = {"target": str(cx.target), "transitions": len(rows), "counts": dict(counts), "not_seen": NOT_SEEN}
        document["happenings"] = iso_times([each.document() for each in told], "at")
        cx.out.document("policy-test", document)
    elif cx.out.format is OutputFormat.NAME:
        cx.out.names([each.component for each in told if each.what == "applied"])
    else:
        cx.out.table(
            HAPPENINGS,
            [
                {
                    "at": moment_text(e.at),
                    "component": e.component,
                    "what": e.what,
                    "policy": e.policy,
                    "because": e.because,
                }
                for e in told
            ],
        )
        applied = counts["applied"]
        cx.out.narrate(f"{counted(len(rows), 'state changes')}: {counted(applied, 'swaps')} would have been made")
        if capture is None:
            cx.out.narrate(f"not part of a history, and therefore ignored: {', '.join(NOT_SEEN)}")


def _history(
    cx: Invocation, file: Path | None, since: str | None, capture: Path | None
) -> "tuple[Sequence[Transition], float]":
    """The chosen history, and the time from which decisions are shown."""
    if sum(each is not None for each in (file, since, capture)) != 1:
        raise UsageError("name one history", hint="--history FILE, --since TIME or --from-capture DIR")
    if file is not None:
        from lumctl.daemon.autopilot.rehearsal import read_history

        return read_history(file), 0.0
    if capture is not None:
        from lumctl.cli.check import captured
        from lumctl.health.transitions import transitions

        return transitions(None, captured(cx, capture).report), 0.0
    from lumctl.context import Context

    now = time.time()
    begins = beginning(str(since), now)
    with Context(cx.inventory, cx.target) as context:
        # Earlier entries give the states at the beginning.
        kept = [
            t for rack in cx.inventory.racks for t in context.store(rack).health.transitions(limit=MOST_TRANSITIONS)
        ]
    return sorted(kept, key=lambda row: row.at), begins


def _strangers(inventory: "Inventory", rows: "Sequence[Transition]") -> list[str]:
    """Components of a history that the inventory does not have; circuits are ignored, because they come and go."""
    known = {*inventory.hosts, *inventory.accelerators, *inventory.transponders, *inventory.devices}
    return list(dict.fromkeys(row.component for row in rows if row.kind != "circuit" and row.component not in known))
