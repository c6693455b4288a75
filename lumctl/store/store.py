"""One rack's store: who runs where, what its devices hold, its lease, plans, runs and journal, and its health."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, delete, func, insert, select, update

from lumctl import __version__
from lumctl.devices.types import PucState
from lumctl.errors import UsageError
from lumctl.inventory.hints import nearest
from lumctl.store import journal, lease
from lumctl.store.database import writing
from lumctl.store.health import HealthStore
from lumctl.store.schema import assignment, device_states, devices, leases, plans, runs

COMES_TO_REST_S = 120.0
"""How long after its last act a run that was cut may leave light in motion: a device's own revert timer runs out."""


@dataclass(frozen=True, slots=True)
class Run:
    """One execution of a plan. ``state`` is running, done, refused, rolled-back, half-done or undone."""

    id: str
    rack: str
    target: str
    kind: str
    title: str
    plan: Mapping[str, Any]
    plan_digest: str
    inventory_digest: str
    who: str
    version: str
    fence: int
    state: str
    started_at: float
    ended_at: float | None
    undone_by: str | None

    def outcome_line(self) -> str:
        """How it ended, in a few words."""
        if self.state == "running":
            return f"running or cut on target {self.target}"
        return f"{self.state}{f' by {self.undone_by}' if self.undone_by else ''} on target {self.target}"


class Store(HealthStore):
    """The store of one rack. Reading never waits for a writer; every write is one synced transaction."""

    def __init__(self, engine: Engine, files: Path, rack: str = "", place: str = "") -> None:
        super().__init__(engine, rack)
        self.files = files
        """The folder for files that belong to the store, such as exported runbooks."""
        self.place = place
        """The folder or database URL of the store, so that another process can open it; may hold a password."""

    # -- who runs where, and what the devices hold ---------------------------------------------------------------

    def assignment(self) -> dict[str, tuple[str, ...]]:
        """Accelerators of each job by rank, for jobs that a run has placed."""
        with self._engine.connect() as connection:
            placed: dict[str, list[str]] = {}
            for row in connection.execute(select(assignment).order_by(assignment.c.job, assignment.c.rank)):
                placed.setdefault(row.job, []).append(row.accelerator)
        return {job: tuple(accelerators) for job, accelerators in placed.items()}

    def device_cells(self, device: str) -> dict[int, str]:
        """What a device was last proved to hold, by PUC or ingress port; empty when that is not certain."""
        with self._engine.connect() as connection:
            if not connection.execute(select(devices.c.certain).where(devices.c.device == device)).scalar():
                return {}
            rows = connection.execute(select(device_states).where(device_states.c.device == device))
            return {row.puc: row.state for row in rows}

    def device_states(self, device: str) -> dict[int, PucState]:
        """What a mesh was last proved to hold; empty when that is not certain."""
        return {puc: PucState(state) for puc, state in self.device_cells(device).items()}

    def uncertain_since(self, device: str) -> str | None:
        """The run that left a device uncertain, or ``None`` if it is certain or was never written."""
        with self._engine.connect() as connection:
            row = connection.execute(select(devices).where(devices.c.device == device)).first()
        return row.run if row is not None and not row.certain else None

    def last_written_by(self, device: str) -> str | None:
        """The run that last wrote a device, or ``None`` if none ever did."""
        with self._engine.connect() as connection:
            return connection.execute(select(devices.c.run).where(devices.c.device == device)).scalar()

    # -- plans and runs -------------------------------------------------------------------------------------------

    def save_plan(self, plan: Mapping[str, Any]) -> None:
        """Keep a plan under its id; saving the same plan again changes nothing."""
        with writing(self._engine) as connection:
            connection.execute(delete(plans).where(plans.c.id == plan["id"]))
            connection.execute(
                insert(plans).values(
                    id=plan["id"],
                    digest=plan["digest"],
                    created_at=plan["created_at"],
                    target=plan["target"],
                    body=json.dumps(plan, ensure_ascii=False),
                )
            )

    def plan(self, plan_id: str) -> dict[str, Any] | None:
        """A saved plan by its id."""
        with self._engine.connect() as connection:
            body = connection.execute(select(plans.c.body).where(plans.c.id == plan_id)).scalar()
        return json.loads(body) if body else None

    def runs(self) -> tuple[Run, ...]:
        """All runs, newest first."""
        with self._engine.connect() as connection:
            rows = connection.execute(select(runs).order_by(runs.c.started_at.desc(), runs.c.fence.desc()))
            return tuple(Run(**{**row._asdict(), "plan": json.loads(row.plan)}) for row in rows)

    def run(self, run_id: str) -> Run:
        """One run by its id.

        Raises:
            UsageError: there is none of that name.
        """
        known = self.runs()
        for run in known:
            if run.id == run_id:
                return run
        near = nearest(run_id, [run.id for run in known])
        raise UsageError(f"no run {run_id!r}", hint=f"did you mean {near}?" if near else "see: lumctl swap list")

    def unfinished(self, *, now: float) -> tuple[str, ...]:
        """Runs that were left half done, or were cut: still open although their lease has ended."""
        with self._engine.connect() as connection:
            alive = connection.execute(select(leases.c.fence).where(leases.c.expires_at > now)).scalar()
            still_open = runs.c.state.in_(["running", "half-done"])
            rows = connection.execute(select(runs.c.id, runs.c.fence).where(still_open).order_by(runs.c.started_at))
            return tuple(row.id for row in rows if row.fence != alive)

    def moves(self, *, since: float, now: float) -> tuple[Run, ...]:
        """Runs that may have moved light since a time: those at work, and those that have ended since.

        One that was cut or left half done stands open until a person has looked, but what it left moving comes to rest.
        """
        may_be = runs.c.state.in_(["running", "half-done"]) | (runs.c.ended_at >= since)
        mine = may_be if not self._rack else may_be & (runs.c.rack == self._rack)
        found = []
        with self._engine.connect() as connection:
            given = connection.execute(select(leases).where(leases.c.expires_at > now))
            alive = {(row.rack, row.fence): row.expires_at for row in given}
            for row in connection.execute(select(runs).where(mine).order_by(runs.c.started_at)).all():
                at_work = row.state == "running" and alive.get((row.rack, row.fence))
                until = at_work or row.ended_at or journal.last_act(connection, row.id)
                rest_s = COMES_TO_REST_S if row.state in {"running", "half-done"} and not at_work else 0.0
                if until + rest_s >= since:
                    found.append(Run(**{**row._asdict(), "plan": json.loads(row.plan)}))
        return tuple(found)

    def entries(self, run_id: str) -> tuple[journal.Entry, ...]:
        """The journal of one run, oldest first."""
        with self._engine.connect() as connection:
            return journal.entries(connection, run_id)

    def first_break(self) -> journal.Break | None:
        """Where the journal's chain is broken, if anywhere."""
        with self._engine.connect() as connection:
            return journal.first_break(connection)

    # -- a change under way: used by the change engine only -----------------------------------------------------------

    def acquire(self, rack: str, holder: str, *, term_s: float, now: float) -> lease.Lease:
        """Take the rack's lease; see :func:`lumctl.store.lease.acquire`."""
        with writing(self._engine) as connection:
            return lease.acquire(connection, rack, holder, term_s=term_s, now=now)

    def renew(self, held: lease.Lease, *, term_s: float, now: float) -> None:
        """Extend a lease; see :func:`lumctl.store.lease.renew`."""
        with writing(self._engine) as connection:
            lease.renew(connection, held, term_s=term_s, now=now)

    def release(self, held: lease.Lease) -> None:
        """Give the lease back."""
        with writing(self._engine) as connection:
            lease.release(connection, held)

    def seize(self, held: lease.Lease, *, holder: str, term_s: float, now: float) -> tuple["Run", lease.Lease] | None:
        """Take over the open run of another process, with its lease: that process can write nothing more.

        ``holder`` is completed by the run's id. ``None`` if there is nothing to take over: no run is open under this
        lease, or somebody has taken a newer one.
        """
        with writing(self._engine) as connection:
            mine = (runs.c.rack == held.rack, runs.c.fence == held.fence, runs.c.state == "running")
            row = connection.execute(select(runs).where(*mine)).first()
            if row is None:
                return None
            try:
                taken = lease.seize(connection, held, f"{holder} {row.id}", term_s=term_s, now=now)
            except lease.LeaseLostError:
                return None
            connection.execute(update(runs).where(runs.c.id == row.id).values(fence=taken.fence))
        return Run(**{**row._asdict(), "plan": json.loads(row.plan), "fence": taken.fence}), taken

    def begin_run(self, held: lease.Lease, values: Mapping[str, Any], plan: Mapping[str, Any], *, now: float) -> str:
        """Write down a run that starts now and return its id, such as ``swap-0007``."""
        with writing(self._engine) as connection:
            number = (connection.execute(select(func.count()).select_from(runs)).scalar() or 0) + 1
            run_id = f"{values['kind']}-{number:04d}"
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
            data = {"plan": plan["digest"], **{k: values[k] for k in ("who", "inventory_digest", "title", "target")}}
            journal.append(connection, run=run_id, at=now, kind="begin", step="", data=data, fence=held.fence)
        return run_id

    def intend(self, held: lease.Lease, run: str, entry: "Record", *, unsure: str | None = None) -> None:
        """Journal that a step is about to act, on disk before it does.

        ``unsure`` names the device that the step writes: until its outcome is recorded, nobody knows what it holds.

        Raises:
            LeaseLostError: somebody else may act now.
        """
        with writing(self._engine) as connection:
            lease.require(connection, held)
            _append(connection, held, run, entry)
            if unsure is not None:
                _mark_device(connection, unsure, run, certain=False)

    def conclude(
        self,
        held: lease.Lease,
        run: str,
        entry: "Record",
        *,
        states: Mapping[str, Mapping[int, str]] | None = None,
        placed: Mapping[str, tuple[str, ...]] | None = None,
    ) -> None:
        """Journal a step's outcome together with what is now certain: device states, and who runs where.

        Raises:
            LeaseLostError: somebody else has acted since; what this step knew may not be so any more.
        """
        with writing(self._engine) as connection:
            lease.require(connection, held)
            _append(connection, held, run, entry)
            for device, pucs in (states or {}).items():
                _mark_device(connection, device, run, certain=True)
                connection.execute(delete(device_states).where(device_states.c.device == device))
                rows = [{"device": device, "puc": puc, "state": str(state)} for puc, state in sorted(pucs.items())]
                connection.execute(insert(device_states), rows)
            for job, accelerators in (placed or {}).items():
                connection.execute(delete(assignment).where(assignment.c.job == job))
                ranks = [
                    {"job": job, "rank": rank, "accelerator": accelerator, "run": run}
                    for rank, accelerator in enumerate(accelerators)
                ]
                connection.execute(insert(assignment), ranks)

    def doubt(self, device: str, run: str) -> None:
        """Nobody knows any more what a device holds: a run may have written it after its lease was lost.

        To say so needs no lease: it makes nothing certain.
        """
        with writing(self._engine) as connection:
            _mark_device(connection, device, run, certain=False)

    def end_run(self, held: lease.Lease, run: str, entry: "Record", state: str, *, undid: str | None = None) -> None:
        """Close a run in its final state; ``undid`` names the earlier run that this one took back.

        A rollback that is itself taken back puts in force again what it had undone. Earlier attempts to take the same
        run back, which did not come to their end, are settled by this one.
        """
        with writing(self._engine) as connection:
            lease.require(connection, held)
            _append(connection, held, run, entry)
            connection.execute(update(runs).where(runs.c.id == run).values(state=state, ended_at=entry.at))
            if undid is not None:
                connection.execute(update(runs).where(runs.c.id == undid).values(state="undone", undone_by=run))
                connection.execute(update(runs).where(runs.c.undone_by == undid).values(state="done", undone_by=None))
                still_open = select(runs).where(runs.c.state.in_(["running", "half-done"]), runs.c.id != run)
                attempts = [r.id for r in connection.execute(still_open) if json.loads(r.plan).get("undoes") == undid]
                settled = {"state": "undone", "undone_by": run}
                connection.execute(update(runs).where(runs.c.id.in_(attempts)).values(**settled))

    def close(self) -> None:
        """Give back the database connections."""
        self._engine.dispose()


@dataclass(frozen=True, slots=True)
class Record:
    """What a journal entry says: when, of what kind, of which step."""

    at: float
    kind: str
    step: str
    data: Mapping[str, Any]


def _append(connection: Connection, held: lease.Lease, run: str, entry: Record) -> None:
    journal.append(
        connection, run=run, at=entry.at, kind=entry.kind, step=entry.step, data=entry.data, fence=held.fence
    )


def _mark_device(connection: Connection, device: str, run: str, *, certain: bool) -> None:
    connection.execute(delete(devices).where(devices.c.device == device))
    connection.execute(insert(devices).values(device=device, certain=int(certain), run=run))
