"""What the rest of lumctl needs of an SSH client: the shape that the fast and the plain client share."""

import contextlib
import os
import signal
import socket
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

import paramiko

if TYPE_CHECKING:
    from lumctl.fleet.conversation import Conversation


class ChannelService(Protocol):
    """How a conversation's channel is served: who tells it that something arrived, and when it may send."""

    def attach(self, conversation: "Conversation") -> None:
        """Name the conversation, before its command is started."""

    def start(self) -> None:
        """Call :meth:`Conversation.drain` from now on whenever something arrived."""

    def close(self) -> None:
        """Stop calling."""

    def call_soon(self, call: Callable[[], None]) -> None:
        """Make a call that sends: in the thread that serves the channel where others would compete with it."""

    def can_send(self) -> bool:
        """Whether this thread may send now. If not, the conversation is drained again when sending is possible."""

    def has_ended(self) -> bool:
        """Whether the host has closed the channel, or sends no more on it."""

    def is_lost(self) -> bool:
        """Whether the channel has ended because the connection has."""


class SshConnection(ABC):
    """An SSH transport and what it runs over."""

    def __init__(self, transport: paramiko.Transport) -> None:
        self.transport = transport

    def alive(self) -> bool:
        """Whether nothing is known to be wrong with it."""
        return self.transport.is_active()

    @abstractmethod
    def end_timeouts(self) -> None:
        """After authentication, wait for the host without a limit; the kernel's keep-alive finds a dead peer."""

    @abstractmethod
    def link(self, channel: paramiko.Channel) -> ChannelService:
        """How a conversation over this channel is served."""

    @abstractmethod
    def wait_for_status(self, channel: paramiko.Channel, timeout_s: float) -> bool:
        """Wait for a command's exit status; ``False`` if it did not come in time."""

    @abstractmethod
    def close(self) -> None:
        """Hang up. Threads that wait on one of its channels are woken."""


class Client(Protocol):
    """Opens connections that have not begun to speak SSH yet."""

    def over_tcp(self, address: str, port: int, timeout_s: float) -> SshConnection:
        """Connect to an address.

        Raises:
            OSError: the address is not known, or nobody answers there.
        """

    def over_command(self, command: str) -> SshConnection:
        """Start a ``ProxyCommand`` and use its standard input and output."""

    def over_channel(self, channel: paramiko.Channel) -> SshConnection:
        """Use a channel of another connection, which ends with this one."""

    def agent_key(self, key: paramiko.AgentKey) -> paramiko.PKey:
        """A key of the SSH agent, in the form that is offered to a host."""


_KEEPALIVE = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 15_000}
"""A peer that vanished without a word is noticed within half a minute, whatever waits on it."""


class ProxyProcess:
    """A running ``ProxyCommand``. ``sock`` is our end of its standard input and output."""

    def __init__(self, command: str) -> None:
        self.sock, far = socket.socketpair()
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

    @property
    def exit_status(self) -> int | None:
        """The exit status, or ``None`` while it runs."""
        return self._process.poll()

    def end(self) -> None:
        """Tell it to end, before ``sock`` is closed: once it has ended by that, its process group may be another's.

        The whole group is told, for the command may be a pipe of several programs.
        """
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGTERM)

    def wait(self) -> None:
        """Wait until it has ended; kill it after a second."""
        try:
            self._process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def connect_tcp(address: str, port: int, timeout_s: float) -> socket.socket:
    """Connect to an address, with small packets sent at once and dead peers noticed.

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
    return sock
