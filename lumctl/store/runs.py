"""Runs and plans of one rack, and the progress of a run.

:class:`Runs` reads without waiting for a writer; every write is one synced transaction.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Delete, bindparam, delete, insert, select, update

from lumctl import __version__
from lumctl.errors import RefusedError, UsageError
from lumctl.store import clock, demands, journal, lease, unwritten_ends
from lumctl.store.approvals import APPROVED, ASKED
from lumctl.store.database import writing
from lumctl.store.fabric import make_certain, mark_device
from lumctl.store.rack_rows import SHARED_S, RackRows
from lumctl.store.records import (
    COMES_TO_REST_S,
    OPEN,
    REVERT_MARGIN_S,
    Record,
    StoredRun,
    nearest_run,
    new_run_id,
    run_of,
)
from lumctl.store.schema import approvals, leases, plans, runs

_OPEN = select(runs.c.id, runs.c.rack, runs.c.fence).where(runs.c.state.in_(OPEN)).order_by(runs.c.started_at)
_OPEN_OF_RACK = _OPEN.where(runs.c.rack == bindparam("of_rack"))
_REPLACEMENTS = '"replacements": '
_DECODER = json.JSONDecoder()


def _replaced_by(plan: str) -> set[str]:
    """The accelerators that a plan replaces, by its text. A text within it cannot contain the key: it has quotes."""
    at = plan.find(_REPLACEMENTS)
    return {each.get("failed") for each in _DECODER.raw_decode(plan, at + len(_REPLACEMENTS))[0]} if at >= 0 else set()


_NEWEST_FIRST = (runs.c.started_at.desc(), runs.c.fence.desc())
_LEASES = select(leases)
_LEASES_OF_RACK = _LEASES.where(leases.c.rack == bindparam("of_rack"))
_ADD = insert(runs)
_CHANGE = update(runs).where(runs.c.rack == bindparam("of_rack"), runs.c.id == bindparam("of_run"))
"""Made once: to make a statement takes longer than to execute it."""
KEEP_UNAPPLIED_S = 30 * 86_400.0
"""How long a plan is kept that is not applied, in seconds after it was made."""
_Ends = Mapping[tuple[str, int], float]
"""When leases end, by rack and number."""


class Runs:
    """Runs and plans of one rack. ``files`` is the folder next to the store."""

    def __init__(self, rows: RackRows, files: Path) -> None:
        self._rows = rows
        self._files = files

    def save_plan(self, plan: Mapping[str, Any]) -> None:
        """Keep a plan under its id; saving the same plan again changes nothing.

        Plans that were made :data:`KEEP_UNAPPLIED_S` before it are deleted, unless they were applied or their request
        for approval is open.

        Raises:
            RefusedError: another plan has this id, which is only the beginning of a plan's digest.
        """
        with writing(self._rows.engine) as connection:
            this = (plans.c.id == plan["id"], self._rows.of(plans))
            kept = connection.execute(select(plans.c.digest).where(*this)).scalar()
            if kept not in {None, plan["digest"]}:
                raise RefusedError(f"another plan is stored under the id {plan['id']}", hint="make a new plan")
            connection.execute(delete(plans).where(*this))
            connection.execute(self._outdated(plan["created_at"]))
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

    def _outdated(self, now: float) -> Delete:
        applied = select(runs.c.plan_digest).where(self._rows.of(runs))
        is_open = (approvals.c.state.in_((ASKED, APPROVED)), approvals.c.expires_at > now)
        asked = select(approvals.c.plan).where(self._rows.of(approvals), *is_open)
        never_used = (plans.c.digest.not_in(applied), plans.c.digest.not_in(asked))
        return delete(plans).where(self._rows.of(plans), plans.c.created_at < now - KEEP_UNAPPLIED_S, *never_used)

    def plan(self, plan_id: str) -> dict[str, Any] | None:
        """A saved plan by its id."""
        with self._rows.engine.connect() as connection:
            body = connection.execute(select(plans.c.body).where(plans.c.id == plan_id, self._rows.of(plans))).scalar()
        return json.loads(body) if body else None

    def plan_ids(self) -> tuple[str, ...]:
        """The ids of all saved plans."""
        with self._rows.engine.connect() as connection:
            return tuple(connection.execute(select(plans.c.id).where(self._rows.of(plans))).scalars())

    def plans_without_run(self) -> tuple[tuple[float, str, str], ...]:
        """When each plan that was never applied was made, with its id and its digest, newest first."""
        applied = select(runs.c.plan_digest).where(self._rows.of(runs))
        mine = (self._rows.of(plans), plans.c.digest.not_in(applied))
        asked = select(plans.c.created_at, plans.c.id, plans.c.digest).where(*mine)
        with self._rows.engine.connect() as connection:
            return tuple(tuple(row) for row in connection.execute(asked.order_by(plans.c.created_at.desc())))

    def all(self) -> tuple[StoredRun, ...]:
        """All runs, newest first."""
        with self._rows.engine.connect() as connection:
            rows = connection.execute(select(runs).where(self._rows.of(runs)).order_by(*_NEWEST_FIRST))
            return tuple(run_of(row) for row in rows)

    def newest_replacements(self, accelerators: Collection[str]) -> dict[str, StoredRun]:
        """By accelerator, the newest run that replaced it; without those that no finished run has replaced."""
        if not accelerators:
            return {}
        done = select(runs).where(self._rows.of(runs), runs.c.state == "done").order_by(*_NEWEST_FIRST)

        def ask(connection: Connection) -> dict[str, StoredRun]:
            found, missing = dict[str, StoredRun](), set(accelerators)
            for row in connection.execute(done):
                # Read by every observation, so only the runs that are meant are parsed whole.
                if those := missing.intersection(_replaced_by(row.plan)):
                    found |= dict.fromkeys(those, run_of(row))
                    missing -= those
                if not missing:
                    break
            return found

        return self._rows.known.get("newest replacements", ask, of=frozenset(accelerators))

    def get(self, run_id: str) -> StoredRun:
        """One run by its id.

        Raises:
            UsageError: there is no run with that id.
        """
        with self._rows.engine.connect() as connection:
            row = connection.execute(select(runs).where(runs.c.id == run_id, self._rows.of(runs))).first()
        if row is not None:
            return run_of(row)
        near = nearest_run(run_id, [run.id for run in self.all()])
        raise UsageError(f"no run {run_id!r}", hint=f"did you mean {near}?" if near else "see: lumctl swap list")

    def unfinished(self, *, now: float) -> tuple[str, ...]:
        """Runs that were left half done or interrupted: still open although their lease has ended or was released."""

        def ask(connection: Connection) -> tuple[float, _Ends, Sequence[Any]]:
            ahead_s, ends = self._lease_ends(connection, now)
            still_open = _OPEN_OF_RACK if self._rows.rack else _OPEN
            return ahead_s, ends, connection.execute(still_open, {"of_rack": self._rows.rack}).all()

        ahead_s, ends, still_open = self._rows.known.get("open runs", ask)
        alive = {number for number, end in ends.items() if clock.is_alive(end, now + ahead_s)}
        return tuple(row.id for row in still_open if (row.rack, row.fence) not in alive or self._is_left(row))

    def _lease_ends(self, connection: Connection, now: float) -> tuple[float, _Ends]:
        """By how much the clock that counts is ahead of ``now``, and when each lease ends by that clock."""
        given = connection.execute(_LEASES_OF_RACK if self._rows.rack else _LEASES, {"of_rack": self._rows.rack})
        ends = {(row.rack, row.fence): row.expires_at for row in given}
        return clock.lease_now(connection, now) - now, ends

    def left_half_done(self) -> tuple[str, ...]:
        """Runs that their engine left half done without recording it, because the store could not be written."""
        with self._rows.engine.connect() as connection:
            rows = connection.execute(select(runs).where(runs.c.state == "running", self._rows.of(runs)))
            return tuple(row.id for row in rows if self._is_left(row))

    def _is_left(self, row: Any) -> bool:
        return unwritten_ends.is_left(self._files, row.id, row.fence)

    def moves(self, *, since: float, now: float) -> tuple[StoredRun, ...]:
        """Runs that may have changed light paths since a time: running ones, and those that have ended since.

        An interrupted or half-done run counts until its light has settled, at least ``COMES_TO_REST_S`` after its last
        act. It stays open until an operator finishes it.
        """
        asked = since - since % SHARED_S

        def ask(connection: Connection) -> tuple[float, _Ends, list[tuple[StoredRun, float, float]]]:
            ahead_s, ends = self._lease_ends(connection, now)
            may_be = runs.c.state.in_(OPEN) | (runs.c.ended_at >= asked)
            rows = connection.execute(select(runs).where(may_be, self._rows.of(runs)).order_by(runs.c.started_at)).all()
            acted = [row.ended_at or journal.last_act(connection, row.rack, row.id) for row in rows]
            rests_s = [_rest_s(connection, row) if row.state in OPEN else 0.0 for row in rows]
            found = [(run_of(row), at, rest_s) for row, at, rest_s in zip(rows, acted, rests_s, strict=True)]
            return ahead_s, ends, found

        # The last minutes and the last day are asked for in turn.
        name = ("moves", now - since > 2 * SHARED_S)
        ahead_s, ends, rows = self._rows.known.get(name, ask, of=asked)
        alive = {number: end - ahead_s for number, end in ends.items() if clock.is_alive(end, now + ahead_s)}
        found = []
        for run, acted_at, rest_s in rows:
            lasts = run.state == "running" and not self._is_left(run)
            # While a lease lasts, its run may move light at any time, so its end counts as the last act.
            at_work = alive.get((run.rack, run.fence)) if lasts else None
            if (at_work or acted_at + rest_s) >= since:
                found.append(run)
        return tuple(found)

    # -- a run in progress: used by the change engine only ------------------------------------------------------------

    def seize(
        self, held: lease.Lease, *, holder: str, term_s: float, now: float
    ) -> tuple[StoredRun, lease.Lease] | None:
        """Take over the open run of another process, and its lease: that process can then write nothing more.

        ``holder`` is completed by the run's id. ``None`` if there is nothing to take over: no run is open under this
        lease, or another process has a newer one.
        """
        asked_at = clock.since_boot()
        with writing(self._rows.engine) as connection:
            # A run and its lease belong together by the lease's number alone.
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

        ``None`` if the run has ended since, or has a lease at least as new.

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
        # After the commit: if that fails, the run must still count as left, not as running until its lease ends.
        unwritten_ends.forget(self._files, run)
        return run_of(row, **values)

    def leave(self, held: lease.Lease, run: str) -> None:
        """Note that a run is half done whose end the store cannot record; send nothing under its lease afterwards."""
        unwritten_ends.leave(self._files, run, held.fence)

    def begin(self, held: lease.Lease, values: Mapping[str, Any], plan: Mapping[str, Any], *, now: float) -> str:
        """Record a run that starts now and return its id, such as ``swap-0007``.

        Raises:
            LeaseLostError: another process has a newer lease, and may have begun a run.
        """
        with writing(self._rows.engine) as connection:
            lease.require(connection, held)
            run_id = new_run_id(connection, values["kind"], self._rows.of(runs))
            row = {
                **values,
                "id": run_id,
                "rack": held.rack,
                "plan": json.dumps(plan, ensure_ascii=False),
                "version": __version__,
                "fence": held.fence,
                "state": "running",
                "started_at": now,
            }
            connection.execute(_ADD, row)
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
        """Record a step's outcome together with the states that it makes certain; see :meth:`advance`."""
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
        """Record the progress of a run in one transaction: outcomes, the certain states, and the next intents.

        The outcomes make device states (``states``) and placements (``placed``) certain. ``unsure`` names the devices
        about to be written: their states are unknown until the outcome is recorded.

        Raises:
            LeaseLostError: another process may act now, or has acted since.
        """
        with writing(self._rows.engine) as connection:
            lease.require(connection, held)
            _append(connection, held, run, *entries)
            make_certain(connection, held.rack, run, states or {}, placed or {})
            if placed and entries:
                demands.settle(connection, held.rack, run, placed, who=held.holder, at=entries[-1].at)
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

        Undoing a rollback makes the run that the rollback had undone active again. Earlier unfinished attempts to undo
        the same run are closed too.
        """
        with writing(self._rows.engine) as connection:
            lease.require(connection, held)
            undone = {} if undid is None else {"undid": undid}
            _append(connection, held, run, *outcomes, replace(entry, data={**entry.data, **undone}))
            make_certain(connection, held.rack, run, states or {}, placed or {})
            if placed:
                demands.settle(connection, held.rack, run, placed, who=held.holder, at=entry.at)
            this = {"of_rack": held.rack, "of_run": run}
            connection.execute(_CHANGE, {**this, "state": state, "ended_at": entry.at})
            mine = runs.c.rack == held.rack
            change = update(runs).where(mine)
            if undid is not None:
                connection.execute(change.where(runs.c.id == undid).values(state="undone", undone_by=run))
                connection.execute(change.where(runs.c.undone_by == undid).values(state="done", undone_by=None))
                still_open = select(runs).where(mine, runs.c.state.in_(OPEN), runs.c.id != run)
                attempts = [r.id for r in connection.execute(still_open) if json.loads(r.plan).get("undoes") == undid]
                settled = {"state": "undone", "undone_by": run}
                connection.execute(change.where(runs.c.id.in_(attempts)).values(**settled))
        # After the commit, for the reason given in reopen.
        if undid is not None:
            unwritten_ends.forget(self._files, undid)


def _rest_s(connection: Connection, row: Any) -> float:
    """How long after its last act an open run that no engine works on may still move light, in seconds."""
    return max(COMES_TO_REST_S, journal.longest_timer_s(connection, row.rack, row.id) + REVERT_MARGIN_S)


def _append(connection: Connection, held: lease.Lease, run: str, *entries: Record) -> None:
    said = [(entry.at, entry.kind, entry.step, entry.data) for entry in entries]
    journal.append_all(connection, said, rack=held.rack, run=run, fence=held.fence)
