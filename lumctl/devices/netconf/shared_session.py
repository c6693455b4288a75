"""The one NETCONF session of a client: opened on first use, shared by threads, used by one caller at a time."""

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
    """The deadline of each thread's present call."""

    until = math.inf


class KeptSession:
    """The session, and what ends on the device together with it: locks and uncommitted edits."""

    def __init__(self, context: DriverContext, default_port: int, clock: Clock = time.monotonic) -> None:
        self.name = f"{context.device} at {context.address}" if context.address else context.device
        self.clock = clock
        self.held: list[str] = []
        """The datastores that we locked; kept after a lost session, so that writes without the lock are refused."""
        self.edited = False
        """Whether the candidate contains edits of ours."""
        self._way = context.way
        self._default_port = default_port
        self._timeout_s = context.timeout_s
        self._turn = RLock()
        self._calls = _Calls()
        self._session: NetconfSession | None = None
        self._hung_up = 0

    @contextmanager
    def call(self) -> Iterator[float]:
        """Set one deadline for this thread's actions within the block, and yield it.

        A nested call belongs to the outer one and has no later deadline.
        """
        outer = self._calls.until
        self._calls.until = min(self.clock() + self._timeout_s, outer)
        try:
            yield self._calls.until
        finally:
            self._calls.until = outer

    def left_s(self) -> float:
        """Seconds left of this thread's call; outside a call, the time limit of one."""
        return min(self._calls.until - self.clock(), self._timeout_s)

    @contextmanager
    def turn(self) -> Iterator[float]:
        """Use the session exclusively, as a call or part of one; the wait for the turn counts toward its time.

        Raises:
            DeviceBusyError: another thread's call did not end before the deadline.
        """
        with self.call() as deadline:
            if not self._turn.acquire(timeout=max(0.0, self.left_s())):
                raise DeviceBusyError(
                    f"{self.name}: another call of this program is still in progress; nothing was sent"
                )
            try:
                yield deadline
            finally:
                self._turn.release()

    def open(self, deadline: float) -> NetconfSession:
        """The session; a dead one is replaced.

        Raises:
            DeviceUnreachableError: no session can be opened; or the old one ended with locks or edits that are needed.
        """
        if self._session is not None and self._session.alive():
            return self._session
        # Asked before drop(), which forgets the edits.
        lost = "the lock" if self.held else "what was not committed" if self.edited else ""
        self.drop()
        if lost:
            raise DeviceUnreachableError(f"{self.name}: the session ended and discarded {lost}; nothing was committed")
        hung_up = self._hung_up
        session = self._session = self._connect(deadline)
        # Another thread has hung up while this one connected, and found no session to close.
        if self._hung_up != hung_up:
            self.drop()
            raise DeviceUnreachableError(f"{self.name}: the session was closed; nothing was sent")
        return session

    def need(self, capability: str, deadline: float) -> ServerCapabilities:
        """Require a capability of the device.

        Raises:
            UnsupportedError: the device does not have it; nothing was sent.
        """
        offer = ServerCapabilities(self.open(deadline).capabilities)
        if not offer.has(capability):
            raise self._lacks(capability)
        return offer

    def need_datastore(self, name: str, deadline: float, *, to_write: bool = False) -> ServerCapabilities:
        """Require a datastore of the device. Raises as :meth:`need`."""
        offer = ServerCapabilities(self.open(deadline).capabilities)
        lacking = offer.lacking(name, to_write=to_write)
        if lacking is not None:
            raise self._lacks(lacking)
        return offer

    def is_current(self, session: NetconfSession) -> bool:
        """Whether a session is the current one and still open."""
        return self._session is session and session.alive()

    def drop(self) -> None:
        """Close the session. Any thread may call this: all waiting callers are woken."""
        # Counted even without a session: another thread may be connecting one at this moment.
        self._hung_up += 1
        session, self._session = self._session, None
        self.edited = False
        if session is not None:
            session.close()

    def exchange(self, operation: str, deadline: float, *, writes: bool, may_be_partial: bool = False) -> Element:
        """Send one request and return its reply.

        ``writes``: without a reply, what the device did is unknown; for other requests a lost reply does no harm.

        Raises:
            DeviceUnreachableError: no session can be opened, or it was lost and nothing was changed.
            DeviceRefusedError: the device refused.
            OutcomeUnknownError: the request was sent, and no reply came.
        """
        session = self.open(deadline)
        try:
            reply = session.call(operation, deadline)
        except SessionError as error:
            self.drop()
            raise self._lost(error, writes=writes) from None
        except BaseException:
            # After an interrupt, the late reply would be taken for the reply to another request.
            self.drop()
            raise
        refused = refusal(reply, self.name, may_be_partial=may_be_partial)
        if refused is not None:
            raise refused
        return reply

    def do(self, operation: str, deadline: float, *, writes: bool = True, may_be_partial: bool = False) -> None:
        """Send a request that is answered with OK. Raises as :meth:`exchange`."""
        reply = self.exchange(operation, deadline, writes=writes, may_be_partial=may_be_partial)
        if reply.find(f"{{{NS}}}ok") is None:
            raise self._lost(
                SessionError("received a reply that is neither success nor failure", sent=True), writes=writes
            )

    def read(self, operation: str, deadline: float) -> Element:
        """Send a request that is answered with data. Raises as :meth:`exchange`."""
        data = self.exchange(operation, deadline, writes=False).find(f"{{{NS}}}data")
        if data is None:
            raise DeviceUnreachableError(f"{self.name}: the reply contains no data")
        return data

    def _connect(self, deadline: float) -> NetconfSession:
        stream = None
        try:
            # The deadline may have passed by now, and sockets accept no negative time limit.
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
            f"{self.name}: the request was sent, then {error}; it may or may not have taken effect",
            hint="read the device back before you do anything else",
        )
