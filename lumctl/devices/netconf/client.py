"""The client that drivers use: reads, edits of the candidate, and commits.

A confirmed commit (RFC 6241, 8.4) is rolled back by the device unless it is confirmed in time.
"""

import math
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from lumctl.devices.errors import DeviceError, DeviceRefusedError, DeviceUnreachableError
from lumctl.devices.netconf import operations
from lumctl.devices.netconf.messages import reads_as_xml
from lumctl.devices.netconf.operations import ServerCapabilities
from lumctl.devices.netconf.session import Clock, NetconfSession
from lumctl.devices.netconf.shared_session import KeptSession
from lumctl.devices.protocols import DriverContext


@dataclass(frozen=True, slots=True)
class _Pending:
    """A commit that waits to be confirmed: by whoever knows its id, or, without one, over its session alone."""

    persist_id: str
    session: NetconfSession
    ends_at: float


class CommitState:
    """What a client has committed, and whether something of it waits. The caller has the session's turn."""

    def __init__(self, kept: KeptSession) -> None:
        self._kept = kept
        self._pending: _Pending | None = None

    def keep(self, deadline: float) -> None:
        """Commit; what waits is confirmed with it."""
        self._commit(self._still_waiting(), deadline)

    def keep_for(self, seconds: float, deadline: float) -> str:
        """Commit for a time; gives the id by which it may be confirmed, empty if only this session may."""
        before, confirms = self._pending, self._still_waiting()
        whole_s = max(1, math.ceil(seconds))
        session = self._kept.open(deadline)
        any_session_may = ServerCapabilities(session.capabilities).has("confirmed-commit", "1.1")
        persist_id = f"lumctl-{secrets.token_hex(8)}" if any_session_may else ""
        # Before it is sent: if no answer comes, there may be something to confirm or to cancel.
        self._pending = _Pending(persist_id, session, self._kept.clock() + whole_s)
        try:
            self._kept.do(operations.commit_for(whole_s, persist_id, confirms), deadline)
        except (DeviceRefusedError, DeviceUnreachableError):
            self._pending = before
            raise
        self._kept.edited = False
        return persist_id

    def confirm(self, persist_id: str, deadline: float) -> None:
        """Keep what waits, ours or that of an id."""
        pending = self._pending
        if not persist_id and pending is None:
            return
        if not persist_id and pending is not None:
            persist_id = self._confirmable(pending)
        self._commit(persist_id, deadline)

    def cancel(self, persist_id: str, deadline: float) -> None:
        """Take back what waits, ours or that of an id."""
        persist_id = persist_id or (self._pending.persist_id if self._pending else "")
        if persist_id:
            self._kept.do(operations.cancel(persist_id), deadline)
        elif self._pending is not None:
            # confirmed-commit:1.0 knows no other way than the end of the session.
            self._kept.drop()
        self._pending = None

    def _commit(self, confirms: str, deadline: float) -> None:
        self._kept.do(operations.commit(confirms), deadline)
        self._pending, self._kept.edited = None, False

    def _still_waiting(self) -> str:
        """The id of what waits, as far as our clock tells; empty if nothing does, or no id is needed."""
        pending = self._pending
        return pending.persist_id if pending and self._kept.clock() < pending.ends_at else ""

    def _confirmable(self, pending: _Pending) -> str:
        """The id of what waits to be confirmed; empty if its session does it.

        Raises:
            DeviceRefusedError: it can be confirmed no more.
        """
        timely = self._kept.is_current(pending.session) and self._kept.clock() < pending.ends_at
        if not pending.persist_id and not timely:
            # A plain commit would only commit whatever the candidate holds by now.
            self._pending = None
            raise DeviceRefusedError(f"{self._kept.name}: nobody confirmed in time, so the device has gone back")
        return pending.persist_id


class NetconfClient:
    """One device over one kept session, opened on first use. Threads take turns; every call ends in the context's time.

    XML goes in and out in NETCONF's own terms: a ``subtree`` or ``config`` stands within ``<filter>`` or ``<config>``,
    so that each of its top elements states its own ``xmlns``; the prefix ``nc`` is bound to NETCONF's namespace
    (``nc:operation="remove"``). Besides what each method names, any raises :class:`DeviceUnreachableError` (nothing
    was sent, or nothing that was sent changes anything) and :class:`DeviceRefusedError` (with tag and path).
    """

    def __init__(self, context: DriverContext, *, default_port: int = 830, clock: Clock = time.monotonic) -> None:
        self._kept = KeptSession(context, default_port, clock)
        self._commits = CommitState(self._kept)

    @contextmanager
    def deadline(self) -> Iterator[None]:
        """Have all that this thread asks for inside end in the context's time, counted from here, as one call does.

        Within another deadline it is a part of that. Other threads may ask in between; see :meth:`one_call`.
        """
        with self._kept.call():
            yield

    def left_s(self) -> float:
        """Seconds that are left of this thread's deadline, less than none when it is over; all of them without one."""
        return self._kept.left_s()

    @contextmanager
    def one_call(self) -> Iterator[None]:
        """Keep other threads out, under one :meth:`deadline`, to which the wait for them counts.

        Raises:
            DeviceBusyError: another thread's call was still at work by then; nothing was sent.
        """
        with self._kept.turn():
            yield

    def capabilities(self) -> frozenset[str]:
        """The device's capabilities, from its hello."""
        with self._kept.turn() as deadline:
            return self._kept.open(deadline).capabilities

    def offers(self, name: str, version: str = "") -> bool:
        """Whether the device has a standard capability, such as ``confirmed-commit``; of any version, or of one."""
        return ServerCapabilities(self.capabilities()).has(name, version)

    def get(self, subtree: str) -> Element:
        """Configuration and state, as the ``<data>`` of the reply; all of it if ``subtree`` is empty."""
        self._check(subtree)
        with self._kept.turn() as deadline:
            return self._kept.read(operations.get(subtree), deadline)

    def get_config(self, source: str, subtree: str) -> Element:
        """The configuration in a datastore: ``running``, ``candidate`` or ``startup``.

        Raises:
            UnsupportedError: the device has no such datastore; nothing was sent.
        """
        self._check(subtree)
        with self._kept.turn() as deadline:
            self._kept.need_datastore(source, deadline)
            return self._kept.read(operations.get_config(source, subtree), deadline)

    def edit_config(self, config: str, *, target: str = "candidate") -> None:
        """Change a datastore; whole or not at all where the device can.

        Raises:
            UnsupportedError: the device has no such datastore, or it cannot be written; nothing was sent.
            OutcomeUnknownError: no answer came, unless a locked candidate is edited: that goes with its session. Or
                the device said no to an edit of ``running``, and does not undo what it took before.
        """
        self._check(config)
        with self._kept.turn() as deadline:
            offer = self._kept.need_datastore(target, deadline, to_write=True)
            undone = offer.has("rollback-on-error")
            on_candidate = target == "candidate"
            self._kept.edited |= on_candidate
            self._kept.do(
                operations.edit_config(target, config, undone_on_error=undone),
                deadline,
                writes=target not in self._kept.held or not on_candidate,
                may_be_partial=not (undone or on_candidate),
            )

    @contextmanager
    def locked(self, *targets: str) -> Iterator[None]:
        """Lock datastores, keep other threads out, and at the end discard what was not committed and unlock.

        All of it is under one :meth:`deadline`. Where no time is left for the end, hanging up does the same.

        A session that is lost meanwhile takes the lock with it: every call until the end raises
        :class:`DeviceUnreachableError`.

        Raises:
            DeviceBusyError: somebody else holds one of them.
            UnsupportedError: the device has no such datastore; nothing was sent.
        """
        with self._kept.turn() as deadline:
            for target in targets:
                self._kept.need_datastore(target, deadline)
            taken: list[str] = []
            try:
                for target in targets:
                    self._kept.do(operations.lock(target), deadline, writes=False)
                    self._kept.held.append(target)
                    taken.append(target)
                yield
            finally:
                self._give_back(taken)

    def validate(self) -> None:
        """Have the device check the candidate; a commit does so as well.

        netconfd 2.13 was seen to forget edits of a list over this, and to answer the commit after it with OK.

        Raises:
            UnsupportedError: it cannot; nothing was sent.
        """
        with self._kept.turn() as deadline:
            self._kept.need("validate", deadline)
            self._kept.do(operations.VALIDATE, deadline, writes=False)

    def commit(self, *, revert_after_s: float | None = None) -> str:
        """Make the candidate the running configuration; it confirms an earlier commit of ours that waits for that.

        With ``revert_after_s`` (at least a second, rounded up to whole ones) the device goes back by itself unless it
        is confirmed in time. What is returned then is the id with which any session may confirm it; it is empty where
        only this one may, and there the device goes back as soon as this session ends.

        Raises:
            UnsupportedError: the device has no candidate, or no such timer; nothing was sent.
            OutcomeUnknownError: no answer came.
        """
        with self._kept.turn() as deadline:
            self._kept.need("candidate", deadline)
            if revert_after_s is None:
                self._commits.keep(deadline)
                return ""
            self._kept.need("confirmed-commit", deadline)
            return self._commits.keep_for(revert_after_s, deadline)

    def confirm(self, persist_id: str = "") -> None:
        """Keep what was committed for a time: by us, or under an id by another session. Nothing, if nothing waits.

        To a device this is a commit of the candidate: what others edited there meanwhile, without a lock, goes with it.
        (netconfd gives nobody a lock while a change waits, not even whom it waits for.)

        Raises:
            DeviceRefusedError: the time ran out or the session ended before, so that the device has gone back.
            OutcomeUnknownError: no answer came.
        """
        with self._kept.turn() as deadline:
            self._commits.confirm(persist_id, deadline)

    def cancel(self, persist_id: str = "") -> None:
        """Take back now what was committed for a time. Nothing, if nothing waits.

        Raises:
            DeviceRefusedError: it waits no more: it was confirmed, or the device has gone back.
            OutcomeUnknownError: no answer came.
        """
        with self._kept.turn() as deadline:
            self._commits.cancel(persist_id, deadline)

    def discard(self) -> None:
        """Make the candidate what runs."""
        with self._kept.turn() as deadline:
            self._kept.need("candidate", deadline)
            self._kept.do(operations.DISCARD, deadline, writes=False)
            self._kept.edited = False

    def call(self, operation: str) -> None:
        """An operation of the device's own data model, as XML, that is answered with OK.

        Raises:
            OutcomeUnknownError: no answer came.
        """
        self._check(operation)
        with self._kept.turn() as deadline:
            self._kept.do(operation, deadline)

    def close(self) -> None:
        """Hang up, waiting for nobody; a later call connects again."""
        self._kept.drop()

    def _give_back(self, taken: list[str]) -> None:
        try:
            with self._kept.turn() as deadline:
                if self._kept.edited and "candidate" in taken:
                    self._kept.do(operations.DISCARD, deadline, writes=False)
                    self._kept.edited = False
                for target in reversed(taken):
                    self._kept.do(operations.unlock(target), deadline, writes=False)
        except DeviceError:
            # The end of the session discards and unlocks as well.
            self._kept.drop()
        finally:
            for target in taken:
                self._kept.held.remove(target)

    def _check(self, fragment: str) -> None:
        if not reads_as_xml(fragment):
            raise DeviceRefusedError(f"{self._kept.name}: what was to be sent is not well-formed XML; nothing was sent")
