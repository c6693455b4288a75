"""Connections to devices: direct, through a host near the device, or in an SSH session with the device."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Timer

import paramiko

from lumctl.devices.endpoints import DeviceEndpoint, HostEndpoint
from lumctl.devices.errors import DeviceUnreachableError
from lumctl.devices.formats.complaint import first_line
from lumctl.devices.permission import require_permission
from lumctl.devices.ways import CommandStream, Direct, Stream, host_and_port
from lumctl.fleet.conversation import CHANNEL_ERRORS
from lumctl.fleet.ssh.connect import Connector
from lumctl.fleet.ssh.connection import SshConnection, time_left_s
from lumctl.fleet.ssh.routes import Routes
from lumctl.inventory.model import SshSettings

_MOST_COMPLAINT = 4096


class SshWay:
    """The connection path to one device; ``transport_of`` returns a live SSH transport to the host before it."""

    def __init__(
        self,
        endpoint: DeviceEndpoint,
        connector: Connector,
        routes: Routes,
        transport_of: Callable[[HostEndpoint], paramiko.Transport],
    ) -> None:
        self._endpoint = endpoint
        self._connector = connector
        self._routes = routes
        self._transport_of = transport_of

    def tcp(self, default_port: int, timeout_s: float) -> Stream:
        """Connect directly, or through the host near the device.

        Raises:
            OSError: the device does not answer.
            DeviceUnreachableError: the host near the device cannot be reached, or forwards no connections.
        """
        endpoint = self._endpoint
        if endpoint.via is None:
            return Direct(endpoint.address).tcp(default_port, timeout_s)
        return _Channel(self._forwarded(endpoint.via, default_port, timeout_s))

    def subsystem(self, name: str, default_port: int, timeout_s: float) -> Stream:
        """Log in to the device and open one of its subsystems. Closing the stream closes the connection.

        Raises:
            DeviceUnreachableError: no answer, an unknown or changed host key, or no such subsystem.
            DeviceLoginError: the device accepts none of our keys, and not its secret.
        """
        endpoint = self._endpoint
        deadline = time.monotonic() + timeout_s
        address, port = host_and_port(endpoint.address, default_port)
        ssh = SshSettings(
            user=endpoint.ssh.user, port=port, key_file=endpoint.ssh.key_file, config_file=endpoint.ssh.config_file
        )
        route = self._routes.of(HostEndpoint(endpoint.device, address, ssh, endpoint.known_hosts))
        over = None
        if endpoint.via is not None:
            over = self._forwarded_or_unreachable(endpoint.via, default_port, timeout_s)
        login = endpoint.login
        connection = self._connector.connect(
            route,
            password=login.secret if login.has_secret else None,
            over=over,
            timeout_s=max(0.0, deadline - time.monotonic()),
        )
        where = f"{endpoint.device} at {endpoint.address}"
        try:
            left_s = time_left_s(deadline)
            with _hanging_up(connection, left_s):
                channel = connection.transport.open_session(timeout=left_s)
                channel.invoke_subsystem(name)
        except CHANNEL_ERRORS as error:
            connection.close()
            # paramiko raises for a connection that `_hanging_up` closed as for one that was lost, so the clock decides.
            late = time.monotonic() >= deadline
            raise DeviceUnreachableError(
                f"{where}: no answer within {timeout_s:g} s about its subsystem {name}"
                if late
                else f"{where}: it has no subsystem {name}: {first_line(str(error)).rstrip('.').lower()}"
            ) from None
        except BaseException:
            connection.close()
            raise
        return _Channel(channel, connection)

    def _forwarded(self, via: HostEndpoint, default_port: int, timeout_s: float) -> paramiko.Channel:
        """A connection to the device that the host near it makes for us."""
        deadline = time.monotonic() + timeout_s
        transport = self._transport_of(via)
        left_s = time_left_s(deadline)
        where = host_and_port(self._endpoint.address, default_port)
        try:
            return transport.open_channel("direct-tcpip", where, ("127.0.0.1", 0), timeout=left_s)
        except paramiko.ChannelException as error:
            said = first_line(error.text).lower()
            raise ConnectionRefusedError(f"host {via.host} cannot connect to it: {said}") from None
        except CHANNEL_ERRORS as error:
            # paramiko's time-out is an SSHException like any other.
            if time.monotonic() >= deadline:
                raise TimeoutError(f"host {via.host} cannot reach it in time") from None
            said = first_line(str(error)).rstrip(".").lower()
            raise DeviceUnreachableError(
                f"{self._endpoint.device}: cannot be reached through host {via.host}: {said}"
            ) from None

    def _forwarded_or_unreachable(self, via: HostEndpoint, default_port: int, timeout_s: float) -> paramiko.Channel:
        try:
            return self._forwarded(via, default_port, timeout_s)
        except OSError as error:
            raise DeviceUnreachableError(f"{self._endpoint.device} at {self._endpoint.address}: {error}") from None


def commanded(transport: paramiko.Transport, command: str) -> CommandStream:
    """Start a command on a host, and return its standard input and output as a stream.

    Raises:
        ConnectionError: the host does not start the command.
    """
    try:
        channel = transport.open_session()
        channel.exec_command(command)
    except CHANNEL_ERRORS as error:
        raise ConnectionError(f"{command!r} does not start: {first_line(str(error))}") from None
    return _Channel(channel)


class _Channel:
    """A channel as a stream that raises a socket's errors. Closing it closes a connection that it alone uses."""

    def __init__(self, channel: paramiko.Channel, connection: SshConnection | None = None) -> None:
        self._channel = channel
        self._connection = connection
        self.settimeout = channel.settimeout
        self.recv = channel.recv
        self.fileno = channel.fileno
        self._errors = b""

    def recv_now(self, count: int, /) -> bytes:
        channel = self._channel
        if channel.recv_stderr_ready() and not channel.recv_ready():
            # Unread errors would keep the descriptor readable.
            self._errors = (self._errors + channel.recv_stderr(_MOST_COMPLAINT))[-_MOST_COMPLAINT:]
            raise BlockingIOError
        # Otherwise the descriptor is readable because of output or of its end: this does not wait.
        return channel.recv(count)

    def sendall(self, data: bytes, /) -> None:
        require_permission()
        try:
            self._channel.sendall(data)
        except (paramiko.SSHException, EOFError) as error:
            raise ConnectionError(f"the connection was lost: {error}") from None

    def complaint(self) -> str:
        said = self._errors
        while len(said) < _MOST_COMPLAINT and (chunk := self._channel.recv_stderr(_MOST_COMPLAINT)):
            said += chunk
        lines = said.decode(errors="replace").strip().splitlines()
        return lines[-1].strip() if lines else ""

    def close(self) -> None:
        (self._channel if self._connection is None else self._connection).close()


@contextmanager
def _hanging_up(connection: SshConnection, after_s: float) -> Iterator[None]:
    """Close the connection after ``after_s``, because paramiko waits for some answers without a limit."""
    watch = Timer(after_s, connection.close)
    watch.daemon = True
    watch.start()
    try:
        yield
    finally:
        watch.cancel()
