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
    """A commit that waits to be confirmed: with its id or, without one, only by its own session."""

    persist_id: str
    session: NetconfSession
    ends_at: float


class CommitState:
    """Makes commits and tracks the one that waits for confirmation. The caller has exclusive use of the session."""

    def __init__(self, kept: KeptSession) -> None:
        self._kept = kept
        self._pending: _Pending | None = None

    def keep(self, deadline: float) -> None:
        """Commit, and thereby confirm a waiting commit."""
        self._commit(self._still_waiting(), deadline)

    def keep_for(self, seconds: float, deadline: float) -> str:
        """Commit for a limited time; return the id for the confirmation, empty if only this session may confirm."""
        before, confirms = self._pending, self._still_waiting()
        # The protocol takes whole seconds, and at least one.
        whole_s = max(1, math.ceil(seconds))
        session = self._kept.open(deadline)
        any_session_may = ServerCapabilities(session.capabilities).has("confirmed-commit", "1.1")
        # It must not be guessable: a client that knows the id can confirm or cancel the commit.
        persist_id = f"lumctl-{secrets.token_hex(8)}" if any_session_may else ""
        # Set before the request is sent: even without an answer there may be a commit to confirm or to cancel.
        self._pending = _Pending(persist_id, session, self._kept.clock() + whole_s)
        try:
            self._kept.do(operations.commit_for(whole_s, persist_id, confirms), deadline)
        except (DeviceRefusedError, DeviceUnreachableError):
            # The device committed nothing, so an earlier commit still waits for its confirmation.
            self._pending = before
            raise
        self._kept.edited = False
        return persist_id

    def confirm(self, persist_id: str, deadline: float) -> None:
        """Confirm the waiting commit: ours, or the one with this id."""
        pending = self._pending
        if not persist_id and pending is None:
            return
        if not persist_id and pending is not None:
            persist_id = self._confirmable(pending)
        self._commit(persist_id, deadline)

    def cancel(self, persist_id: str, deadline: float) -> None:
        """Undo the waiting commit: ours, or the one with this id."""
        persist_id = persist_id or (self._pending.persist_id if self._pending else "")
        if persist_id:
            self._kept.do(operations.cancel(persist_id), deadline)
        elif self._pending is not None:
            # With confirmed-commit:1.0 only the end of the session undoes the commit.
            self._kept.drop()
        self._pending = None

    def _commit(self, confirms: str, deadline: float) -> None:
        self._kept.do(operations.commit(confirms), deadline)
        self._pending, self._kept.edited = None, False

    def _still_waiting(self) -> str:
        """The id of the commit that still waits according to our clock; empty if none waits, or if it has no id."""
        pending = self._pending
        return pending.persist_id if pending and self._kept.clock() < pending.ends_at else ""

    def _confirmable(self, pending: _Pending) -> str:
        """The id of a commit to be confirmed; empty if its own session confirms it.

        Raises:
            DeviceRefusedError: the commit can no longer be confirmed.
        """
        timely = self._kept.is_current(pending.session) and self._kept.clock() < pending.ends_at
        if not pending.persist_id and not timely:
            # A plain commit would only commit the present content of the candidate.
            self._pending = None
            raise DeviceRefusedError(
                f"{self._kept.name}: the change was not confirmed in time, so the device has reverted it"
            )
        return pending.persist_id


class NetconfClient:
    """One device over one session, opened on first use. Threads take turns; the context limits each call's time.

    Arguments and results are XML in NETCONF's own terms: a ``subtree`` or ``config`` is put within ``<filter>`` or
    ``<config>``, so that each of its top elements states its own ``xmlns``; the prefix ``nc`` is bound to NETCONF's
    namespace (``nc:operation="remove"``). Besides the errors that each method lists, any method may raise
    :class:`DeviceUnreachableError` (nothing was sent, or nothing that was sent changes anything) and
    :class:`DeviceRefusedError` (with tag and path).
    """

    def __init__(self, context: DriverContext, *, default_port: int = 830, clock: Clock = time.monotonic) -> None:
        self._kept = KeptSession(context, default_port, clock)
        self._commits = CommitState(self._kept)

    @contextmanager
    def deadline(self) -> Iterator[None]:
        """Give all calls of this thread inside the block one deadline: the context's time from now.

        Inside another deadline the outer one also applies. Other threads may call in between; see :meth:`one_call`.
        """
        with self._kept.call():
            yield

    def left_s(self) -> float:
        """Seconds until this thread's deadline, negative after it; without a deadline, the time limit of one call."""
        return self._kept.left_s()

    @contextmanager
    def one_call(self) -> Iterator[None]:
        """Keep other threads out, under one :meth:`deadline`, which includes the wait for their calls.

        Raises:
            DeviceBusyError: another thread's call did not end before the deadline; nothing was sent.
        """
        with self._kept.turn():
            yield

    def capabilities(self) -> frozenset[str]:
        """The device's capabilities, from its hello."""
        with self._kept.turn() as deadline:
            return self._kept.open(deadline).capabilities

    def offers(self, name: str, version: str = "") -> bool:
        """Whether the device has a standard capability, such as ``confirmed-commit``, in this or in any version."""
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
        """Change a datastore, as a whole or not at all if the device supports that.

        Raises:
            UnsupportedError: the device has no such datastore, or it cannot be written; nothing was sent.
            OutcomeUnknownError: no answer came; not raised for a locked candidate, whose edits end with the session.
                Or the device refused an edit of ``running`` and does not undo the part that it had already made.
        """
        self._check(config)
        with self._kept.turn() as deadline:
            offer = self._kept.need_datastore(target, deadline, to_write=True)
            undone = offer.has("rollback-on-error")
            on_candidate = target == "candidate"
            # Set before the request is sent: even without an answer the candidate may hold the edit.
            self._kept.edited |= on_candidate
            self._kept.do(
                operations.edit_config(target, config, undone_on_error=undone),
                deadline,
                # Edits of a candidate that we locked end with the session, so a lost answer leaves nothing behind.
                writes=target not in self._kept.held or not on_candidate,
                may_be_partial=not (undone or on_candidate),
            )

    @contextmanager
    def locked(self, *targets: str) -> Iterator[None]:
        """Lock datastores and keep other threads out; at the end, discard uncommitted edits and unlock.

        The whole block is under one :meth:`deadline`. If no time is left at its end, the session is closed, which also
        discards and unlocks.

        If the session is lost inside the block, the lock is lost too: every later call in the block raises
        :class:`DeviceUnreachableError`.

        Raises:
            DeviceBusyError: another client holds the lock of one of them.
            UnsupportedError: the device has no such datastore; nothing was sent.
        """
        with self._kept.turn() as deadline:
            # All are checked before the first lock, so that UnsupportedError means that nothing was sent.
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

        netconfd 2.13 sometimes lost edits of a list in this check, and still answered the next commit with OK.

        Raises:
            UnsupportedError: the device cannot check it; nothing was sent.
        """
        with self._kept.turn() as deadline:
            self._kept.need("validate", deadline)
            self._kept.do(operations.VALIDATE, deadline, writes=False)

    def commit(self, *, revert_after_s: float | None = None) -> str:
        """Make the candidate the running configuration; this also confirms a waiting commit of ours.

        With ``revert_after_s`` (at least one second, rounded up to whole seconds) the device reverts by itself unless
        the commit is confirmed in time. The method then returns the id with which any session may confirm. The id is
        empty if only this session may confirm; the device then also reverts when this session ends.

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
        """Confirm a temporary commit: ours, or the one of another session by its id. Do nothing if none waits.

        For the device this is a commit of the candidate: it includes edits that others made there without a lock.
        (While a commit waits, netconfd grants no lock, not even to the session that made the commit.)

        Raises:
            DeviceRefusedError: the time ran out or the session ended, so the device has reverted.
            OutcomeUnknownError: no answer came.
        """
        with self._kept.turn() as deadline:
            self._commits.confirm(persist_id, deadline)

    def cancel(self, persist_id: str = "") -> None:
        """Undo a commit that waits for confirmation now. Do nothing if none waits.

        Raises:
            DeviceRefusedError: it no longer waits: it was confirmed, or the device has reverted.
            OutcomeUnknownError: no answer came.
        """
        with self._kept.turn() as deadline:
            self._commits.cancel(persist_id, deadline)

    def discard(self) -> None:
        """Reset the candidate to the running configuration."""
        with self._kept.turn() as deadline:
            self._kept.need("candidate", deadline)
            self._kept.do(operations.DISCARD, deadline, writes=False)
            self._kept.edited = False

    def call(self, operation: str) -> None:
        """Call an operation of the device's own data model, given as XML, that is answered with OK.

        Raises:
            OutcomeUnknownError: no answer came.
        """
        self._check(operation)
        with self._kept.turn() as deadline:
            self._kept.do(operation, deadline)

    def close(self) -> None:
        """Close the session without waiting; a later call connects again."""
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
            # Closing the session also discards and unlocks.
            self._kept.drop()
        finally:
            for target in taken:
                self._kept.held.remove(target)

    def _check(self, fragment: str) -> None:
        if not reads_as_xml(fragment):
            raise DeviceRefusedError(f"{self._kept.name}: the request is not well-formed XML; nothing was sent")
