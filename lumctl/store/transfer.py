"""Copy a rack's store to another database, in one transaction that commits only if the copy equals the source."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, Table, insert, select, text

from lumctl.errors import RefusedError, UsageError
from lumctl.store import clock, journal, lease
from lumctl.store.database import open_engine, shown, writing
from lumctl.store.errors import StoreError
from lumctl.store.journal import Head
from lumctl.store.records import OPEN
from lumctl.store.schema import leases, meta, metadata, readings, runs
from lumctl.store.verification import Digest, verify

REMARK = "retired"
"""The kind of the entry that ends a retired store's journal; the copy's journal continues from the entry before it."""


@dataclass(frozen=True, slots=True)
class Retirement:
    """The user who retires a store, and the highest lease number that the rack's gateway has seen; 0 if none."""

    who: str
    seen: int = 0


def require_writable(engine: Engine, place: str) -> None:
    """Refuse to copy a store that cannot be retired afterwards.

    Raises:
        StoreError: the store was opened for reading only.
    """
    if (reason := engine.get_execution_options().get("unwritable")) is not None:
        raise StoreError(
            f"the store at {place} is not writable, so it cannot be retired: {reason}; nothing was copied",
            hint="make it writable, or omit --retire",
        )


def require_in_use(copy: Connection, rack: str, place: str) -> None:
    """Refuse to copy a rack to a store from which it was moved away.

    Raises:
        RefusedError: the store there was retired.
    """
    if (moved_to := lease.moved_to(copy, rack)) is not None:
        raise RefusedError(
            f"the store at {place} was retired when rack {rack} was moved to {moved_to}",
            hint="give a place that contains nothing of the rack",
        )


def goes_on(copy: Connection, rack: str, head: Head, digest: Digest) -> bool:
    """Whether a store already has a rack's whole, unbroken journal up to a head: an earlier copy, used or not."""
    return 0 < head.seq <= journal.head(copy, rack).seq and not verify(copy, rack, digest, head)


def number_above(source: Connection, copy: Connection, rack: str, seen: int) -> int:
    """The lease number with which a store is retired; the copy gives only higher ones.

    So the number of a lease shows which store gave it. A gateway that still reads the old store refuses leases of the
    new store until it is restarted. A gateway that saw the old store's last number, and is restarted on the new store,
    finds a higher number there.
    """
    number = max(lease.newest(source, rack), lease.newest(copy, rack), seen) + 1
    lease.skip(copy, rack, number)
    return number


def retire_source(source: Connection, rack: str, number: int, place: str, who: str, now: float) -> None:
    """Close a store in the caller's transaction, and journal that; ``now`` is in seconds since the epoch."""
    before = lease.newest(source, rack)
    lease.retire(source, rack, number, place)
    said = (now, REMARK, "", {"who": who, "to": place, "from": before, "lease": number})
    journal.append_all(source, [said], rack=rack, run="", fence=number)


TABLES = tuple(table for table in metadata.sorted_tables if table not in {meta, readings})
"""The tables that are copied; every row names its rack. Readings over time are not copied: they expire after a week,
and are larger than all other tables together.
"""
_AT_ONCE = 500
"""How many rows are sent together."""


@dataclass(frozen=True, slots=True)
class Copied:
    """The result of a copy: the number of rows of each table, and the end of the journal in both stores.

    ``was_there``: an earlier copy was found; the new store may have been in use since.
    """

    rows: Mapping[str, int]
    head: Head
    was_there: bool = False


def copy(
    source: str, target: str, rack: str, *, digest: Digest, now: float, retire: Retirement | None = None
) -> Copied:
    """Copy all data of a rack from a store to another place; each place is a folder or a database URL.

    No process can write to either store during the copy. ``digest`` computes the digest of a plan's document, and
    ``now`` is the time in seconds since the epoch. With ``retire`` the source then gives no more leases of the rack,
    and an earlier copy is accepted if its journal continues from the end of the source's journal.

    Raises:
        RefusedError: the rack is being changed, a run is open, the journal was altered, the source was retired, or the
            target already contains data of the rack; nothing was written.
        UsageError: both places are the same, there is nothing to copy, or one of them cannot be opened.
        StoreError: one of them cannot be read or written. Nothing was written, or the copy was made and the source was
            not retired; the message says so.
    """
    here, there = shown(_place(source)), shown(_place(target))
    if _place(source) == _place(target):
        raise UsageError(f"the store of rack {rack} is already at {there}")
    is_copied = False
    try:
        with _opened(source, rack) as ours:
            if retire is not None:
                require_writable(ours, here)
            with _held(ours) as read:
                lease.require_not_moved(read, rack)
                _require_rest(read, rack, now)
                _require_whole(read, rack, digest, here)
                kept = {table.name: _rows(read, table, rack) for table in TABLES}
                if not any(kept.values()):
                    raise UsageError(f"the store at {here} contains nothing of rack {rack}: nothing to copy")
                head = journal.head(read, rack)
                with _opened(target, rack) as theirs, writing(theirs) as written:
                    _be_patient(written)
                    require_in_use(written, rack, there)
                    was_there = retire is not None and goes_on(written, rack, head, digest)
                    if was_there:
                        _require_rest(written, rack, now)
                    else:
                        _require_empty(written, rack, there)
                        _fill(written, kept, rack, there)
                        if journal.head(written, rack) != head or verify(written, rack, digest, head):
                            raise RefusedError(f"the journal in {there} is not the copied one")
                    if retire is not None:
                        number = number_above(read, written, rack, retire.seen)
                        retire_source(read, rack, number, there, retire.who, now)
                # The copy is on disk before the source is retired, so that one of them can always be used.
                is_copied = True
    except StoreError as error:
        if not is_copied or retire is None:
            raise
        raise StoreError(
            f"the copy at {there} is complete, but the store at {here} was not retired, so both can be used: "
            f"{error.message}",
            hint="run it again with --retire: the existing copy is used",
        ) from error
    return Copied({name: len(rows) for name, rows in kept.items()}, head, was_there)


def _fill(written: Connection, kept: Mapping[str, list[dict[str, Any]]], rack: str, place: str) -> None:
    for table in TABLES:
        rows = kept[table.name]
        for start in range(0, len(rows), _AT_ONCE):
            written.execute(insert(table), rows[start : start + _AT_ONCE])
    # Read back: a database that rounds a time would break the seals of the journal.
    for table in TABLES:
        if _rows(written, table, rack) != kept[table.name]:
            raise RefusedError(f"{table.name} as read back from {place} differs from what was copied")


def _place(place: str) -> Path | str:
    return place if "://" in place else Path(place).expanduser().absolute()


@contextmanager
def _opened(place: str, rack: str) -> Iterator[Engine]:
    engine = open_engine(_place(place))
    try:
        yield engine.execution_options(rack=rack)
    finally:
        engine.dispose()


@contextmanager
def _held(engine: Engine) -> Iterator[Connection]:
    """A transaction that locks out all writers; a store that cannot be written needs no lock."""
    if engine.get_execution_options().get("unwritable") is not None:
        with engine.connect() as connection:
            yield connection
        return
    with writing(engine) as connection:
        _be_patient(connection)
        yield connection


def _be_patient(connection: Connection) -> None:
    """Lift the time limits of this transaction: copying a whole journal takes longer than a step of a run."""
    if connection.dialect.name == "postgresql":
        for name in ("idle_in_transaction_session_timeout", "statement_timeout"):
            connection.execute(text(f"SET LOCAL {name} = 0"))


def _rows(connection: Connection, table: Table, rack: str) -> list[dict[str, Any]]:
    found = connection.execute(select(table).where(table.c.rack == rack))
    keys = [column.name for column in table.primary_key]
    # Sorted here, because databases sort texts differently.
    return sorted((row._asdict() for row in found), key=lambda row: [row[key] for key in keys])


def _require_rest(connection: Connection, rack: str, now: float) -> None:
    held = connection.execute(select(leases).where(leases.c.rack == rack)).first()
    if held is not None and (left_s := held.expires_at - clock.lease_now(connection, now)) > 0:
        raise RefusedError(
            f"rack {rack} is being changed by {held.holder}; its lease ends in {left_s:.0f} s",
            hint="wait until it ends, or see: lumctl swap list",
        )
    of_it = (runs.c.rack == rack, runs.c.state.in_(OPEN))
    run = connection.execute(select(runs.c.id).where(*of_it).order_by(runs.c.id)).scalar()
    if run is not None:
        raise RefusedError(
            f"{run} of rack {rack} is open",
            hint=f"finish it first: lumctl swap resume {run} or lumctl swap abort {run}",
        )


def _require_whole(connection: Connection, rack: str, digest: Digest, place: str) -> None:
    for broken in verify(connection, rack, digest):
        raise RefusedError(
            f"the store at {place} differs from what was written: {broken.reason}", hint="see: lumctl runbook verify"
        )


def _require_empty(connection: Connection, rack: str, place: str) -> None:
    for table in TABLES:
        if connection.execute(select(table.c.rack).where(table.c.rack == rack).limit(1)).first() is not None:
            raise RefusedError(
                f"the store at {place} already contains {table.name} of rack {rack}",
                hint="give an empty database; other racks may share it",
            )
