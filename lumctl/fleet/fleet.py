"""Reads the hosts of a rack over SSH, all at once, and runs commands on them for the drivers behind them."""

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

from lumctl.devices.endpoints import Endpoints, HostEndpoint
from lumctl.devices.errors import DeviceUnreachableError, OutcomeUnknownError
from lumctl.devices.protocols import CommandResult, HostShell
from lumctl.errors import UsageError
from lumctl.fleet.connect import Connector
from lumctl.fleet.probes import DEADLINES_S, probes_for
from lumctl.fleet.reader import HostReader
from lumctl.fleet.readings import Snapshot
from lumctl.fleet.routes import Routes
from lumctl.fleet.session import Session, StillRunningError
from lumctl.fleet.workers import Workers
from lumctl.inventory.hints import nearest
from lumctl.inventory.model import Inventory

if TYPE_CHECKING:
    from concurrent.futures import Future

T = TypeVar("T")
_GRACE_S = 0.5
"""What a thread is given beyond a time limit, so that the limit's own error is heard and not ours."""


class Fleet:
    """The hosts of an inventory where they answer. Connections are made on first use and kept; close it at the end."""

    def __init__(
        self,
        inventory: Inventory,
        endpoints: Endpoints,
        *,
        now: Callable[[], float] = time.time,
        connect_timeout_s: float = 5.0,
        deadlines_s: Mapping[str, float] = DEADLINES_S,
    ) -> None:
        self._endpoints = endpoints
        self._now = now
        self._connect_timeout_s = connect_timeout_s
        self._workers = Workers("fleet")
        self._connector = Connector(timeout_s=connect_timeout_s)
        self._routes = Routes()
        self._lock = Lock()
        self._sessions: dict[str, Session] = {}
        self._closed = False
        deadlines_s = {**DEADLINES_S, **deadlines_s}
        self._readers = {
            name: HostReader(
                name,
                lambda endpoint=endpoint: self._session(endpoint),  # type: ignore[misc]
                probes_for(_interfaces(inventory, name), sudo=endpoint.ssh.sudo, deadlines_s=deadlines_s),
                self._workers,
                now,
            )
            for name, endpoint in endpoints.hosts.items()
        }

    def collect(self, hosts: Collection[str] | None = None, probes: Collection[str] | None = None) -> Snapshot:
        """Read hosts (all unless named) with all probes or the named ones (``optics`` stands for each ``optics:...``).

        Returns when each host has answered or its time is over; what went wrong stands in the snapshot.

        Raises:
            UsageError: a name is not known.
        """
        started, taken_at = time.monotonic(), self._now()
        readers = [self._reader(host) for host in (self._readers if hosts is None else hosts)]
        collections = {reader.host: reader.begin(probes) for reader in readers}
        for collection in collections.values():
            limit = started + self._connect_timeout_s + collection.limit_s + _GRACE_S
            collection.finished.wait(max(0.0, limit - time.monotonic()))
        found = {host: collection.snapshot() for host, collection in collections.items()}
        return Snapshot(taken_at, time.monotonic() - started, found)

    def shell(self, host: str) -> HostShell:
        """Commands on one host, over the same connection as its probes; may be used from any thread.

        Raises:
            UsageError: the host is not known.
        """
        self._reader(host)
        return _Shell(self, self._endpoints.hosts[host])

    def close(self) -> None:
        """Hang up everywhere, waiting for nobody."""
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
        self._within(self._connect_timeout_s, self._workers.submit(session.connect), session, _no_session)
        call = self._workers.submit(lambda: session.execute(command, timeout_s))
        try:
            return self._within(timeout_s, call, session, lambda host: _unknown(host, command, timeout_s))
        except StillRunningError as still:
            still.channel.close()
            raise _unknown(endpoint.host, command, timeout_s) from None

    @staticmethod
    def _within(limit_s: float, call: "Future[T]", session: Session, late: Callable[[str], Exception]) -> T:
        """The result of a call. Some waits of the SSH library have no limit: the connection is dropped under them."""
        try:
            return call.result(limit_s + _GRACE_S)
        except TimeoutError:
            session.drop()
            raise late(session.route.label) from None

    def _session(self, endpoint: HostEndpoint) -> Session:
        with self._lock:
            if self._closed:
                raise DeviceUnreachableError(f"{endpoint.host}: its sessions were closed")
            session = self._sessions.get(endpoint.host)
            if session is None:
                session = self._sessions[endpoint.host] = Session(self._routes.of(endpoint), self._connector)
            return session

    def _reader(self, host: str) -> HostReader:
        reader = self._readers.get(host)
        if reader is None:
            near = nearest(host, self._readers)
            raise UsageError(f"no host {host!r} in the inventory", hint=f"did you mean {near}?" if near else None)
        return reader


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
        f"{host}: {command!r} did not end within {timeout_s:g} s; it may have acted", hint="read the device back"
    )


def _interfaces(inventory: Inventory, host: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(t.interface for t in inventory.transponders.values() if t.host == host))
