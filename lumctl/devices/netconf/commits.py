"""Commits: those that stay, and those that the device takes back unless they are confirmed (RFC 6241, 8.4)."""

import math
import secrets
from dataclasses import dataclass

from lumctl.devices.errors import DeviceRefusedError, DeviceUnreachableError
from lumctl.devices.netconf import operations
from lumctl.devices.netconf.operations import Offer
from lumctl.devices.netconf.session import Session
from lumctl.devices.netconf.shared_session import KeptSession


@dataclass(frozen=True, slots=True)
class _Pending:
    """A commit that waits to be confirmed: by whoever knows its id, or, without one, over its session alone."""

    persist_id: str
    session: Session
    ends_at: float


class Commits:
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
        any_session_may = Offer(session.capabilities).has("confirmed-commit", "1.1")
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
