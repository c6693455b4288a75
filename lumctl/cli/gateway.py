"""``lumctl gateway``: the only process that writes to a rack's devices; it refuses writes under a lost lease."""

import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lumctl.cli.components import one_rack
from lumctl.cli.invocation import Invocation
from lumctl.cli.nouns import NOUNS
from lumctl.cli.output import OutputColumn, OutputFormat
from lumctl.cli.verbs import noun_app, verb
from lumctl.cli.watch import sayer
from lumctl.errors import ExitCode, LumctlError, UsageError

if TYPE_CHECKING:
    from lumctl.devices.endpoints import GatewayEndpoint

app = noun_app(NOUNS["gateway"].help)

_COLUMNS = (
    OutputColumn("RACK", "rack"),
    OutputColumn("SOCKET", "socket"),
    OutputColumn("STATE", "state"),
    OutputColumn("LEASE", "highest", right=True, gives_way=3),
    OutputColumn("WRITES", "writes", right=True, gives_way=2),
    OutputColumn("REFUSED", "refused", right=True, gives_way=1),
    OutputColumn("PROBLEM", "problem"),
)


@verb(app, "run")
def run(
    cx: Invocation,
    rack: Annotated[str | None, typer.Argument(metavar="RACK", help="May be omitted if there is only one.")] = None,
    listen: Annotated[
        Path | None,
        typer.Option("--listen", metavar="SOCKET", help="Where to listen, if not at the default address."),
    ] = None,
    group: Annotated[
        str | None, typer.Option("--group", metavar="GROUP", help="Users of this group may also use it.")
    ] = None,
) -> None:
    """Serve as the only writer to a rack's devices, for the newest lease only, in the foreground.

    If the inventory (``gateway: SOCKET``) or $LUMCTL_GATEWAY names a gateway for a rack, every command reads and writes
    the rack's devices through it only. On ``--target sim`` only $LUMCTL_GATEWAY counts: the inventory names the gateway
    of the real rack. Each write carries the number of its lease. If a newer lease was given since, the write is refused
    and nothing is sent, so an engine that was suspended for longer than its lease does no harm when it wakes up. A
    write in progress is finished before the first write of a newer lease begins. The phases of a running job are lit
    without a lease of their own, while no run holds the rack's: see lumctl-job(7).

    The socket is the one that --listen names, or $LUMCTL_GATEWAY, or (on the rack) the inventory, or one in the user's
    runtime folder; the command prints it. Only its own user may connect, and with --group that group. Each write is a
    line of gateway.log next to the store: time, device, call, lease number, calling process, and how it ended.

    SIGTERM and SIGINT end the gateway after the write in progress (exit code 0). A second gateway of the same rack is
    refused (exit code 5). After an edit of the inventory, start it again.
    """
    if cx.out.format is not OutputFormat.TABLE:
        raise UsageError("the gateway prints no data", hint=f"lumctl gateway status -o {cx.out.format}")
    from lumctl.context import Context
    from lumctl.daemon.gateway.service import service
    from lumctl.daemon.process import notify_systemd
    from lumctl.devices.endpoints import default_socket, gateways_of

    name, say = one_rack(cx.inventory, rack), sayer(cx)
    owner = _group(group)
    # Direct: otherwise the gateway would send its writes to itself.
    with Context(cx.inventory, cx.target, direct=True) as context:
        named = gateways_of(cx.inventory, cx.target, context.endpoints.hosts).get(name)
        place = listen or (named.path if named else default_socket(cx.inventory, name, cx.target))
        warn_of_folder(cx, place)
        with _ending() as ended, service(context, name, place.absolute(), say, group=owner):
            say(f"serving rack {name} on target {cx.target} at {place} (pid {os.getpid()})")
            # Otherwise commands find it by themselves.
            if named is None or named.path != place:
                say(naming(cx.target, place))
            # Only now: units that are ordered after this one may use the socket.
            notify_systemd("READY=1")
            ended.wait()
            notify_systemd("STOPPING=1")
    say("ended")


@verb(app, "status")
def status(cx: Invocation) -> int:
    """Show the gateway of each rack, whether it answers, and how many writes it sent and refused.

    On ``--target sim`` only $LUMCTL_GATEWAY selects one. Exits 3 if a configured gateway does not answer.
    """
    from lumctl.context import Context

    with Context(cx.inventory, cx.target) as context:
        gateways = context.endpoints.gateways
        rows = [_asked(name, gateways.get(name), str(cx.target), context.fleet.dial) for name in cx.inventory.racks]
    if cx.out.format is OutputFormat.NAME:
        cx.out.names([row["rack"] for row in rows if row["state"] == "ok"])
    elif cx.out.structured:
        cx.out.document("gateway", {"target": str(cx.target), "gateways": rows})
    else:
        cx.out.table(_COLUMNS, rows)
    return ExitCode.UNREACHABLE if any(row["state"] == "failed" for row in rows) else ExitCode.DONE


@verb(app, "connect")
def connect(
    cx: Invocation, socket: Annotated[Path, typer.Argument(metavar="SOCKET", help="Where the gateway listens.")]
) -> None:
    """Connect standard input and output to a gateway of this machine: commands on other machines run this over SSH.

    The inventory names the host with ``gateway_via: HOST``, next to ``gateway: SOCKET``.
    """
    del cx
    from lumctl.daemon.gateway.service import relay

    relay(socket, sink=sys.stdout.fileno())  # no longer 1: see lumctl.cli.main


def warn_of_folder(cx: Invocation, place: Path) -> None:
    """Warn if another user can replace the gateway's socket with their own."""
    from lumctl.inventory.files import folder_writable_by_others

    if reason := folder_writable_by_others(place.absolute().parent):
        cx.out.narrate(f"warning: another user can replace this gateway's socket: {reason}")


def naming(target: str, place: Path) -> str:
    """How commands can be directed to this gateway, as text."""
    if target == "rack":
        return f"commands use it where the inventory says `gateway: {place}`, or with LUMCTL_GATEWAY={place}"
    return f"commands on target {target} use it only with LUMCTL_GATEWAY={place}"


def _group(name: str | None) -> int | None:
    import grp

    if name is None:
        return None
    try:
        return grp.getgrnam(name).gr_gid
    except KeyError:
        raise UsageError(f"this machine has no group {name!r}") from None


def _asked(rack: str, where: "GatewayEndpoint | None", target: str, dial: Any) -> dict[str, Any]:
    """One row: the gateway of a rack and its own report."""
    from functools import partial

    from lumctl.devices.gateway.client import Gateway

    row: dict[str, Any] = dict.fromkeys(("socket", "highest", "writes", "refused", "since", "problem"))
    row = {"rack": rack, **row, "state": "disabled"}
    if where is None:
        return row
    gateway = Gateway(rack, target, where.place, partial(dial, where))
    try:
        said = gateway.ask({"call": "status"}, about=f"rack {rack}")
        if not isinstance(said, Mapping):
            return {
                **row,
                "socket": where.place,
                "state": "failed",
                "problem": "it does not report what it has written",
            }
        return {**row, "socket": where.place, "state": "ok", **{key: said[key] for key in row.keys() & said.keys()}}
    except LumctlError as error:
        return {**row, "socket": where.place, "state": "failed", "problem": error.message}
    finally:
        gateway.close()


@contextmanager
def _ending() -> Iterator[threading.Event]:
    """Within the block, SIGTERM and SIGINT set the event instead of ending the process."""
    ended = threading.Event()
    before = {number: signal.signal(number, lambda *_: ended.set()) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield ended
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)
