"""What a store is asked: who runs where, what the devices hold, plans, runs, and the journal."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, bindparam, delete, insert, select

from lumctl.devices.types import PucState
from lumctl.errors import RefusedError, UsageError
from lumctl.inventory.problems import nearest
from lumctl.store import clock, journal, raw, unwritten
from lumctl.store.approvals import ApprovalStore
from lumctl.store.database import writing
from lumctl.store.records import COMES_TO_REST_S, NO_FENCE, OPEN, Run, run_of
from lumctl.store.schema import assignment, device_states, devices, leases, plans, runs
from lumctl.store.schema import journal as entries
from lumctl.store.verify import verify
from lumctl.store.verify_runs import Digest

_SAME = (devices.c.rack == device_states.c.rack) & (devices.c.device == device_states.c.device)
_CELLS = (
    select(device_states.c.puc, device_states.c.state)
    .join(devices, _SAME)
    .where(device_states.c.device == bindparam("of_device"), devices.c.certain == 1)
)
_CELLS_OF_RACK = _CELLS.where(device_states.c.rack == bindparam("of_rack"))
"""Made once: a run asks for them again and again, and to make them takes longer than to answer them."""


class Memory(ApprovalStore):
    """The part of a store that answers. Reading never waits for a writer."""

    files: Path
    """The folder for files that belong to the store, such as exported runbooks."""
    _newest: tuple[journal.Entry, ...] = ()
    """The end of the journal, as it was read last."""

    # -- who runs where, and what the devices hold ---------------------------------------------------------------

    def assignment(self) -> dict[str, tuple[str, ...]]:
        """Accelerators of each job by rank, for jobs that a run has placed."""
        with self._engine.connect() as connection:
            placed: dict[str, list[str]] = {}
            mine = select(assignment).where(self._mine(assignment))
            for row in connection.execute(mine.order_by(assignment.c.job, assignment.c.rank)):
                placed.setdefault(row.job, []).append(row.accelerator)
        return {job: tuple(accelerators) for job, accelerators in placed.items()}

    def device_cells(self, device: str) -> dict[int, str]:
        """What a device was last proved to hold, by PUC or ingress port; empty when that is not certain."""
        with self._engine.connect() as connection:
            cells = _CELLS_OF_RACK if self._rack else _CELLS
            return dict(connection.execute(cells, {"of_device": device, "of_rack": self._rack}).all())

    def device_states(self, device: str) -> dict[int, PucState]:
        """What a mesh was last proved to hold; empty when that is not certain."""
        return {puc: PucState(state) for puc, state in self.device_cells(device).items()}

    def uncertain_since(self, device: str) -> str | None:
        """The run that left a device uncertain, or ``None`` if it is certain or was never written."""
        with self._engine.connect() as connection:
            row = connection.execute(select(devices).where(devices.c.device == device, self._mine(devices))).first()
        return row.run if row is not None and not row.certain else None

    def last_written_by(self, device: str) -> str | None:
        """The run that last wrote a device, or ``None`` if none ever did."""
        with self._engine.connect() as connection:
            mine = (devices.c.device == device, self._mine(devices))
            return connection.execute(select(devices.c.run).where(*mine)).scalar()

    # -- plans and runs -------------------------------------------------------------------------------------------

    def save_plan(self, plan: Mapping[str, Any]) -> None:
        """Keep a plan under its id; saving the same plan again changes nothing.

        Raises:
            RefusedError: another plan is kept under this id, which is the beginning of its digest only.
        """
        with writing(self._engine) as connection:
            this = (plans.c.id == plan["id"], self._mine(plans))
            kept = connection.execute(select(plans.c.digest).where(*this)).scalar()
            if kept not in {None, plan["digest"]}:
                raise RefusedError(f"another plan is kept under the name {plan['id']}", hint="make the plan anew")
            connection.execute(delete(plans).where(*this))
            connection.execute(
                insert(plans).values(
                    rack=self._rack,
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
            body = connection.execute(select(plans.c.body).where(plans.c.id == plan_id, self._mine(plans))).scalar()
        return json.loads(body) if body else None

    def runs(self) -> tuple[Run, ...]:
        """All runs, newest first."""
        with self._engine.connect() as connection:
            newest_first = (runs.c.started_at.desc(), runs.c.fence.desc())
            rows = connection.execute(select(runs).where(self._mine(runs)).order_by(*newest_first))
            return tuple(run_of(row) for row in rows)

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
        """Runs that were left half done, or were cut: still open although their lease has ended or was given back."""
        with self._engine.connect() as connection:
            now = clock.lease_now(connection, now)
            given = connection.execute(select(leases).where(self._mine(leases)))
            alive = {(row.rack, row.fence) for row in given if clock.is_alive(row.expires_at, now)}
            still_open = (runs.c.state.in_(OPEN), self._mine(runs))
            rows = connection.execute(select(runs).where(*still_open).order_by(runs.c.started_at))
            return tuple(row.id for row in rows if (row.rack, row.fence) not in alive or self._is_left(row))

    def left_half_done(self) -> tuple[str, ...]:
        """Runs that their engine left half done and could not say so in the store, for it could not be written."""
        with self._engine.connect() as connection:
            rows = connection.execute(select(runs).where(runs.c.state == "running", self._mine(runs)))
            return tuple(row.id for row in rows if self._is_left(row))

    def _is_left(self, row: Any) -> bool:
        return unwritten.is_left(self.files, row.id, row.fence)

    def moves(self, *, since: float, now: float) -> tuple[Run, ...]:
        """Runs that may have moved light since a time: those at work, and those that have ended since.

        One that was cut or left half done stands open until a person has looked, but what it left moving comes to rest.
        """
        may_be = runs.c.state.in_(OPEN) | (runs.c.ended_at >= since)
        mine = may_be & self._mine(runs)
        found = []
        with self._engine.connect() as connection:
            ahead_s = clock.lease_now(connection, now) - now
            given = connection.execute(select(leases).where(self._mine(leases)))
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

    def entries(self, run_id: str) -> tuple[journal.Entry, ...]:
        """The journal of one run, oldest first."""
        with self._engine.connect() as connection:
            return journal.entries(connection, self._mine(entries), entries.c.run == run_id)

    def latest_entries(self, count: int) -> tuple[journal.Entry, ...]:
        """The newest entries of the journal, oldest first. What was read once is kept: entries are only ever added."""
        kept = self._newest if self._rack and len(self._newest) >= count else ()
        after = entries.c.seq > (kept[-1].seq if kept else 0)
        with self._engine.connect() as connection:
            found = (*kept, *journal.latest(connection, count, self._mine(entries), after))[-count:]
        self._newest = found
        return found

    def remark(self, kind: str, data: Mapping[str, Any], *, at: float, who: str) -> journal.Entry:
        """Journal something that belongs to no run, on disk when this returns; ``who`` is kept in its data.

        Raises:
            StoreError: the store cannot be written.
        """
        with writing(self._engine) as connection:
            said = {**data, "who": who}
            return journal.append(
                connection, rack=self._rack, run="", at=at, kind=kind, step="", data=said, fence=NO_FENCE
            )

    def remarks(self, kind: str | None = None, *, since: float = 0.0, after: int = 0) -> tuple[journal.Entry, ...]:
        """What was remarked since a time (seconds since the epoch), oldest first: all, or what is of one kind.

        ``after`` leaves out entries with numbers up to that one: the clocks of several machines may differ.
        """
        which = [self._mine(entries), entries.c.run == "", entries.c.at >= since, entries.c.seq > after]
        if kind is not None:
            which.append(entries.c.kind == kind)
        with self._engine.connect() as connection:
            return journal.entries(connection, *which)

    def first_break(self) -> journal.Break | None:
        """Where the journal's chain is broken, if anywhere."""
        with self._engine.connect() as connection:
            for rack in self._racks(connection):
                if (found := journal.first_break(raw.rows(connection, entries, rack, entries.c.seq))) is not None:
                    return found
        return None

    def head(self) -> journal.Head:
        """Where the rack's journal ends now."""
        with self._engine.connect() as connection:
            return journal.head(connection, self._rack)

    def verify(self, digest: Digest, head: journal.Head | None = None) -> tuple[journal.Break, ...]:
        """Every place at which the journal, a run, a plan or the lease is not as it was written.

        ``digest`` is that of a plan's document by its content; ``head`` was exported earlier.
        """
        with self._engine.connect() as connection:
            racks = self._racks(connection) if head is None else [head.rack]
            return tuple(found for rack in racks for found in verify(connection, rack, digest, head))

    def _racks(self, connection: Connection) -> list[str]:
        """Whose journals are this store's."""
        if self._rack:
            return [self._rack]
        return sorted(connection.execute(select(entries.c.rack).distinct()).scalars())
