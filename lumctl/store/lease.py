"""The lease of a rack: one change at a time, each with a higher fencing number than any before it."""

import os
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, bindparam, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from lumctl.errors import RefusedError
from lumctl.processes import ProcessId, this_process
from lumctl.store.clock import TERM_S, LeaseDeadline, since_boot
from lumctl.store.lease_process import LeaseProcess
from lumctl.store.schema import journal, leases

RETIRED_AT = -1.0
"""The end of the lease of a rack whose store was moved; no lease that was held ever has this end."""
_MOVED = "moved to "
"""How its holder begins; where to follows."""
_OF_RACK = select(leases).where(leases.c.rack == bindparam("of_rack"))
_NEWEST = select(leases.c.fence).where(leases.c.rack == bindparam("of_rack"))
_CHANGE = update(leases).where(leases.c.rack == bindparam("of_rack"), leases.c.fence == bindparam("of_fence"))
_TAKE = _CHANGE.where(leases.c.expires_at <= bindparam("by_now"))
"""Made once: to make a statement takes longer than to execute it."""


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to change a rack until ``expires_at``. ``fence`` grows with every lease ever given for the rack.

    ``process`` holds it; ``deadline`` is the time until which that process may send to devices, and moves with each
    renewal.
    """

    rack: str
    holder: str
    fence: int
    expires_at: float
    process: ProcessId | None = None
    deadline: LeaseDeadline = field(default_factory=LeaseDeadline, compare=False, repr=False)


class LeaseLostError(RefusedError):
    """A lease ended and a newer one was given: its old holder may write nothing more."""

    def __init__(self, lease: Lease, to: str = "") -> None:
        whom = f"a newer holder, {to}" if to else "a newer holder"
        super().__init__(f"the lease of rack {lease.rack} (number {lease.fence}) was lost to {whom}")


class LeaseHeldError(RefusedError):
    """Another process holds the lease."""


def acquire(connection: Connection, rack: str, holder: str, *, term_s: float, now: float, asked_at: float) -> Lease:
    """Take the free lease of a rack for ``term_s`` seconds from ``now``, by the store's clock.

    ``asked_at`` is the time of the request, in seconds since the start of this machine: the holder's own deadline
    counts from there.

    Raises:
        LeaseHeldError: another holder's lease has not ended. Commit even then: if the clock was set back since that
            lease was given, its end was changed to one term from now. A living holder renews it before that.
        RefusedError: another process took it at the same time, or the rack's store was moved.
    """
    held = given_to(connection, rack)
    # First: the lease of a retired store ended long ago, and would count as free below.
    if held is not None and (place := _place_in(held)) is not None:
        raise _moved(rack, place)
    if held is not None and held.expires_at > now:
        # An end further ahead than this was written before the clock was set back; see lumctl.store.clock.
        ends = min(held.expires_at, now + max(term_s, TERM_S))
        if ends < held.expires_at:
            mine = (leases.c.rack == rack, leases.c.fence == held.fence, leases.c.expires_at == held.expires_at)
            connection.execute(update(leases).where(*mine).values(expires_at=ends))
        raise _held(rack, held, ends - now)
    _require_ended_by_boot(rack, held)
    # Without a row, the journal still knows the numbers that were given: no number may be given twice.
    number = (held.fence if held else _newest_written(connection, rack)) + 1
    lease = _given(rack, holder, number, asked_at=asked_at, now=now, term_s=term_s)
    row = _row(lease, asked_at, term_s)
    try:
        if held is None:
            connection.execute(insert(leases).values(rack=rack, **row))
            return lease
        # The condition repeats what was read: where another process took the lease since, no row changes.
        unchanged = {"of_rack": rack, "of_fence": held.fence, "by_now": now}
        taken = connection.execute(_TAKE, {**unchanged, **row}).rowcount == 1
    except IntegrityError:
        taken = False
    if not taken:
        raise RefusedError(f"another engine took the lease of rack {rack} at the same time", hint="try again")
    return lease


def require_free(connection: Connection, rack: str, now: float) -> None:
    """Refuse if a process holds the lease of a rack now.

    Raises:
        LeaseHeldError: a process holds it; the message names that process and gives a remedy.
    """
    _require_ended(rack, given_to(connection, rack), now)


def unheld(rack: str, held: Any, run: str | None, now: float) -> int:
    """The number of the newest lease of a rack, if no process may act under it now; 0 if none was ever given.

    ``held`` is its row; ``run`` is the run that is still running according to the store, if it has this number.

    Raises:
        LeaseHeldError: a process holds the lease; or it expired in the middle of a run, or while its holder was
            stopped, and that holder could still renew it when it wakes up.
        RefusedError: the rack's store was moved.
    """
    if held is None:
        return 0
    if (place := _place_in(held)) is not None:
        raise _moved(rack, place)
    _require_ended(rack, held, now)
    by = LeaseProcess.read(held.process) if held.expires_at > 0 else None
    if by is not None and by.may_wake(in_run=run is not None):
        raise LeaseHeldError(
            f"the lease of rack {rack} has ended, but its holder could still write{f' for {run}' if run else ''} when "
            f"it wakes up: {by.described}",
            hint="see what it left and finish it: lumctl swap list",
        )
    return int(held.fence)


def _require_ended(rack: str, held: Any, now: float) -> None:
    if held is not None and held.expires_at > now:
        # If the clock was set back since, the lease's end is further ahead than any lease lasts.
        raise _held(rack, held, min(held.expires_at - now, TERM_S))
    _require_ended_by_boot(rack, held)


def _require_ended_by_boot(rack: str, held: Any) -> None:
    """Refuse to take a lease whose holder is still working: this machine's clock may have been set forward.

    The monotonic clock of the machine decides, because it cannot be set.

    Raises:
        LeaseHeldError: the holder is working.
    """
    by = LeaseProcess.read(held.process) if held is not None and held.expires_at > 0 else None
    if by is not None and by.is_at_work:
        raise _held(rack, held, by.ends_at - since_boot())


def renew(connection: Connection, lease: Lease, *, term_s: float, now: float, asked_at: float) -> Lease:
    """Extend this process's lease; ``asked_at`` as in :func:`acquire`.

    Raises:
        LeaseLostError: it ended and another process has a newer one: nothing more may be written under it.
    """
    values: dict[str, Any] = {"expires_at": now + term_s}
    if lease.process is not None:
        values["process"] = LeaseProcess(lease.process, asked_at + term_s).text()
    changed = connection.execute(_CHANGE, {"of_rack": lease.rack, "of_fence": lease.fence, **values})
    if changed.rowcount != 1:
        # At once, before the error: a thread of this process may be about to send.
        lease.deadline.end()
        raise _lost(connection, lease)
    return replace(lease, expires_at=now + term_s)


def seize(connection: Connection, lease: Lease, holder: str, *, term_s: float, now: float, asked_at: float) -> Lease:
    """Take a lease from its holder, expired or not, under a new number that shuts the old holder out.

    ``asked_at`` as in :func:`acquire`.

    Raises:
        LeaseLostError: another process has a newer one.
    """
    taken = _given(lease.rack, holder, lease.fence + 1, asked_at=asked_at, now=now, term_s=term_s)
    changed = connection.execute(
        update(leases)
        .where(leases.c.rack == lease.rack, leases.c.fence == lease.fence)
        .values(**_row(taken, asked_at, term_s))
    )
    if changed.rowcount != 1:
        raise _lost(connection, lease)
    return taken


def _given(rack: str, holder: str, fence: int, *, asked_at: float, now: float, term_s: float) -> Lease:
    """A lease of this process."""
    lease = Lease(rack, holder, fence, now + term_s, _this(os.getpid()))
    lease.deadline.extend(asked_at, term_s)
    return lease


@lru_cache(1)
def _this(_pid: int) -> ProcessId:
    """This process; looked up again in a forked process."""
    return this_process()


def _row(lease: Lease, asked_at: float, term_s: float) -> dict[str, Any]:
    process = LeaseProcess(lease.process, asked_at + term_s).text() if lease.process is not None else ""
    return {"holder": lease.holder, "fence": lease.fence, "expires_at": lease.expires_at, "process": process}


def _held(rack: str, held: Any, ends_s: float) -> LeaseHeldError:
    """The error that names the holder of a lease and its process, with a remedy."""
    by = LeaseProcess.read(held.process)
    said = f"rack {rack} is being changed by {held.holder}; its lease ends in {ends_s:.0f} s"
    hint = "wait until it has ended, then see: lumctl swap list"
    if by is not None:
        said += f": {by.described}"
        if (state := by.state) is not None and state.stopped:
            hint = (
                f"let it continue: kill -CONT {by.process.pid}; or wait until its lease ends: the next command that "
                "changes the rack then kills it; see what it left: lumctl swap list"
            )
    return LeaseHeldError(said, hint=hint)


def lapsed(connection: Connection, rack: str, now: float) -> tuple[int, LeaseProcess] | None:
    """The number and the process of a lease that expired without release, unless that process is working."""
    held = given_to(connection, rack)
    if held is None or not 0 < held.expires_at <= now:
        return None
    process = LeaseProcess.read(held.process)
    return None if process is None or process.is_at_work else (held.fence, process)


def require(connection: Connection, lease: Lease) -> None:
    """Refuse to write under a lease that is not the rack's newest.

    Raises:
        LeaseLostError: there is a newer lease.
    """
    if newest(connection, lease.rack) != lease.fence:
        raise _lost(connection, lease)


def _lost(connection: Connection, lease: Lease) -> LeaseLostError:
    if place := moved_to(connection, lease.rack):
        return LeaseLostError(lease, f"the move of its store to {place}")
    return LeaseLostError(
        lease, connection.execute(select(leases.c.holder).where(leases.c.rack == lease.rack)).scalar() or ""
    )


def given_to(connection: Connection, rack: str) -> Any:
    """The row of the newest lease of a rack; ``None`` if none was ever given."""
    return connection.execute(_OF_RACK, {"of_rack": rack}).first()


def newest(connection: Connection, rack: str) -> int:
    """The number of the newest lease that was given for a rack; 0 if none was."""
    return connection.execute(_NEWEST, {"of_rack": rack}).scalar() or 0


def skip(connection: Connection, rack: str, number: int) -> tuple[int, int]:
    """Skip lease numbers up to ``number``; return the newest number before and after.

    The holder of a lease with a skipped number has lost it. Nothing changes if that number or a higher one was given.
    """
    given = given_to(connection, rack)
    before = given.fence if given else 0
    if before >= number:
        return before, before
    # One more than requested: that number was never given, so no holder can present it.
    now = number + 1
    if given is None:
        connection.execute(insert(leases).values(rack=rack, holder="", fence=now, expires_at=0.0, process=""))
    else:
        connection.execute(update(leases).where(leases.c.rack == rack).values(fence=now))
    return before, now


def retire(connection: Connection, rack: str, number: int, place: str) -> None:
    """Give no more leases of a rack here, whatever the clock: its store was moved to ``place`` (without a password).

    ``number`` is higher than the number of any lease given here, so a present holder loses its lease.
    """
    row = {"holder": f"{_MOVED}{place}", "fence": number, "expires_at": RETIRED_AT, "process": ""}
    if connection.execute(update(leases).where(leases.c.rack == rack).values(**row)).rowcount == 0:
        connection.execute(insert(leases).values(rack=rack, **row))


def moved_to(connection: Connection, rack: str) -> str | None:
    """Where a rack's store was moved to when it was retired here; ``None`` if it was not."""
    held = given_to(connection, rack)
    return None if held is None else _place_in(held)


def _place_in(held: Any) -> str | None:
    return str(held.holder).removeprefix(_MOVED) if held.expires_at == RETIRED_AT else None


def require_not_moved(connection: Connection, rack: str) -> None:
    """Refuse to act on a retired store.

    Raises:
        RefusedError: the store was retired.
    """
    if (place := moved_to(connection, rack)) is not None:
        raise _moved(rack, place)


def _moved(rack: str, place: str) -> RefusedError:
    return RefusedError(
        f"the store of rack {rack} was moved to {place}; the one here is retired and grants no more leases",
        hint=f"write `store: {place}` under racks, {rack} in the inventory, or change $LUMCTL_STATE if it is set",
    )


def _newest_written(connection: Connection, rack: str) -> int:
    """The highest lease number in the journal: no number is given twice, even if the lease's row was deleted."""
    return connection.execute(select(func.max(journal.c.fence)).where(journal.c.rack == rack)).scalar() or 0


def release(connection: Connection, lease: Lease) -> None:
    """Release a lease, unless another process has taken it over."""
    # The end of 0 also says that it was released; lapsed() looks only at ends above 0.
    connection.execute(_CHANGE, {"of_rack": lease.rack, "of_fence": lease.fence, "expires_at": 0.0})
    lease.deadline.end()
