"""Sockets under SSH: a TCP connection that does not dawdle, or the two ends of a proxy command.

paramiko takes any socket-like object. Its own habits cost time: Nagle's algorithm against delayed acknowledgements is
40 ms per exchange, two ``recv`` calls per packet, and a poll every 0.1 s of each idle connection.
"""

import contextlib
import os
import signal
import socket
import subprocess
import threading
from typing import TYPE_CHECKING

import paramiko

from lumctl.fleet.ssh.event_loop import EventLoop, SocketWatch, run_apart

if TYPE_CHECKING:
    from collections.abc import Callable

_READ_AHEAD = 64 * 1024
_QUICKACK: int | None = getattr(socket, "TCP_QUICKACK", None)
_KEEPALIVE = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 15_000}
"""A peer that vanished without a word is noticed within half a minute, whatever waits on it."""


class BufferedSocket:
    """A stream with read-ahead, in the shape that paramiko asks for. Behind a jump host the stream is a channel.

    ``on_idle`` is called by the transport whenever it is about to wait: all that arrived before stands in the channels
    by then, and nobody has to be woken to fetch it. ``on_closed`` is called once, when the connection is over.
    """

    def __init__(self, sock: socket.socket | paramiko.Channel) -> None:
        self._sock = sock
        self._ahead = b""
        self._at = 0
        self._without_timeouts = False
        self._closed = False  # paramiko reads this name
        self.on_idle: Callable[[], None] | None = None
        self.on_closed: Callable[[], None] | None = None

    def end_timeouts(self) -> None:
        """After authentication nothing waits on a handshake's clock: sleep until something arrives or :meth:`close`.

        The kernel's keep-alive finds a peer that died. A time limit would cost a system call before each other one.
        """
        self._limit(None)
        self._without_timeouts = True

    def recv(self, size: int) -> bytes:
        """Up to ``size`` bytes, from what was read ahead if there is any."""
        ahead, at = self._ahead, self._at
        if at == len(ahead):
            if self.on_idle is not None:
                self.on_idle()
            ahead, at = self._fetch(), 0
        self._ahead, self._at = ahead, min(at + size, len(ahead))
        return ahead[at : at + size]

    def take(self, size: int) -> bytes | None:
        """Give ``size`` bytes of what was read ahead, if all of them stand there.

        Only after :meth:`end_timeouts`: before, paramiko itself may keep what comes first.
        """
        at, end = self._at, self._at + size
        if not self._without_timeouts or end > len(self._ahead):
            return None
        self._at = end
        return self._ahead[at:end]

    def send(self, data: bytes) -> int:
        """Send as much as fits."""
        return self._sock.send(data)

    def settimeout(self, timeout: float | None) -> None:
        """Set the time limit of one call, until :meth:`end_timeouts` took it over."""
        if not self._without_timeouts:
            self._limit(timeout)

    def getpeername(self) -> object:
        """The address of the far end."""
        return self._sock.getpeername()

    def close(self) -> None:
        """Close, waking a thread that waits in :meth:`recv`."""
        if self._closed:
            return
        self._closed = True
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)
        self._release()
        if self.on_closed is not None:
            self.on_closed()

    def _fetch(self) -> bytes:
        """Wait for more; nothing at the end."""
        return self._sock.recv(_READ_AHEAD)

    def _limit(self, timeout: float | None) -> None:
        self._sock.settimeout(timeout)

    def _release(self) -> None:
        self._sock.close()


class LoopSocket(BufferedSocket):
    """A socket of the system, whose transport is a task. It acknowledges at once, and sending never waits.

    What the far end does not take yet is kept: at most what SSH's windows let a channel send.
    """

    def __init__(self, sock: socket.socket, loop: EventLoop) -> None:
        super().__init__(sock)
        sock.settimeout(0.0)
        self.loop = loop
        self._system_sock = sock
        self._is_tcp = sock.family in {socket.AF_INET, socket.AF_INET6}
        self._timeout_s: float | None = None
        self._watch = SocketWatch(sock, self._flush)
        self._sending = threading.Lock()
        self._unsent = bytearray()

    def send(self, data: bytes) -> int:
        """Take all of it, and send what fits now."""
        with self._sending:
            if self._unsent:
                self._unsent += data
                return len(data)
            sent = _send_some(self._system_sock, data)
            self._unsent += data[sent:]
        if sent < len(data):
            self.loop.call_soon(lambda: self.loop.watch_writable(self._watch))
        return len(data)

    def _flush(self) -> None:
        with self._sending:
            try:
                del self._unsent[: _send_some(self._system_sock, self._unsent)]
            except OSError:
                # Whoever receives hears of it.
                self._unsent.clear()
            if not self._unsent:
                self.loop.watch_writable(self._watch, wanted=False)

    def _fetch(self) -> bytes:
        sock = self._system_sock
        while True:
            if self._is_tcp and _QUICKACK is not None and not self._closed:
                # Linux forgets this option after a while, so it is set again before each wait.
                sock.setsockopt(socket.IPPROTO_TCP, _QUICKACK, 1)
            if not self.loop.wait_readable(self._watch, self._timeout_s):
                raise TimeoutError
            try:
                return b"" if self._closed else bytes(self.loop.buffer[: sock.recv_into(self.loop.buffer)])
            except BlockingIOError:
                continue

    def _limit(self, timeout: float | None) -> None:
        self._timeout_s = timeout

    def _release(self) -> None:
        def release() -> None:
            self.loop.unwatch(self._watch)
            self._system_sock.close()

        self.loop.call_soon(release)


class ProxySocket(LoopSocket):
    """The near end of a ``ProxyCommand``, which ends with it."""

    def __init__(self, command: str, loop: EventLoop) -> None:
        near, far = socket.socketpair()
        with far:
            # The user's own ssh_config holds this line, and ssh gives it to a shell as well.
            self._process = subprocess.Popen(  # noqa: S602
                f"exec {command}",
                shell=True,
                stdin=far.fileno(),
                stdout=far.fileno(),
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        super().__init__(near, loop)

    def close(self) -> None:
        """Close and end the command."""
        if self._process.poll() is None:
            # The whole group, for the command may be a pipe of several; and before the command sees that we hung up,
            # for once it has ended by that, nobody may be sure any more whose group it is.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGTERM)
        super().close()
        if self._process.returncode is None:
            run_apart(self._reap)

    def _reap(self) -> None:
        try:
            self._process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def open_tcp(address: str, port: int, timeout_s: float, loop: EventLoop) -> LoopSocket:
    """Connect.

    Raises:
        OSError: the address is not known, or nobody answers there.
    """
    sock = socket.create_connection((address, port), timeout=timeout_s)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE.items():
        option = getattr(socket, name, None)
        if option is not None:
            sock.setsockopt(socket.IPPROTO_TCP, option, value)
    return LoopSocket(sock, loop)


def _send_some(sock: socket.socket, data: bytes | bytearray) -> int:
    """Send what fits now."""
    try:
        return sock.send(data)
    except BlockingIOError:
        return 0
