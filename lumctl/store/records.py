"""Runs and journal records as a store holds them."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, func, select

from lumctl.inventory.problems import nearest
from lumctl.store.errors import StoreError
from lumctl.store.schema import runs

REVERT_TIMER, REVERT_MARGIN_S = "reverts_after_s", 48.0
"""The key of a revert timer in the intent of a step, in seconds, and how much longer the device may take to revert."""
# A timer runs 72 s by default (lumctl.change: REVERT_AFTER_S and twice light_deadline_s); then the device acts.
COMES_TO_REST_S = 120.0
"""How long after its last act an interrupted run may still move light: until a device's revert timer has expired.

A run whose journal names a longer timer takes as long as that, and ``REVERT_MARGIN_S``.
"""

OPEN = frozenset({"running", "half-done"})
"""States of runs that still need an operator or an engine."""


def ways_to_finish(run: str, target: str) -> str:
    """The two commands that can finish an interrupted or half-done run."""
    return f"lumctl swap resume {run} --target {target} or lumctl swap abort {run} --target {target}"


def run_seconds(started_at: float, ended_at: float) -> float:
    """How long a run took from its begin to its last entry in the journal, to the millisecond.

    That includes writing the journal and, for a run that was resumed or aborted later, the time until then. It is 0 if
    the clock was set back meanwhile.
    """
    return round(max(ended_at - started_at, 0.0), 3)


@dataclass(frozen=True, slots=True)
class StoredRun:
    """One execution of a plan. ``state`` is running, done, refused, rolled-back, half-done, undone or superseded.

    A superseded run was aborted after later runs had overwritten its changes; the abort kept those changes.
    """

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

    @property
    def seconds(self) -> float | None:
        """How long the run took; ``None`` before it has ended. Every command, file and screen shows this number."""
        return None if self.ended_at is None else run_seconds(self.started_at, self.ended_at)

    def outcome_line(self) -> str:
        """How the run ended, in a few words."""
        if self.state == "running":
            return f"running or interrupted on target {self.target}"
        return f"{self.state}{f' by {self.undone_by}' if self.undone_by else ''} on target {self.target}"


def nearest_run(run_id: str, known: Iterable[str]) -> str | None:
    """The known run that is probably meant: one of the same kind, because undoing another kind would do harm."""
    by_kind: dict[str, list[str]] = {}
    for name in known:
        by_kind.setdefault(name.rpartition("-")[0], []).append(name)
    kind = nearest(run_id.rpartition("-")[0], by_kind)
    return None if kind is None else nearest(run_id, by_kind[kind])


@dataclass(frozen=True, slots=True)
class Record:
    """The content of a journal entry: time, kind, step, data."""

    at: float
    kind: str
    step: str
    data: Mapping[str, Any]


def run_of(row: Any, **changed: Any) -> StoredRun:
    """Parse a row into a run.

    Raises:
        StoreError: its plan is damaged.
    """
    try:
        plan = json.loads(row.plan)
    except ValueError as error:
        raise StoreError(f"the plan of {row.id} cannot be read: {error}", hint="see: lumctl runbook verify") from error
    return StoredRun(**{**row._asdict(), "plan": plan, **changed})


def new_run_id(connection: Connection, kind: str, mine: ColumnElement[bool]) -> str:
    """The next run id of a kind; each kind has its own numbers. ``mine`` selects the runs of this store.

    Call it under the write lock.
    """
    alike = (mine, runs.c.kind == kind)
    number = connection.execute(select(func.count()).select_from(runs).where(*alike)).scalar() or 0
    while True:  # Rows may have been deleted by hand: the journal shows that, and the next run still works.
        number += 1
        run_id = f"{kind}-{number:04d}"
        if connection.execute(select(runs.c.id).where(runs.c.id == run_id, mine)).first() is None:
            return run_id
