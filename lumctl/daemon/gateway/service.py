"""A rack's gateway with all that belongs to it, put together and taken apart."""

import json
import os
import socket
import socketserver
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from lumctl import __version__
from lumctl.daemon.gateway.fencing import HIGHEST_FILE, Fence, HighestLease, NewestLease
from lumctl.daemon.gateway.requests import LOG_FILE, GatewayLog, Peer, RequestHandler
from lumctl.daemon.process import exclusive_lock
from lumctl.devices.errors import DeviceRefusedError
from lumctl.devices.gated.client import dial_socket
from lumctl.devices.gated.wire import SCHEMA, Lines, error_said
from lumctl.devices.registry import DeviceSet
from lumctl.devices.types import PucState
from lumctl.errors import RefusedError, UnreachableError
from lumctl.site import Site
from lumctl.sockets import bound
from lumctl.store import StoreError

LOCK = "gateway.lock"
SETTLES_EVERY_S = 5.0
"""How often a store that could not be read, or be told, is asked again; one that is settled is not asked at all."""
MOST_CONNECTIONS = 128
_REQUEST_WITHIN_S = 10.0
_IDLE_S = 3600.0
_POLL_S = 0.1
_ANSWERED_WITHIN_S = 10.0
_CREDENTIALS = struct.Struct("3i")

Answer = Callable[[Mapping[str, Any], Peer], Mapping[str, Any]]


class GatewayServer:
    """Serves requests at a socket until it is closed.

    ``greeting`` is what everybody is told first; ``mode`` is the socket's, 0600 unless a ``group`` may use it too.
    """

    def __init__(self, path: Path, greeting: Mapping[str, Any], answer: Answer, *, group: int | None = None) -> None:
        """Begin to serve; a socket file that a killed gateway left is replaced.

        Raises:
            UsageError: no socket can be made there.
        """
        self._path = path
        self._server = bound(
            path,
            lambda made: _Server(made, greeting, answer),
            hint="name one with a short path in a folder of yours: --listen",
            group=group,
        )
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(_POLL_S,), name="lumctl-gateway", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Take the socket away, and let those who are being answered have their answers."""
        self._path.unlink(missing_ok=True)
        self._server.shutdown()
        self._server.server_close()
        self._server.busy.wait_for_none(_ANSWERED_WITHIN_S)
        self._server.hang_up()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Busy:
    """How many requests are being answered."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._count = 0

    def __enter__(self) -> None:
        with self._changed:
            self._count += 1

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._count -= 1
            self._changed.notify_all()

    def wait_for_none(self, within_s: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._count == 0, within_s)


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, path: str, greeting: Mapping[str, Any], answer: Answer) -> None:
        self.greeting = {"schema": SCHEMA, "version": __version__, "pid": os.getpid(), **greeting}
        self.answer = answer
        self.busy = _Busy()
        self._places = threading.BoundedSemaphore(MOST_CONNECTIONS)
        self._open: set[socket.socket] = set()
        super().__init__(path, _Connection)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve in a thread of its own, or say that there is no room: who hears that knows that nothing was done."""
        if self._places.acquire(blocking=False):
            self._open.add(request)
            super().process_request(request, client_address)
            return
        with suppress(OSError):
            full = {"schema": SCHEMA, "refused": f"it serves {MOST_CONNECTIONS} connections already"}
            request.settimeout(0.0)
            request.sendall(json.dumps(full).encode() + b"\n")
        self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve, and free the place."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._open.discard(request)
            self._places.release()

    def hang_up(self) -> None:
        """Wake whoever waits for a request that will not be answered."""
        for connection in tuple(self._open):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Whoever leaves in the middle is no trouble of the gateway's."""


class _Connection(socketserver.BaseRequestHandler):
    server: _Server

    def handle(self) -> None:
        """Greet, then answer one request after the other until the other side hangs up or says what cannot be read."""
        peer = _peer(self.request)
        lines = Lines(self.request)
        lines.send(self.server.greeting, _ANSWERED_WITHIN_S)
        while True:
            try:
                request = lines.receive(_REQUEST_WITHIN_S, begins_within_s=_IDLE_S)
            except ValueError as error:
                lines.send(error_said(DeviceRefusedError(f"the gateway cannot read that: {error}")), _ANSWERED_WITHIN_S)
                return
            with self.server.busy:
                lines.send(self.server.answer(request, peer), _ANSWERED_WITHIN_S)


def _peer(connection: socket.socket) -> Peer:
    size = _CREDENTIALS.size
    pid, uid, _ = _CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))

    def waits() -> bool:
        connection.settimeout(0.0)
        try:
            return connection.recv(1, socket.MSG_PEEK) != b""
        except BlockingIOError:
            return True
        except OSError:
            return False

    return Peer(pid, uid, waits)


_PIECE = 65536
_WITHIN_S = 5.0


def relay(path: Path, source: int = 0, sink: int = 1) -> None:
    """Carry bytes both ways until either side ends: whoever asked and has gone is seen to have gone.

    Raises:
        UnreachableError: no gateway answers there.
    """
    try:
        connection = dial_socket(str(path), _WITHIN_S)
    except OSError as error:
        raise UnreachableError(f"no gateway answers at {path}: {error.strerror or error}") from error
    assert isinstance(connection, socket.socket)  # noqa: S101 - it is dialled so
    connection.settimeout(None)

    def inward() -> None:
        try:
            while piece := os.read(source, _PIECE):
                connection.sendall(piece)
        except OSError:
            pass
        # The other half may wait for an answer that nobody will read: it ends too.
        connection.shutdown(socket.SHUT_RDWR)

    with connection:
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
    site: Site, rack: str, listen: Path, say: Callable[[str], None], *, group: int | None = None
) -> Iterator[None]:
    """The gateway of a rack, serving at a socket until the block ends; writes that are being sent are finished then.

    ``site`` drives the devices from here: it was opened with ``direct``.

    Raises:
        RefusedError: another gateway serves this rack, or listens there.
        UsageError: the socket or the store cannot be had.
    """
    if site.endpoints.gateways:
        raise RefusedError("a gateway drives its devices itself")
    store = site.store(rack)
    with ExitStack() as stack:
        for lock in (store.files / LOCK, listen.with_name(f"{listen.name}.lock")):
            stack.enter_context(exclusive_lock(lock, f"rack {rack}", already="a gateway already serves"))
        newest = NewestLease(
            lambda: store.newest_fence(rack),
            lambda number: store.skip_fences(rack, number, now=site.now(), who="gateway"),
            say,
        )
        fence = Fence(rack, newest, newest.shut_out, HighestLease(store.files / HIGHEST_FILE, say))
        log = GatewayLog(store.files / LOG_FILE, say)
        devices = DeviceSet(
            site.inventory,
            site.endpoints,
            shell_of=site.fleet.shell,
            way_of=site.fleet.way,
            known_states=_remembered(site),
            now=site.now,
        )
        stack.callback(devices.close)
        desk = RequestHandler(site.inventory, rack, devices, fence, log, now=site.now, say=say)
        began = site.now()

        def answer(request: Mapping[str, Any], peer: Peer) -> Mapping[str, Any]:
            if request.get("call") == "ping":
                return {"answer": None}
            if request.get("call") == "status":
                counts = {"writes": log.sent, "refused": log.refused}
                return {"answer": {"since": began, "highest": fence.highest, **counts}}
            return desk.answer(request, peer)

        stack.enter_context(_settling(fence))
        stack.enter_context(GatewayServer(listen, {"rack": rack, "target": site.target}, answer, group=group))
        try:
            yield
        finally:
            if not fence.end():
                say("a write is still being sent: nobody will hear what became of it")


@contextmanager
def _settling(fence: Fence) -> Iterator[None]:
    """While inside, a store that is back is told what came while it was gone, before its next lease is refused."""
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


def _remembered(site: Site) -> Callable[[str], Mapping[int, PucState]]:
    """What a mesh holds by the store; nothing certain while that cannot be read: an open driver goes on as it is."""

    def known(device: str) -> Mapping[int, PucState]:
        try:
            return site.known_states(device)
        except StoreError:
            return {}

    return known
