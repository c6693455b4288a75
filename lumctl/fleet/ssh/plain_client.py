"""The SSH client on paramiko's public API alone: a thread for each connection, and one for each conversation.

It is used if paramiko's internals have changed, and to find out whether a problem comes from the fast client. A tick
over 128 hosts on loopback takes 1.2 to 1.3 times the fast client's time, and 3 to 4 times its CPU (CONTRIBUTING.md).
"""

import contextlib
import selectors
import socket
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

import paramiko

from lumctl.fleet.conversation import ChannelService
from lumctl.fleet.ssh.connection import SETTLE_S, ProxyProcess, SshConnection, connect_tcp

if TYPE_CHECKING:
    from lumctl.fleet.conversation import Conversation

_RETRY_S = 0.1
"""How soon sending is tried again while the host's window is full. paramiko does not report when it opens."""
_WAKE_BYTES = 4096


class PlainClient:
    """Connections with a thread each."""

    def over_tcp(self, address: str, port: int, timeout_s: float) -> SshConnection:
        """See :class:`lumctl.fleet.ssh.connection.Client`."""
        return PlainConnection(connect_tcp(address, port, timeout_s))

    def over_command(self, command: str) -> SshConnection:
        """See :class:`lumctl.fleet.ssh.connection.Client`."""
        process = ProxyProcess(command)
        return PlainConnection(process.sock, process)

    def over_channel(self, channel: paramiko.Channel) -> SshConnection:
        """See :class:`lumctl.fleet.ssh.connection.Client`."""
        return PlainConnection(channel)

    def agent_key(self, key: paramiko.AgentKey) -> paramiko.PKey:
        """See :class:`lumctl.fleet.ssh.connection.Client`."""
        return key


class PlainConnection(SshConnection):
    """A connection as paramiko makes it. ``process`` ends with the connection."""

    def __init__(self, sock: socket.socket | paramiko.Channel, process: ProxyProcess | None = None) -> None:
        self._sock = sock
        self._process = process
        try:
            # paramiko accepts any object with a socket's methods, but its type hints name only sockets.
            super().__init__(paramiko.Transport(cast("socket.socket", sock)))
        except BaseException:
            self._release()
            raise

    def end_timeouts(self) -> None:
        """Do nothing: paramiko checks ten times a second whether the connection was closed here."""

    def link(self, channel: paramiko.Channel) -> ChannelService:
        """See :class:`SshConnection`."""
        return _PlainLink(self.transport, channel)

    def wait_for_status(self, channel: paramiko.Channel, timeout_s: float) -> bool:
        """See :class:`SshConnection`."""
        if not channel.exit_status_ready():
            # paramiko's own wait has no time limit, so it runs in a thread, which ends with the channel.
            waiter = threading.Thread(target=channel.recv_exit_status, name="ssh-exit-status", daemon=True)
            waiter.start()
            waiter.join(timeout_s)
        return channel.exit_status_ready()

    def close(self) -> None:
        """See :class:`SshConnection`."""
        self.transport.close()
        self._release()

    def _release(self) -> None:
        if self._process is not None:
            self._process.end()
        self._sock.close()
        if self._process is not None:
            self._process.wait()


class _PlainLink:
    """A thread that waits for the channel, drains the conversation, and sends for it."""

    def __init__(self, transport: paramiko.Transport, channel: paramiko.Channel) -> None:
        self._transport = transport
        self._channel = channel
        self._conversation: Conversation
        self._lock = threading.Lock()
        self._wake_receiver: socket.socket
        self._wake_sender: socket.socket
        self._wake_sent = self._closed_here = self._at_end = self._runs = False
        self._thread = threading.Thread(target=self._run, name="ssh-conversation", daemon=True)

    def attach(self, conversation: "Conversation") -> None:
        self._conversation = conversation

    def start(self) -> None:
        self._wake_receiver, self._wake_sender = socket.socketpair()
        self._wake_receiver.settimeout(0.0)
        self._runs = True
        self._thread.start()

    def close(self) -> None:
        self._closed_here = True
        self._wake()

    def call_soon(self, call: Callable[[], None]) -> None:
        call()

    def can_send(self) -> bool:
        if threading.current_thread() is self._thread:
            return True
        # Sending may wait 30 s for a key exchange, and the calling thread may have other hosts to serve.
        self._wake()
        return False

    def has_ended(self) -> bool:
        return self._at_end or self._channel.exit_status_ready()

    def is_lost(self) -> bool:
        self._transport.join(SETTLE_S)
        return not self._transport.is_active()

    def _wake(self) -> None:
        with self._lock:
            if self._runs and not self._wake_sent:
                self._wake_sent = True
                self._wake_sender.send(b"!")

    def _run(self) -> None:
        try:
            with selectors.DefaultSelector() as selector:
                selector.register(self._wake_receiver, selectors.EVENT_READ)
                selector.register(self._channel, selectors.EVENT_READ, self._channel)
                while not (self._conversation.is_over or self._closed_here):
                    self._turn(selector)
            if self._conversation.is_over:
                # This closes the channel if another thread ended the conversation.
                self._conversation.drain()
        finally:
            with self._lock:
                # Under the lock: `_wake` must not write to a closed socket.
                self._runs = False
                self._wake_receiver.close()
                self._wake_sender.close()

    def _turn(self, selector: selectors.BaseSelector) -> None:
        ready = selector.select(_RETRY_S if self._conversation.has_unsent else None)
        if any(key.data is not None for key, _ in ready):
            # A channel is at its end if it is readable but has nothing to read.
            self._at_end = not self._has_data()
        # Before draining: a request that comes from now on wakes the next turn.
        with self._lock:
            with contextlib.suppress(BlockingIOError):
                self._wake_receiver.recv(_WAKE_BYTES)
            self._wake_sent = False
        self._conversation.drain()
        # The channel's descriptor serves two streams. It misses what one stream receives while the other is emptied.
        while self._has_data() and not self._conversation.is_over:
            self._conversation.drain()

    def _has_data(self) -> bool:
        return self._channel.recv_ready() or self._channel.recv_stderr_ready()
