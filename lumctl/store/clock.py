"""By which clock a lease ends.

Machines' clocks differ, so where several share a database, its own clock counts. A store in a file belongs to one
machine, and to its clock, which may be set back: an end that lies further ahead than any term reaches was given before
that. Such a lease is not void, for its holder may be alive and would renew it within a third of its term; it is given
one more term from when it is first asked for (:func:`lumctl.store.lease.acquire`), and is stuck no longer than that. A
clock set forward ends leases early: whoever then takes one shuts the old holder out by its number, which is what the
number is for.
"""

from sqlalchemy import Connection, text

TERM_S = 30.0
"""The term of a lease under which a rack is changed, in seconds; it is renewed within a third of that."""
LONGEST_TERM_S = 300.0
"""Nobody takes a lease for longer, in seconds."""


def lease_now(connection: Connection, now: float) -> float:
    """The time that counts, in seconds since the epoch; ``now`` is what this machine's clock says."""
    if connection.dialect.name != "postgresql":
        return now
    return float(connection.execute(text("SELECT extract(epoch FROM clock_timestamp())")).scalar() or now)


def is_alive(expires_at: float, now: float) -> bool:
    """Whether a lease has not ended, and its end was given by a clock that can be right."""
    return now < expires_at <= now + LONGEST_TERM_S
