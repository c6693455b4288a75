"""Read the hosts of a rack over SSH in parallel, and run commands on them for drivers of devices behind them."""

import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from math import inf
from shlex import quote
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

from lumctl.devices.endpoints import DeviceEndpoint, Endpoints, GatewayEndpoint, HostEndpoint
from lumctl.devices.errors import DeviceUnreachableError, OutcomeUnknownError
from lumctl.devices.permission import permission
from lumctl.devices.protocols import CommandResult, HostShell
from lumctl.devices.ways import CommandStream, Stream, Way
from lumctl.fleet.probes import Probe, probes_for
from lumctl.fleet.reader import GRACE_S, HostReader, SharedByHosts
from lumctl.fleet.readings import Snapshot
from lumctl.fleet.rounds import Gate, Round
from lumctl.fleet.ssh.connect import Connector
from lumctl.fleet.ssh.routes import Routes
from lumctl.fleet.ssh.session import SshSession, StillRunningError
from lumctl.fleet.ways import SshWay, commanded
from lumctl.inventory.model import Inventory
from lumctl.inventory.problems import require_known
from lumctl.json_lines import connect
from lumctl.workers import Workers

if TYPE_CHECKING:
    from concurrent.futures import Future

    import paramiko

    from lumctl.fleet.exporters import CombinedReader, ExporterReader
    from lumctl.fleet.exporters.reader import PageClient

    _Reader = HostReader | ExporterReader | CombinedReader

T = TypeVar("T")


class Fleet:
    """The hosts of an inventory. Connections are made on first use and kept until :meth:`close`."""

    def __init__(
        self,
        inventory: Inventory,
        endpoints: Endpoints,
        *,
        now: Callable[[], float] = time.time,
        connect_timeout_s: float = 5.0,
        probes_of: Callable[[str], tuple[Probe, ...]] | None = None,
    ) -> None:
        self._inventory = inventory
        self._endpoints = endpoints
        self._now = now
        self._connect_timeout_s = connect_timeout_s
        self._workers = Workers("fleet")
        self._connector = Connector(timeout_s=connect_timeout_s)
        self._routes = Routes()
        self._lock = Lock()
        self._sessions: dict[str, SshSession] = {}
        self._closed = False
        self._means = SharedByHosts(self._workers, Gate(), now, connect_timeout_s)
        self._probes_of = probes_of or (lambda host: _probes(inventory, host, endpoints.hosts[host]))
        # Each is made on first use: a fleet is often opened for one host of many.
        self._readers: dict[str, _Reader] = {}

    def _new_reader(self, endpoint: HostEndpoint) -> "_Reader":
        # A host that is not in the inventory, such as one that only leads to devices, is read over SSH alone.
        host, probes = self._inventory.hosts.get(endpoint.host), self._probes_of(endpoint.host)
        shell = HostReader(endpoint.host, lambda: self._session(endpoint), probes, self._means)
        if host is None or not host.readings.uses_exporters:
            return shell
        # Imported here because most fleets need no HTTP.
        from lumctl.fleet.exporters import CombinedReader, exporter_reader  # noqa: PLC0415

        pages = exporter_reader(self._inventory, endpoint, self._means, [probe.name for probe in probes])
        return CombinedReader(shell, pages) if host.readings.uses_shell else pages

    def collect(self, hosts: Collection[str] | None = None, probes: Collection[str] | None = None) -> Snapshot:
        """Read hosts (by default all) with probes (by default all; ``optics`` means each ``optics:...``).

        Everything is read again: no reading in the snapshot is older than this call. It returns when each host has
        answered or has run out of time; failures are in the snapshot.

        Raises:
            UsageError: a name is unknown.
        """
        started, taken_at = time.monotonic(), self._now()
        readers = [self._reader(host) for host in (self._endpoints.hosts if hosts is None else hosts)]
        round_ = Round()
        for reader in readers:
            reader.read_now(round_, probes)
        # No limit of its own: each reader gives up its probes at their own deadlines, so this ends.
        round_.wait(inf, lambda now: _expire(readers, now))
        found = {reader.host: reader.snapshot(probes, taken_at) for reader in readers}
        return Snapshot(taken_at, time.monotonic() - started, found)

    def tick(self, patience_s: float = 1.0) -> Snapshot:
        """Read what is due by each probe's cadence, and return the newest readings of everything.

        It waits at most ``patience_s`` for the probes that run at every tick. It does not wait again for a late or lost
        host until that host has answered. A reading's own ``taken_at`` shows its age.
        """
        started, taken_at = time.monotonic(), self._now()
        round_, readers = Round(), [self._reader(host) for host in self._endpoints.hosts]
        for reader in readers:
            reader.read_due(round_)
        round_.wait(started + patience_s, lambda now: _expire(readers, now))
        # A round that ends early has not called `_expire`, and a late host must be given up all the same.
        ended = time.monotonic()
        _expire(readers, ended)
        found = {reader.host: reader.snapshot(None, None) for reader in readers}
        return Snapshot(taken_at, ended - started, found)

    def shell(self, host: str) -> HostShell:
        """A shell on one host, over the same connection as its probes. Any thread may use it.

        Raises:
            UsageError: the host is unknown.
        """
        require_known("host", [host], self._endpoints.hosts)
        return _Shell(self, self._endpoints.hosts[host])

    def pages(self, host: str) -> "tuple[tuple[Probe, PageClient], ...]":
        """The exporters of a host, as probes, each with the client that fetches its page.

        Raises:
            UsageError: the host is unknown.
        """
        reader = self._reader(host)
        if isinstance(reader, HostReader):
            return ()
        by_kind = {probe.name: probe for probe in reader.probes}
        return tuple((by_kind[client.exporter.kind], client) for client in reader.clients)

    def accelerator_probes(self, hosts: Iterable[str]) -> frozenset[str] | None:
        """The names of the probes that read the accelerators of some hosts; ``None``: all, because one has exporters.

        Raises:
            UsageError: a host is unknown.
        """
        readers = [self._reader(host) for host in hosts]
        shells = [reader for reader in readers if isinstance(reader, HostReader)]
        if len(shells) < len(readers):
            return None
        return frozenset(probe.name for reader in shells for probe in reader.probes if probe.is_of_accelerators)

    def address(self, host: str) -> str:
        """The address of a host for other programs: the inventory's, or what the ssh configuration translates it to.

        Raises:
            UsageError: the ssh configuration cannot be read.
        """
        return self._routes.of(self._endpoints.hosts[host]).address

    def way(self, endpoint: DeviceEndpoint) -> Way:
        """The connection to a device, over the same SSH connections as to the hosts."""
        return SshWay(endpoint, self._connector, self._routes, self._transport)

    def dial(self, gateway: GatewayEndpoint, within_s: float) -> Stream:
        """Connect to a gateway on this machine, or through ``lumctl gateway connect`` on the host where it runs.

        Raises:
            OSError: no gateway answers there.
            DeviceUnreachableError: there is no session to the host.
        """
        if gateway.via is None:
            return connect(gateway.path, within_s)
        transport, session = self._transport(gateway.via), self._session(gateway.via)
        begun = self._workers.submit(lambda: commanded(transport, f"lumctl gateway connect {quote(str(gateway.path))}"))
        return self._within(within_s, begun, session, _no_session)

    def stream(self, host: str, command: str, *, within_s: float) -> CommandStream:
        """Start a command on a host; the stream is its standard input and output, until either ends.

        Raises:
            OSError: the command does not start.
            DeviceUnreachableError: there is no session to the host.
        """
        endpoint = self._endpoints.hosts[host]
        transport, session = self._transport(endpoint), self._session(endpoint)
        return self._within(within_s, self._workers.submit(lambda: commanded(transport, command)), session, _no_session)

    def _transport(self, host: HostEndpoint) -> "paramiko.Transport":
        session = self._session(host)
        self._within(self._connect_timeout_s, self._workers.submit(session.connect), session, _no_session)
        return session.transport()

    def close(self) -> None:
        """Close all connections without waiting."""
        with self._lock:
            self._closed = True
            sessions, self._sessions = list(self._sessions.values()), {}
        for session in sessions:
            session.close()
        self._connector.close()
        self._workers.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def run(self, endpoint: HostEndpoint, command: str, timeout_s: float) -> CommandResult:
        """Run a command on a host; see :class:`HostShell`."""
        session = self._session(endpoint)
        if not session.alive:  # a connection that was lost unnoticed is found by the call itself
            self._within(self._connect_timeout_s, self._workers.submit(session.connect), session, _no_session)
        permitted = permission()  # this thread's permission, because another thread sends
        call = self._workers.submit(lambda: session.execute(command, timeout_s, permitted))
        try:
            return self._within(timeout_s, call, session, lambda host: _unknown(host, command, timeout_s))
        except StillRunningError as still:
            still.channel.close()
            raise _unknown(endpoint.host, command, timeout_s) from None

    @staticmethod
    def _within(limit_s: float, call: "Future[T]", session: SshSession, late: Callable[[str], Exception]) -> T:
        """The result of a call. If it is late, the connection is dropped, because the SSH library may wait for ever."""
        try:
            return call.result(limit_s + GRACE_S)
        except TimeoutError:
            session.drop()
            raise late(session.route.label) from None

    def _session(self, endpoint: HostEndpoint) -> SshSession:
        with self._lock:
            if self._closed:
                raise DeviceUnreachableError(f"{endpoint.host}: its sessions were closed")
            session = self._sessions.get(endpoint.host)
            if session is None:
                session = self._sessions[endpoint.host] = SshSession(self._routes.of(endpoint), self._connector)
            return session

    def _reader(self, host: str) -> "_Reader":
        require_known("host", [host], self._endpoints.hosts)
        with self._lock:
            if host not in self._readers:
                self._readers[host] = self._new_reader(self._endpoints.hosts[host])
            return self._readers[host]


@dataclass(frozen=True, slots=True)
class _Shell:
    """A :class:`HostShell` of a fleet."""

    fleet: Fleet
    endpoint: HostEndpoint

    def run(self, command: str, *, timeout_s: float) -> CommandResult:
        return self.fleet.run(self.endpoint, command, timeout_s)


def _no_session(host: str) -> DeviceUnreachableError:
    return DeviceUnreachableError(f"{host}: no SSH session in time")


def _unknown(host: str, command: str, timeout_s: float) -> OutcomeUnknownError:
    return OutcomeUnknownError(
        f"{host}: {command!r} did not end within {timeout_s:g} s; it may have taken effect", hint="read the device back"
    )


def _expire(readers: "Iterable[_Reader]", now: float) -> float:
    return min((reader.expire(now) for reader in readers), default=inf)


def _probes(inventory: Inventory, host: str, endpoint: HostEndpoint) -> tuple[Probe, ...]:
    interfaces = (t.interface for t in inventory.transponders.values() if t.host == host)
    accelerators = inventory.hosts[host].probe
    return probes_for(interfaces, sudo=endpoint.ssh.sudo, times=inventory.probes, accelerators=accelerators)
