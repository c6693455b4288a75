"""The lease of a rack: one change at a time, each with a higher fencing number than any before it."""

from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from lumctl.errors import RefusedError
from lumctl.store.clock import TERM_S
from lumctl.store.schema import journal, leases

RETIRED_AT = -1.0
"""When the lease ends of a rack whose store was moved: no lease that was ever held ends then."""
_MOVED = "moved to "
"""How its holder begins; where to follows."""
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

    def __init__(self, lease: Lease, to: str = "") -> None:
        whom = f"a newer holder, {to}" if to else "a newer holder"
        super().__init__(f"the lease of rack {lease.rack} (number {lease.fence}) was lost to {whom}")


class LeaseHeldError(RefusedError):
    """Somebody else holds the lease."""


def acquire(connection: Connection, rack: str, holder: str, *, term_s: float, now: float) -> Lease:
    """Take the lease of a rack that nobody holds, ``term_s`` seconds from ``now`` by the clock that counts.

    Raises:
        LeaseHeldError: another holder's lease has not ended. Commit all the same: if that lease was given by a clock
            that has been set back since, it was noted to end one term from now: ours, or the usual one if ours is
            shorter, for its holder renews it no sooner than that asks for.
        RefusedError: somebody else took it in this moment, or the rack's store was moved.
    """
    require_not_moved(connection, rack)
    held = connection.execute(select(leases).where(leases.c.rack == rack)).first()
    if held is not None and held.expires_at > now:
        ends = min(held.expires_at, now + max(term_s, TERM_S))
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
        raise _lost(connection, lease)
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
        raise _lost(connection, lease)
    return taken


def require(connection: Connection, lease: Lease) -> None:
    """Refuse to write under a lease that somebody else has followed.

    Raises:
        LeaseLostError: it was.
    """
    if newest(connection, lease.rack) != lease.fence:
        raise _lost(connection, lease)


def _lost(connection: Connection, lease: Lease) -> LeaseLostError:
    if place := moved_to(connection, lease.rack):
        return LeaseLostError(lease, f"the move of its store to {place}")
    return LeaseLostError(
        lease, connection.execute(select(leases.c.holder).where(leases.c.rack == lease.rack)).scalar() or ""
    )


def newest(connection: Connection, rack: str) -> int:
    """The number of the newest lease that was given for a rack; 0 if none was."""
    return connection.execute(_NEWEST, {"of_rack": rack}).scalar() or 0


def skip(connection: Connection, rack: str, number: int) -> tuple[int, int]:
    """Give no lease of a rack a number up to ``number`` any more; gives the newest number before and now.

    Whoever holds a lease with such a number has lost it. Nothing changes where a newer one was given already.
    """
    given = connection.execute(select(leases).where(leases.c.rack == rack)).first()
    before = given.fence if given else 0
    if before >= number:
        return before, before
    # One more than was asked for: nobody was given that number, and nobody can come with it.
    now = number + 1
    if given is None:
        connection.execute(insert(leases).values(rack=rack, holder="", fence=now, expires_at=0.0))
    else:
        connection.execute(update(leases).where(leases.c.rack == rack).values(fence=now))
    return before, now


def retire(connection: Connection, rack: str, number: int, place: str) -> None:
    """Give no lease of a rack here any more, by no clock: its store was moved to a place, named without a password.

    ``number`` is higher than that of any lease given here: whoever still holds one has lost it.
    """
    row = {"holder": f"{_MOVED}{place}", "fence": number, "expires_at": RETIRED_AT}
    if connection.execute(update(leases).where(leases.c.rack == rack).values(**row)).rowcount == 0:
        connection.execute(insert(leases).values(rack=rack, **row))


def moved_to(connection: Connection, rack: str) -> str | None:
    """Where a rack's store was moved to when it was retired here; ``None`` if it was not."""
    ended = (leases.c.rack == rack, leases.c.expires_at == RETIRED_AT)
    holder = connection.execute(select(leases.c.holder).where(*ended)).scalar()
    return None if holder is None else str(holder).removeprefix(_MOVED)


def require_not_moved(connection: Connection, rack: str) -> None:
    """Refuse what is to be done in a store that was retired.

    Raises:
        RefusedError: it was.
    """
    if (place := moved_to(connection, rack)) is not None:
        raise RefusedError(
            f"the store of rack {rack} was moved to {place}; the one here is retired and gives no lease any more",
            hint=f"write `store: {place}` under racks, {rack} in the inventory, or change $LUMCTL_STATE if it is set",
        )


def _newest_written(connection: Connection, rack: str) -> int:
    """The highest number in the journal, where the lease itself was taken out of the database: none is given twice."""
    return connection.execute(select(func.max(journal.c.fence)).where(journal.c.rack == rack)).scalar() or 0


def release(connection: Connection, lease: Lease) -> None:
    """Give a lease back; one that is no longer ours is left alone."""
    connection.execute(
        update(leases).where(leases.c.rack == lease.rack, leases.c.fence == lease.fence).values(expires_at=0.0)
    )
