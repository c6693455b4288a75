"""Unix-domain sockets of processes that serve, and the server of JSON lines on them.

A socket is created beside its place with no access for other users, and then moved there: nobody can connect to it
before its permissions are right. The client is in :mod:`lumctl.json_lines`.
"""

import os
import socket
import socketserver
import struct
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

from lumctl.errors import UsageError
from lumctl.files import make_private
from lumctl.json_lines import JsonLines

MAX_CONNECTIONS = 16
"""At once, by default."""
POLL_S = 0.1
"""How long the end of a server may take to be noticed."""
_SENT_WITHIN_S = 10.0
_CREDENTIALS = struct.Struct("3i")
"""Process, user and group of a peer, as ``SO_PEERCRED`` gives them."""

Server = TypeVar("Server")


def listening(path: Path, backlog: int, *, hint: str) -> socket.socket:
    """A stream socket that listens at a path, as :func:`bound` makes it; ``backlog`` may wait to be accepted.

    Raises:
        UsageError: it cannot be made there; ``hint`` says what helps.
    """

    def bind(where: str) -> socket.socket:
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            made.bind(where)
            made.listen(backlog)
        except BaseException:
            made.close()
            raise
        return made

    return bound(path, bind, hint=hint)


def bound(path: Path, bind: Callable[[str], Server], *, hint: str, group: int | None = None) -> Server:
    """A server at a path; what a killed one left there is replaced. Only its user may connect, or a ``group`` too.

    ``bind`` makes the server at the place that it is given.

    Raises:
        UsageError: no socket can be made there; ``hint`` says what helps.
    """
    made = path.with_name(f"{path.name}.new")
    try:
        make_private(path.parent)
        made.unlink(missing_ok=True)
        before = os.umask(0o177)
        try:
            server = bind(str(made))
        finally:
            os.umask(before)
        if group is not None:
            os.chown(made, -1, group)
            made.chmod(0o660)
        made.rename(path)
    except OSError as error:
        raise UsageError(f"no socket can be had at {path}: {error.strerror or error}", hint=hint) from error
    return server


@dataclass(frozen=True, slots=True)
class Peer:
    """The process at the other end, as the kernel knows it. ``waits`` tells whether it is still connected."""

    pid: int
    uid: int
    waits: Callable[[], bool] = lambda: True


Answer = Callable[[dict[str, Any], Peer], tuple[Mapping[str, Any], bytes]]
"""From a request the line of its answer, and bytes that follow the line."""


class BoundedThreads(socketserver.ThreadingMixIn):
    """Mixed into a ``socketserver.BaseServer``: each connection has a thread, up to ``max_connections`` at once."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, *arguments: Any, max_connections: int = MAX_CONNECTIONS) -> None:
        self.max_connections = max_connections
        self._places = threading.BoundedSemaphore(max_connections)
        super().__init__(*arguments)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve in a thread of its own, or refuse."""
        if self._places.acquire(blocking=False):
            super().process_request(request, client_address)
            return
        with suppress(OSError):
            self.refuse(request)
        self.shutdown_request(request)  # type: ignore[attr-defined]

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve, and free the place."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def refuse(self, request: Any) -> None:
        """Tell a client that there is no room; must not wait for it."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that send nonsense or hang up before the answer."""


class LineServer:
    """Answers requests of local processes at a Unix-domain socket until it is closed; connections are served at once.

    A connection gets the ``greeting``, if there is one, and then an answer to each of its requests. A request must be
    whole within ``request_within_s`` of its first byte, and may begin ``idle_s`` after the last answer. Invalid lines
    end the connection; ``unreadable`` gives the answer to them.
    """

    def __init__(  # noqa: PLR0913 - the limits differ from server to server
        self,
        path: Path,
        answer: Answer,
        *,
        name: str,
        hint: str,
        greeting: Mapping[str, Any] | None = None,
        unreadable: Callable[[ValueError], Mapping[str, Any]] | None = None,
        group: int | None = None,
        max_connections: int = MAX_CONNECTIONS,
        request_within_s: float = 5.0,
        idle_s: float = 5.0,
        drain_s: float = 0.0,
    ) -> None:
        """Begin to serve; a socket file that a killed process left is replaced.

        ``group`` may connect too; ``drain_s`` is how long the end waits for answers that are being made.

        Raises:
            UsageError: no socket can be made there; ``hint`` says what helps.
        """
        self._path = path
        self._answer, self._greeting, self._unreadable = answer, greeting, unreadable
        self._limits = (request_within_s, idle_s)
        self._drain_s = drain_s
        self._changed = threading.Condition()
        self._answering = 0
        self._open: set[socket.socket] = set()
        self._server = bound(path, lambda made: _LineServer(made, self, max_connections), hint=hint, group=group)
        threading.Thread(target=self._server.serve_forever, args=(POLL_S,), name=name, daemon=True).start()

    def close(self) -> None:
        """Remove the socket, let requests that are being answered have their answers, and hang up."""
        with suppress(OSError):  # its folder may be read-only by now: the next server replaces what is left
            self._path.unlink(missing_ok=True)
        self._server.shutdown()
        self._server.server_close()
        with self._changed:
            self._changed.wait_for(lambda: self._answering == 0, self._drain_s)
        for connection in tuple(self._open):  # wakes the threads that wait for a request
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def serve(self, connection: socket.socket) -> None:
        """Serve one connection until the other side hangs up or sends an invalid line."""
        self._open.add(connection)
        try:
            self._serve(JsonLines(connection), _peer(connection))
        finally:
            self._open.discard(connection)

    def refuse(self, connection: socket.socket, max_connections: int) -> None:
        """Say that there is no room: a client that hears it knows that nothing was done."""
        if self._greeting is not None:
            refusal = {**self._greeting, "refused": f"it serves {max_connections} connections already"}
            JsonLines(connection).send(refusal, 0.0)

    def _serve(self, lines: JsonLines, peer: Peer) -> None:
        request_within_s, idle_s = self._limits
        if self._greeting is not None:
            lines.send(self._greeting, _SENT_WITHIN_S)
        while True:
            try:
                request = lines.receive(request_within_s, begins_within_s=idle_s)
            except ValueError as error:
                if self._unreadable is not None:
                    lines.send(self._unreadable(error), _SENT_WITHIN_S)
                return
            self._count(1)
            try:
                answer, body = self._answer(request, peer)
                lines.send(answer, _SENT_WITHIN_S, body)
            finally:
                self._count(-1)

    def _count(self, more: int) -> None:
        with self._changed:
            self._answering += more
            self._changed.notify_all()


class _LineServer(BoundedThreads, socketserver.UnixStreamServer):
    def __init__(self, path: str, owner: LineServer, max_connections: int) -> None:
        self._owner = owner
        super().__init__(path, socketserver.BaseRequestHandler, max_connections=max_connections)

    def finish_request(self, request: Any, client_address: Any) -> None:
        del client_address
        self._owner.serve(request)

    def refuse(self, request: Any) -> None:
        self._owner.refuse(request, self.max_connections)


def _peer(connection: socket.socket) -> Peer:
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, uid, _ = _CREDENTIALS.unpack(credentials)

    def waits() -> bool:
        connection.settimeout(0.0)
        try:
            return connection.recv(1, socket.MSG_PEEK) != b""
        except BlockingIOError:
            return True
        except OSError:
            return False

    return Peer(pid, uid, waits)
