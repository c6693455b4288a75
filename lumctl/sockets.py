"""Unix-domain sockets of server processes, and the server of JSON lines on them.

A socket is created next to its final path with no access for other users, and then moved there: no process can connect
before the permissions are right. The client is in :mod:`lumctl.json_lines`.
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
"""Default limit of simultaneous connections."""
POLL_S = 0.1
"""Seconds that a server's loop may take to notice that it must end."""
_SENT_WITHIN_S = 10.0
_CREDENTIALS = struct.Struct("3i")

Server = TypeVar("Server")


def listening(path: Path, backlog: int, *, hint: str) -> socket.socket:
    """A stream socket that listens at a path, made by :func:`bound`; up to ``backlog`` connections may wait.

    Raises:
        UsageError: the socket cannot be created there; ``hint`` says what helps.
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
    """A server at a path; it replaces a socket left by a killed server. Only its user and ``group`` may connect.

    ``bind`` creates the server at the given path.

    Raises:
        UsageError: no socket can be created there; ``hint`` says what helps.
    """
    made = path.with_name(f"{path.name}.new")
    try:
        make_private(path.parent)
        # A server that was killed between bind and rename leaves this name behind.
        made.unlink(missing_ok=True)
        # The umask belongs to the whole process: a file that another thread makes meanwhile is merely more private.
        before = os.umask(0o177)
        try:
            server = bind(str(made))
        finally:
            os.umask(before)
        if group is not None:
            # The group first: with the mode first, the earlier group could connect for a moment.
            os.chown(made, -1, group)
            made.chmod(0o660)
        made.rename(path)
    except OSError as error:
        raise UsageError(f"cannot create a socket at {path}: {error.strerror or error}", hint=hint) from error
    return server


@dataclass(frozen=True, slots=True)
class Peer:
    """The process at the other end, as the kernel reports it. ``waits`` returns whether it is still connected."""

    pid: int
    uid: int
    waits: Callable[[], bool] = lambda: True


Answer = Callable[[dict[str, Any], Peer], tuple[Mapping[str, Any], bytes]]
"""Makes the answer to a request: a line, and bytes that follow it."""


class BoundedThreads(socketserver.ThreadingMixIn):
    """Mixed into a ``socketserver.BaseServer``: each connection has a thread, up to ``max_connections`` at once."""

    # A client that stays connected must not keep the process from ending.
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, *arguments: Any, max_connections: int = MAX_CONNECTIONS) -> None:
        self.max_connections = max_connections
        self._places = threading.BoundedSemaphore(max_connections)
        super().__init__(*arguments)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve in a new thread, or refuse if too many are connected."""
        if self._places.acquire(blocking=False):
            super().process_request(request, client_address)
            return
        with suppress(OSError):
            self.refuse(request)
        self.shutdown_request(request)  # type: ignore[attr-defined]

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve, then make room for another connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def refuse(self, request: Any) -> None:
        """Tell a client that the server is full; this must not wait for the client."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that send invalid data or disconnect before the answer."""


class LineServer:
    """Answers requests of local processes at a Unix-domain socket until it is closed; serves connections in parallel.

    A connection gets the ``greeting``, if there is one, and then an answer to each of its requests. A request must be
    complete within ``request_within_s`` of its first byte, and must begin within ``idle_s`` of the last answer. An
    invalid line ends the connection; ``unreadable`` makes the answer to it.
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
        """Begin to serve; replace a socket file that a killed process left.

        ``group`` may connect too; ``drain_s`` is how long :meth:`close` waits for unfinished answers.

        Raises:
            UsageError: no socket can be created there; ``hint`` says what helps.
        """
        self._path = path
        self._answer, self._greeting, self._unreadable = answer, greeting, unreadable
        self._limits = (request_within_s, idle_s)
        self._drain_s = drain_s
        self._changed = threading.Condition()
        self._answering = 0
        self._open: set[socket.socket] = set()

        def bind(made: str) -> _LineServer:
            server = _LineServer(made, self, max_connections)
            self._file = Path(made).stat()
            return server

        self._server = bound(path, bind, hint=hint, group=group)
        threading.Thread(target=self._server.serve_forever, args=(POLL_S,), name=name, daemon=True).start()

    def close(self) -> None:
        """Remove the socket, send the answers that are being made, and disconnect."""
        # First, so that no new client finds the socket while the last answers are made.
        with suppress(OSError):  # its folder may be read-only by now; the next server replaces the file
            # Another server may have replaced it already: without its file, no client would find that one.
            if os.path.samestat(self._path.lstat(), self._file):
                self._path.unlink()
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
        """Serve one connection until the other side disconnects or sends an invalid line."""
        self._open.add(connection)
        try:
            self._serve(JsonLines(connection), _peer(connection))
        finally:
            self._open.discard(connection)

    def refuse(self, connection: socket.socket, max_connections: int) -> None:
        """Answer that the server is full; a client that reads this knows that nothing was done."""
        if self._greeting is not None:
            refusal = {**self._greeting, "refused": f"it already serves {max_connections} connections"}
            # 0.0: this runs in the thread that accepts, which a client that does not read must not hold up.
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
            # Counted until the answer is sent, so that close() does not cut it off.
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


def credentials_of(connection: socket.socket) -> tuple[int, int]:
    """The ids of the process and of the user that connected, as the kernel reports them."""
    process, user, _group = _CREDENTIALS.unpack(
        connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    )
    return process, user


def _peer(connection: socket.socket) -> Peer:
    pid, uid = credentials_of(connection)

    def waits() -> bool:
        # JsonLines sets the timeout again before each of its own calls.
        connection.settimeout(0.0)
        try:
            return connection.recv(1, socket.MSG_PEEK) != b""
        except BlockingIOError:
            return True
        except OSError:
            return False

    return Peer(pid, uid, waits)
