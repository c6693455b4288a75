"""One rack's store: who runs where, what its devices hold, its lease, plans, runs and journal, and its health."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, delete, insert, select, update

from lumctl import __version__
from lumctl.store import clock, journal, lease, unwritten
from lumctl.store.commits import Commits
from lumctl.store.database import writing
from lumctl.store.ids import new_run_id
from lumctl.store.leasing import LeaseStore
from lumctl.store.records import OPEN, Record, Run, run_of
from lumctl.store.schema import assignment, device_states, devices, runs


class Store(LeaseStore):
    """The store of one rack. Reading never waits for a writer; every write is one synced transaction."""

    def __init__(self, engine: Engine, files: Path, rack: str = "", place: str = "") -> None:
        super().__init__(engine, rack)
        self.files = files
        self.place = place
        """The folder or database URL of the store, so that another process can open it; may hold a password."""
        self._commits = Commits(self._engine)

    @property
    def unwritable(self) -> str | None:
        """Why nothing can be written, where that was plain when the store was opened; it is read all the same."""
        reason: str | None = self._engine.get_execution_options().get("unwritable")
        return reason

    def other_racks(self) -> set[str]:
        """The racks of which the store keeps runs, where it keeps none of its own rack."""
        with self._engine.connect() as connection:
            if connection.execute(select(runs.c.id).where(runs.c.rack == self._rack).limit(1)).first() is not None:
                return set()
            return set(connection.execute(select(runs.c.rack).distinct()).scalars()) - {"", self._rack}

    def mark(self) -> int | None:
        """What stays the same for as long as nobody writes to the store; ``None`` where only reading tells."""
        return self._commits.mark()

    # -- a change under way: used by the change engine only -----------------------------------------------------------

    def seize(self, held: lease.Lease, *, holder: str, term_s: float, now: float) -> tuple["Run", lease.Lease] | None:
        """Take over the open run of another process, with its lease: that process can write nothing more.

        ``holder`` is completed by the run's id. ``None`` if there is nothing to take over: no run is open under this
        lease, or somebody has taken a newer one.
        """
        asked_at = clock.since_boot()
        with writing(self._engine) as connection:
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

    def reopen(self, held: lease.Lease, run: str, entry: "Record") -> "Run | None":
        """Go on, under a newer lease, with a run that was cut or left half done; ``entry`` says who does, and why.

        ``None`` if it has come to its end since, or is under a lease as new.

        Raises:
            LeaseLostError: somebody else may act now.
        """
        with writing(self._engine) as connection:
            lease.require(connection, held)
            this = (runs.c.id == run, runs.c.rack == held.rack)
            may_be = (*this, runs.c.state.in_(OPEN), runs.c.fence < held.fence)
            row = connection.execute(select(runs).where(*may_be)).first()
            if row is None:
                return None
            values = {"fence": held.fence, "state": "running", "ended_at": None}
            connection.execute(update(runs).where(*this).values(**values))
            _append(connection, held, run, entry)
        unwritten.forget(self.files, run)
        return run_of(row, **values)

    def leave(self, held: lease.Lease, run: str) -> None:
        """Leave a run half done whose end cannot be written; nothing may be sent to a device under its lease after."""
        unwritten.leave(self.files, run, held.fence)

    def begin_run(self, held: lease.Lease, values: Mapping[str, Any], plan: Mapping[str, Any], *, now: float) -> str:
        """Write down a run that starts now and return its id, such as ``swap-0007``.

        Raises:
            LeaseLostError: somebody else has taken a newer lease, and may have begun a run.
        """
        with writing(self._engine) as connection:
            lease.require(connection, held)
            run_id = new_run_id(connection, values["kind"], self._mine(runs))
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

    def intend(self, held: lease.Lease, run: str, entry: "Record", *, unsure: str | None = None) -> None:
        """Journal that a step is about to act, on disk before it does; see :meth:`advance`."""
        self.advance(held, run, [entry], unsure=() if unsure is None else (unsure,))

    def conclude(
        self,
        held: lease.Lease,
        run: str,
        entry: "Record",
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
        entries: Sequence["Record"],
        *,
        states: Mapping[str, Mapping[int, str]] | None = None,
        placed: Mapping[str, tuple[str, ...]] | None = None,
        unsure: Iterable[str] = (),
    ) -> None:
        """Journal how far a run is, in one transaction: outcomes, what is certain by them, and what is intended next.

        By the outcomes device states (``states``) and who runs where (``placed``) are certain. ``unsure`` names the
        devices that are about to be written: until the outcome of that is recorded, nobody knows what they hold.

        Raises:
            LeaseLostError: somebody else may act now, or has acted since: what was known may not be so any more.
        """
        with writing(self._engine) as connection:
            lease.require(connection, held)
            _append(connection, held, run, *entries)
            _make_certain(connection, held, run, states or {}, placed or {})
            for device in unsure:
                _mark_device(connection, held.rack, device, run, certain=False)

    def doubt(self, device: str, run: str) -> None:
        """Nobody knows any more what a device holds: a run may have written it after its lease was lost.

        To say so needs no lease: it makes nothing certain.
        """
        with writing(self._engine) as connection:
            found = connection.execute(select(runs.c.rack).where(runs.c.id == run, self._mine(runs))).scalar()
            _mark_device(connection, found or self._rack, device, run, certain=False)

    def end_run(
        self,
        held: lease.Lease,
        run: str,
        entry: "Record",
        state: str,
        *,
        undid: str | None = None,
        outcomes: Sequence["Record"] = (),
        states: Mapping[str, Mapping[int, str]] | None = None,
        placed: Mapping[str, tuple[str, ...]] | None = None,
    ) -> None:
        """Close a run in its final state, with its last outcomes; ``undid`` names the run that this one took back.

        A rollback that is itself taken back puts in force again what it had undone. Earlier attempts to take the same
        run back, which did not come to their end, are settled by this one.
        """
        with writing(self._engine) as connection:
            lease.require(connection, held)
            undone = {} if undid is None else {"undid": undid}
            _append(connection, held, run, *outcomes, replace(entry, data={**entry.data, **undone}))
            _make_certain(connection, held, run, states or {}, placed or {})
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
            unwritten.forget(self.files, undid)

    def close(self) -> None:
        """Give back the database connections."""
        self._commits.close()
        self._engine.dispose()


def _append(connection: Connection, held: lease.Lease, run: str, *entries: Record) -> None:
    said = [(entry.at, entry.kind, entry.step, entry.data) for entry in entries]
    journal.append_all(connection, said, rack=held.rack, run=run, fence=held.fence)


def _make_certain(
    connection: Connection,
    held: lease.Lease,
    run: str,
    states: Mapping[str, Mapping[int, str]],
    placed: Mapping[str, tuple[str, ...]],
) -> None:
    for device, pucs in states.items():
        _mark_device(connection, held.rack, device, run, certain=True)
        of_it = (device_states.c.rack == held.rack, device_states.c.device == device)
        connection.execute(delete(device_states).where(*of_it))
        one = {"rack": held.rack, "device": device}
        rows = [{**one, "puc": puc, "state": str(state)} for puc, state in sorted(pucs.items())]
        if rows:  # a switch that no lane of the inventory meets has no cells of its own
            connection.execute(insert(device_states), rows)
    for job, accelerators in placed.items():
        of_it = (assignment.c.rack == held.rack, assignment.c.job == job)
        connection.execute(delete(assignment).where(*of_it))
        ranks = [
            {"rack": held.rack, "job": job, "rank": rank, "accelerator": accelerator, "run": run}
            for rank, accelerator in enumerate(accelerators)
        ]
        if ranks:  # an order of lanes that is as written again has none
            connection.execute(insert(assignment), ranks)


def _mark_device(connection: Connection, rack: str, device: str, run: str, *, certain: bool) -> None:
    connection.execute(delete(devices).where(devices.c.rack == rack, devices.c.device == device))
    connection.execute(insert(devices).values(rack=rack, device=device, certain=int(certain), run=run))
