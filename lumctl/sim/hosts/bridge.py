"""Carries the loop of a simulated host over a connection of the control socket, for a foreign sshd."""

import contextlib
import socket
import threading
from collections import deque
from collections.abc import Callable

from lumctl.sim.hosts.loop import Loop, Pipe

_PATIENCE_S = 30.0
_MOST_READ = 64 * 1024


class _SocketPipe:
    """A connection as the input and output of a loop; another thread reads it."""

    def __init__(self, connection: socket.socket) -> None:
        self.came: deque[bytes] = deque()
        self.closed = threading.Event()
        self._connection = connection

    def read(self) -> bytes | None:
        return self.came.popleft() if self.came else None

    def write(self, data: bytes) -> None:
        self._connection.sendall(data)

    def close(self, exit_status: int) -> None:  # noqa: ARG002 - a socket has no way to say it
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)  # wakes the reader
        self.closed.set()


def carry(connection: socket.socket, open_loop: Callable[[Pipe], Loop]) -> None:
    """Serve one loop over a connection until either ends. The connection stays the caller's to close."""
    pipe = _SocketPipe(connection)
    loop = open_loop(pipe)
    connection.settimeout(_PATIENCE_S)
    while data := _received(connection):
        pipe.came.append(data)
        loop.wake()
    pipe.came.append(b"")
    loop.wake()
    pipe.closed.wait(_PATIENCE_S)


def _received(connection: socket.socket) -> bytes:
    while True:
        try:
            return connection.recv(_MOST_READ)
        except TimeoutError:
            continue
        except OSError:
            return b""
