"""``lumctl health``: what operators say of findings, why a component is in its state, and the rules behind it."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from lumctl.cli import health_explain, health_rules
from lumctl.cli.components import circuits, rack_of_named
from lumctl.cli.health_faults import faults_of, nothing_to_acknowledge
from lumctl.cli.invocation import Invocation
from lumctl.cli.nouns import NOUNS
from lumctl.cli.output import Column, OutputFormat
from lumctl.cli.status_tables import MAINTENANCE, clock, window_row
from lumctl.cli.times import ending, moment
from lumctl.cli.verbs import noun_app, verb
from lumctl.errors import RefusedError, UsageError
from lumctl.inventory.hints import nearest

if TYPE_CHECKING:
    from lumctl.health.attention import Acknowledgement

app = noun_app(NOUNS["health"].help)

ACKNOWLEDGEMENTS = (
    Column("ACKNOWLEDGED", "component"),
    Column("RULE", "rule"),
    Column("SINCE", "at"),
    Column("UNTIL", "until"),
    Column("BY", "by"),
    Column("COMMENT", "comment"),
)

ForOption = Annotated[str | None, typer.Option("--for", metavar="TIME", help="How long: 90s, 30m, 2h, 1d.")]
UntilOption = Annotated[
    str | None, typer.Option("--until", metavar="WHEN", help="Until when: 18:00 or 2026-11-21T18:00.")
]
CommentOption = Annotated[str | None, typer.Option("--comment", metavar="TEXT", help="Why; shown to everybody.")]


@verb(app, "ack")
def ack(
    cx: Invocation,
    component: Annotated[str, typer.Argument(metavar="COMPONENT", help="Whose findings are known.")],
    rule: Annotated[
        str | None, typer.Option("--rule", metavar="RULE", help="Only what this rule finds; everything unless said.")
    ] = None,
    comment: CommentOption = None,
    for_: ForOption = None,
    until: UntilOption = None,
    clear: Annotated[bool, typer.Option("--clear", help="Take an acknowledgement back.")] = False,
) -> None:
    """Say that a component's findings are known, after reading it once.

    They go on being shown, with your name and comment, but ``lumctl check`` no longer counts them. It ends at its time,
    when they have cleared, or when they become worse.
    """
    from lumctl.site import Site

    if rule is not None:
        _require_rule(rule)
    if clear:
        if for_ or until or comment:
            raise UsageError("--clear takes no --comment, --for or --until")
        _clear(cx, component, rule)
        return
    if not (comment or "").strip():
        raise UsageError("an acknowledgement needs a reason", hint='add --comment "..."')
    with Site(cx.inventory, cx.target) as site:
        ends = ending(for_, until, starts=site.now(), now=site.now())
        rack = rack_of_named(cx.inventory, component, circuits(site))
        seen = site.observe()
        standing = faults_of(seen, component)
        found = [finding for finding in standing if rule in {None, finding.rule}]
        if not found:
            raise nothing_to_acknowledge(seen, component, rule, standing)
        from lumctl.change.origin import origin
        from lumctl.health.attention import Acknowledgement

        said = Acknowledgement(component, rule, origin(), str(comment).strip(), site.now(), ends)
        site.store(rack).acknowledge(said)
    document = _acknowledgement(said, rack)
    if cx.out.structured:
        cx.out.document("acknowledgement", {"target": str(cx.target), **document, "findings": [f.rule for f in found]})
    elif cx.out.format is OutputFormat.NAME:
        cx.out.names([component])
    else:
        known = ", ".join(dict.fromkeys(finding.rule for finding in found))
        cx.out.text(f"{component}: {known} acknowledged {_until(ends)}")


@verb(app, "maintain")
def maintain(
    cx: Invocation,
    component: Annotated[
        str, typer.Argument(metavar="COMPONENT", help="A rack, host, accelerator, transponder or device.")
    ],
    comment: CommentOption = None,
    for_: ForOption = None,
    until: UntilOption = None,
    from_: Annotated[
        str | None, typer.Option("--from", metavar="WHEN", help="When it begins; now unless said.")
    ] = None,
    end: Annotated[bool, typer.Option("--end", help="End it now, or call it off.")] = False,
) -> None:
    """Open a maintenance window: faults of the component, and of everything on it, are expected until its end.

    A window on a host covers what is in it, one on a rack everything. What it covers is disabled: it is not counted by
    ``lumctl check`` and no swap takes it as a spare; its findings go on being shown.
    """
    from lumctl.site import Site

    if end and (comment or for_ or until or from_):
        raise UsageError("--end takes no --comment, --from, --for or --until")
    if not end and not (comment or "").strip():
        raise UsageError("a maintenance window needs a reason", hint='add --comment "..."')
    with Site(cx.inventory, cx.target) as site:
        among = circuits(site)
        rack = rack_of_named(cx.inventory, component, among)
        if component in {circuit.id for circuit in among}:
            raise UsageError(
                f"{component} is a circuit: nothing of it can be worked on",
                hint="name the host, transponder or device that is",
            )
        store, now = site.store(rack), site.now()
        if end:
            windows = [window for window in store.windows(now=now) if window.component == component]
            ended = [window for window in windows if store.end_window(window.id, now=now)]
            if not ended:
                raise RefusedError(f"{component} is not in maintenance", hint="see: lumctl health list")
        else:
            from lumctl.change.origin import origin
            from lumctl.health.attention import MaintenanceWindow

            starts = now if from_ is None else moment(from_, now)
            ends = ending(for_, until, starts=starts, now=now)
            if ends is None:
                raise UsageError("a maintenance window has an end", hint="add --for 2h or --until 18:00")
            made = MaintenanceWindow("", component, origin(), str(comment).strip(), starts, ends)
            made_id = store.add_window(made)
            windows = [window for window in store.windows(now=now) if window.id == made_id]
    if cx.out.structured:
        from lumctl.cli.views import window_document

        shown = [window_document(window, now) for window in windows]
        cx.out.document("maintenance", {"target": str(cx.target), "rack": rack, "ended": end, "windows": shown})
    elif cx.out.format is OutputFormat.NAME:
        cx.out.names([window.id for window in windows])
    else:
        for window in windows:
            begins = "" if window.open_at(now) else f"from {clock(window.starts)} "
            cx.out.text(f"{component}: maintenance {'ended' if end else f'{begins}until {clock(window.ends)}'}")


@verb(app, "list")
def list_(cx: Invocation) -> None:
    """Show what is acknowledged, and the maintenance that goes on or is to come. No host is asked."""
    from lumctl.cli.views import window_document
    from lumctl.site import Site

    with Site(cx.inventory, cx.target) as site:
        now = site.now()
        stores = {rack: site.store(rack) for rack in cx.inventory.racks}
        said = [_acknowledgement(a, rack) for rack, store in stores.items() for a in store.acknowledgements(now=now)]
        windows = [
            {**window_document(window, now), "rack": rack}
            for rack, store in stores.items()
            for window in store.windows(now=now)
        ]
    if cx.out.structured:
        cx.out.document("health", {"target": str(cx.target), "acknowledgements": said, "maintenance": windows})
    elif cx.out.format is OutputFormat.NAME:
        cx.out.names(list(dict.fromkeys(str(row["component"]) for row in [*said, *windows])))
    else:
        if said:
            shown = [{**a, "at": clock(a["at"]), "until": clock(a["until"]), "rule": a["rule"] or "all"} for a in said]
            cx.out.table(ACKNOWLEDGEMENTS, shown, title="acknowledged")
        if said and windows:
            cx.out.text()
        if windows:
            cx.out.table(MAINTENANCE, [window_row(window) for window in windows], title="maintenance")
        if not said and not windows:
            cx.out.narrate(f"nothing is acknowledged or in maintenance on target {cx.target}")


health_explain.register(app)
health_rules.register(app)


def _clear(cx: Invocation, component: str, rule: str | None) -> None:
    from lumctl.site import Site

    with Site(cx.inventory, cx.target) as site:
        rack = rack_of_named(cx.inventory, component, circuits(site))
        cleared = site.store(rack).unacknowledge(component, rule)
    if not cleared:
        of_rule = f" of {rule}" if rule else ""
        raise RefusedError(f"nothing{of_rule} is acknowledged of {component}", hint="see: lumctl health list")
    if cx.out.structured:
        cx.out.document(
            "acknowledgement", {"target": str(cx.target), "component": component, "rule": rule, "cleared": cleared}
        )
    elif cx.out.format is OutputFormat.NAME:
        cx.out.names([component])
    else:
        cx.out.text(f"{component}: {cleared} acknowledgement{'' if cleared == 1 else 's'} taken back")


def _require_rule(rule: str) -> None:
    from lumctl.health.rulebook import rulebook

    rules = rulebook().rules()
    if rule not in rules:
        near = nearest(rule, rules)
        raise UsageError(
            f"no rule {rule!r}", hint=f"did you mean {near}?" if near else "the rules are: lumctl health rules"
        )


def _acknowledgement(said: "Acknowledgement", rack: str) -> dict[str, Any]:
    return {
        "component": said.component,
        "rule": said.rule,
        "by": said.by,
        "comment": said.comment,
        "at": said.at,
        "until": said.until,
        "rack": rack,
    }


def _until(ends: float | None) -> str:
    return "until it clears" if ends is None else f"until {clock(ends)}"
