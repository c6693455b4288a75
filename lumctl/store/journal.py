"""The journal: entries that are only ever added, each sealed by a hash over itself and the entry before it.

Each rack has a chain of its own.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, bindparam, func, insert, select

from lumctl import __version__
from lumctl.store.database import writing
from lumctl.store.errors import StoreError
from lumctl.store.rack_rows import RackRows
from lumctl.store.records import REVERT_TIMER
from lumctl.store.schema import journal as table

NO_FENCE = 0
"""The lease number of entries that need no lease; the first lease has number 1."""
LIGHT_CHANGES, LIGHT_FAILED = "phases", "phase-failed"
"""The kinds of a job's remarks on its light between phases: what it changed and showed, every few seconds; and a change
or a proof that failed. See ``context.phase_log``."""
GENESIS = "0" * 64
_FORM = "lumctl/journal/v1"


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One journal entry. ``kind`` is begin, intent, outcome, undo-intent, undo-outcome, end, or a remark's kind."""

    rack: str
    seq: int
    run: str
    at: float
    kind: str
    step: str
    data: Mapping[str, Any]
    fence: int
    version: str
    previous: str
    hash: str

    @property
    def seconds(self) -> float | None:
        """How long a step took, without writing the journal; ``None`` if that is not recorded."""
        took = self.data.get("seconds") if self.kind == "outcome" else None
        return float(took) if isinstance(took, int | float) else None


@dataclass(frozen=True, slots=True)
class Break:
    """A place at which the journal or data derived from it was altered; ``seq`` is 0 if no entry belongs to it."""

    seq: int
    reason: str


@dataclass(frozen=True, slots=True)
class Head:
    """Where a journal ended: number, hash and time (seconds since the epoch) of its last entry, and how many it had.

    Saved elsewhere, it shows later whether the end was cut off or the journal was replaced.
    """

    rack: str
    seq: int
    hash: str
    at: float
    count: int


_COLUMNS = tuple(table.c.keys())
# All but the hash, which must stay the last column. The seal covers them in the table's order.
_SEALED = _COLUMNS[:-1]
_LAST = (
    select(table.c.seq, table.c.hash).where(table.c.rack == bindparam("of_rack")).order_by(table.c.seq.desc()).limit(1)
)
_ADD = insert(table)
Said = tuple[float, str, str, Mapping[str, Any]]
"""The content of an entry: time, kind, step and data."""


class Journal:
    """The journal of one rack. It adds only entries that belong to no run; :mod:`lumctl.store.runs` adds the others."""

    def __init__(self, rows: RackRows) -> None:
        self._rows = rows
        self._newest: tuple[JournalEntry, ...] = ()
        """The end of the journal as it was last read."""

    def of_run(self, run_id: str) -> tuple[JournalEntry, ...]:
        """The journal of one run, oldest first."""
        with self._rows.engine.connect() as connection:
            return entries(connection, self._rows.of(table), table.c.run == run_id)

    def latest(self, count: int) -> tuple[JournalEntry, ...]:
        """The newest entries of the journal, oldest first, but for ``LIGHT_CHANGES``, which are too many.

        What was read once is kept: entries are only ever added.
        """

        def ask(connection: Connection) -> tuple[JournalEntry, ...]:
            # Racks that share a database number their entries separately, so a number does not say what is new there.
            kept = self._newest if self._rows.rack and len(self._newest) >= count else ()
            after = (table.c.seq > (kept[-1].seq if kept else 0)) & (table.c.kind != LIGHT_CHANGES)
            self._newest = found = (*kept, *latest(connection, count, self._rows.of(table), after))[-count:]
            return found

        return self._rows.known.get("latest", ask, of=count)

    def remark(self, kind: str, data: Mapping[str, Any], *, at: float, who: str) -> JournalEntry:
        """Record an event that belongs to no run, on disk when this returns; ``who`` is stored in its data.

        Raises:
            StoreError: the store cannot be written.
        """
        with writing(self._rows.engine) as connection:
            said = {**data, "who": who}
            return append(
                connection, rack=self._rows.rack, run="", at=at, kind=kind, step="", data=said, fence=NO_FENCE
            )

    def remarks(self, *kinds: str, since: float = 0.0, after: int = 0) -> tuple[JournalEntry, ...]:
        """The remarks since a time (seconds since the epoch), oldest first: all, or those of some kinds.

        ``after`` omits entries up to that number; unlike a time, it does not depend on clocks, which may differ.
        """
        which = [self._rows.of(table), table.c.run == "", table.c.at >= since, table.c.seq > after]
        if kinds:
            which.append(table.c.kind.in_(kinds))
        with self._rows.engine.connect() as connection:
            return entries(connection, *which)

    def head(self) -> Head:
        """Where the rack's journal ends now."""
        with self._rows.engine.connect() as connection:
            return head(connection, self._rows.rack)


def append(
    connection: Connection,
    *,
    rack: str,
    run: str,
    at: float,
    kind: str,
    step: str,
    data: Mapping[str, Any],
    fence: int,
) -> JournalEntry:
    """Add one entry inside the caller's transaction; it is on disk when that transaction has committed."""
    (added,) = append_all(connection, [(at, kind, step, data)], rack=rack, run=run, fence=fence)
    return added


def append_all(
    connection: Connection, said: Iterable[Said], *, rack: str, run: str, fence: int
) -> tuple[JournalEntry, ...]:
    """Add entries in their order, as :func:`append` does with one."""
    last = connection.execute(_LAST, {"of_rack": rack}).first()
    seq, previous = (last.seq, last.hash) if last else (0, GENESIS)
    rows: list[dict[str, Any]] = []
    added: list[JournalEntry] = []
    for number, (at, kind, step, data) in enumerate(said, start=seq + 1):
        # Bytes that are not valid text, such as in a name or an answer, are stored as escapes of JSON.
        text = json.dumps(data, sort_keys=True, ensure_ascii=False).encode("utf-8", "backslashreplace").decode()
        # In the order of _SEALED: the check hashes the columns in the table's order.
        values: dict[str, Any] = {
            "rack": rack,
            "seq": number,
            "run": run,
            # An int would be hashed as 5 and read back as 5.0.
            "at": float(at),
            "kind": kind,
            "step": step,
            "data": text,
            "fence": fence,
            "version": __version__,
            "previous": previous,
        }
        values["hash"] = previous = _digest([_FORM, *values.values()])
        rows.append(values)
        added.append(JournalEntry(**{**values, "data": data}))
    if rows:
        connection.execute(_ADD, rows)
    return tuple(added)


def entries(connection: Connection, *which: Any) -> tuple[JournalEntry, ...]:
    """The entries that meet some conditions, oldest first."""
    rows = connection.execute(select(table).where(*which).order_by(table.c.rack, table.c.seq))
    return tuple(entry(row) for row in rows)


def latest(connection: Connection, count: int, *which: Any) -> tuple[JournalEntry, ...]:
    """The newest entries that meet some conditions, oldest first; ordered by number if racks share a database."""
    rows = connection.execute(select(table).where(*which).order_by(table.c.seq.desc()).limit(count)).all()
    return tuple(entry(row) for row in reversed(rows))


def entry(row: Any) -> JournalEntry:
    """Parse a row into an entry.

    Raises:
        StoreError: the row's data is damaged.
    """
    try:
        data = json.loads(row.data)
    except ValueError as error:
        raise StoreError(
            f"entry {row.seq} of the journal cannot be read: {error}", hint="see: lumctl runbook verify"
        ) from error
    return JournalEntry(
        row.rack, row.seq, row.run, row.at, row.kind, row.step, data, row.fence, row.version, row.previous, row.hash
    )


def last_act(connection: Connection, rack: str, run: str) -> float:
    """When a run last wrote into the journal (seconds since the epoch)."""
    newest = select(func.max(table.c.at)).where(table.c.rack == rack, table.c.run == run)
    return float(connection.execute(newest).scalar() or 0.0)


def longest_timer_s(connection: Connection, rack: str, run: str) -> float:
    """The longest revert timer that the steps of a run may have armed, in seconds; 0 if the journal names none."""
    intents = (table.c.rack == rack, table.c.run == run, table.c.kind == "intent")
    data = connection.execute(select(table.c.data).where(*intents)).scalars()
    return max((float(json.loads(said).get(REVERT_TIMER, 0.0)) for said in data), default=0.0)


def head(connection: Connection, rack: str) -> Head:
    """Where a rack's journal ends."""
    newest = select(table).where(table.c.rack == rack).order_by(table.c.seq.desc()).limit(1)
    last = connection.execute(newest).first()
    if last is None:
        return Head(rack, 0, GENESIS, 0.0, 0)
    count = connection.execute(select(func.count()).select_from(table).where(table.c.rack == rack)).scalar() or 0
    return Head(rack, last.seq, last.hash, last.at, count)


def first_break(rows: Iterable[Any]) -> Break | None:
    """Check a whole chain; ``None`` if every entry is unaltered and none is missing."""
    previous, expected = GENESIS, 1
    for row in rows:
        if row.seq != expected:
            return Break(expected, f"entry {expected} is missing")
        if row.previous != previous:
            return Break(row.seq, "it does not follow the previous entry")
        if row.hash != _digest([_FORM, *(getattr(row, name) for name in _SEALED)]):
            return Break(row.seq, "its content was changed")
        previous, expected = row.hash, expected + 1
    return None


def _digest(parts: list[Any]) -> str:
    # Rows of a damaged file may hold surrogates, which UTF-8 does not encode.
    return hashlib.sha256(json.dumps(parts, ensure_ascii=False).encode("utf-8", "backslashreplace")).hexdigest()
