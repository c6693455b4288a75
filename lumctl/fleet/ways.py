"""The ways to devices over the fleet's SSH: straight, through a host near them, and as sessions of their own."""

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
from lumctl.fleet.ssh.connect import Connector
from lumctl.fleet.ssh.connection import SshConnection
from lumctl.fleet.ssh.routes import Routes
from lumctl.inventory.model import SshSettings

_BROKEN = (paramiko.SSHException, EOFError, OSError)
_MOST_COMPLAINT = 4096


class SshWay:
    """The way to one device. ``transport_of`` gives a live SSH transport to the host that leads there."""

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
        """Connect straight, or have the host near the device connect.

        Raises:
            OSError: nobody answers there.
            DeviceUnreachableError: the host that leads there cannot be reached, or connects nowhere for us.
        """
        endpoint = self._endpoint
        if endpoint.via is None:
            return Direct(endpoint.address).tcp(default_port, timeout_s)
        return _Channel(self._forwarded(endpoint.via, default_port, timeout_s))

    def subsystem(self, name: str, default_port: int, timeout_s: float) -> Stream:
        """Log in to the device and open one of its subsystems; closing the stream hangs up.

        Raises:
            DeviceUnreachableError: nobody answers, the key is unknown or changed, or there is no such subsystem.
            DeviceLoginError: the device lets us in with none of our keys, and not with its secret.
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
            left_s = max(0.05, deadline - time.monotonic())
            with _hanging_up(connection, left_s):
                channel = connection.transport.open_session(timeout=left_s)
                channel.invoke_subsystem(name)
        except _BROKEN as error:
            connection.close()
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
        left_s = max(0.05, deadline - time.monotonic())
        where = host_and_port(self._endpoint.address, default_port)
        try:
            return transport.open_channel("direct-tcpip", where, ("127.0.0.1", 0), timeout=left_s)
        except paramiko.ChannelException as error:
            said = first_line(error.text).lower()
            raise ConnectionRefusedError(f"host {via.host} cannot connect to it: {said}") from None
        except _BROKEN as error:
            if time.monotonic() >= deadline:
                raise TimeoutError(f"host {via.host} does not get through to it in time") from None
            said = first_line(str(error)).rstrip(".").lower()
            raise DeviceUnreachableError(f"{self._endpoint.device}: no way through host {via.host}: {said}") from None

    def _forwarded_or_unreachable(self, via: HostEndpoint, default_port: int, timeout_s: float) -> paramiko.Channel:
        try:
            return self._forwarded(via, default_port, timeout_s)
        except OSError as error:
            raise DeviceUnreachableError(f"{self._endpoint.device} at {self._endpoint.address}: {error}") from None


def commanded(transport: paramiko.Transport, command: str) -> CommandStream:
    """What a command on a host reads and writes, as a stream.

    Raises:
        ConnectionError: the host does not begin with it.
    """
    try:
        channel = transport.open_session()
        channel.exec_command(command)
    except _BROKEN as error:
        raise ConnectionError(f"{command!r} does not begin: {first_line(str(error))}") from None
    return _Channel(channel)


class _Channel:
    """A channel as a stream: its errors are those of sockets. With it ends the connection that it alone uses."""

    def __init__(self, channel: paramiko.Channel, connection: SshConnection | None = None) -> None:
        self._channel = channel
        self._connection = connection
        self.settimeout = channel.settimeout
        self.recv = channel.recv

    def sendall(self, data: bytes, /) -> None:
        require_permission()
        try:
            self._channel.sendall(data)
        except (paramiko.SSHException, EOFError) as error:
            raise ConnectionError(f"the connection was lost: {error}") from None

    def complaint(self) -> str:
        said = b""
        while len(said) < _MOST_COMPLAINT and (chunk := self._channel.recv_stderr(_MOST_COMPLAINT)):
            said += chunk
        lines = said.decode(errors="replace").strip().splitlines()
        return lines[-1].strip() if lines else ""

    def close(self) -> None:
        (self._channel if self._connection is None else self._connection).close()


@contextmanager
def _hanging_up(connection: SshConnection, after_s: float) -> Iterator[None]:
    """Hang up when the time is over: paramiko waits for the answer to some requests without end."""
    watch = Timer(after_s, connection.close)
    watch.daemon = True
    watch.start()
    try:
        yield
    finally:
        watch.cancel()
