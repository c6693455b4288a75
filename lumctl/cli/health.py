"""``lumctl health``: acknowledgements and maintenance, the reasons for states, and the rules behind them."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from lumctl.cli import health_clear, health_explain, health_rules
from lumctl.cli.components import circuits, rack_of_named
from lumctl.cli.health_rules import require_rule
from lumctl.cli.invocation import Invocation
from lumctl.cli.nouns import NOUNS
from lumctl.cli.output import OutputColumn, OutputFormat
from lumctl.cli.status_tables import MAINTENANCE, window_row
from lumctl.cli.times import ending, moment
from lumctl.cli.verbs import aimed, kept_text, noun_app, verb
from lumctl.errors import RefusedError, UsageError
from lumctl.health.states import State
from lumctl.printable import counted, number_ranges
from lumctl.time_text import age_text, iso_or_none, iso_text, moment_text, moment_with_age

if TYPE_CHECKING:
    from lumctl.context import Context, Observation
    from lumctl.health.acknowledgements import Acknowledgement
    from lumctl.health.states import Finding
    from lumctl.inventory.wiring import Assignment
    from lumctl.runbook.actions import Said

app = noun_app(NOUNS["health"].help)

ACKNOWLEDGEMENTS = (
    OutputColumn("ACKNOWLEDGED", "component"),
    OutputColumn("COVERS", "covered"),
    OutputColumn("SINCE", "at", gives_way=2),
    OutputColumn("AGE", "age", right=True),
    OutputColumn("UNTIL", "until", gives_way=1),
    OutputColumn("BY", "by"),
    OutputColumn("COMMENT", "comment"),
)

ForOption = Annotated[str | None, typer.Option("--for", metavar="TIME", help="How long: 90s, 30m, 2h, 1d.")]
UntilOption = Annotated[
    str | None, typer.Option("--until", metavar="WHEN", help="Until when: 18:00 or 2026-11-21T18:00.")
]
CommentOption = Annotated[
    str | None, typer.Option("--comment", metavar="TEXT", callback=kept_text, help="Reason; everyone can see it.")
]


@verb(app, "ack")
def ack(
    cx: Invocation,
    component: Annotated[
        str, typer.Argument(metavar="COMPONENT", help="The component whose findings are acknowledged.")
    ],
    rule: Annotated[
        str | None, typer.Option("--rule", metavar="RULE", help="Only findings of this rule; by default all.")
    ] = None,
    comment: CommentOption = None,
    for_: ForOption = None,
    until: UntilOption = None,
    clear: Annotated[bool, typer.Option("--clear", help="Withdraw an acknowledgement.")] = False,
) -> None:
    """Acknowledge the findings of a component, after reading it once.

    They are still shown, with your name and comment, but ``lumctl check`` no longer counts them. The acknowledgement
    covers the present findings, not later ones. It ends at its end time, when the findings have cleared, or when they
    become worse.
    """
    from lumctl.context import Context

    if rule is not None:
        require_rule(rule)
    if clear:
        if for_ or until or comment:
            raise UsageError("--clear takes no --comment, --for or --until")
        _clear(cx, component, rule)
        return
    if not (comment or "").strip():
        raise UsageError("an acknowledgement needs a reason", hint='add --comment "..."')
    with Context(cx.inventory, cx.target) as context:
        at = context.now()
        ends = ending(for_, until, starts=at, now=at)
        # Before the hosts are read: an unknown name must not cost a reading.
        rack = rack_of_named(cx.inventory, component, circuits(context))
        seen = context.observe()
        standing = faults_of(seen, component)
        found = [finding for finding in standing if rule in {None, finding.rule}]
        if not found:
            raise nothing_to_acknowledge(seen, component, rule, standing)
        from lumctl.runbook.actions import acknowledge

        at = context.now()
        lasts_s = None if ends is None else ends - at
        run = _kept(cx, context, "ack", acknowledge(rack, component, rule, str(comment).strip(), lasts_s, found), at)
        given = context.store(rack).health.acknowledgements(now=at)
        document = next(_acknowledgement(a, rack) for a in given if (a.component, a.rule) == (component, rule))
    if cx.out.structured:
        rules = [finding.rule for finding in found]
        cx.out.document("acknowledgement", {"target": str(cx.target), **document, "findings": rules, "run": run})
    elif cx.out.format is OutputFormat.NAME:
        cx.out.names([component])
    else:
        known = ", ".join(dict.fromkeys(finding.rule for finding in found))
        cx.out.text(f"{component}: {known} acknowledged {_until(ends, at)}")


@verb(app, "maintain")
def maintain(
    cx: Invocation,
    component: Annotated[
        str, typer.Argument(metavar="COMPONENT", help="A rack, host, accelerator, transponder or device.")
    ],
    comment: CommentOption = None,
    for_: ForOption = None,
    until: UntilOption = None,
    from_: Annotated[str | None, typer.Option("--from", metavar="WHEN", help="When it begins; by default now.")] = None,
    end: Annotated[bool, typer.Option("--end", help="End it now, or cancel it.")] = False,
) -> None:
    """Open a maintenance window: faults of the component, and of everything on it, are expected until its end.

    A window on a host covers all components of the host; a window on a rack covers the rack. Covered components are
    disabled: ``lumctl check`` does not count them and no swap uses them as spares. Their findings are still shown.
    """
    from lumctl.context import Context

    if end and (comment or for_ or until or from_):
        raise UsageError("--end takes no --comment, --from, --for or --until")
    if not end and not (comment or "").strip():
        raise UsageError("a maintenance window needs a reason", hint='add --comment "..."')
    with Context(cx.inventory, cx.target) as context:
        among = circuits(context)
        rack = rack_of_named(cx.inventory, component, among)
        if component in {circuit.id for circuit in among}:
            raise UsageError(
                f"{component} is a circuit: it cannot be in maintenance",
                hint="name the host, transponder or device that is in maintenance",
            )
        from lumctl.runbook.actions import end_window, open_window

        store, now = context.store(rack), context.now()
        windows = [window for window in store.health.windows(now=now) if window.component == component]
        if end:
            run = _kept(cx, context, "maintain", end_window(rack, component), now)
        else:
            starts = now if from_ is None else moment(from_, now)
            ends = ending(for_, until, starts=starts, now=now)
            if ends is None:
                raise UsageError("a maintenance window needs an end", hint="add --for 2h or --until 18:00")
            why, begins_in_s = str(comment).strip(), starts - now
            work = open_window(rack, component, why, starts_in_s=begins_in_s, for_s=ends - starts)
            run = _kept(cx, context, "maintain", work, now)
            # The action gives the id of its run, not of the window: the new window is the one that was not there
            # before.
            before = {window.id for window in windows}
            windows = [w for w in store.health.windows(now=now) if w.component == component and w.id not in before]
            _tell_ranks(cx, context.assignment(sound=False), component)
    if cx.out.structured:
        from lumctl.cli.views import window_document

        shown = [window_document(window, now) for window in windows]
        told = {"target": str(cx.target), "rack": rack, "ended": end, "windows": shown, "run": run}
        cx.out.document("maintenance", told)
    elif cx.out.format is OutputFormat.NAME:
        cx.out.names([window.id for window in windows])
    else:
        for window in windows:
            begins = "" if window.open_at(now) else f"from {moment_with_age(window.starts, now)} "
            cx.out.text(
                f"{component}: maintenance {'ended' if end else f'{begins}until {moment_with_age(window.ends, now)}'}"
            )


def _tell_ranks(cx: Invocation, assignment: "Assignment", component: str) -> None:
    """Say which ranks run on a component that is in maintenance: a rank that goes down there is not counted either."""
    accelerators = cx.inventory.accelerators.values()
    on = {each.id for each in accelerators if component in {each.id, each.host, each.rack}}
    for job, places in assignment.items():
        if ranks := [rank for rank, accelerator in enumerate(places) if accelerator in on]:
            those = f"rank{'s' if len(ranks) > 1 else ''} {number_ranges(ranks)}"
            away = aimed(cx, f"lumctl swap plan --failed {component} --even-if-healthy")
            move = "" if component in cx.inventory.racks else f"; to move them: {away}"
            cx.out.narrate(f"{job} runs {those} on {component}: faults there do not count during the work{move}")


@verb(app, "list", pages=True)
def list_(cx: Invocation) -> None:
    """Show acknowledgements, and maintenance windows that are open or planned. No host is read."""
    from lumctl.cli.views import window_document
    from lumctl.context import Context

    with Context(cx.inventory, cx.target) as context:
        now = context.now()
        stores = {rack: context.store(rack) for rack in cx.inventory.racks}
        given = [(a, rack) for rack, store in stores.items() for a in store.health.acknowledgements(now=now)]
        said = [_acknowledgement(a, rack) for a, rack in given]
        windows = [
            {**window_document(window, now), "rack": rack}
            for rack, store in stores.items()
            for window in store.health.windows(now=now)
        ]
    if cx.out.structured:
        cx.out.document("health", {"target": str(cx.target), "acknowledgements": said, "maintenance": windows})
    elif cx.out.format is OutputFormat.NAME:
        cx.out.names(list(dict.fromkeys(str(row["component"]) for row in [*said, *windows])))
    else:
        if said:
            shown = [
                {
                    **_acknowledgement(a, rack),
                    "at": moment_text(a.at),
                    "age": age_text(now - a.at),
                    "until": None if a.until is None else moment_text(a.until),
                    "covered": a.covers_text,
                }
                for a, rack in given
            ]
            cx.out.table(ACKNOWLEDGEMENTS, shown, title="acknowledged")
        if said and windows:
            cx.out.text()
        if windows:
            cx.out.table(MAINTENANCE, [window_row(window) for window in windows], title="maintenance")
        if not said and not windows:
            cx.out.narrate(f"nothing is acknowledged or in maintenance on target {cx.target}")


health_clear.register(app)
health_explain.register(app)
health_rules.register(app)


def faults_of(seen: "Observation", component: str) -> "list[Finding]":
    """The faults of a component, or of everything in a rack.

    Notes are omitted: ``check`` does not count them, and they need no acknowledgement.
    """
    from lumctl.health.observation import rack_of

    findings = [finding for finding in seen.report.findings() if finding.state is not State.OK]
    if component in seen.inventory.racks:
        return [f for f in findings if rack_of(seen.inventory, f.component, seen.circuits) == component]
    return [finding for finding in findings if finding.component == component]


def nothing_to_acknowledge(
    seen: "Observation", component: str, rule: str | None, standing: "list[Finding]"
) -> RefusedError:
    """The error for a component without faults to acknowledge; ``standing`` are the faults that other rules find."""
    if standing:
        found = ", ".join(dict.fromkeys(finding.rule for finding in standing))
        return RefusedError(
            f"{rule} finds no fault in {component}; {found} does",
            hint=f"to acknowledge all its findings: lumctl health ack {component} --comment WHY",
        )
    inventory = seen.inventory
    states = {group[component].state.value for group in seen.report.groups().values() if component in group}
    on = inventory.accelerators.get(component) or inventory.transponders.get(component)
    hint = f"see why: lumctl health explain {component}"
    if on and faults_of(seen, on.host):
        hint = f"its host has findings: lumctl health ack {on.host} --comment WHY"
    is_so = f"is {' and '.join(sorted(states))} and " if states else ""
    return RefusedError(f"{component} {is_so}has no faults: there is nothing to acknowledge", hint=hint)


def _clear(cx: Invocation, component: str, rule: str | None) -> None:
    from lumctl.context import Context

    with Context(cx.inventory, cx.target) as context:
        from lumctl.runbook.actions import unacknowledge

        rack = rack_of_named(cx.inventory, component, circuits(context))
        run = _kept(cx, context, "ack", unacknowledge(rack, component, rule), context.now())
        cleared = sum(int(entry.data.get("cleared", 0)) for entry in context.store(rack).journal.of_run(run))
    if cx.out.structured:
        document = {"component": component, "rule": rule, "cleared": cleared, "run": run}
        cx.out.document("acknowledgement", {"target": str(cx.target), **document})
    elif cx.out.format is OutputFormat.NAME:
        cx.out.names([component])
    else:
        cx.out.text(f"{component}: {counted(cleared, 'acknowledgements')} undone")


def _kept(cx: Invocation, context: "Context", kind: str, said: "Said", at: float) -> str:
    """Do the action; return the id of the run that records it, with a runbook in the store's folder."""
    from lumctl.runbook.actions import record, save_quietly

    run = record(context, kind, [said], at=at)
    trouble = save_quietly(context, run, str(said["data"]["rack"]))
    if trouble:
        cx.out.narrate(f"warning: {trouble}")
    cx.out.detail(f"runbook: lumctl runbook show {run}")
    return run


def _acknowledgement(said: "Acknowledgement", rack: str) -> dict[str, Any]:
    return {
        "component": said.component,
        "rule": said.rule,
        "covers": None if said.covers is None else [entry._asdict() for entry in said.covers],
        "by": said.by,
        "comment": said.comment,
        "at": iso_text(said.at),
        "until": iso_or_none(said.until),
        "rack": rack,
    }


def _until(ends: float | None, now: float) -> str:
    return "until it clears" if ends is None else f"until {moment_with_age(ends, now)}"
