"""The journal: entries that are only ever added, each sealed by a hash over itself and the entry before it."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, func, insert, select

from lumctl import __version__
from lumctl.store.schema import journal

GENESIS = "0" * 64


@dataclass(frozen=True, slots=True)
class Entry:
    """One journal entry. ``kind`` is begin, intent, outcome, undo-intent, undo-outcome or end."""

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


@dataclass(frozen=True, slots=True)
class Break:
    """The first place at which a journal is not what was written."""

    seq: int
    reason: str


def append(
    connection: Connection, *, run: str, at: float, kind: str, step: str, data: Mapping[str, Any], fence: int
) -> Entry:
    """Add one entry inside the caller's transaction; it is on disk when that transaction has committed."""
    last = connection.execute(select(journal.c.seq, journal.c.hash).order_by(journal.c.seq.desc()).limit(1)).first()
    seq, previous = (last.seq + 1, last.hash) if last else (1, GENESIS)
    text = json.dumps(data, sort_keys=True, ensure_ascii=False)
    sealed = _seal(seq, run, at, kind, step, text, fence, __version__, previous)
    values = {
        "seq": seq,
        "run": run,
        "at": at,
        "kind": kind,
        "step": step,
        "data": text,
        "fence": fence,
        "version": __version__,
        "previous": previous,
        "hash": sealed,
    }
    connection.execute(insert(journal).values(**values))
    return Entry(**{**values, "data": data})  # type: ignore[arg-type]


def entries(connection: Connection, run: str) -> tuple[Entry, ...]:
    """The entries of one run, oldest first."""
    rows = connection.execute(select(journal).where(journal.c.run == run).order_by(journal.c.seq))
    return tuple(Entry(**{**row._asdict(), "data": json.loads(row.data)}) for row in rows)


def last_act(connection: Connection, run: str) -> float:
    """When a run last wrote into the journal (seconds since the epoch)."""
    return float(connection.execute(select(func.max(journal.c.at)).where(journal.c.run == run)).scalar() or 0.0)


def first_break(connection: Connection) -> Break | None:
    """Walk the whole chain; ``None`` if every entry is as it was written and none is missing between."""
    previous, expected = GENESIS, 1
    for row in connection.execute(select(journal).order_by(journal.c.seq)):
        if row.seq != expected:
            return Break(expected, f"entry {expected} is missing")
        if row.previous != previous:
            return Break(row.seq, "it does not follow the entry before it")
        sealed = _seal(row.seq, row.run, row.at, row.kind, row.step, row.data, row.fence, row.version, row.previous)
        if sealed != row.hash:
            return Break(row.seq, "its content was changed")
        previous, expected = row.hash, expected + 1
    return None


def _seal(*parts: str | float) -> str:
    return hashlib.sha256(json.dumps(parts, ensure_ascii=False).encode()).hexdigest()
