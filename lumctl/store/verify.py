"""Whether a rack's journal, and what is made from it, is what was written.

The chain of hashes shows whatever was changed, left out or put in between its first entry and its last. What was cut
off at the end, or a whole journal that was replaced by another or by an older copy, only shows against a head that was
exported before and kept elsewhere. Runs and plans are not in the chain, but the journal says what they must be.
"""

from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, select

from lumctl.store import journal, raw
from lumctl.store.journal import Break, Head
from lumctl.store.schema import journal as entries
from lumctl.store.schema import leases, plans, runs
from lumctl.store.verify_runs import Digest, History


def verify(connection: Connection, rack: str, digest: Digest, head: Head | None = None) -> tuple[Break, ...]:
    """Every place that is not as it was written; where the chain itself is broken, only that.

    ``head`` is what was exported earlier.
    """
    rows = tuple(raw.rows(connection, entries, rack, entries.c.seq))
    broken = journal.first_break(iter(rows)) or (against(rows, head) if head else None)
    if broken is not None:
        return (broken,)
    history = History()
    for row in rows:
        history.add(journal.entry(row))
    found = [
        *history.complaints(raw.rows(connection, runs, rack, runs.c.started_at), digest),
        *_of_plans(raw.rows(connection, plans, rack, plans.c.id), digest),
        *_of_the_lease(connection, rack, rows),
    ]
    return tuple(sorted(found, key=lambda each: each.seq))


def against(rows: tuple[Any, ...], head: Head) -> Break | None:
    """Where an unbroken chain is not the one whose head was exported, or no longer as long."""
    if len(rows) < head.seq:
        return Break(
            len(rows) + 1,
            f"it ends at entry {len(rows)}, and had {head.seq} entries when its head was exported: "
            "the rest was cut off, or an older copy was put in its place",
        )
    if head.seq == 0:
        return None
    row = rows[head.seq - 1]
    if row.hash != head.hash:
        return Break(
            head.seq,
            f"entry {head.seq} is not the one whose head was exported: "
            "another journal, or an older copy that has gone on since, is in its place",
        )
    if (row.at, row.seq) != (head.at, head.count):
        return Break(head.seq, "the exported head was changed: its hash is right, its time or its count is not")
    return None


def _of_plans(rows: Iterator[Any], digest: Digest) -> Iterator[Break]:
    for row in rows:
        body = raw.document(row.body)
        if body is None or body.get("digest") != digest(body):
            yield Break(0, f"plan {row.id} was changed after it was made")
        elif (row.id, row.digest, row.target, row.created_at, row.rack) != tuple(
            body.get(key) for key in ("id", "digest", "target", "created_at", "rack")
        ) or row.id != f"plan-{row.digest[:8]}":
            yield Break(0, f"plan {row.id} is not kept under its own name, rack, target or time")


def _of_the_lease(connection: Connection, rack: str, rows: tuple[Any, ...]) -> Iterator[Break]:
    """Numbers of leases only grow: a lower one than the journal knows would let a holder in that was shut out."""
    given = connection.execute(select(leases.c.fence).where(leases.c.rack == rack)).scalar()
    highest = max(rows, key=lambda row: row.fence, default=None)
    if highest is not None and highest.fence and (given or 0) < highest.fence:
        yield Break(
            highest.seq,
            f"the newest lease has number {given or 'none'}, and the journal knows number {highest.fence}",
        )
