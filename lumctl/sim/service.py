"""A listening socket that can be shut and opened again, with a bounded number of connections."""

import contextlib
import socket
import threading
from collections.abc import Callable
from pathlib import Path

_BACKLOG = 64


class SimulatedService:
    """Accepts connections in a thread of its own and hands each to ``serve``, which must return at once.

    A shut service keeps its port bound without listening: connections are refused, and no other process gets the
    port.
    """

    def __init__(
        self, name: str, serve: Callable[[socket.socket], None], *, most: int, path: Path | None = None
    ) -> None:
        self.name = name
        self._serve = serve
        self._most = most
        self._path = path
        self._lock = threading.Lock()
        self._connections: set[socket.socket] = set()
        self._listening = False
        self._socket = self._bound(0)
        self.port: int = self._socket.getsockname()[1] if path is None else 0

    @property
    def address(self) -> str:
        """``127.0.0.1:port``, or ``unix:`` and the path of the socket."""
        return f"127.0.0.1:{self.port}" if self._path is None else f"unix:{self._path}"

    def open(self) -> None:
        """Start to listen; do nothing if the service already listens."""
        with self._lock:
            if self._listening:
                return
            self._listening = True
            self._socket.listen(_BACKLOG)
            threading.Thread(target=self._accept, args=(self._socket,), name=f"accept {self.name}", daemon=True).start()

    def shut(self) -> None:
        """Refuse new connections and end the present ones."""
        with self._lock:
            if self._listening:
                self._listening = False
                self._end()
                self._socket = self._bound(self.port)
        self.cut()

    def close(self) -> None:
        """Close the port."""
        with self._lock:
            self._listening = False
            self._end()
        self.cut()

    def cut(self) -> None:
        """Cut all connections."""
        with self._lock:
            connections = list(self._connections)
        for connection in connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def done_with(self, connection: socket.socket) -> None:
        """Close a connection that was handed to ``serve``; a second call does nothing."""
        with self._lock:
            self._connections.discard(connection)
        connection.close()

    def _bound(self, port: int) -> socket.socket:
        if self._path is not None:
            made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            # A service that was shut leaves the path: unlike a port, it is not freed when the socket is closed.
            self._path.unlink(missing_ok=True)
            made.bind(str(self._path))
            self._path.chmod(0o600)
            return made
        made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        # Connections that a fault has cut may linger on this port, which would prevent listening on it again.
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(("127.0.0.1", port))
        return made

    def _end(self) -> None:
        with contextlib.suppress(OSError):  # a listening socket is not connected; the call only wakes accept()
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _accept(self, listening: socket.socket) -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            with self._lock:
                # Decided under the lock: a shut() at this moment must not miss the connection.
                welcome = self._listening and len(self._connections) < self._most
                if welcome:
                    self._connections.add(connection)
            if welcome:
                self._serve(connection)
            else:
                connection.close()


def read_line(connection: socket.socket, *, most: int) -> str | None:
    """One line without its end; ``None`` if the other side closed too early, sent too much, or sent no valid text."""
    received = bytearray()
    while b"\n" not in received:
        if len(received) > most:
            return None
        chunk = connection.recv(4096)
        if not chunk:
            return None
        received += chunk
    try:
        return received[: received.index(b"\n")].decode().rstrip("\r")
    except UnicodeDecodeError:
        return None
