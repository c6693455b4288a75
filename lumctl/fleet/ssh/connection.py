"""The interface of an SSH client for the rest of lumctl, which the fast and the plain client share."""

import contextlib
import os
import signal
import socket
import subprocess
import time
from abc import ABC, abstractmethod
from typing import Protocol

import paramiko

from lumctl import tcp
from lumctl.fleet.conversation import ChannelService

SETTLE_S = 0.2
"""Wait for paramiko to note that a connection is lost: it wakes a channel's waiting threads shortly before that."""


class SshConnection(ABC):
    """An SSH transport and the socket, process or channel that it runs over."""

    def __init__(self, transport: paramiko.Transport) -> None:
        self.transport = transport

    def alive(self) -> bool:
        """Whether the connection is unknown to be lost."""
        return self.transport.is_active()

    @abstractmethod
    def end_timeouts(self) -> None:
        """After login, wait for the host without a time limit. The kernel's keep-alive finds a dead peer."""

    @abstractmethod
    def link(self, channel: paramiko.Channel) -> ChannelService:
        """The service for a conversation over this channel."""

    @abstractmethod
    def wait_for_status(self, channel: paramiko.Channel, timeout_s: float) -> bool:
        """Wait for a command's exit status; ``False`` if it did not come in time."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection, and wake threads that wait on one of its channels."""


class Client(Protocol):
    """Opens connections on which SSH has not started yet."""

    def over_tcp(self, address: str, port: int, timeout_s: float) -> SshConnection:
        """Connect to an address.

        Raises:
            OSError: the address cannot be resolved, or there is no answer.
        """

    def over_command(self, command: str) -> SshConnection:
        """Start a ``ProxyCommand`` and use its standard input and output."""

    def over_channel(self, channel: paramiko.Channel) -> SshConnection:
        """Use a channel of another connection, which ends with this one."""

    def agent_key(self, key: paramiko.AgentKey) -> paramiko.PKey:
        """A key of the SSH agent, in the form that is offered to a host."""


# Idle and interval are in seconds, the user timeout in milliseconds: 10 s of silence, then 3 probes 5 s apart.
_KEEPALIVE = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 15_000}
"""Socket options that detect a peer that vanished silently within half a minute."""


class ProxyProcess:
    """A running ``ProxyCommand``. ``sock`` is our end of its standard input and output."""

    def __init__(self, command: str) -> None:
        self.sock, far = socket.socketpair()
        # Our copy of the far end is closed: while it is open, reading never finds the end of the command's output.
        with far:
            # The line is from the user's own ssh_config, and ssh also passes it to a shell.
            self._process = subprocess.Popen(  # noqa: S602
                f"exec {command}",
                shell=True,
                stdin=far.fileno(),
                stdout=far.fileno(),
                stderr=subprocess.DEVNULL,
                # A process group of its own, for `end` to signal. Ctrl-C in our terminal does not reach it.
                start_new_session=True,
            )

    @property
    def exit_status(self) -> int | None:
        """The exit status, or ``None`` while it runs."""
        return self._process.poll()

    def end(self) -> None:
        """Send SIGTERM to its process group. Must be called before ``sock`` is closed.

        Closing ``sock`` may end the process, and its process group id could then belong to another process. The whole
        group gets the signal because the command may be a pipe of several programs.
        """
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGTERM)

    def wait(self) -> None:
        """Wait until the process has ended; kill it after a second."""
        try:
            self._process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def time_left_s(deadline: float) -> float:
    """The seconds until a deadline of the monotonic clock, as a time limit: a little more than 0 if it has passed."""
    # Not 0: a socket with time limit 0 does not wait, and fails with BlockingIOError instead of a time-out.
    return max(0.05, deadline - time.monotonic())


def connect_tcp(address: str, port: int, timeout_s: float) -> socket.socket:
    """Connect to an address, with small packets sent at once and dead peers noticed.

    Raises:
        OSError: the address cannot be resolved, or there is no answer.
    """
    sock = tcp.connect(address, port, timeout_s)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE.items():
        # macOS lacks some of them.
        option = getattr(socket, name, None)
        if option is not None:
            sock.setsockopt(socket.IPPROTO_TCP, option, value)
    return sock
