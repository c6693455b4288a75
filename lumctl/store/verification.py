"""Verify that a rack's journal, and the data derived from it, was not altered.

The chain of hashes shows changed, missing or added entries between the first and the last. A missing end, or a
replacement by another or older journal, shows only by comparison with a head that was exported
earlier and saved elsewhere. Runs and plans are not in the chain, but the journal determines their content.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from sqlalchemy import Connection, LargeBinary, Table, cast, select
from sqlalchemy.types import String

from lumctl.store import journal
from lumctl.store.journal import Break, Head, JournalEntry
from lumctl.store.records import OPEN
from lumctl.store.schema import journal as entries
from lumctl.store.schema import leases, plans, runs

Document = Mapping[str, Any]
Digest = Callable[[Document], str]
"""A function that computes the digest of a plan's document from its content."""

_SAID = {
    "who": "who",
    "title": "title",
    "target": "target",
    "inventory_digest": "inventory digest",
    "kind": "kind",
    "rack": "rack",
}
"""The fields of a run's first entry, and their names in messages."""


@dataclass(slots=True)
class _Story:
    """One run according to its entries; ``last`` is the entry that determines its state."""

    begin: JournalEntry
    last: JournalEntry
    fence: int = 0
    state: str = "not begun"
    ended_at: float | None = None
    undone_by: str | None = None


@dataclass(slots=True)
class RunHistories:
    """The entries of a whole journal, in their order."""

    _stories: dict[str, _Story] = field(default_factory=dict)
    _in_order: list[JournalEntry] = field(default_factory=list)
    _odd: list[Break] = field(default_factory=list)

    def add(self, entry: JournalEntry) -> None:
        """Add the next entry."""
        if not entry.run:
            return
        if entry.kind == "begin" and entry.run in self._stories:
            self._odd.append(Break(entry.seq, f"{entry.run} begins a second time"))
        elif entry.kind == "begin":
            self._stories[entry.run] = _Story(entry, entry)
        elif entry.run not in self._stories:
            self._odd.append(Break(entry.seq, f"{entry.run} continues but never began"))
            return
        self._stories[entry.run].fence = entry.fence
        self._in_order.append(entry)

    def complaints(self, rows: Iterator[Any], digest: Digest) -> Iterator[Break]:
        """The contradictions between the stored runs and the journal."""
        yield from self._odd
        kept = {row.id: (row, json_object(row.plan) or {}) for row in rows}
        self._tell({run: plan.get("undoes") for run, (_, plan) in kept.items()})
        for run, (row, plan) in kept.items():
            if run not in self._stories:
                yield Break(0, f"{run} is stored, but the journal does not contain it")
                continue
            story = self._stories[run]
            if (wrong := _begun_otherwise(row, plan, story.begin, digest)) is not None:
                yield Break(story.begin.seq, f"the {wrong} of {run} differs from the journal")
            elif (wrong := _ended_otherwise(row, story)) is not None:
                yield Break(story.last.seq, f"the {wrong} of {run} does not follow from the journal")
        for run, story in self._stories.items():
            if run not in kept:
                yield Break(story.begin.seq, f"{run} began here, but is no longer stored")

    def _tell(self, undoes: Mapping[str, str | None]) -> None:
        # This and _settle repeat what Runs writes (begin, reopen, end): a change there needs one here.
        for entry in self._in_order:
            story = self._stories[entry.run]
            if entry.kind == "end":
                story.state, story.ended_at, story.last = str(entry.data.get("state")), entry.at, entry
                self._settle(entry, entry.data.get("undid"), undoes)
            elif story.state in {"not begun", "half-done"}:
                story.state, story.ended_at, story.last = "running", None, entry

    def _settle(self, end: JournalEntry, undid: str | None, undoes: Mapping[str, str | None]) -> None:
        if undid is None:
            return
        for run, story in self._stories.items():
            attempt = run != end.run and story.state in OPEN and undoes.get(run) == undid
            if run == undid or attempt:
                story.state, story.undone_by, story.last = "undone", end.run, end
            elif story.undone_by == undid:
                story.state, story.undone_by, story.last = "done", None, end


def _begun_otherwise(row: Any, plan: Document, begin: JournalEntry, digest: Digest) -> str | None:
    """The name of the first field that differs from the run's first entry."""
    if not begin.data.get("plan") == row.plan_digest == plan.get("digest") == digest(plan):
        return "plan"
    own_id = f"plan-{row.plan_digest[:8]}"  # the digest does not cover it
    if plan.get("id", own_id) != own_id:
        return "plan"
    for name, called in _SAID.items():
        kept = getattr(row, name)
        if begin.data.get(name) != kept or plan.get(name, kept) != kept:
            return called
    if row.id.rpartition("-")[0] != row.kind:
        return "kind"
    if row.version != begin.version:
        return "version"
    return None if row.started_at == begin.at else "start"


def _ended_otherwise(row: Any, story: _Story) -> str | None:
    """The name of the first field that differs from the run's entries."""
    if row.state != story.state:
        return "state"
    if row.ended_at != story.ended_at:
        return "end"
    if row.undone_by != story.undone_by:
        return "undoing"
    # A take-over has a newer lease number before it writes its first entry.
    ahead = story.ended_at is None and row.fence > story.fence
    return None if row.fence == story.fence or ahead else "lease number"


def verify(connection: Connection, rack: str, digest: Digest, head: Head | None = None) -> tuple[Break, ...]:
    """Every altered place; if the chain itself is broken, only the first break.

    ``head`` is an earlier exported head of the journal.
    """
    rows = tuple(stored_rows(connection, entries, rack, entries.c.seq))
    broken = journal.first_break(iter(rows)) or (against(rows, head) if head else None)
    if broken is not None:
        # Entries after a break prove nothing, so runs are not compared with them.
        return (broken,)
    history = RunHistories()
    for row in rows:
        history.add(journal.entry(row))
    found = [
        *history.complaints(stored_rows(connection, runs, rack, runs.c.started_at), digest),
        *_of_plans(stored_rows(connection, plans, rack, plans.c.id), digest),
        *_of_the_lease(connection, rack, rows),
    ]
    return tuple(sorted(found, key=lambda each: each.seq))


def first_break(connection: Connection, rack: str) -> Break | None:
    """Where the chain of a rack's journal is broken, if anywhere."""
    return journal.first_break(stored_rows(connection, entries, rack, entries.c.seq))


def against(rows: tuple[Any, ...], head: Head) -> Break | None:
    """The place at which an unbroken chain contradicts an exported head, or ends before it."""
    if len(rows) < head.seq:
        return Break(
            len(rows) + 1,
            f"it ends at entry {len(rows)}, but had {head.seq} entries when its head was exported: the rest was cut "
            "off, or it was replaced by an older copy",
        )
    if head.seq == 0:
        return None
    row = rows[head.seq - 1]
    if row.hash != head.hash:
        return Break(
            head.seq,
            f"entry {head.seq} is not the one whose head was exported: it was replaced by another journal, or by an "
            "older copy that has continued since",
        )
    if (row.at, row.seq) != (head.at, head.count):
        return Break(head.seq, "the exported head was changed: its hash is right, but its time or its count is not")
    return None


def _of_plans(rows: Iterator[Any], digest: Digest) -> Iterator[Break]:
    for row in rows:
        body = json_object(row.body)
        if body is None or body.get("digest") != digest(body):
            yield Break(0, f"plan {row.id} was changed after it was made")
        elif (row.id, row.digest, row.target, row.created_at, row.rack) != tuple(
            body.get(key) for key in ("id", "digest", "target", "created_at", "rack")
        ) or row.id != f"plan-{row.digest[:8]}":
            yield Break(0, f"plan {row.id} is not stored under its own name, rack, target or time")


def _of_the_lease(connection: Connection, rack: str, rows: tuple[Any, ...]) -> Iterator[Break]:
    """A break if the newest lease has a lower number than the journal: it would admit a holder that was shut out."""
    given = connection.execute(select(leases.c.fence).where(leases.c.rack == rack)).scalar()
    highest = max(rows, key=lambda row: row.fence, default=None)
    if highest is not None and highest.fence and (given or 0) < highest.fence:
        yield Break(
            highest.seq,
            f"the newest lease has number {given or 'none'}, but the journal contains number {highest.fence}",
        )


def stored_rows(connection: Connection, table: Table, rack: str, by: Any) -> Iterator[Any]:
    """The rows of a rack, in the order of a column."""
    # SQLite may hold invalid text, and reading it as text fails, so it is read as bytes. PostgreSQL refuses such text.
    is_sqlite = connection.dialect.name == "sqlite"
    columns = [
        cast(column, LargeBinary).label(column.name) if is_sqlite and isinstance(column.type, String) else column
        for column in table.c
    ]
    for row in connection.execute(select(*columns).where(table.c.rack == rack).order_by(by)):
        yield SimpleNamespace(
            **{
                name: value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value
                for name, value in row._asdict().items()
            }
        )


def json_object(text: str) -> dict[str, Any] | None:
    """A JSON object; ``None`` if the text is not one, or not in the form that lumctl writes.

    A changed text can have the same value, for example a number with more digits than a float holds.
    """
    try:
        read = json.loads(text)
    except ValueError:
        return None
    return read if isinstance(read, dict) and json.dumps(read, ensure_ascii=False) == text else None
