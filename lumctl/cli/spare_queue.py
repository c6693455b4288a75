"""``lumctl spare queue``: the jobs that wait for spares, and what each waits for."""

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lumctl.cli.autopilot_status import racks_named
from lumctl.cli.forgotten_target import tell_if_forgotten
from lumctl.cli.invocation import Invocation
from lumctl.cli.output import OutputColumn, OutputFormat
from lumctl.cli.verbs import aimed, verb
from lumctl.errors import LumctlError, UsageError
from lumctl.time_text import age_text, iso_text, moment_text

if TYPE_CHECKING:
    from lumctl.context import Context, Observation
    from lumctl.store import QueuedDemand
    from lumctl.swap.demand_queue import QueueEntry

QUEUED = (
    OutputColumn("DEMAND", "id"),
    OutputColumn("JOB", "job"),
    OutputColumn("FOR", "for"),
    OutputColumn("RACK", "rack", wide=True),
    OutputColumn("AGE", "age", right=True),
    OutputColumn("BY", "who", wide=True),
    OutputColumn("NOW", "words"),
)
ENDED = (
    OutputColumn("DEMAND", "id"),
    OutputColumn("JOB", "job"),
    OutputColumn("FOR", "for"),
    OutputColumn("ASKED", "at", gives_way=1),
    OutputColumn("WAITED", "waited", right=True),
    OutputColumn("ENDED", "words"),
)
CANCEL = "cancel"


def register(app: typer.Typer) -> None:
    """Add the command to its noun."""
    verb(app, "queue", pages=True)(queue)


def queue(
    cx: Invocation,
    action: Annotated[
        str | None, typer.Argument(metavar="cancel", help="Remove a demand from the queue, instead of the list.")
    ] = None,
    demand: Annotated[str | None, typer.Argument(metavar="DEMAND", help="The demand to remove.")] = None,
    rack: Annotated[str | None, typer.Option("--rack", metavar="RACK", help="Only this rack.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Also those that wait no longer.")] = False,
) -> None:
    """List the jobs that wait for spares, oldest first, read now; or cancel a demand: ``spare queue cancel DEMAND``.

    A job is queued by ``lumctl swap plan --queue``, or by the autopilot, if no spare can be used. The accelerators of
    one demand get their spares together, or wait together. The sharing policy of the inventory decides who is served
    first (lumctl-inventory(5), sharing); other swaps leave a spare alone that it gives to a demand, unless they name
    it. A demand ends with the run that serves it, in the same transaction, or when it is cancelled. ``lumctl watch``
    ends one whose accelerators work again or whose job is gone, and announces spares that can be had.
    """
    if action is not None:
        if action != CANCEL or demand is None:
            wrong = "cancel needs a demand" if action == CANCEL else f"{action!r} is not cancel"
            raise UsageError(wrong, hint="lumctl spare queue cancel DEMAND; the demands: lumctl spare queue")
        _cancel(cx, demand, rack)
        return
    from lumctl.context import Context
    from lumctl.store import WAITING
    from lumctl.swap.demand_queue import queue_entries
    from lumctl.swap.suggestions import obstacle_words

    with Context(cx.inventory, cx.target) as context:
        racks = racks_named(context.inventory, None if rack is None else [rack])
        stores = {name: context.store(name) for name in racks}
        seen = context.observe() if any(each.demands.waiting() for each in stores.values()) else None
        entries: list[QueueEntry] = []
        faults: list[str] = []
        for name, store in stores.items():
            if seen is None:
                break
            found, decision = queue_entries(store.demands.waiting(), seen, name, partial(obstacle_words, context, seen))
            entries += found
            faults += [decision.fault] if decision.fault else []
        ended = (
            [each for one in stores.values() for each in one.demands.all() if each.state != WAITING] if every else []
        )
        now = seen.at if seen is not None else context.now()
    for fault in dict.fromkeys(faults):
        cx.out.narrate(f"warning: best-fit decides instead: {fault}")
    rows = [_document(cx, entry, now) for entry in entries]
    if cx.out.structured:
        past = [{**_facts(each), "words": _how_ended(each)} for each in ended]
        cx.out.document("spare-queue", {"target": str(cx.target), "at": iso_text(now), "demands": [*rows, *past]})
    elif cx.out.format is OutputFormat.NAME:
        cx.out.names([row["id"] for row in rows])
    else:
        _print(cx, rows, ended, now)


def waiting_rows(cx: Invocation, context: "Context", seen: "Observation") -> list[dict[str, Any]]:
    """The demands that wait in all racks as data; a rack whose store cannot be read is left out, and named."""
    from lumctl.swap.demand_queue import queue_entries
    from lumctl.swap.suggestions import obstacle_words

    entries: list[QueueEntry] = []
    for rack in seen.inventory.racks:
        try:
            waiting = context.store(rack).demands.waiting()
        except LumctlError as error:
            cx.out.narrate(f"warning: which jobs of {rack} wait for spares is unknown: {error.message}")
            continue
        entries += queue_entries(waiting, seen, rack, partial(obstacle_words, context, seen))[0] if waiting else ()
    return [_document(cx, entry, seen.at) for entry in entries]


def waiting_words(row: dict[str, Any]) -> str:
    """A demand in words: who waits for what, since when, and whether it can be served now."""
    waits = f"{row['job']} waits for spares for {', '.join(row['accelerators'])}"
    return f"{waits} ({row['id']}, {age_text(row['waits_s'])}): {row['words'].removeprefix('waits: ')}"


def _print(cx: Invocation, rows: list[dict[str, Any]], ended: "list[QueuedDemand]", now: float) -> None:
    if rows:
        shown = [{**row, "for": ", ".join(row["accelerators"]), "age": age_text(row["waits_s"])} for row in rows]
        cx.out.table(QUEUED, shown)
    else:
        cx.out.text("no job waits for a spare")
        tell_if_forgotten(cx)
    for row in rows:
        if row["command"]:
            cx.out.text(f"    {row['command']}")
    if ended:
        cx.out.text()
        past = [
            {
                **_facts(each),
                "for": ", ".join(each.accelerators),
                "at": moment_text(each.asked_at),
                "waited": age_text((each.ended_at or now) - each.asked_at),
                "words": _how_ended(each),
            }
            for each in ended
        ]
        cx.out.table(ENDED, past, title="ended")


def _cancel(cx: Invocation, name: str, rack: str | None) -> None:
    from lumctl.change.origin import origin
    from lumctl.context import Context
    from lumctl.store import CANCELLED, WAITING

    with Context(cx.inventory, cx.target) as context:
        racks = racks_named(context.inventory, None if rack is None else [rack])
        found = [demand for each in racks for demand in context.store(each).demands.all() if demand.id == name]
        having = [demand.rack for demand in found if demand.state == WAITING] or [demand.rack for demand in found]
        if having[1:]:
            raise UsageError(f"{name} waits in several racks: {', '.join(having)}", hint="name one: --rack RACK")
        demands = context.store(having[0] if having else racks[0]).demands
        ended = demands.end(name, CANCELLED, why="", who=origin(), at=context.now())
    if cx.out.structured:
        cx.out.document("spare-demand", {"target": str(cx.target), **_facts(ended)})
    else:
        cx.out.text(f"{ended.id} of {ended.job} is cancelled")


def _document(cx: Invocation, entry: "QueueEntry", now: float) -> dict[str, Any]:
    demand = entry.demand
    return {
        **_facts(demand),
        "waits_s": now - demand.asked_at,
        "given": list(entry.given),
        "reasons": list(entry.reasons),
        "needless": entry.needless,
        "words": aimed(cx, entry.words),
        "command": entry.command and aimed(cx, entry.command),
    }


def _facts(demand: "QueuedDemand") -> dict[str, Any]:
    return {
        "id": demand.id,
        "rack": demand.rack,
        "job": demand.job,
        "accelerators": list(demand.accelerators),
        "state": demand.state,
        "who": demand.who,
        "asked_at": iso_text(demand.asked_at),
        "ended_at": None if demand.ended_at is None else iso_text(demand.ended_at),
        "run": demand.run or None,
        "why": demand.why or None,
    }


def queued_words(demand: "QueuedDemand") -> str:
    """The demand and its accelerators in words, for the command that queued it."""
    many = f"{len(demand.accelerators)} spares" if demand.accelerators[1:] else "a spare"
    return f"{demand.job} waits for {many} for {', '.join(demand.accelerators)} ({demand.id})"


def _how_ended(demand: "QueuedDemand") -> str:
    by = f" by {demand.run}" if demand.run else ""
    return f"{demand.state}{by}{f': {demand.why}' if demand.why and not demand.run else ''}"
