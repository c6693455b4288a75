"""A listening socket that can be shut and opened again, with a bounded number of connections behind it."""

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
        """Listen; does nothing if it does already."""
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
            # Left by a service that was shut: a path, unlike a port, is not freed with the socket.
            self._path.unlink(missing_ok=True)
            made.bind(str(self._path))
            self._path.chmod(0o600)
            return made
        made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        # Connections that a fault has cut may linger on this port; it is still ours.
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(("127.0.0.1", port))
        return made

    def _end(self) -> None:
        with contextlib.suppress(OSError):  # it was never connected: only a waiting accept() is woken by this
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _accept(self, listening: socket.socket) -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            with self._lock:
                welcome = self._listening and len(self._connections) < self._most
                if welcome:
                    self._connections.add(connection)
            if welcome:
                self._serve(connection)
            else:
                connection.close()


def read_line(connection: socket.socket, *, most: int) -> str | None:
    """One line without its end; ``None`` when the other side closed before it, sent too much, or no text."""
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


_LOGIN_TICK_S, _LOGIN_TICKS = 1.0, 20
_IDLE_TICK_S = 600.0
_QUICKACK: int | None = getattr(socket, "TCP_QUICKACK", None)


class Wire:
    """A socket for paramiko that waits in the kernel instead of waking ten times a second.

    ``on_read`` is called whenever paramiko is about to wait for the client, that is: when the replies to all that
    came before are sent. Before the login is done the wait is bounded.
    """

    def __init__(self, connection: socket.socket, on_read: Callable[[], None], on_close: Callable[[], None]) -> None:
        self._socket = connection
        self._on_read = on_read
        self._on_close = on_close
        self._ticks_left = _LOGIN_TICKS
        self.logged_in: Callable[[], bool] = lambda: False
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def recv(self, count: int) -> bytes:
        """Wait for data; ``b""`` when a client takes too long to log in."""
        self._on_read()
        logged_in = self.logged_in()
        if _QUICKACK is not None:
            # A client that leaves Nagle's algorithm on waits for our acknowledgement; Linux forgets this option.
            self._socket.setsockopt(socket.IPPROTO_TCP, _QUICKACK, 1)
        self._socket.settimeout(_IDLE_TICK_S if logged_in else _LOGIN_TICK_S)
        try:
            return self._socket.recv(count)
        except TimeoutError:
            if not logged_in:
                self._ticks_left -= 1
                if self._ticks_left <= 0:
                    return b""
            raise

    def send(self, data: bytes) -> int:
        """Send some of this."""
        return self._socket.send(data)

    def settimeout(self, _seconds: float | None) -> None:
        """Paramiko's wish for a short time-out is not followed: see above."""

    def getpeername(self) -> tuple[str, int]:
        """An address, for logs only."""
        return ("127.0.0.1", 0)

    def __getattr__(self, name: str) -> object:
        """What else paramiko asks of a socket, from the socket itself."""
        return getattr(self._socket, name)

    def close(self) -> None:
        """Close, from whatever thread."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes a recv() that waits in another thread
        self._on_close()
