"""Runs and plans of one rack, and the progress of a run.

:class:`Runs` reads without waiting for a writer; every write is one synced transaction.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update

from lumctl import __version__
from lumctl.errors import RefusedError, UsageError
from lumctl.inventory.problems import nearest
from lumctl.store import clock, journal, lease, unwritten_ends
from lumctl.store.database import writing
from lumctl.store.fabric import make_certain, mark_device
from lumctl.store.rack_rows import RackRows
from lumctl.store.records import COMES_TO_REST_S, OPEN, Record, StoredRun, new_run_id, run_of
from lumctl.store.schema import leases, plans, runs


class Runs:
    """Runs and plans of one rack. ``files`` is the folder beside the store."""

    def __init__(self, rows: RackRows, files: Path) -> None:
        self._rows = rows
        self._files = files

    def save_plan(self, plan: Mapping[str, Any]) -> None:
        """Keep a plan under its id; saving the same plan again changes nothing.

        Raises:
            RefusedError: another plan is kept under this id, which is the beginning of its digest only.
        """
        with writing(self._rows.engine) as connection:
            this = (plans.c.id == plan["id"], self._rows.of(plans))
            kept = connection.execute(select(plans.c.digest).where(*this)).scalar()
            if kept not in {None, plan["digest"]}:
                raise RefusedError(f"another plan is kept under the name {plan['id']}", hint="make the plan again")
            connection.execute(delete(plans).where(*this))
            connection.execute(
                insert(plans).values(
                    rack=self._rows.rack,
                    id=plan["id"],
                    digest=plan["digest"],
                    created_at=plan["created_at"],
                    target=plan["target"],
                    body=json.dumps(plan, ensure_ascii=False),
                )
            )

    def plan(self, plan_id: str) -> dict[str, Any] | None:
        """A saved plan by its id."""
        with self._rows.engine.connect() as connection:
            body = connection.execute(select(plans.c.body).where(plans.c.id == plan_id, self._rows.of(plans))).scalar()
        return json.loads(body) if body else None

    def all(self) -> tuple[StoredRun, ...]:
        """All runs, newest first."""
        with self._rows.engine.connect() as connection:
            newest_first = (runs.c.started_at.desc(), runs.c.fence.desc())
            rows = connection.execute(select(runs).where(self._rows.of(runs)).order_by(*newest_first))
            return tuple(run_of(row) for row in rows)

    def get(self, run_id: str) -> StoredRun:
        """One run by its id.

        Raises:
            UsageError: there is none of that name.
        """
        known = self.all()
        for run in known:
            if run.id == run_id:
                return run
        near = nearest(run_id, [run.id for run in known])
        raise UsageError(f"no run {run_id!r}", hint=f"did you mean {near}?" if near else "see: lumctl swap list")

    def unfinished(self, *, now: float) -> tuple[str, ...]:
        """Runs that were left half done or interrupted: still open although their lease has ended or was released."""
        with self._rows.engine.connect() as connection:
            now = clock.lease_now(connection, now)
            given = connection.execute(select(leases).where(self._rows.of(leases)))
            alive = {(row.rack, row.fence) for row in given if clock.is_alive(row.expires_at, now)}
            still_open = (runs.c.state.in_(OPEN), self._rows.of(runs))
            rows = connection.execute(select(runs).where(*still_open).order_by(runs.c.started_at))
            return tuple(row.id for row in rows if (row.rack, row.fence) not in alive or self._is_left(row))

    def left_half_done(self) -> tuple[str, ...]:
        """Runs that their engine left half done without recording it, because the store could not be written."""
        with self._rows.engine.connect() as connection:
            rows = connection.execute(select(runs).where(runs.c.state == "running", self._rows.of(runs)))
            return tuple(row.id for row in rows if self._is_left(row))

    def _is_left(self, row: Any) -> bool:
        return unwritten_ends.is_left(self._files, row.id, row.fence)

    def moves(self, *, since: float, now: float) -> tuple[StoredRun, ...]:
        """Runs that may have moved light since a time: running ones, and those that have ended since.

        An interrupted or half-done run stays open until an operator finishes it, but its light has settled by then.
        """
        may_be = runs.c.state.in_(OPEN) | (runs.c.ended_at >= since)
        mine = may_be & self._rows.of(runs)
        found = []
        with self._rows.engine.connect() as connection:
            ahead_s = clock.lease_now(connection, now) - now
            given = connection.execute(select(leases).where(self._rows.of(leases)))
            ends = {(row.rack, row.fence): row.expires_at - ahead_s for row in given}
            alive = {number: end for number, end in ends.items() if clock.is_alive(end, now)}
            for row in connection.execute(select(runs).where(mine).order_by(runs.c.started_at)).all():
                lasts = row.state == "running" and not self._is_left(row)
                at_work = alive.get((row.rack, row.fence)) if lasts else None
                until = at_work or row.ended_at or journal.last_act(connection, row.rack, row.id)
                rest_s = COMES_TO_REST_S if row.state in OPEN and not at_work else 0.0
                if until + rest_s >= since:
                    found.append(run_of(row))
        return tuple(found)

    # -- a run in progress: used by the change engine only ------------------------------------------------------------

    def seize(
        self, held: lease.Lease, *, holder: str, term_s: float, now: float
    ) -> tuple[StoredRun, lease.Lease] | None:
        """Take over the open run of another process with its lease: that process can write nothing more.

        ``holder`` is completed by the run's id. ``None`` if there is nothing to take over: no run is open under this
        lease, or another process has a newer one.
        """
        asked_at = clock.since_boot()
        with writing(self._rows.engine) as connection:
            mine = (runs.c.rack == held.rack, runs.c.fence == held.fence, runs.c.state == "running")
            row = connection.execute(select(runs).where(*mine)).first()
            if row is None:
                return None
            try:
                by, now = f"{holder} {row.id}", clock.lease_now(connection, now)
                taken = lease.seize(connection, held, by, term_s=term_s, now=now, asked_at=asked_at)
            except lease.LeaseLostError:
                return None
            connection.execute(update(runs).where(*mine).values(fence=taken.fence))
        return run_of(row, fence=taken.fence), taken

    def reopen(self, held: lease.Lease, run: str, entry: Record) -> StoredRun | None:
        """Reopen an interrupted or half-done run under a newer lease; ``entry`` records who does so, and why.

        ``None`` if it has ended since, or is under a lease at least as new.

        Raises:
            LeaseLostError: another process may act now.
        """
        with writing(self._rows.engine) as connection:
            lease.require(connection, held)
            this = (runs.c.id == run, runs.c.rack == held.rack)
            may_be = (*this, runs.c.state.in_(OPEN), runs.c.fence < held.fence)
            row = connection.execute(select(runs).where(*may_be)).first()
            if row is None:
                return None
            values = {"fence": held.fence, "state": "running", "ended_at": None}
            connection.execute(update(runs).where(*this).values(**values))
            _append(connection, held, run, entry)
        unwritten_ends.forget(self._files, run)
        return run_of(row, **values)

    def leave(self, held: lease.Lease, run: str) -> None:
        """Leave a run half done whose end cannot be written; nothing may be sent to a device under its lease after."""
        unwritten_ends.leave(self._files, run, held.fence)

    def begin(self, held: lease.Lease, values: Mapping[str, Any], plan: Mapping[str, Any], *, now: float) -> str:
        """Record a run that starts now and return its id, such as ``swap-0007``.

        Raises:
            LeaseLostError: another process has a newer lease, and may have begun a run.
        """
        with writing(self._rows.engine) as connection:
            lease.require(connection, held)
            run_id = new_run_id(connection, values["kind"], self._rows.of(runs))
            connection.execute(
                insert(runs).values(
                    **values,
                    id=run_id,
                    rack=held.rack,
                    plan=json.dumps(plan, ensure_ascii=False),
                    version=__version__,
                    fence=held.fence,
                    state="running",
                    started_at=now,
                )
            )
            said = ("who", "inventory_digest", "title", "target", "kind")
            data = {"plan": plan["digest"], "rack": held.rack, **{key: values[key] for key in said}}
            _append(connection, held, run_id, Record(now, "begin", "", data))
        return run_id

    def intend(self, held: lease.Lease, run: str, entry: Record, *, unsure: str | None = None) -> None:
        """Journal that a step is about to act, on disk before it does; see :meth:`advance`."""
        self.advance(held, run, [entry], unsure=() if unsure is None else (unsure,))

    def conclude(
        self,
        held: lease.Lease,
        run: str,
        entry: Record,
        *,
        states: Mapping[str, Mapping[int, str]] | None = None,
        placed: Mapping[str, tuple[str, ...]] | None = None,
    ) -> None:
        """Journal a step's outcome together with what is now certain; see :meth:`advance`."""
        self.advance(held, run, [entry], states=states, placed=placed)

    def advance(
        self,
        held: lease.Lease,
        run: str,
        entries: Sequence[Record],
        *,
        states: Mapping[str, Mapping[int, str]] | None = None,
        placed: Mapping[str, tuple[str, ...]] | None = None,
        unsure: Iterable[str] = (),
    ) -> None:
        """Journal the progress of a run in one transaction: outcomes, what they make certain, and the next intents.

        The outcomes make device states (``states``) and placements (``placed``) certain. ``unsure`` names the devices
        about to be written: their states are unknown until the outcome is recorded.

        Raises:
            LeaseLostError: another process may act now, or has acted since.
        """
        with writing(self._rows.engine) as connection:
            lease.require(connection, held)
            _append(connection, held, run, *entries)
            make_certain(connection, held.rack, run, states or {}, placed or {})
            for device in unsure:
                mark_device(connection, held.rack, device, run, certain=False)

    def doubt(self, device: str, run: str) -> None:
        """Mark a device as uncertain: a run may have written it after its lease was lost.

        This needs no lease, because it makes nothing certain.
        """
        with writing(self._rows.engine) as connection:
            found = connection.execute(select(runs.c.rack).where(runs.c.id == run, self._rows.of(runs))).scalar()
            mark_device(connection, found or self._rows.rack, device, run, certain=False)

    def end(
        self,
        held: lease.Lease,
        run: str,
        entry: Record,
        state: str,
        *,
        undid: str | None = None,
        outcomes: Sequence[Record] = (),
        states: Mapping[str, Mapping[int, str]] | None = None,
        placed: Mapping[str, tuple[str, ...]] | None = None,
    ) -> None:
        """Close a run in its final state, with its last outcomes; ``undid`` names the run that this one undid.

        Undoing a rollback makes the run that it had undone active again. Earlier attempts to undo the same run, which
        did not finish, are settled by this one.
        """
        with writing(self._rows.engine) as connection:
            lease.require(connection, held)
            undone = {} if undid is None else {"undid": undid}
            _append(connection, held, run, *outcomes, replace(entry, data={**entry.data, **undone}))
            make_certain(connection, held.rack, run, states or {}, placed or {})
            mine = runs.c.rack == held.rack
            change = update(runs).where(mine)
            connection.execute(change.where(runs.c.id == run).values(state=state, ended_at=entry.at))
            if undid is not None:
                connection.execute(change.where(runs.c.id == undid).values(state="undone", undone_by=run))
                connection.execute(change.where(runs.c.undone_by == undid).values(state="done", undone_by=None))
                still_open = select(runs).where(mine, runs.c.state.in_(OPEN), runs.c.id != run)
                attempts = [r.id for r in connection.execute(still_open) if json.loads(r.plan).get("undoes") == undid]
                settled = {"state": "undone", "undone_by": run}
                connection.execute(change.where(runs.c.id.in_(attempts)).values(**settled))
        if undid is not None:
            unwritten_ends.forget(self._files, undid)


def _append(connection: Connection, held: lease.Lease, run: str, *entries: Record) -> None:
    said = [(entry.at, entry.kind, entry.step, entry.data) for entry in entries]
    journal.append_all(connection, said, rack=held.rack, run=run, fence=held.fence)
