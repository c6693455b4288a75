"""One host's kept connection and the commands that run over it."""

import time
from collections.abc import Callable
from threading import Lock

import paramiko

from lumctl.devices.errors import DeviceError, DeviceRefusedError, DeviceUnreachableError, OutcomeUnknownError
from lumctl.devices.permission import Permission, require_permission
from lumctl.devices.protocols import CommandResult
from lumctl.fleet.conversation import Conversation
from lumctl.fleet.frames import Frame, Greeting
from lumctl.fleet.loop import COMMAND
from lumctl.fleet.ssh.connect import Connector
from lumctl.fleet.ssh.connection import SshConnection
from lumctl.fleet.ssh.routes import SshRoute

MAX_OUTPUT_BYTES = 32 * 1024 * 1024
_CHUNK = 64 * 1024
_PACKET = 128 * 1024
"""The largest piece in which a host may send: most answers come whole, and are decrypted and handed on once."""
_SETTLE_S = 0.2
_BROKEN = (paramiko.SSHException, EOFError, OSError)


class StillRunningError(Exception):
    """A command ran out of time. Its channel is open: only its exit status tells when the command has ended."""

    def __init__(self, channel: paramiko.Channel) -> None:
        super().__init__()
        self.channel = channel


class FrozenError(Exception):
    """The host let us in, and its SSH server answers no more."""


class SshSession:
    """A host. Connects when needed, once for all its callers; connects again when the connection was lost."""

    def __init__(self, route: SshRoute, connector: Connector) -> None:
        self.route = route
        self._connector = connector
        self._connecting = Lock()
        self._connection: SshConnection | None = None
        self._closed = False

    @property
    def alive(self) -> bool:
        """Whether there is a connection that is not known to be lost."""
        connection = self._connection
        return connection is not None and connection.alive()

    def connect(self) -> float | None:
        """Have a connection; the seconds that it took, or ``None`` if there was one.

        Raises:
            DeviceUnreachableError: there is no way to the host.
        """
        with self._connecting:
            if self.alive:
                return None
            self.drop()
            started = time.monotonic()
            connection = self._connector.connect(self.route)
            self._connection = connection
        if self._closed:
            connection.close()
            raise DeviceUnreachableError(f"{self.route.label}: the session was closed")
        return time.monotonic() - started

    def transport(self) -> paramiko.Transport:
        """The connection's transport, for channels of another kind than commands.

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
        """Start the loop on its channel, which is the only one that answers without being waited for.

        Raises:
            FrozenError: the host does not answer in time.
            DeviceUnreachableError: there is no connection.
            DeviceRefusedError: the host runs nothing for us.
        """
        connection, channel = self._open_channel(time.monotonic() + timeout_s)
        link = connection.link(channel)
        conversation = Conversation(link, channel, hear, over)
        link.attach(conversation)
        channel.settimeout(timeout_s)
        try:
            channel.exec_command(COMMAND)
        except _BROKEN:
            if self._survived():
                raise DeviceRefusedError(f"{self.route.label}: the host refuses to run commands") from None
            raise DeviceUnreachableError(f"{self.route.label}: the connection was lost") from None
        # Not before: a channel that is closed because the host refused looks like a shell that ended.
        link.start()
        try:
            conversation.begin(program)
        except TimeoutError:
            link.close()
            channel.close()
            raise FrozenError from None
        except _BROKEN:
            conversation.drain()
            conversation.end("the connection was lost")
        return conversation

    def execute(self, command: str, timeout_s: float, permitted: Permission = require_permission) -> CommandResult:
        """Run a command. It is not sent once its time is over: whoever waited has given it up, and looked elsewhere.

        ``permitted`` is asked right before it is sent.

        Raises:
            StillRunningError: it did not end in time.
            DeviceUnreachableError: it was not started, there is no connection.
            DeviceRefusedError: it was not started, the host runs no commands for us.
            OutcomeUnknownError: the connection was lost after it was sent.
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
        except _BROKEN:
            if self._survived():
                raise DeviceRefusedError(f"{self.route.label}: the host refuses to run commands") from None
            raise self._lost() from None
        return self._read(connection, channel, deadline)

    def drop(self) -> None:
        """Hang up, waking whoever waits; the next command connects again."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def close(self) -> None:
        """Hang up for good."""
        self._closed = True
        self.drop()

    def _open_channel(self, deadline: float) -> tuple[SshConnection, paramiko.Channel]:
        """A channel for one command. A connection found dead is replaced, for nothing was sent.

        Raises:
            FrozenError: the host says neither yes nor no; its connection is given up.
            DeviceUnreachableError: there is no connection.
            DeviceRefusedError: the host says no.
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
            raise DeviceRefusedError(f"{self.route.label}: the host opens no more sessions") from None
        except _BROKEN:
            pass
        lost = not self._survived()
        if self._connection is connection:
            self.drop()
        if was_kept and lost and time.monotonic() < deadline:
            return self._open_channel(deadline)
        if lost:
            raise DeviceUnreachableError(f"{self.route.label}: the connection was lost")
        raise FrozenError

    def _read(self, connection: SshConnection, channel: paramiko.Channel, deadline: float) -> CommandResult:
        output = _drain(channel.recv, channel, deadline)
        errors = _drain(channel.recv_stderr, channel, deadline)
        if not connection.wait_for_status(channel, max(0.0, deadline - time.monotonic())):
            raise StillRunningError(channel)
        status = channel.recv_exit_status()
        channel.close()
        if status < 0 and not self._survived():
            raise self._lost()
        return CommandResult(status, output.decode("utf-8", "replace"), errors.decode("utf-8", "replace"))

    def _survived(self) -> bool:
        """Whether the connection outlived what just went wrong on it.

        paramiko wakes those who wait on a channel a moment before it notes that the connection is gone.
        """
        connection = self._connection
        if connection is None:
            return False
        connection.transport.join(_SETTLE_S)
        return connection.alive()

    def _lost(self) -> OutcomeUnknownError:
        return OutcomeUnknownError(f"{self.route.label}: the connection was lost while a command ran")


def _drain(receive: Callable[[int], bytes], channel: paramiko.Channel, deadline: float) -> bytes:
    """Read one stream of a channel to its end."""
    parts: list[bytes] = []
    size = 0
    while True:
        channel.settimeout(max(0.0, deadline - time.monotonic()))
        try:
            part = receive(_CHUNK)
        except TimeoutError:
            raise StillRunningError(channel) from None
        if not part:
            return b"".join(parts)
        size += len(part)
        if size > MAX_OUTPUT_BYTES:
            channel.close()
            raise DeviceRefusedError(f"a command printed more than {MAX_OUTPUT_BYTES // 2**20} MiB")
        parts.append(part)
