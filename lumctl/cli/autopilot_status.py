"""``lumctl autopilot status``: the state of each rack's autopilot, as far as this machine can see it."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lumctl.cli.invocation import Invocation
from lumctl.cli.output import OutputColumn, OutputFormat
from lumctl.cli.verbs import verb
from lumctl.errors import ExitCode, LumctlError
from lumctl.inventory.problems import require_known
from lumctl.time_text import age_text, iso_times, moment_text, moment_with_age

if TYPE_CHECKING:
    from lumctl.context import Context
    from lumctl.inventory.model import Inventory

RackOption = Annotated[
    list[str] | None, typer.Option("--rack", metavar="RACK", help="Only this rack; may be repeated. By default all.")
]
POLICIES = (
    OutputColumn("POLICY", "policy"),
    OutputColumn("HOW", "how"),
    OutputColumn("BREAKER", "breaker", gives_way=1),
    OutputColumn("THIS HOUR", "hour", right=True),
    OutputColumn("THIS DAY", "day", right=True),
)
WAITING = (
    OutputColumn("WAITS FOR APPROVAL", "plan"),
    OutputColumn("TO DO", "title"),
    OutputColumn("POLICY", "policy"),
    OutputColumn("ASKED", "asked", gives_way=1),
    OutputColumn("AGE", "age", right=True),
    OutputColumn("UNTIL", "until", gives_way=1),
)
DECISIONS = (
    OutputColumn("AT", "at", gives_way=1),
    OutputColumn("AGE", "age", right=True),
    OutputColumn("COMPONENT", "component"),
    OutputColumn("DID", "act"),
    OutputColumn("POLICY", "policy"),
    OutputColumn("BECAUSE", "because"),
)
UNKNOWN = "unknown"


def register(app: typer.Typer) -> None:
    """Add ``status`` to the commands of ``autopilot``."""
    verb(app, "status")(status)


def status(cx: Invocation, rack: RackOption = None) -> int:
    """Show the autopilot of each rack: the stop switch, breakers, limits, waiting plans, and its last decisions.

    ``running``: a daemon of this user answers. ``ready``: nothing stops the autopilot, but no daemon answers here; one
    of another user or on another machine may act, and only its decisions would show that. If a store cannot be read,
    the stop files still show whether the autopilot is stopped (exit code 3).

    For each fault whose last swap within a week failed, it shows how that swap ended, also if its revert guard undid
    it, and why no other was tried since.
    """
    from lumctl.context import Context

    daemons = _daemons(cx)
    watched = any(daemon["answers"] for daemon in daemons)
    with Context(cx.inventory, cx.target) as context:
        racks = [_of(cx, context, name, watched=watched) for name in racks_named(cx.inventory, rack)]
    if cx.out.structured:
        document = {"target": str(cx.target), "daemons": daemons, "racks": racks}
        cx.out.document("autopilot", iso_times(document, "at", "asked_at", "expires_at", "last_decided_at"))
    elif cx.out.format is OutputFormat.NAME:
        cx.out.names([each["rack"] for each in racks if each["state"] in {"running", "ready"}])
    else:
        _print(cx, racks, daemons)
    return ExitCode.UNREACHABLE if any("unread" in each for each in racks) else ExitCode.DONE


def why_of(status: dict[str, Any]) -> str:
    """The reason for the state, with a leading colon; empty if there is no reason."""
    return f": {status['why']}" if status["why"] else ""


def racks_named(inventory: "Inventory", named: list[str] | None) -> list[str]:
    """The racks that were named, each once; all racks if none was named.

    Raises:
        UsageError: the inventory has no rack of that name.
    """
    require_known("rack", named or (), inventory.racks)
    return list(dict.fromkeys(named)) if named else list(inventory.racks)


def sockets_of(cx: Invocation, inventory: "Inventory | None") -> list[Path]:
    """The control sockets of the inventory's daemon; without an inventory, of all daemons of this user."""
    from lumctl.daemon import client
    from lumctl.daemon.client import socket_path

    if inventory is None:
        return list(client.daemon_sockets())
    try:
        return [socket_path(inventory, cx.target)]
    except LumctlError:
        return []


def daemon_pids(cx: Invocation, inventory: "Inventory | None") -> list[int]:
    """The process ids of this user's daemons that watch the inventory; without an inventory, of all of them."""
    return [pid for path in sockets_of(cx, inventory) if (pid := _pid(path)) is not None]


def _pid(socket: Path) -> int | None:
    from lumctl.daemon.client import LOCK
    from lumctl.daemon.process import lock_holder

    return lock_holder(socket.parent / LOCK)


def _daemons(cx: Invocation) -> list[dict[str, Any]]:
    """The daemons of this user that watch this inventory, including one that runs but does not answer."""
    from lumctl.daemon import client

    found: list[dict[str, Any]] = []
    for path in sockets_of(cx, cx.inventory):
        try:
            answer = client.send_order(path, "status")
        # No daemon, or the socket of one that was killed.
        except (FileNotFoundError, ConnectionRefusedError):
            continue
        except (OSError, ValueError):
            # A socket that takes the connection and does not answer: the daemon hangs, and must be seen.
            found.append({"pid": _pid(path), "answers": False, "stopped": None, "busy": None})
        else:
            told = {key: answer[key] for key in ("pid", "stopped", "busy")}
            found.append({**told, "answers": True})
    return found


def _of(cx: Invocation, context: "Context", rack: str, *, watched: bool) -> dict[str, Any]:
    from lumctl.daemon.autopilot import stop_switch
    from lumctl.daemon.autopilot.journal import rack_status
    from lumctl.store import files_of

    try:
        return rack_status(cx.inventory, rack, context.store(rack), now=context.now(), watched=watched)
    except LumctlError as error:
        files = files_of(cx.inventory, rack, cx.target)
        thrown = stop_switch.thrown(stop_switch.places([rack], [files]))
        state = UNKNOWN if thrown is None else "stopped"
        nothing: dict[str, Any] = {"last_decided_at": None}
        nothing |= {name: [] for name in ("policies", "waiting", "failed_attempts", "decisions")}
        return {"rack": rack, "state": state, "why": thrown or error.message, **nothing, "unread": error.message}


def _print(cx: Invocation, racks: list[dict[str, Any]], daemons: list[dict[str, Any]]) -> None:
    now = time.time()
    for daemon in daemons:
        if daemon["answers"]:
            cx.out.narrate(f"daemon: pid {daemon['pid']}{' (at work)' if daemon['busy'] else ''}")
        else:
            cx.out.narrate(f"daemon: pid {daemon['pid'] or 'unknown'} does not answer: it hangs or is suspended")
    if not daemons:
        cx.out.narrate("no daemon of this user watches this inventory on this machine")
    for each in racks:
        cx.out.text(f"{each['rack']}  {each['state']}{why_of(each)}")
        if "unread" in each:
            if each["why"] != each["unread"]:
                cx.out.narrate(f"{each['rack']}: {each['unread']}")
            continue
        if each["state"] != "off" and not any(daemon["answers"] for daemon in daemons):
            last = each["last_decided_at"]
            told = (
                f"the newest decision of a daemon is from {moment_with_age(last, now)}"
                if last
                else "no daemon has made a decision within a week"
            )
            cx.out.narrate(f"{each['rack']}: {told}")
        _print_rack(cx, each, now)


def _print_rack(cx: Invocation, each: dict[str, Any], now: float) -> None:
    rows = [
        {**p, "hour": f"{p['swaps_hour']} of {p['most_hour']}", "day": f"{p['swaps_day']} of {p['most_day']}"}
        for p in each["policies"]
    ]
    if rows:
        cx.out.table(POLICIES, rows)
    for policy in each["policies"]:
        if policy["breaker_why"]:
            cx.out.text(f"circuit breaker of {policy['policy']}: {policy['breaker_why']}")
    for attempt in each["failed_attempts"]:
        for line in _attempt_lines(attempt, each, now):
            cx.out.text(line)
    if each["waiting"]:
        waiting = [
            {
                **w,
                "asked": moment_text(w["asked_at"]),
                "age": age_text(now - w["asked_at"]),
                "until": moment_text(w["expires_at"]),
            }
            for w in each["waiting"]
        ]
        cx.out.table(WAITING, waiting)
        aimed = "" if str(cx.target) == "rack" else f" --target {cx.target}"
        first = waiting[0]["plan"]
        cx.out.narrate(
            f"look at it: lumctl swap apply {first} --dry-run{aimed}; then: lumctl swap approve {first}{aimed}"
        )
    if each["decisions"]:
        shown = [
            {
                **d,
                "at": moment_text(d["at"]),
                "age": age_text(now - d["at"]),
                "component": d.get("component", d["key"]),
            }
            for d in each["decisions"]
        ]
        cx.out.table(DECISIONS, list(reversed(shown)))


def _attempt_lines(attempt: dict[str, Any], rack: dict[str, Any], now: float) -> Iterator[str]:
    """Lines about an unsuccessful last swap for a fault: how it ended, and why no other was tried since."""
    whom = " by its revert guard" if attempt["by_guard"] else ""
    outcome = "left unfinished" if attempt["outcome"] == UNKNOWN else attempt["outcome"].replace("-", " ")
    run = f" ({attempt['run']})" if attempt["run"] else ""
    why = f": {attempt['why']}" if attempt["why"] else ""
    swap = f"{attempt['plan']}{run} of {moment_with_age(attempt['at'], now)}"
    yield f"{', '.join(attempt['accelerators'])}: {swap} was {outcome}{whom}{why}"
    since = attempt["not_tried_since"]
    if since is None:
        idle = "no daemon has checked it since; start one: lumctl watch"
        since = "the daemon waits a minute and then decides again" if rack["state"] == "running" else idle
    yield f"  nothing has been tried since: {since}"
