"""When ranks moved between accelerators, and by which runs: read from the runs of a rack and their journal."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

from lumctl.inventory.slice_records import is_job
from lumctl.store import JournalEntry, Store, StoredRun
from lumctl.store.records import OPEN

ASSIGN = "assign"
"""The kind of step that records where ranks run, as plans write it (``Do.ASSIGN`` of the change room, above)."""
Placed = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RankMove:
    """A rank moves from one accelerator to another; ``None`` if it runs nowhere before, or afterwards.

    ``at`` is when the run recorded it (seconds since the epoch). ``undone``: the run recorded that it took its own move
    back. If ``is_open``, the run has not ended, and ``at`` is when it began.
    """

    run: str
    at: float
    job: str
    rank: int
    before: str | None
    after: str | None
    undone: bool = False
    is_open: bool = False


def moves_of(run: StoredRun, entries: Iterable[JournalEntry]) -> Iterator[RankMove]:
    """The moves that a run recorded, oldest first. A move that it took back is a move in the other direction."""
    steps = _assign_steps(run)
    in_force = set[str]()
    for entry in entries:
        if entry.step not in steps:
            continue
        moves = [replace(move, at=entry.at) for move in steps[entry.step]]
        if entry.kind == "outcome" and entry.data.get("done") and entry.step not in in_force:
            in_force.add(entry.step)
            yield from moves
        elif entry.kind == "undo-outcome" and entry.data.get("undone") and entry.step in in_force:
            in_force.discard(entry.step)
            yield from (replace(move, before=move.after, after=move.before, undone=True) for move in moves)


def rank_moves(store: Store, accelerators: Collection[str]) -> list[RankMove]:
    """Every recorded move from or to one of these accelerators, oldest first; the intended moves of open runs last.

    Raises:
        StoreError: the store cannot be read.
    """
    recorded: list[RankMove] = []
    intended: list[RankMove] = []
    for run in store.runs.all():
        planned = [move for moves in _assign_steps(run).values() for move in moves]
        if not any({move.before, move.after} & set(accelerators) for move in planned):
            continue
        recorded += moves_of(run, store.journal.of_run(run.id))
        if run.state in OPEN:
            intended += (replace(move, is_open=True) for move in planned)
    concerned = (move for move in recorded if {move.before, move.after} & set(accelerators))
    return [*sorted(concerned, key=lambda move: move.at), *intended]


def _assign_steps(run: StoredRun) -> dict[str, list[RankMove]]:
    """The moves of each step of a run that records where ranks run."""
    return {
        step["id"]: list(_moves(run, step["data"].get("before", {}), step["data"]["assignment"]))
        for step in run.plan.get("steps", ())
        if step["do"] == ASSIGN
    }


def _moves(run: StoredRun, before: Placed, after: Placed) -> Iterator[RankMove]:
    for job in filter(is_job, after):
        ranks = zip_longest(before.get(job, ()), after[job])
        for rank, (old, new) in enumerate(ranks):
            if old != new:
                yield RankMove(run.id, run.started_at, job, rank, old, new)
