"""The SSH client that reads hundreds of hosts in one thread, on paramiko with parts of it replaced."""

import contextlib
import socket
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

import paramiko

from lumctl.fleet.ssh.connection import ChannelService, ProxyProcess, SshConnection, connect_tcp
from lumctl.fleet.ssh.event_loop import EventLoop, SocketWatch, run_apart
from lumctl.fleet.ssh.paramiko_internals import (
    LoopAgentKey,
    LoopTransport,
    StandInSocket,
    ThreadTransport,
    end_test,
    sending_test,
    wait_for_status,
)

if TYPE_CHECKING:
    from lumctl.fleet.conversation import Conversation

_READ_AHEAD = 64 * 1024
_QUICKACK: int | None = getattr(socket, "TCP_QUICKACK", None)


class BufferedSocket(StandInSocket):
    """A stream with read-ahead, with a socket's methods. Behind a jump host the stream is a channel.

    ``on_idle`` is called whenever the transport is about to wait: by then the channels hold all that has arrived, and
    no other thread has to be woken to fetch it. ``on_closed`` is called once, when the connection is over.
    """

    def __init__(self, sock: socket.socket | paramiko.Channel) -> None:
        self._sock = sock
        self._ahead = b""
        self._at = 0
        self._without_timeouts = False
        self.on_idle: Callable[[], None] | None = None
        self.on_closed: Callable[[], None] | None = None

    def end_timeouts(self) -> None:
        """After authentication, wait without a limit until something arrives or :meth:`close` is called.

        The kernel's keep-alive finds a dead peer. A time limit would cost one more system call for each call.
        """
        self._limit(None)
        self._without_timeouts = True

    def recv(self, size: int) -> bytes:
        """Return up to ``size`` bytes, from what was read ahead if there is any."""
        ahead, at = self._ahead, self._at
        if at == len(ahead):
            if self.on_idle is not None:
                self.on_idle()
            ahead, at = self._fetch(), 0
        self._ahead, self._at = ahead, min(at + size, len(ahead))
        return ahead[at : at + size]

    def take(self, size: int) -> bytes | None:
        """Return ``size`` bytes of what was read ahead, or ``None`` if there are fewer.

        Only after :meth:`end_timeouts`: before, paramiko itself may hold bytes that come first.
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
        """Set the time limit of one call; without effect after :meth:`end_timeouts`."""
        if not self._without_timeouts:
            self._limit(timeout)

    def getpeername(self) -> object:
        """The address of the far end."""
        return self._sock.getpeername()

    def close(self) -> None:
        """Close, waking a thread that waits in :meth:`recv`."""
        if self.closed:
            return
        self.mark_closed()
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)
        self._release()
        if self.on_closed is not None:
            self.on_closed()

    def _fetch(self) -> bytes:
        """Wait for more bytes; return none at the end of the stream."""
        return self._sock.recv(_READ_AHEAD)

    def _limit(self, timeout: float | None) -> None:
        self._sock.settimeout(timeout)

    def _release(self) -> None:
        self._sock.close()


class LoopSocket(BufferedSocket):
    """A socket of the system, whose transport is a task. It acknowledges at once, and sending never waits.

    Bytes that the far end does not take yet are queued: at most what SSH's windows let a channel send.
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
                # The task that receives gets the error.
                self._unsent.clear()
            if not self._unsent:
                self.loop.watch_writable(self._watch, wanted=False)

    def _fetch(self) -> bytes:
        sock = self._system_sock
        while True:
            if self._is_tcp and _QUICKACK is not None and not self.closed:
                # Linux forgets this option after a while, so it is set again before each wait.
                sock.setsockopt(socket.IPPROTO_TCP, _QUICKACK, 1)
            if not self.loop.wait_readable(self._watch, self._timeout_s):
                raise TimeoutError
            try:
                return b"" if self.closed else bytes(self.loop.buffer[: sock.recv_into(self.loop.buffer)])
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
        self.process = ProxyProcess(command)
        super().__init__(self.process.sock, loop)

    def close(self) -> None:
        """Close, and end the command."""
        self.process.end()
        super().close()
        if self.process.exit_status is None:
            run_apart(self.process.wait)


def _send_some(sock: socket.socket, data: bytes | bytearray) -> int:
    """Send what fits now."""
    try:
        return sock.send(data)
    except BlockingIOError:
        return 0


class FastClient:
    """Connections of one event loop."""

    def __init__(self) -> None:
        self._loop = EventLoop("ssh")

    def over_tcp(self, address: str, port: int, timeout_s: float) -> SshConnection:
        """See :class:`lumctl.fleet.ssh.connection.Client`."""
        return FastConnection(LoopSocket(connect_tcp(address, port, timeout_s), self._loop))

    def over_command(self, command: str) -> SshConnection:
        """See :class:`lumctl.fleet.ssh.connection.Client`."""
        return FastConnection(ProxySocket(command, self._loop))

    def over_channel(self, channel: paramiko.Channel) -> SshConnection:
        """See :class:`lumctl.fleet.ssh.connection.Client`."""
        return FastConnection(BufferedSocket(channel))

    def agent_key(self, key: paramiko.AgentKey) -> paramiko.PKey:
        """See :class:`lumctl.fleet.ssh.connection.Client`."""
        return LoopAgentKey.of(key)


class FastConnection(SshConnection):
    """A connection of the event loop; over another connection's channel, which has no socket, one with a thread."""

    def __init__(self, sock: BufferedSocket) -> None:
        try:
            super().__init__(LoopTransport(sock, sock.loop) if isinstance(sock, LoopSocket) else ThreadTransport(sock))
        except BaseException:
            sock.close()
            raise
        self.sock = sock

    def end_timeouts(self) -> None:
        """See :class:`SshConnection`."""
        self.sock.end_timeouts()

    def link(self, channel: paramiko.Channel) -> ChannelService:
        """See :class:`SshConnection`."""
        return _FastLink(self, channel)

    def wait_for_status(self, channel: paramiko.Channel, timeout_s: float) -> bool:
        """See :class:`SshConnection`."""
        return wait_for_status(channel, timeout_s)

    def close(self) -> None:
        """See :class:`SshConnection`."""
        self.transport.close()
        self.sock.close()


class _FastLink:
    """The connection's own thread drains the conversation whenever it is about to wait for the host."""

    def __init__(self, connection: FastConnection, channel: paramiko.Channel) -> None:
        self._sock = connection.sock
        self._conversation: Conversation
        # Called several times per host and tick: bound here, without a method around each.
        self.can_send = sending_test(connection.transport)
        self.has_ended = end_test(channel)
        self.call_soon = self._sock.loop.call_soon if isinstance(self._sock, LoopSocket) else _call_now

    def attach(self, conversation: "Conversation") -> None:
        self._conversation = conversation
        self._sock.on_closed = lambda: conversation.end("the connection was lost")

    def start(self) -> None:
        self._sock.on_idle = self._conversation.drain

    def close(self) -> None:
        """Nothing: the conversation closes its channel when it is drained."""

    def is_lost(self) -> bool:
        return False  # the socket's on_closed says so


def _call_now(call: Callable[[], None]) -> None:
    call()
