"""The clock that decides when a lease ends.

The clocks of machines differ. Where several machines share a database, the database's clock decides. A store in a file
belongs to one machine, so that machine's clock decides.

That clock may be set back. A lease whose end is further ahead than the longest term was given before that. Its holder
may be alive and would renew it within a third of its term, so the lease is not void. The first request for the lease
(:func:`lumctl.store.lease.acquire`) moves its end to one term from then, so it blocks the rack no longer than that.

A clock that is set forward ends leases early. The next holder then has a higher lease number, which shuts the old
holder out.
"""

import math
import time

from sqlalchemy import Connection, text

TERM_S = 30.0
"""Duration of a lease under which a rack is changed, in seconds; the holder renews it three times in that time."""
LONGEST_TERM_S = 300.0
"""The longest term of a lease, in seconds."""
SENDS_FOR = 0.9
"""The part of the term during which a holder sends to devices; in the rest, a send that has begun can finish."""


def since_boot() -> float:
    """Seconds since this machine started. This clock cannot be set, and counts while the machine is suspended."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class LeaseDeadline:
    """The time until which the holder of a lease may send to devices, in seconds since the start of its machine.

    It counts from before the lease was requested, so it always passes before the lease ends by the store's clock.
    """

    def __init__(self, at: float = math.inf) -> None:
        self.at = at

    def extend(self, asked_at: float, term_s: float) -> None:
        """Move the deadline: a lease requested at ``asked_at`` was given or renewed for ``term_s``."""
        self.at = asked_at + SENDS_FOR * term_s

    def end(self) -> None:
        """Allow no more sends: the lease was released or lost."""
        self.at = -math.inf

    @property
    def has_passed(self) -> bool:
        """Whether nothing may be sent until the lease is renewed."""
        return since_boot() >= self.at


def lease_now(connection: Connection, now: float) -> float:
    """The time by the clock that decides, in seconds since the epoch; ``now`` is the time by this machine's clock."""
    if connection.dialect.name != "postgresql":
        return now
    # now() would be the start of the transaction, before the wait for the rack's lock.
    return float(connection.execute(text("SELECT extract(epoch FROM clock_timestamp())")).scalar() or now)


def is_alive(expires_at: float, now: float) -> bool:
    """Whether a lease has not ended, and its end is no further ahead than the longest term."""
    return now < expires_at <= now + LONGEST_TERM_S
