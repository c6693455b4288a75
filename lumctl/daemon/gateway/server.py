"""The socket of a gateway: each connection of a local process sends a greeting, then requests in turn."""

import json
import os
import socket
import socketserver
import struct
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from lumctl import __version__
from lumctl.daemon.gateway.requests import Peer
from lumctl.devices.errors import DeviceRefusedError
from lumctl.devices.gated.wire import SCHEMA, Lines, error_said
from lumctl.sockets import bound

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
