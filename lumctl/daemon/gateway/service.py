"""A rack's gateway with all its parts, its socket, and a relay to it for clients over SSH."""

import os
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from lumctl import __version__
from lumctl.context import Context
from lumctl.daemon.gateway.fencing import HIGHEST_FILE, Fence, HighestLease, NewestLease
from lumctl.daemon.gateway.phase_requests import PhaseRequests
from lumctl.daemon.gateway.requests import RequestHandler
from lumctl.daemon.gateway.writes import LOG_FILE, FencedWrites, GatewayLog
from lumctl.daemon.process import exclusive_lock
from lumctl.devices.errors import DeviceRefusedError
from lumctl.devices.gateway.wire import SCHEMA, error_said
from lumctl.devices.registry import DeviceSet
from lumctl.devices.types import PucState
from lumctl.errors import RefusedError, UnreachableError
from lumctl.json_lines import connect
from lumctl.sockets import LineServer, Peer
from lumctl.store import StoreError

LOCK = "gateway.lock"
SETTLES_EVERY_S = 5.0
"""How often a store that could not be reached is retried."""
MAX_CONNECTIONS = 128
_REQUEST_WITHIN_S = 10.0
_IDLE_S = 3600.0
_DRAIN_S = 10.0
_CONNECT_WITHIN_S = 5.0
_PIECE = 65536


def gateway_server(
    path: Path,
    greeting: Mapping[str, Any],
    answer: Callable[[dict[str, Any], Peer], Mapping[str, Any]],
    *,
    group: int | None = None,
) -> LineServer:
    """The socket of a gateway, serving until it is closed; each client first gets the greeting.

    Only the gateway's user may connect, and the members of ``group`` if it is given.

    Raises:
        UsageError: the socket cannot be made.
    """
    return LineServer(
        path,
        lambda request, peer: (answer(request, peer), b""),
        name="lumctl-gateway",
        hint="choose one with a short path in a folder of yours: --listen",
        greeting={"schema": SCHEMA, "version": __version__, "pid": os.getpid(), **greeting},
        unreadable=lambda error: error_said(DeviceRefusedError(f"the gateway cannot read the request: {error}")),
        group=group,
        max_connections=MAX_CONNECTIONS,
        request_within_s=_REQUEST_WITHIN_S,
        idle_s=_IDLE_S,
        drain_s=_DRAIN_S,
    )


def relay(path: Path, source: int = 0, sink: int = 1) -> None:
    """Relay between standard input and output and a gateway's socket until either side ends.

    Raises:
        UnreachableError: no gateway answers there.
    """
    try:
        connection = connect(path, _CONNECT_WITHIN_S)
    except OSError as error:
        raise UnreachableError(f"no gateway answers at {path}: {error.strerror or error}") from error
    # connect() left its time limit on the socket, but a relay may be idle for hours.
    connection.settimeout(None)

    def inward() -> None:
        try:
            while piece := os.read(source, _PIECE):
                connection.sendall(piece)
        except OSError:
            pass
        # End the other direction too: the answer that it may be waiting for cannot be delivered.
        connection.shutdown(socket.SHUT_RDWR)

    with connection:
        # A daemon thread: nothing interrupts its read of standard input.
        threading.Thread(target=inward, name="asking", daemon=True).start()
        try:
            while piece := connection.recv(_PIECE):
                view = memoryview(piece)
                while view:
                    view = view[os.write(sink, view) :]
        except OSError:
            return


@contextmanager
def service(
    context: Context, rack: str, listen: Path, say: Callable[[str], None], *, group: int | None = None
) -> Iterator[None]:
    """The gateway of a rack, serving at a socket until the block ends; at the end, writes in transit are finished.

    ``context`` drives the devices from this process: it was opened with ``direct``.

    Raises:
        RefusedError: another gateway serves this rack, or listens at the socket.
        UsageError: the socket or the store cannot be opened.
    """
    if context.endpoints.gateways:
        raise RefusedError("a gateway drives its devices itself")
    store = context.store(rack)
    with ExitStack() as stack:
        # One lock for the rack's devices, and one for the socket: a gateway of another rack may name the same socket.
        for lock in (store.files / LOCK, listen.with_name(f"{listen.name}.lock")):
            stack.enter_context(exclusive_lock(lock, f"rack {rack}", already="a gateway already serves"))
        newest = NewestLease(
            lambda: store.leases.newest(rack),
            lambda number: store.leases.skip(rack, number, now=context.now(), who="gateway"),
            say,
        )
        fence = Fence(rack, newest, newest.shut_out, HighestLease(store.files / HIGHEST_FILE, say))
        log = GatewayLog(store.files / LOG_FILE, say)
        devices = DeviceSet(
            context.inventory,
            context.endpoints,
            shell_of=context.fleet.shell,
            way_of=context.fleet.way,
            known_states=_remembered(context),
            now=context.now,
        )
        # Called after the server has closed, so no request uses a closed driver.
        stack.callback(devices.close)
        writes = FencedWrites(fence, log, now=context.now, say=say)
        phases = PhaseRequests(context.inventory, rack, devices, writes, store, now=context.now)
        handler = RequestHandler(
            context.inventory, rack, devices, fence, writes, say=say, others={"phase": phases.light}
        )
        began = context.now()

        def answer(request: Mapping[str, Any], peer: Peer) -> Mapping[str, Any]:
            if request.get("call") == "ping":
                return {"answer": None}
            if request.get("call") == "status":
                counts = {"writes": log.sent, "refused": log.refused}
                return {"answer": {"since": began, "highest": fence.highest, **counts}}
            return handler.answer(request, peer)

        stack.enter_context(_settling(fence))
        stack.enter_context(gateway_server(listen, {"rack": rack, "target": context.target}, answer, group=group))
        try:
            yield
        finally:
            # Before the socket closes, so that clients hear how their last writes ended.
            if not fence.end():
                say("a write is still being sent: its result will not be reported")


@contextmanager
def _settling(fence: Fence) -> Iterator[None]:
    """Within the block, send the highest number to a store that is reachable again before its next lease is refused."""
    ended = threading.Event()

    def settle() -> None:
        fence.settle()
        while not ended.wait(SETTLES_EVERY_S):
            fence.settle()

    thread = threading.Thread(target=settle, name="lumctl-settling", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _remembered(context: Context) -> Callable[[str], Mapping[int, PucState]]:
    """A function that reads a mesh's known states from the store; it returns none if that fails; drivers continue."""

    def known(device: str) -> Mapping[int, PucState]:
        try:
            return context.known_states(device)
        except StoreError:
            return {}

    return known
