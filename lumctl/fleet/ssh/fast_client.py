"""The SSH client that reads hundreds of hosts in one thread: paramiko with some parts replaced."""

import contextlib
import socket
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

import paramiko

from lumctl.fleet.conversation import ChannelService
from lumctl.fleet.ssh.connection import ProxyProcess, SshConnection, connect_tcp
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
    """A stream with read-ahead and the methods of a socket. Behind a jump host the stream is a channel.

    ``on_idle`` is called whenever the transport is about to wait. By then the channels hold all bytes that have
    arrived, and no other thread has to be woken to fetch them. ``on_closed`` is called once, when the connection ends.
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

        The kernel's keep-alive finds a dead peer. A time limit would cost an additional system call for each call.
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

        Call it only after :meth:`end_timeouts`: before that, paramiko itself may hold earlier bytes.
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
        """Set the time limit of one call. It has no effect after :meth:`end_timeouts`."""
        if not self._without_timeouts:
            self._limit(timeout)

    def getpeername(self) -> object:
        """The address of the far end."""
        return self._sock.getpeername()

    def close(self) -> None:
        """Close the stream, and wake a thread that waits in :meth:`recv`."""
        if self.closed:
            return
        # Marked first: the thread or task that is woken below looks at it.
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
    """A system socket whose transport is a task. It sends acknowledgements at once, and sending never waits.

    Bytes that the far end does not accept yet are queued: at most as many as SSH's windows let a channel send.
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
        """Accept all bytes: send what fits now, and queue the rest."""
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
                # Linux resets this option after a while, so it is set again before each wait.
                sock.setsockopt(socket.IPPROTO_TCP, _QUICKACK, 1)
            if not self.loop.wait_readable(self._watch, self._timeout_s):
                raise TimeoutError
            try:
                return b"" if self.closed else bytes(self.loop.buffer[: sock.recv_into(self.loop.buffer)])
            except BlockingIOError:
                # The kernel may call a socket readable that has nothing after all, for example after a wrong checksum.
                continue

    def _limit(self, timeout: float | None) -> None:
        self._timeout_s = timeout

    def _release(self) -> None:
        def release() -> None:
            self.loop.unwatch(self._watch)
            self._system_sock.close()

        self.loop.call_soon(release)


class ProxySocket(LoopSocket):
    """The near end of a ``ProxyCommand``. The command ends when the socket is closed."""

    def __init__(self, command: str, loop: EventLoop) -> None:
        self.process = ProxyProcess(command)
        super().__init__(self.process.sock, loop)

    def close(self) -> None:
        """Close the socket, and end the command."""
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
    """A connection of the event loop. Over another connection's channel, which has no socket, it has its own thread."""

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
        # Called several times per host and tick, so the functions are bound here without a method around each.
        self.can_send = sending_test(connection.transport)
        self.has_ended = end_test(channel)
        self.call_soon = self._sock.loop.call_soon if isinstance(self._sock, LoopSocket) else _call_now

    def attach(self, conversation: "Conversation") -> None:
        # A connection has one conversation at a time. A new one takes the place of one that has ended.
        self._conversation = conversation
        self._sock.on_closed = lambda: conversation.end("the connection was lost")

    def start(self) -> None:
        self._sock.on_idle = self._conversation.drain

    def close(self) -> None:
        """Do nothing: the conversation closes its channel when it is drained."""

    def is_lost(self) -> bool:
        return False  # the socket's on_closed reports it


def _call_now(call: Callable[[], None]) -> None:
    call()
