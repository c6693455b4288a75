"""The lease of a rack: one change at a time, each with a higher fencing number than any before it."""

from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from lumctl.errors import RefusedError
from lumctl.store.schema import journal, leases

_NEWEST = select(leases.c.fence).where(leases.c.rack == bindparam("of_rack"))


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to change a rack until ``expires_at``. ``fence`` grows with every lease ever given for the rack."""

    rack: str
    holder: str
    fence: int
    expires_at: float


class LeaseLostError(RefusedError):
    """A lease ended and a newer one was given: its old holder may write nothing more."""

    def __init__(self, lease: Lease) -> None:
        super().__init__(f"the lease of rack {lease.rack} (number {lease.fence}) was lost to a newer holder")


class LeaseHeldError(RefusedError):
    """Somebody else holds the lease."""


def acquire(connection: Connection, rack: str, holder: str, *, term_s: float, now: float) -> Lease:
    """Take the lease of a rack that nobody holds, ``term_s`` seconds from ``now`` by the clock that counts.

    Raises:
        LeaseHeldError: another holder's lease has not ended. Commit all the same: if that lease was given by a clock
            that has been set back since, it was noted to end one term from now.
        RefusedError: somebody else took it in this moment.
    """
    held = connection.execute(select(leases).where(leases.c.rack == rack)).first()
    if held is not None and held.expires_at > now:
        ends = min(held.expires_at, now + term_s)
        if ends < held.expires_at:
            mine = (leases.c.rack == rack, leases.c.fence == held.fence, leases.c.expires_at == held.expires_at)
            connection.execute(update(leases).where(*mine).values(expires_at=ends))
        raise LeaseHeldError(
            f"rack {rack} is being changed by {held.holder}; its lease ends in {ends - now:.0f} s",
            hint="wait for it, or look at it with: lumctl swap list",
        )
    lease = Lease(rack, holder, (held.fence if held else _newest_written(connection, rack)) + 1, now + term_s)
    row = {"holder": holder, "fence": lease.fence, "expires_at": lease.expires_at}
    try:
        if held is None:
            connection.execute(insert(leases).values(rack=rack, **row))
            return lease
        unchanged = (leases.c.rack == rack, leases.c.fence == held.fence, leases.c.expires_at <= now)
        taken = connection.execute(update(leases).where(*unchanged).values(**row)).rowcount == 1
    except IntegrityError:
        taken = False
    if not taken:
        raise RefusedError(f"another engine took the lease of rack {rack} in this moment", hint="try again")
    return lease


def renew(connection: Connection, lease: Lease, *, term_s: float, now: float) -> Lease:
    """Extend a lease that is still ours.

    Raises:
        LeaseLostError: it ended and somebody else has taken a newer one: nothing more may be written under it.
    """
    changed = connection.execute(
        update(leases).where(leases.c.rack == lease.rack, leases.c.fence == lease.fence).values(expires_at=now + term_s)
    )
    if changed.rowcount != 1:
        raise LeaseLostError(lease)
    return Lease(lease.rack, lease.holder, lease.fence, now + term_s)


def seize(connection: Connection, lease: Lease, holder: str, *, term_s: float, now: float) -> Lease:
    """Take a lease over from its holder, be it over or not, under a new number that shuts the old holder out.

    Raises:
        LeaseLostError: somebody else has taken a newer one.
    """
    taken = Lease(lease.rack, holder, lease.fence + 1, now + term_s)
    changed = connection.execute(
        update(leases)
        .where(leases.c.rack == lease.rack, leases.c.fence == lease.fence)
        .values(holder=holder, fence=taken.fence, expires_at=taken.expires_at)
    )
    if changed.rowcount != 1:
        raise LeaseLostError(lease)
    return taken


def require(connection: Connection, lease: Lease) -> None:
    """Refuse to write under a lease that somebody else has followed.

    Raises:
        LeaseLostError: it was.
    """
    if newest(connection, lease.rack) != lease.fence:
        raise LeaseLostError(lease)


def newest(connection: Connection, rack: str) -> int:
    """The number of the newest lease that was given for a rack; 0 if none was."""
    return connection.execute(_NEWEST, {"of_rack": rack}).scalar() or 0


def _newest_written(connection: Connection, rack: str) -> int:
    """The highest number in the journal, where the lease itself was taken out of the database: none is given twice."""
    return connection.execute(select(func.max(journal.c.fence)).where(journal.c.rack == rack)).scalar() or 0


def release(connection: Connection, lease: Lease) -> None:
    """Give a lease back; one that is no longer ours is left alone."""
    connection.execute(
        update(leases).where(leases.c.rack == lease.rack, leases.c.fence == lease.fence).values(expires_at=0.0)
    )
