"""By which clock a lease ends.

Machines' clocks differ, so where several share a database, its own clock counts. A store in a file belongs to one
machine, and to its clock, which may be set back: an end that lies further ahead than any term reaches was given before
that. Such a lease is not void, for its holder may be alive and would renew it within a third of its term; it is given
one more term from when it is first asked for (:func:`lumctl.store.lease.acquire`), and is stuck no longer than that. A
clock set forward ends leases early: whoever then takes one shuts the old holder out by its number, which is what the
number is for.
"""

import math
import time

from sqlalchemy import Connection, text

TERM_S = 30.0
"""The term of a lease under which a rack is changed, in seconds; it is renewed within a third of that."""
LONGEST_TERM_S = 300.0
"""Nobody takes a lease for longer, in seconds."""
SENDS_FOR = 0.9
"""The part of its term for which a holder sends to devices: the rest is for a send that is on its way when it ends."""


def since_boot() -> float:
    """Seconds since the start of this machine: nobody sets this clock, and it counts while the machine is suspended."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class LeaseDeadline:
    """Until when the holder of a lease may send to devices, in seconds since the start of its machine.

    It is counted from before the lease was asked for, so it always ends before the lease does by the store's clock.
    """

    def __init__(self, at: float = math.inf) -> None:
        self.at = at

    def extend(self, asked_at: float, term_s: float) -> None:
        """The lease was given, or renewed, for a term; it was asked for at ``asked_at``."""
        self.at = asked_at + SENDS_FOR * term_s

    def end(self) -> None:
        """The lease was given back, or was lost."""
        self.at = -math.inf

    @property
    def has_passed(self) -> bool:
        """Whether nothing may be sent any more, unless the lease is renewed first."""
        return since_boot() >= self.at


def lease_now(connection: Connection, now: float) -> float:
    """The time that counts, in seconds since the epoch; ``now`` is what this machine's clock says."""
    if connection.dialect.name != "postgresql":
        return now
    return float(connection.execute(text("SELECT extract(epoch FROM clock_timestamp())")).scalar() or now)


def is_alive(expires_at: float, now: float) -> bool:
    """Whether a lease has not ended, and its end was given by a clock that can be right."""
    return now < expires_at <= now + LONGEST_TERM_S
