"""``lumctl spare list`` and ``lumctl spare show``: the state of each spare, read now."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lumctl.cli.autopilot_status import racks_named
from lumctl.cli.forgotten_target import tell_if_forgotten
from lumctl.cli.invocation import Invocation
from lumctl.cli.output import OutputColumn, OutputFormat
from lumctl.cli.verbs import aimed, verb
from lumctl.errors import UsageError
from lumctl.inventory.problems import require_known
from lumctl.printable import counted, number_ranges
from lumctl.time_text import age_text, iso_text, moment_text

if TYPE_CHECKING:
    from lumctl.context import Context, Observation
    from lumctl.spares.forecast import PoolForecast
    from lumctl.spares.ledger import LedgerEntry
    from lumctl.spares.placements import RankMove
    from lumctl.swap.spare_pool import PoolLedger, RanksToReplace

SPARES = (
    OutputColumn("STATE", "state"),
    OutputColumn("ACCELERATOR", "accelerator"),
    OutputColumn("RACK", "rack", wide=True),
    OutputColumn("CLASS", "class", wide=True),
    OutputColumn("HOST", "host", wide=True),
    OutputColumn("JOB/RANK", "place"),
    OutputColumn("AGE", "age", right=True, gives_way=1),
    OutputColumn("RUN", "run", gives_way=2),
    OutputColumn("SINCE", "at", wide=True),
    OutputColumn("WHY", "words"),
)
LANES = (
    OutputColumn("STATE", "state"),
    OutputColumn("LANE", "lane"),
    OutputColumn("PORT", "port"),
    OutputColumn("FINDING", "finding"),
)
REPLACES = (
    OutputColumn("JOB", "job"),
    OutputColumn("RANKS", "in_ranges"),
    OutputColumn("CAN", "can"),
    OutputColumn("WHY NOT", "why"),
)
HISTORY = (
    OutputColumn("AT", "at", gives_way=1),
    OutputColumn("AGE", "age", right=True),
    OutputColumn("RUN", "run"),
    OutputColumn("WHAT", "words"),
)
_NAMED = 4
"""How many accelerators that need a spare a line names."""


def register(app: typer.Typer) -> None:
    """Add the commands to their noun."""
    verb(app, "list", pages=True)(list_)
    verb(app, "show", pages=True)(show)


def list_(
    cx: Invocation,
    rack: Annotated[str | None, typer.Option("--rack", metavar="RACK", help="Only this rack.")] = None,
    class_: Annotated[
        str | None,
        typer.Option("--class", metavar="CLASS", help="Only accelerators of this model; a part of it is enough."),
    ] = None,
    free: Annotated[
        bool, typer.Option("--free", help="Only those that a swap of any job can take now: free, or burning in.")
    ] = False,
) -> None:
    """List the spares of each rack and class, read now over SSH: which are free, who uses the others, what is out.

    The first lines count them, say when the last free one is taken if accelerators go on failing as they did and none
    is repaired (by the history in the store, if it has a day or more, with its 95 % interval), and name the ranks that
    need a spare now. Accelerators that a swap took out of their job are listed too until their rank returns, with the
    command that returns it.

    A spare is free only if it was read just now and is ok; one that could not be read is unknown. One that is
    burning-in has run for less than a day since it failed or was out of service, or its ``burned_in`` day in the
    inventory is still to come: it is usable, but swaps take others first, until the time in its line. A reserved spare
    is for one job, or used only if it is named. A moving one belongs to a run that has not ended, interrupted ones too.
    An unfit one is ok, but a lane of it or an accelerator that it is tied to is not. A filler job on a free spare gives
    it up when a swap needs it; filler jobs that did are listed last. Nothing of this is stored: it follows from where
    the jobs run, from the runs and their journal, and from the readings. ``lumctl spare size`` computes how many spares
    are enough.
    """
    from lumctl.cli.changes import tell_unfinished
    from lumctl.context import Context
    from lumctl.spares.forecast import rack_forecasts
    from lumctl.spares.ledger import USABLE
    from lumctl.spares.ledger_text import advice, count_document, entry_document
    from lumctl.spares.pools import members_in
    from lumctl.swap.fillers import filler_documents
    from lumctl.swap.restoration import return_refusals
    from lumctl.swap.spare_pool import pool_ledgers
    from lumctl.swap.suggestions import obstacle_words

    with Context(cx.inventory, cx.target) as context:
        racks = racks_named(context.inventory, None if rack is None else [rack])
        # Wrong names are refused before the hosts are read.
        members_in(context.inventory, class_, rack)
        seen = context.observe()
        pools = pool_ledgers(context, seen, racks=racks, wanted=class_)
        forecasts = {
            key: forecast
            for name in dict.fromkeys(pool.rack for pool in pools)
            for key, forecast in rack_forecasts(context.inventory, name, context.store(name)).items()
        }
        enough = _how_many(context, pools, class_)
        obstacles = {
            (pool.rack, pool.accelerator_class): obstacle_words(
                context, seen, [n.failed.accelerator for n in pool.needs]
            )
            for pool in pools
            if pool.needs and all(need.served for need in pool.needs)
        }
        refusals = return_refusals(context, seen, [entry for pool in pools for entry in pool.entries])
        if not cx.out.structured:
            tell_unfinished(cx, context, tuple(racks))
    entries = [(pool, entry) for pool in pools for entry in pool.entries if not free or entry.state in USABLE]
    if cx.out.format is OutputFormat.NAME:
        cx.out.names([entry.accelerator.id for _, entry in entries])
        return
    rows = [entry_document(entry, pool.accelerator_class, str(cx.target), seen.at) for pool, entry in entries]
    fillers = filler_documents(seen, racks)
    if cx.out.structured:
        counts = [
            {
                **_pool_document(pool),
                "obstacle": aimed(cx, obstacles.get((pool.rack, pool.accelerator_class), "")) or None,
                **count,
                "forecast": forecast and forecast.document(count["free"]),
            }
            for pool in pools
            for count in [count_document(pool.entries)]
            for forecast in [forecasts.get((pool.rack, pool.accelerator_class))]
        ]
        whole = {"target": str(cx.target), "at": iso_text(seen.at), "pools": counts}
        cx.out.document("spares", {**whole, "spares": _aimed(cx, rows), "fillers": _aimed(cx, fillers)})
        return
    tell_if_forgotten(cx, seen.report)
    for pool in pools:
        key = (pool.rack, pool.accelerator_class)
        for line in _headline(pool, forecasts.get(key), obstacles.get(key, ""), seen.at):
            cx.out.text(cx.out.wrapped(aimed(cx, line), "  "))
    if rows:
        cx.out.text()
        cx.out.table(SPARES, [_row(row, entry, seen.at) for row, (_, entry) in zip(rows, entries, strict=True)])
    found = advice([entry for _, entry in entries], str(cx.target), refusals)
    for paragraph in _to_do(cx, found, fillers):
        cx.out.text(paragraph)
    if enough:
        cx.out.narrate(enough)


def show(
    cx: Invocation, name: Annotated[str, typer.Argument(metavar="ACCELERATOR", help="A spare, or another accelerator.")]
) -> None:
    """Show one spare, read now: its state, what constrains its use, the ranks it could replace, and its history.

    Whether light can be routed to it is found out by ``lumctl swap plan`` only. The history has the runs that moved a
    rank to it or from it.
    """
    from lumctl.context import Context
    from lumctl.inventory.model import classes_of
    from lumctl.runbook.files import require_no_demand
    from lumctl.spares.ledger_text import entry_document, entry_words
    from lumctl.swap.spare_pool import ledger_entries, ranks_to_replace

    with Context(cx.inventory, cx.target) as context:
        if name in context.inventory.hosts and name not in context.inventory.accelerators:
            its = ", ".join(each.id for each in context.inventory.accelerators_of(name))
            raise UsageError(f"{name} is a host", hint=f"name one of its accelerators: {its}")
        require_no_demand(context, name)
        require_known("accelerator", [name], context.inventory.accelerators)
        seen = context.observe()
        rack = context.inventory.accelerators[name].rack
        (entry,), moves = ledger_entries(context, seen, rack, [name])
        replaces = ranks_to_replace(seen, name)
    document = entry_document(entry, classes_of(seen.inventory.accelerators)[name], str(cx.target), seen.at)
    (document,) = _aimed(cx, [document])
    lanes, history = _lanes(seen, name), [_moved(move, name) for move in reversed(moves)]
    if cx.out.structured:
        document |= {
            "tied_to": [each.id for each in seen.inventory.tied_to(name)],
            "burned_in": str(entry.accelerator.burned_in) if entry.accelerator.burned_in else None,
            "lanes": lanes,
            "replaces": [_replaces(each) for each in replaces],
            "history": history,
        }
        cx.out.document("spare", {"target": str(cx.target), "at": iso_text(seen.at), **document})
        return
    if cx.out.format is OutputFormat.NAME:
        cx.out.names([name])
        return
    cx.out.text(f"{name}  {cx.out.state(document['state']).strip()}  rack: {rack}  target: {cx.target}")
    cx.out.text(cx.out.wrapped(f"  {entry_words(entry, seen.at)}", "  "))
    if document["command"]:
        when = "finish the run" if document["interrupted"] else "once it is ok again" if entry.reasons else "return it"
        cx.out.text(f"  {when}: {document['command']}")
    cx.out.text(cx.out.wrapped(f"  {_constraints(seen, entry)}", "  "))
    cx.out.text()
    cx.out.table(LANES, lanes, title="lanes")
    cx.out.text()
    _print_ranks(cx, rack, replaces)
    cx.out.text()
    if history:
        told = [(move, row) for move, row in zip(reversed(moves), history, strict=True)]
        rows = [{**row, "at": moment_text(move.at), "age": age_text(seen.at - move.at)} for move, row in told]
        cx.out.table(HISTORY, rows, title="history, newest first")
    else:
        cx.out.text("no run has moved a rank to it or from it")


def _how_many(context: "Context", pools: "Sequence[PoolLedger]", class_: str | None) -> str:
    """The command that says how many spares are enough, or what it needs to say it; empty if no spare is missing."""
    from lumctl.spares.pools import estimated_pools
    from lumctl.spares.rates import failure_history

    if all(need.served for pool in pools for need in pool.needs):
        return ""
    try:
        estimated_pools(context.inventory, class_, lambda rack: failure_history(context.store(rack), rack), None)
    except UsageError as error:
        return f"{error.message}; {error.hint}"
    return "how many spares are enough: lumctl spare size"


def _print_ranks(cx: Invocation, rack: str, replaces: "Sequence[RanksToReplace]") -> None:
    """Print which ranks a spare could replace; one line if the same reason keeps it from all."""
    if not replaces:
        cx.out.text(f"no other accelerator of rack {rack} runs a rank")
        return
    always = next((reason for reason in replaces[0].reasons if all(reason in each.reasons for each in replaces)), None)
    if always is not None:
        cx.out.text(cx.out.wrapped(f"it can replace no rank now: it {always}", "  "))
        return
    rows = [
        {**row, "in_ranges": number_ranges(row["ranks"]), "why": "; ".join(row["reasons"])}
        for row in map(_replaces, replaces)
    ]
    cx.out.table(REPLACES, rows, title=f"ranks in rack {rack} that it could replace now")


def _to_do(cx: Invocation, repairs: Iterable[tuple[str, str]], fillers: Sequence[dict[str, Any]]) -> Iterator[str]:
    """What to do about swapped-out accelerators and stopped filler jobs, with the command if there is one now."""
    found = [(f"{said}:" if command else said, command) for said, command in repairs]
    stopped = [each for each in fillers if not each["running"]]
    found += [(f"filler job {each['name']} {each['words']}", each["command"] or "") for each in stopped]
    for said, command in found:
        yield f"\n{cx.out.wrapped(aimed(cx, said), '  ')}" + (f"\n    {aimed(cx, command)}" if command else "")


def _aimed(cx: Invocation, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows with complete commands."""
    return [{**row, "command": row["command"] and aimed(cx, row["command"])} for row in rows]


def _pool_document(pool: "PoolLedger") -> dict[str, Any]:
    needs = [
        {"accelerator": n.failed.accelerator, "job": n.failed.job, "rank": n.failed.rank, "served": n.served}
        for n in pool.needs
    ]
    return {"rack": pool.rack, "class": pool.accelerator_class, "ranks": pool.ranks, "needs": needs}


def _headline(pool: "PoolLedger", forecast: "PoolForecast | None", obstacle: str, now: float) -> list[str]:
    """The counts of a pool in words, how long its spares last, and whether the ranks that need one now can have one.

    ``obstacle`` is why no swap can give them the spares that fit; empty if one can.
    """
    from lumctl.health.remedy import swap_command
    from lumctl.spares.ledger_text import count_document, count_words

    spares = [entry for entry in pool.entries if entry.home is None]
    out = len(pool.entries) - len(spares)
    whose = f"{pool.rack}, {pool.accelerator_class}: "
    if not pool.entries:
        lines = [f"{whose}no spare for {counted(pool.ranks, 'ranks')}"]
    else:
        lines = [f"{whose}{counted(len(spares), 'spares')} for {counted(pool.ranks, 'ranks')}: {count_words(spares)}"]
        lines[0] += f"; {counted(out, 'accelerators')} swapped out" if out else ""
    if forecast is not None and pool.entries:
        lines.append(f"  {forecast.words(count_document(pool.entries)['free'], now)}")
    if pool.needs:
        whole = _listed([need.failed.accelerator for need in pool.needs])
        short = [need.failed.accelerator for need in pool.needs if not need.served]
        one = len(pool.needs) == 1
        found = "a spare fits it" if one else "there is a spare for each of them"
        every = [need.failed.accelerator for need in pool.needs]
        found += f", but {obstacle}" if obstacle else f": {swap_command(every, ())}"
        enough = f"no spare is left that can replace {_listed(short)}" if short else found
        ranks = "1 rank needs" if one else f"{len(pool.needs)} ranks need"
        lines.append(f"  {ranks} a spare now ({whole}): {enough}")
    return lines


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"


def _row(row: dict[str, Any], entry: "LedgerEntry", now: float) -> dict[str, Any]:
    from lumctl.spares.ledger_text import brief_words

    move = entry.move
    return {
        **row,
        "place": None if row["job"] is None else f"{row['job']}/{row['rank']}",
        "age": None if move is None else age_text(now - move.at),
        "at": None if move is None else moment_text(move.at),
        "words": brief_words(entry, now),
    }


def _lanes(seen: "Observation", name: str) -> list[dict[str, Any]]:
    found = []
    for lane in seen.inventory.transponders_of(name):
        health = seen.report.links[lane.id]
        port = f"{lane.lane.device}:{'/'.join(map(str, lane.lane.ports))}"
        finding = health.findings[0].evidence if health.findings else None
        found.append({"lane": lane.id, "port": port, "state": health.state.value, "finding": finding})
    return found


def _replaces(each: "RanksToReplace") -> dict[str, Any]:
    return {"job": each.job, "ranks": list(each.ranks), "can": not each.reasons, "reasons": list(each.reasons)}


def _moved(move: "RankMove", name: str) -> dict[str, Any]:
    from lumctl.spares.ledger_text import history_words

    return {
        "at": iso_text(move.at),
        "run": move.run,
        "job": move.job,
        "rank": move.rank,
        "from": move.before,
        "to": move.after,
        "undone": move.undone,
        "open": move.is_open,
        "words": history_words(move, name),
    }


def _constraints(seen: "Observation", entry: "LedgerEntry") -> str:
    each = entry.accelerator
    tied = [other.id for other in seen.inventory.tied_to(each.id)]
    parts = [
        f"{each.model}, {each.memory_gib:g} GiB, host {each.host}",
        f"tied to {', '.join(tied)}" if tied else "",
        f"reserved for {each.reserved_for}" if each.reserved_for else "",
        "reserved: used only if it is named" if each.reserved else "",
        f"burned in on {each.burned_in}" if each.burned_in else "",
    ]
    return "; ".join(filter(None, parts))
