"""The leases of one rack; see :mod:`lumctl.store.lease` for what each call means."""

from pathlib import Path
from typing import Any

from sqlalchemy import Connection, bindparam, select

from lumctl.store import clock, journal, lease, unwritten_ends
from lumctl.store.database import writing
from lumctl.store.rack_rows import RackRows
from lumctl.store.schema import runs

_RUNNING = select(runs.c.id).where(
    runs.c.rack == bindparam("of_rack"), runs.c.fence == bindparam("of_fence"), runs.c.state == "running"
)
"""Made once: to make a statement takes longer than to execute it."""


def _running(connection: Connection, rack: str, number: int) -> str | None:
    """The run that is running under the lease of this number, according to the store."""
    return connection.execute(_RUNNING, {"of_rack": rack, "of_fence": number}).scalar()


class Leases:
    """Leases of one rack, by the clock that decides (:mod:`lumctl.store.clock`). ``files``: the store's folder."""

    def __init__(self, rows: RackRows, files: Path) -> None:
        self._rows = rows
        self._files = files

    def acquire(self, rack: str, holder: str, *, term_s: float, now: float) -> lease.Lease:
        """Take the rack's lease; see :func:`lumctl.store.lease.acquire`.

        If the previous lease expired in the middle of a run, or expired and its holder is stopped, this first ends the
        holder if it is on this machine: it could write to a device when it wakes up.
        """
        asked_at = clock.since_boot()
        self._end_lapsed(rack, now)
        with writing(self._rows.engine) as connection:
            # Its engine could not write the release, for example on a full disk, and left a note instead.
            noted = unwritten_ends.given_back(self._files)
            if noted and (newest := lease.newest(connection, rack)) in noted:
                lease.release(connection, lease.Lease(rack, holder, newest, now))
            try:
                by_clock = clock.lease_now(connection, now)
                return lease.acquire(connection, rack, holder, term_s=term_s, now=by_clock, asked_at=asked_at)
            except lease.LeaseHeldError as error:
                held = error  # raised below, after the commit, which keeps a changed end of that lease
        raise held

    def _end_lapsed(self, rack: str, now: float) -> None:
        """End the holder of an expired lease, without the write lock: that holder may have it.

        Raises:
            LeaseHeldError: the holder is stopped, and this user may not end it.
        """
        with self._rows.engine.connect() as connection:
            found = lease.lapsed(connection, rack, clock.lease_now(connection, now))
            if found is None or (state := found[1].state) is None:
                return
            number, process = found
            cut = _running(connection, rack, number)
        # A daemon or a dashboard that ended its run but could not release its lease is not disturbed.
        if not (state.stopped or (cut is not None and not unwritten_ends.is_left(self._files, cut, number))):
            return
        if not process.end() and state.stopped:
            raise lease.LeaseHeldError(
                f"the lease of rack {rack} has ended, but its holder could still write when it wakes up: "
                f"{state.described}",
                hint=f"end it, which this user may not: {state.kill_command}; then repeat this command",
            )

    def renew(self, held: lease.Lease, *, term_s: float, now: float) -> None:
        """Extend a lease, see :func:`lumctl.store.lease.renew`; its deadline moves when the renewal is on disk."""
        asked_at = clock.since_boot()
        with writing(self._rows.engine) as connection:
            by_clock = clock.lease_now(connection, now)
            lease.renew(connection, held, term_s=term_s, now=by_clock, asked_at=asked_at)
        held.deadline.extend(asked_at, term_s)

    def require_free(self, rack: str, *, now: float) -> None:
        """Refuse if a process holds the rack's lease; see :func:`lumctl.store.lease.require_free`."""
        with self._rows.engine.connect() as connection:
            lease.require_free(connection, rack, clock.lease_now(connection, now))

    def unheld(self, rack: str, *, now: float) -> int:
        """The number of the newest lease of a rack, if no process may act under it now.

        A later call with this number to a fence is refused once a newer lease was given. While nobody writes to the
        store, this does not read it again. See :func:`lumctl.store.lease.unheld`.
        """

        def ask(connection: Connection) -> tuple[Any, str | None, float]:
            held = lease.given_to(connection, rack)
            run = None if held is None else _running(connection, rack, held.fence)
            return held, run, clock.lease_now(connection, now) - now

        held, run, ahead_s = self._rows.known.get(("lease", rack), ask)
        return lease.unheld(rack, held, run, now + ahead_s)

    def release(self, held: lease.Lease) -> None:
        """Release the lease."""
        with writing(self._rows.engine) as connection:
            lease.release(connection, held)

    def newest(self, rack: str) -> int:
        """The number of the newest lease of a rack, ended or not; 0 if none was ever given.

        While nobody writes to the store, this does not read it again.
        """
        return self._rows.known.get(("newest lease", rack), lambda connection: lease.newest(connection, rack))

    def moved_to(self, rack: str) -> str | None:
        """The place to which a rack's store was moved when this one was retired; ``None`` if this one is in use."""
        with self._rows.engine.connect() as connection:
            return lease.moved_to(connection, rack)

    def skip(self, rack: str, number: int, *, now: float, who: str) -> int:
        """Skip lease numbers up to one that was used but is unknown here; return the newest number.

        The skip is journalled. See :func:`lumctl.store.lease.skip`.
        """
        with writing(self._rows.engine) as connection:
            before, newest = lease.skip(connection, rack, number)
            if newest != before:
                said = (now, "leases-skipped", "", {"who": who, "from": before, "to": newest})
                journal.append_all(connection, [said], rack=rack, run="", fence=newest)
        return newest
