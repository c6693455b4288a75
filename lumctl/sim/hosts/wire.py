"""The socket under a simulated host's SSH server."""

import contextlib
import socket
from collections.abc import Callable

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
