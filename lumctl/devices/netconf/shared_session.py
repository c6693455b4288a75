"""A client's one NETCONF session: opened on first use, shared, given to one caller at a time."""

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock, local
from xml.etree.ElementTree import Element

from lumctl.devices.errors import (
    DeviceBusyError,
    DeviceError,
    DeviceUnreachableError,
    OutcomeUnknownError,
    UnsupportedError,
)
from lumctl.devices.netconf.messages import NS, refusal
from lumctl.devices.netconf.operations import ServerCapabilities
from lumctl.devices.netconf.session import Clock, NetconfSession, SessionError
from lumctl.devices.protocols import DriverContext


class _Calls(local):
    """Of each thread: when the call that it is in must be over."""

    until = math.inf


class KeptSession:
    """The session, and what on the device lasts only as long as it: locks, and edits that are not committed."""

    def __init__(self, context: DriverContext, default_port: int, clock: Clock = time.monotonic) -> None:
        self.name = f"{context.device} at {context.address}" if context.address else context.device
        self.clock = clock
        self.held: list[str] = []
        """The datastores that are locked for us; not emptied when the session is lost, so that nobody writes on."""
        self.edited = False
        """Whether the candidate holds edits of ours."""
        self._way = context.way
        self._default_port = default_port
        self._timeout_s = context.timeout_s
        self._turn = RLock()
        self._calls = _Calls()
        self._session: NetconfSession | None = None
        self._hung_up = 0

    @contextmanager
    def call(self) -> Iterator[float]:
        """Have one deadline for all that this thread does inside; gives the moment at which it must be over.

        A call within a call is a part of it, and ends with it.
        """
        outer = self._calls.until
        self._calls.until = min(self.clock() + self._timeout_s, outer)
        try:
            yield self._calls.until
        finally:
            self._calls.until = outer

    def left_s(self) -> float:
        """Seconds that this thread's call still has; outside of one, those that it would have."""
        return min(self._calls.until - self.clock(), self._timeout_s)

    @contextmanager
    def turn(self) -> Iterator[float]:
        """Have the session to ourselves; it is a call, or a part of one, and so is the wait for it.

        Raises:
            DeviceBusyError: another thread's call is still at work by then.
        """
        with self.call() as deadline:
            if not self._turn.acquire(timeout=max(0.0, self.left_s())):
                raise DeviceBusyError(f"{self.name}: another call of this program is still at work; nothing was sent")
            try:
                yield deadline
            finally:
                self._turn.release()

    def open(self, deadline: float) -> NetconfSession:
        """The session, replaced if it has died.

        Raises:
            DeviceUnreachableError: there is none to be had; or what stood on the old one went with it.
        """
        if self._session is not None and self._session.alive():
            return self._session
        lost = "the lock" if self.held else "what was not committed" if self.edited else ""
        self.drop()
        if lost:
            raise DeviceUnreachableError(
                f"{self.name}: the session was lost, and {lost} with it; nothing was committed"
            )
        hung_up = self._hung_up
        session = self._session = self._connect(deadline)
        if self._hung_up != hung_up:
            self.drop()
            raise DeviceUnreachableError(f"{self.name}: the session was closed; nothing was sent")
        return session

    def need(self, capability: str, deadline: float) -> ServerCapabilities:
        """Hold the device to a capability.

        Raises:
            UnsupportedError: it does not have it; nothing was sent.
        """
        offer = ServerCapabilities(self.open(deadline).capabilities)
        if not offer.has(capability):
            raise self._lacks(capability)
        return offer

    def need_datastore(self, name: str, deadline: float, *, to_write: bool = False) -> ServerCapabilities:
        """Hold the device to having a datastore. Raises as :meth:`need`."""
        offer = ServerCapabilities(self.open(deadline).capabilities)
        lacking = offer.lacking(name, to_write=to_write)
        if lacking is not None:
            raise self._lacks(lacking)
        return offer

    def is_current(self, session: NetconfSession) -> bool:
        """Whether a session is still the one, and lives."""
        return self._session is session and session.alive()

    def drop(self) -> None:
        """Hang up. May be called by any thread: whoever waits for a reply is woken."""
        self._hung_up += 1
        session, self._session = self._session, None
        self.edited = False
        if session is not None:
            session.close()

    def exchange(self, operation: str, deadline: float, *, writes: bool, may_be_partial: bool = False) -> Element:
        """One request and its reply.

        ``writes``: without a reply it is not known what the device has done; else nothing that counts was changed.

        Raises:
            DeviceUnreachableError: there is no session, or it was lost and nothing was changed.
            DeviceRefusedError: the device said no.
            OutcomeUnknownError: the request was sent, and no reply came.
        """
        session = self.open(deadline)
        try:
            reply = session.call(operation, deadline)
        except SessionError as error:
            self.drop()
            raise self._lost(error, writes=writes) from None
        except BaseException:
            # An interrupt: the reply that comes later would be taken for another's.
            self.drop()
            raise
        refused = refusal(reply, self.name, may_be_partial=may_be_partial)
        if refused is not None:
            raise refused
        return reply

    def do(self, operation: str, deadline: float, *, writes: bool = True, may_be_partial: bool = False) -> None:
        """A request that is answered with OK. Raises as :meth:`exchange`."""
        reply = self.exchange(operation, deadline, writes=writes, may_be_partial=may_be_partial)
        if reply.find(f"{{{NS}}}ok") is None:
            raise self._lost(SessionError("a reply that is neither yes nor no came", sent=True), writes=writes)

    def read(self, operation: str, deadline: float) -> Element:
        """A request that is answered with data. Raises as :meth:`exchange`."""
        data = self.exchange(operation, deadline, writes=False).find(f"{{{NS}}}data")
        if data is None:
            raise DeviceUnreachableError(f"{self.name}: the reply holds no data")
        return data

    def _connect(self, deadline: float) -> NetconfSession:
        stream = None
        try:
            left_s = max(0.05, deadline - self.clock())
            stream = self._way.subsystem("netconf", self._default_port, left_s)
            return NetconfSession(stream, deadline, self.clock)
        except (SessionError, OSError, DeviceError) as error:
            if stream is not None:
                stream.close()
            if isinstance(error, DeviceError):
                raise
            raise DeviceUnreachableError(
                f"{self.name}: no NETCONF session: {error}; nothing was sent",
                hint="check the address and the port (830 is usual): it may be another service",
            ) from None
        except BaseException:
            if stream is not None:
                stream.close()
            raise

    def _lacks(self, capability: str) -> UnsupportedError:
        return UnsupportedError(f"{self.name}: the device has no {capability}; nothing was sent")

    def _lost(self, error: SessionError, *, writes: bool) -> DeviceError:
        if not error.sent:
            return DeviceUnreachableError(f"{self.name}: {error}; nothing was sent")
        if not writes:
            return DeviceUnreachableError(f"{self.name}: {error}; nothing was changed")
        return OutcomeUnknownError(
            f"{self.name}: the request was sent, then {error}; it may or may not have acted",
            hint="read the device back before anything else",
        )
