"""The end of a store that was copied: it gives no lease any more, and says where it went."""

from dataclasses import dataclass

from sqlalchemy import Connection, Engine

from lumctl.errors import RefusedError
from lumctl.store import journal, lease
from lumctl.store.errors import StoreError
from lumctl.store.journal import Head
from lumctl.store.verify import verify
from lumctl.store.verify_runs import Digest

REMARK = "retired"
"""The kind of the last entry in its journal that counts; the copy's journal goes on from the entry before."""


@dataclass(frozen=True, slots=True)
class Retirement:
    """Who has a store retired, and the highest lease number that the rack's gateway has seen; 0 if it saw none."""

    who: str
    seen: int = 0


def require_writable(engine: Engine, place: str) -> None:
    """Refuse to copy what cannot be retired afterwards.

    Raises:
        StoreError: the store was opened for reading only.
    """
    if (reason := engine.get_execution_options().get("unwritable")) is not None:
        raise StoreError(
            f"the store at {place} cannot be written, so it cannot be retired: {reason}; nothing was copied",
            hint="make it writable, or leave out --retire",
        )


def require_in_use(copy: Connection, rack: str, place: str) -> None:
    """Refuse to copy a rack to where it was moved away from.

    Raises:
        RefusedError: the store there was retired.
    """
    if (moved_to := lease.moved_to(copy, rack)) is not None:
        raise RefusedError(
            f"the store at {place} was retired when rack {rack} was moved to {moved_to}",
            hint="name a place that keeps nothing of the rack",
        )


def goes_on(copy: Connection, rack: str, head: Head, digest: Digest) -> bool:
    """Whether a store already keeps a rack's whole journal up to a head, unbroken: an earlier copy, used or not."""
    return 0 < head.seq <= journal.head(copy, rack).seq and not verify(copy, rack, digest, head)


def number_above(source: Connection, copy: Connection, rack: str, seen: int) -> int:
    """The number to retire a store with; the copy is made to give only higher ones.

    So a number tells which of the two gave it. A gateway that still reads the old store lets nobody through who has a
    lease of the new one, until it is started anew; and one that has seen the old store's last number, and is started
    on the new one, finds a higher one there.
    """
    number = max(lease.newest(source, rack), lease.newest(copy, rack), seen) + 1
    lease.skip(copy, rack, number)
    return number


def retire(source: Connection, rack: str, number: int, place: str, who: str, now: float) -> None:
    """Close a store in the caller's transaction, and journal that; ``now`` is in seconds since the epoch."""
    before = lease.newest(source, rack)
    lease.retire(source, rack, number, place)
    said = (now, REMARK, "", {"who": who, "to": place, "from": before, "lease": number})
    journal.append_all(source, [said], rack=rack, run="", fence=number)
