"""``lumctl autopilot``: stop automatic actions, start them again, and show their state."""

import time
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lumctl.cli import autopilot_status
from lumctl.cli.autopilot_status import RackOption, daemon_pids, racks_named, sockets_of, why_of
from lumctl.cli.invocation import Invocation
from lumctl.cli.nouns import NOUNS
from lumctl.cli.output import OutputColumn, OutputFormat
from lumctl.cli.verbs import kept_text, noun_app, verb
from lumctl.errors import ExitCode, LumctlError, UnreachableError
from lumctl.time_text import moment_text

if TYPE_CHECKING:
    from lumctl.daemon.autopilot.stop_switch import StopResult
    from lumctl.inventory.model import Inventory

app = noun_app(NOUNS["autopilot"].help)

CommentOption = Annotated[
    str, typer.Option("--comment", metavar="TEXT", callback=kept_text, help="Reason; everyone can see it.")
]
WAYS = (OutputColumn("STOPPED BY", "way"), OutputColumn("", "told"))
POLL_S = 0.1


@verb(app, "stop")
def stop(
    cx: Invocation,
    rack: RackOption = None,
    comment: CommentOption = "",
    wait: Annotated[
        float, typer.Option("--wait", metavar="SECONDS", min=0, max=600, help="How long to wait for a running run.")
    ] = 60.0,
) -> int:
    """Stop the autopilot in every possible way, and report which of them worked.

    A stop file is written to each place where a daemon looks before it acts: this user's runtime and state folders,
    the folder of the rack's store, and /run/lumctl if it exists. Each daemon of this user gets the stop by its socket.
    The store's journal records it for daemons on other machines. No way depends on another, so the stop works without a
    database, with a daemon that hangs, and (for all racks of this user) with an unreadable inventory.

    A swap in progress is never interrupted: it is finished, or rolled back by its own engine if a proof fails. This
    command waits for it and reports how it ended. Operators can still swap by hand.

    If no way works, the daemon of this user is ended (SIGTERM) and no longer watches.
    """
    from lumctl.change.origin import origin
    from lumctl.daemon.autopilot import stop_switch
    from lumctl.store import files_of, open_store

    who, at = origin(), time.time()
    said = said_in_files(who, at, comment)
    inventory = _inventory(cx)
    racks = racks_named(inventory, rack) if inventory is not None else list(rack or [stop_switch.ALL])
    files = [files_of(inventory, name, cx.target) for name in racks] if inventory is not None else []
    # Files first: they need neither a daemon that answers nor a database.
    ways = stop_switch.stop_by_files(stop_switch.places(racks, files, alone=True), said)
    # Not if racks are named: an order to a daemon concerns all of its racks.
    ways += stop_switch.order_daemons(sockets_of(cx, inventory), "stop", who) if not rack else []
    runs: list[dict[str, Any]] = []
    if inventory is not None:
        for name in racks:
            # Opened inside the call: a store that does not open is one way that failed, and no end of the command.
            ways.append(
                stop_switch.stop_in_store(
                    partial(open_store, inventory, name, cx.target), name, who=who, comment=comment, at=at
                )
            )
            if not ways[-1].trouble:
                runs += _await_runs(cx, inventory, name, wait)
                _keep_runbook(cx, inventory, name, "stopped", comment)
    # Asked before any is ended: the hint names them if that fails as well.
    pids = daemon_pids(cx, inventory)
    if all(way.trouble for way in ways):
        ways += [stop_switch.end_daemon(pid) for pid in pids]
    _say_stopped(cx, racks, ways, runs)
    if all(way.trouble for way in ways):
        raise UnreachableError("the autopilot could not be stopped in any way", hint=_by_force(pids))
    # Only these ways reach a daemon of another user or on another machine.
    shared = {str(path / stop_switch.FILE) for path in files} | {
        str(stop_switch.SYSTEM / stop_switch.FOLDER / name) for name in racks
    }
    if not any(
        way.way.removeprefix("file ") in shared or way.way.startswith("store ") for way in ways if not way.trouble
    ):
        cx.out.narrate(
            "warning: daemons of other users or on other machines were not notified: run this command again as that "
            "user or there"
        )
    return ExitCode.DONE


@verb(app, "start")
def start(
    cx: Invocation,
    rack: RackOption = None,
    comment: CommentOption = "",
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Let the autopilot act again after an operator confirms, even if it stopped itself.

    It stops itself in a rack when it does not know how one of its runs ended: look at that run first. A fault that was
    found in the meantime is left to operators once it is older than a policy's oldest_s.
    """
    from lumctl.change.origin import origin
    from lumctl.context import Context
    from lumctl.daemon.autopilot import stop_switch
    from lumctl.daemon.autopilot.journal import rack_status

    racks = racks_named(cx.inventory, rack)
    with Context(cx.inventory, cx.target) as context:
        for name in racks:
            status = rack_status(cx.inventory, name, context.store(name), now=context.now())
            cx.out.narrate(f"{name}: {status['state']}{why_of(status)}")
        cx.confirm(f"Let the autopilot act in {', '.join(racks)}?", yes=yes)
        for name in racks:
            store = context.store(name)
            stop_switch.start_in_store(store, who=origin(), comment=comment, at=context.now())
            for path in stop_switch.release_files(stop_switch.places([name], [store.files])):
                cx.out.narrate(f"removed {path}")
    # Last: a daemon that heard it earlier would still find the stop files.
    told = stop_switch.order_daemons(sockets_of(cx, cx.inventory), "start", origin())
    for name in racks:
        _keep_runbook(cx, cx.inventory, name, "running", comment)
    if cx.out.structured:
        ways = [{"way": way.way, "worked": not way.trouble, "told": way.trouble} for way in told]
        cx.out.document("autopilot-start", {"target": str(cx.target), "racks": racks, "ways": ways})
    elif cx.out.format is OutputFormat.NAME:
        cx.out.names(racks)
    else:
        for name in racks:
            cx.out.text(f"{name}: the autopilot may act")


autopilot_status.register(app)


def _by_force(pids: list[int]) -> str:
    if not pids:
        return "no daemon of this user runs here; if another user runs one, run this command as that user"
    return f"kill its daemon: kill -9 {' '.join(map(str, pids))}; the revert guard rolls back a swap in progress"


def _inventory(cx: Invocation) -> "Inventory | None":
    try:
        return cx.inventory
    except LumctlError as error:
        cx.out.narrate(
            f"no inventory can be read, so the autopilot of every rack of this user is stopped: {error.message}"
        )
        return None


def _await_runs(cx: Invocation, inventory: "Inventory", rack: str, wait_s: float) -> list[dict[str, Any]]:
    """Wait up to ``wait_s`` for the autopilot's unfinished runs of a rack; return each run with its present state."""
    from lumctl.context import Context
    from lumctl.daemon.autopilot.stop_switch import own_runs

    with Context(inventory, cx.target) as context:
        store, ends = context.store(rack), time.monotonic() + wait_s
        mine = [run.id for run in own_runs(store, now=context.now())]
        if mine:
            cx.out.narrate(f"{', '.join(mine)} is in progress: it will be finished or rolled back, not interrupted")
        while own_runs(store, now=context.now()) and time.monotonic() < ends:
            time.sleep(POLL_S)
        return [{"rack": rack, "run": run, "state": store.runs.get(run).state} for run in mine]


def said_in_files(who: str, at: float, comment: str) -> str:
    """The content of a stop file: who wrote it, when, and why."""
    return f"{who} at {moment_text(at)} {comment}".strip()


def _keep_runbook(cx: Invocation, inventory: "Inventory", rack: str, after: str, comment: str) -> None:
    """Record a stop or start as a run with a runbook; if that fails, only print a warning."""
    if trouble := keep_runbook(inventory, cx.target, rack, after, comment):
        cx.out.narrate(f"warning: no runbook was written: {trouble}")


def keep_runbook(inventory: "Inventory", target: str, rack: str, after: str, comment: str) -> str | None:
    """Record as a run with a runbook that the autopilot is now ``after``: ``stopped`` or ``running``.

    Return the reason if the runbook could not be written, else ``None``.
    """
    from lumctl.context import Context
    from lumctl.runbook.actions import record, save_quietly

    before = "running" if after == "stopped" else "stopped"
    data = {"act": "policy", "rack": rack, "before": {"autopilot": before}, "after": {"autopilot": after}}
    title = f"{'stop' if after == 'stopped' else 'start'} the autopilot of {rack}{f': {comment}' if comment else ''}"
    try:
        with Context(inventory, target) as context:
            run = record(context, "policy", [{"title": title, "data": data}], at=context.now())
            return save_quietly(context, run, rack)
    except LumctlError as error:
        return error.message


def _say_stopped(cx: Invocation, racks: list[str], ways: "list[StopResult]", runs: list[dict[str, Any]]) -> None:
    told = [{"way": way.way, "worked": not way.trouble, "told": way.trouble or "yes"} for way in ways]
    if cx.out.structured:
        document = {"target": str(cx.target), "racks": racks, "stopped": any(way["worked"] for way in told)}
        cx.out.document("autopilot-stop", {**document, "ways": told, "runs": runs})
    elif cx.out.format is OutputFormat.NAME:
        cx.out.names(racks)
    else:
        cx.out.table(WAYS, [{**way, "told": way["told"] if way["worked"] else f"no: {way['told']}"} for way in told])
        for run in runs:
            cx.out.text(f"{run['run']}: {run['state']}")
