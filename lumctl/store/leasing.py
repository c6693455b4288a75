"""The part of a store that gives leases: see :mod:`lumctl.store.lease` for what each of them means."""

from lumctl.store import clock, journal, lease, unwritten
from lumctl.store.database import writing
from lumctl.store.memory import Memory


class LeaseStore(Memory):
    """Leases of one rack, by the clock that counts."""

    def acquire(self, rack: str, holder: str, *, term_s: float, now: float) -> lease.Lease:
        """Take the rack's lease; see :func:`lumctl.store.lease.acquire`."""
        with writing(self._engine) as connection:
            newest = lease.newest(connection, rack)
            if unwritten.is_given_back(self.files, newest):
                lease.release(connection, lease.Lease(rack, holder, newest, now))
            try:
                return lease.acquire(connection, rack, holder, term_s=term_s, now=clock.lease_now(connection, now))
            except lease.LeaseHeldError as error:
                held = error  # raised below: what was noted of that lease is kept
        raise held

    def renew(self, held: lease.Lease, *, term_s: float, now: float) -> None:
        """Extend a lease; see :func:`lumctl.store.lease.renew`."""
        with writing(self._engine) as connection:
            lease.renew(connection, held, term_s=term_s, now=clock.lease_now(connection, now))

    def release(self, held: lease.Lease) -> None:
        """Give the lease back."""
        with writing(self._engine) as connection:
            lease.release(connection, held)

    def newest_fence(self, rack: str) -> int:
        """The number of the newest lease of a rack, be it over or not; 0 if none was ever given."""
        with self._engine.connect() as connection:
            return lease.newest(connection, rack)

    def moved_to(self, rack: str) -> str | None:
        """Where a rack's store was moved to when this one was retired; ``None`` if it is in use."""
        with self._engine.connect() as connection:
            return lease.moved_to(connection, rack)

    def skip_fences(self, rack: str, number: int, *, now: float, who: str) -> int:
        """Give no lease of a rack a number up to one that was written under and is not known here; gives the newest.

        It is journalled. See :func:`lumctl.store.lease.skip`.
        """
        with writing(self._engine) as connection:
            before, newest = lease.skip(connection, rack, number)
            if newest != before:
                said = (now, "leases-skipped", "", {"who": who, "from": before, "to": newest})
                journal.append_all(connection, [said], rack=rack, run="", fence=newest)
        return newest
