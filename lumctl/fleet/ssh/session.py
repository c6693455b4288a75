"""One host's SSH connection, which is kept open, and the commands that run over it."""

import time
from collections.abc import Callable
from math import inf
from threading import Lock

import paramiko

from lumctl.devices.errors import DeviceError, DeviceRefusedError, DeviceUnreachableError, OutcomeUnknownError
from lumctl.devices.permission import Permission, require_permission
from lumctl.devices.protocols import CommandResult
from lumctl.fleet.conversation import CHANNEL_ERRORS, Conversation
from lumctl.fleet.frames import Frame, Greeting
from lumctl.fleet.loop import COMMAND
from lumctl.fleet.ssh.connect import Connector
from lumctl.fleet.ssh.connection import SETTLE_S, SshConnection
from lumctl.fleet.ssh.routes import SshRoute

MAX_OUTPUT_BYTES = 32 * 1024 * 1024
_CHUNK = 64 * 1024
_TURN_S = 0.1
"""How often error output is read while a command prints no output."""
_PACKET = 128 * 1024
"""The largest packet that a host may send. It is so large that most answers come, and are decrypted, as one packet."""


class StillRunningError(Exception):
    """A command ran out of time. Its channel stays open: only the exit status shows when the command has ended."""

    def __init__(self, channel: paramiko.Channel) -> None:
        super().__init__()
        self.channel = channel


class FrozenError(Exception):
    """The host accepted the login, but its SSH server no longer answers."""


class SshSession:
    """The session with a host. It connects when needed, once for all callers, and again after a lost connection."""

    def __init__(self, route: SshRoute, connector: Connector) -> None:
        self.route = route
        self._connector = connector
        self._connecting = Lock()
        self._connection: SshConnection | None = None
        self._closed = False

    @property
    def alive(self) -> bool:
        """Whether there is a connection that is unknown to be lost."""
        connection = self._connection
        return connection is not None and connection.alive()

    def connect(self) -> float | None:
        """Connect unless connected. Return the seconds that it took, or ``None`` if there was a connection already.

        Raises:
            DeviceUnreachableError: the host cannot be reached.
        """
        with self._connecting:
            if self.alive:
                return None
            self.drop()
            started = time.monotonic()
            connection = self._connector.connect(self.route)
            self._connection = connection
        # `close` may have come while this thread was connecting; no other code would close this connection.
        if self._closed:
            connection.close()
            raise DeviceUnreachableError(f"{self.route.label}: the session was closed")
        return time.monotonic() - started

    def transport(self) -> paramiko.Transport:
        """The connection's transport, for channels other than commands.

        Raises:
            DeviceUnreachableError: there is no connection (any more).
        """
        connection = self._connection
        if connection is None:
            raise DeviceUnreachableError(f"{self.route.label}: the connection was lost")
        return connection.transport

    def converse(
        self,
        program: bytes,
        timeout_s: float,
        hear: Callable[[Greeting | Frame], None],
        over: Callable[[str], None],
    ) -> Conversation:
        """Start the loop on a channel of its own. No thread waits on it: answers are passed on as they arrive.

        Raises:
            FrozenError: the host does not answer in time.
            DeviceUnreachableError: there is no connection.
            DeviceRefusedError: the host refuses to run commands.
        """
        connection, channel = self._open_channel(time.monotonic() + timeout_s)
        link = connection.link(channel)
        conversation = Conversation(link, channel, hear, over)
        link.attach(conversation)
        channel.settimeout(timeout_s)
        try:
            channel.exec_command(COMMAND)
        except CHANNEL_ERRORS:
            # paramiko raises the same errors for a refused command and for a lost connection.
            if self._survived():
                raise DeviceRefusedError(f"{self.route.label}: the host refuses to run commands") from None
            raise DeviceUnreachableError(f"{self.route.label}: the connection was lost") from None
        # Not earlier: a channel that the host closed to refuse the command would look like a shell that ended.
        link.start()
        try:
            conversation.begin(program)
        except TimeoutError:
            link.close()
            channel.close()
            raise FrozenError from None
        except CHANNEL_ERRORS:
            # What the shell printed before it ended is the better reason, so it is read first.
            conversation.drain()
            conversation.end("the connection was lost")
        return conversation

    def execute(self, command: str, timeout_s: float, permitted: Permission = require_permission) -> CommandResult:
        """Run a command. It is not sent once its time has passed, because the caller no longer waits.

        ``permitted`` is called right before the command is sent.

        Raises:
            StillRunningError: the command did not end in time.
            DeviceUnreachableError: the command was not started: there is no connection.
            DeviceRefusedError: the command was not started: the host refuses to run commands.
            OutcomeUnknownError: the connection was lost after the command was sent.
        """
        deadline = time.monotonic() + timeout_s
        try:
            connection, channel = self._open_channel(deadline)
        except FrozenError:
            raise DeviceUnreachableError(
                f"{self.route.label}: the SSH server does not answer within {timeout_s:g} s"
            ) from None
        try:
            permitted()
            channel.exec_command(command)
        except DeviceError:
            channel.close()
            raise
        except CHANNEL_ERRORS:
            if self._survived():
                raise DeviceRefusedError(f"{self.route.label}: the host refuses to run commands") from None
            raise self._lost() from None
        return self._read(connection, channel, deadline)

    def drop(self) -> None:
        """Close the connection and wake all waiting callers; the next command connects again."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def close(self) -> None:
        """Close the session; it never connects again."""
        self._closed = True
        self.drop()

    def _open_channel(self, deadline: float) -> tuple[SshConnection, paramiko.Channel]:
        """A channel for one command. A connection that turns out to be lost is replaced, because nothing was sent.

        Raises:
            FrozenError: the host does not answer; its connection is given up.
            DeviceUnreachableError: there is no connection.
            DeviceRefusedError: the host refuses the channel.
        """
        was_kept = self.connect() is None
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            raise FrozenError
        connection = self._connection
        try:
            if connection is not None:
                return connection, connection.transport.open_session(max_packet_size=_PACKET, timeout=left_s)
        except paramiko.ChannelException:
            # sshd's MaxSessions, by default 10 for a connection.
            raise DeviceRefusedError(f"{self.route.label}: the host opens no more sessions") from None
        except CHANNEL_ERRORS:
            pass
        lost = not self._survived()
        # Another thread may have replaced it already.
        if self._connection is connection:
            self.drop()
        if was_kept and lost and time.monotonic() < deadline:
            return self._open_channel(deadline)
        if lost:
            raise DeviceUnreachableError(f"{self.route.label}: the connection was lost")
        raise FrozenError

    def _read(self, connection: SshConnection, channel: paramiko.Channel, deadline: float) -> CommandResult:
        # Both share the channel's window (2 MiB): while unread error output fills it, no output comes.
        output, errors = _Stream(channel, channel.recv), _Stream(channel, channel.recv_stderr)
        while output.read(deadline, turn_s=_TURN_S):
            while channel.recv_stderr_ready():
                errors.read(deadline)
        while errors.read(deadline):
            pass
        if not connection.wait_for_status(channel, max(0.0, deadline - time.monotonic())):
            raise StillRunningError(channel)
        status = channel.recv_exit_status()
        channel.close()
        # -1 is paramiko's status of a channel that closed without one: a signal, or a lost connection.
        if status < 0 and not self._survived():
            raise self._lost()
        return CommandResult(status, output.text(), errors.text())

    def _survived(self) -> bool:
        """Whether the connection is still alive after an error on one of its channels."""
        connection = self._connection
        if connection is None:
            return False
        connection.transport.join(SETTLE_S)
        return connection.alive()

    def _lost(self) -> OutcomeUnknownError:
        return OutcomeUnknownError(f"{self.route.label}: the connection was lost while a command ran")


class _Stream:
    """One of the two streams of a channel, and what was read from it."""

    def __init__(self, channel: paramiko.Channel, receive: Callable[[int], bytes]) -> None:
        self._channel = channel
        self._receive = receive
        self._parts: list[bytes] = []
        self._size = 0

    def read(self, deadline: float, *, turn_s: float = inf) -> bool:
        """Read a part if one comes within ``turn_s``; ``False`` at the end of the stream.

        Raises:
            StillRunningError: the deadline passed.
            DeviceRefusedError: the stream is too long.
        """
        left_s = max(0.0, deadline - time.monotonic())
        self._channel.settimeout(min(left_s, turn_s))
        try:
            part = self._receive(_CHUNK)
        except TimeoutError:
            if left_s <= turn_s:
                raise StillRunningError(self._channel) from None
            return True
        self._size += len(part)
        if self._size > MAX_OUTPUT_BYTES:
            self._channel.close()
            raise DeviceRefusedError(f"a command printed more than {MAX_OUTPUT_BYTES // 2**20} MiB")
        self._parts.append(part)
        return bool(part)

    def text(self) -> str:
        """What was read, as text; bytes that are not UTF-8 are replaced."""
        return b"".join(self._parts).decode("utf-8", "replace")
