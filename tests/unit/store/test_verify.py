"""Whatever is changed in a journal, or in what is made from it, is found; what nobody touched is not."""

import os
import random
import shutil
import sqlite3
import struct
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from lumctl.change.plan import plan_digest
from lumctl.store import Break, Head, Record, Store, database, journal, store_at, verification
from lumctl.store.schema import journal as table
from lumctl.store.schema import leases, plans, runs
from lumctl.store.verification import RunHistories, _of_plans

GOLDEN = Path(__file__).parents[2] / "system" / "golden"
ONE_IN = 1 if os.environ.get("LUMCTL_CAMPAIGN") == "1" else 11
"""Of so many bytes one is changed here; all of them in a campaign."""
COLUMNS = ("seq", "run", "at", "kind", "step", "data", "fence", "version", "previous", "hash")
Rows = list[SimpleNamespace]


def laid(folder: Path) -> Path:
    """A store as a swap and its rollback have left it."""
    with closing(sqlite3.connect(folder / "lumctl.db")) as database:
        database.executescript((GOLDEN / "swap-8.sql").read_text(encoding="utf-8"))
    return folder


@pytest.fixture(scope="module")
def swap(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    """Its journal."""
    store = store_at(str(laid(tmp_path_factory.mktemp("swap"))), rack="prototype")
    found = rows_of(store)
    store.close()
    return found


@dataclass
class Kept:
    """What a store keeps beside its journal: runs of each kind, and the plan of each."""

    journal: Rows
    runs: Rows
    plans: Rows

    def complaints(self, rows: Rows) -> list[Break]:
        history = RunHistories()
        for row in self.journal:
            history.add(journal.entry(row))
        return list(history.complaints(iter(rows), plan_digest))


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    """One of everything, as this version writes it."""
    folder = tmp_path_factory.mktemp("golden")
    with closing(sqlite3.connect(folder / "lumctl.db")) as database:
        database.executescript((GOLDEN / "schema-8.sql").read_text(encoding="utf-8"))
    store = store_at(str(folder), rack="golden")
    for run in store.runs.all():
        store.runs.save_plan(run.plan)
    assert store.verify(plan_digest) == ()
    with store._engine.connect() as connection:
        found = Kept(
            *(
                list(verification.stored_rows(connection, t, "golden", by))
                for t, by in ((table, table.c.seq), (runs, runs.c.started_at), (plans, plans.c.id))
            )
        )
    store.close()
    return found


@pytest.fixture(scope="module")
def golden_journal(golden: Kept) -> Rows:
    """Its journal."""
    return golden.journal


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = store_at(str(laid(tmp_path)), rack="prototype")
    yield opened
    opened.close()


def rows_of(store: Store) -> Rows:
    with store._engine.connect() as connection:
        return list(verification.stored_rows(connection, table, "prototype", table.c.seq))


def altered(value: Any) -> Iterator[Any]:
    """A value with one of its bytes changed: each byte in turn."""
    if value is None:
        return
    if isinstance(value, str):
        was = value.encode("utf-8", "surrogateescape")
        for at, byte in enumerate(was):
            yield (was[:at] + bytes([byte ^ 1]) + was[at + 1 :]).decode("utf-8", "surrogateescape")
    else:
        form = "<d" if isinstance(value, float) else "<q"
        was = struct.pack(form, value)
        for at, byte in enumerate(was):
            yield struct.unpack(form, was[:at] + bytes([byte ^ 1]) + was[at + 1 :])[0]


def changed(row: SimpleNamespace, **values: Any) -> SimpleNamespace:
    return SimpleNamespace(**{**vars(row), **values})


@pytest.mark.parametrize("sealed", ["swap", "golden_journal"])
def test_every_changed_byte_of_a_journal_is_found(request: pytest.FixtureRequest, sealed: str) -> None:
    rows: Rows = request.getfixturevalue(sealed)
    assert len(rows) > 40
    assert journal.first_break(rows) is None
    choose, tried = random.Random(6), 0  # noqa: S311 - a sample
    for at, row in enumerate(rows):
        for column in COLUMNS:
            for value in altered(getattr(row, column)):
                if choose.randrange(ONE_IN):
                    continue
                tried += 1
                found = journal.first_break([*rows[:at], changed(row, **{column: value}), *rows[at + 1 : at + 2]])
                assert found is not None, (row.seq, column, value)
                assert found.seq in {row.seq, row.seq + 1}, (row.seq, column, value)
    assert tried > 10_000 / ONE_IN


def test_every_changed_byte_of_the_runs_is_found(golden: Kept) -> None:
    """Runs of each kind: what a rollback or a runbook would be made from."""
    assert {run.kind for run in golden.runs} >= {"fabric", "swap", "rollback", "set", "ack", "maintain"}
    choose, tried = random.Random(7), 0  # noqa: S311 - a sample
    assert not golden.complaints(golden.runs)
    for row, column in ((run, column) for run in golden.runs for column in vars(run)):
        for value in altered(getattr(row, column)):
            if choose.randrange(ONE_IN):
                continue
            tried += 1
            odd = changed(row, **{column: value})
            assert golden.complaints([odd if other is row else other for other in golden.runs]), (row.id, column, value)
    assert tried > 15_000 / ONE_IN


def test_every_changed_byte_of_the_plans_is_found(golden: Kept) -> None:
    tried = 0
    assert len(golden.plans) == len(golden.runs)
    assert not list(_of_plans(iter(golden.plans), plan_digest))
    choose = random.Random(8)  # noqa: S311 - a sample
    for row, column in ((plan, column) for plan in golden.plans for column in vars(plan)):
        for value in altered(getattr(row, column)):
            if choose.randrange(ONE_IN):
                continue
            tried += 1
            assert list(_of_plans(iter([changed(row, **{column: value})]), plan_digest)), (row.id, column, value)
    assert tried > 10_000 / ONE_IN


@pytest.mark.parametrize("bit", range(8))
def test_a_changed_number_of_the_lease_is_found_where_it_went_back(store: Store, bit: int) -> None:
    """A higher one is that of a holder that has not written yet; its name and its end change without the journal."""
    with store._engine.connect() as connection:
        given = int(connection.execute(select(leases.c.fence)).scalar_one())
    edit(store, f"UPDATE leases SET fence = {given ^ 1 << bit}")  # noqa: S608
    assert bool(store.verify(plan_digest)) is (given ^ 1 << bit < given)


def test_a_changed_rack_is_found_as_well(swap: Rows) -> None:
    """It puts a row into another journal: here it is missing, and there its number or its seal is wrong."""
    for at, row in enumerate(swap[:-1]):
        assert journal.first_break([*swap[:at], *swap[at + 1 :]]).seq == row.seq
    assert all(journal.first_break([changed(row, rack="protptype")]) is not None for row in swap)


def test_entries_that_are_missing_swapped_doubled_or_put_in_are_found(swap: Rows) -> None:
    rows = swap
    last = len(rows) - 1
    for at, row in enumerate(rows):
        before, after = rows[:at], rows[at + 1 :]
        if at != last:
            assert journal.first_break([*before, *after])
            closed_up = [changed(other, seq=other.seq - 1) for other in after]
            assert journal.first_break([*before, *closed_up])
            following = after[0]
            assert journal.first_break([*before, following, row, *after[1:]])
            swapped = [changed(following, seq=row.seq), changed(row, seq=following.seq)]
            assert journal.first_break([*before, *swapped, *after[1:]])
        doubled = [changed(other, seq=other.seq + 1) for other in rows[at:]]
        assert journal.first_break([*before, row, *doubled])
        forged = changed(row, hash=journal._digest([row.seq, "it never happened"]))
        assert journal.first_break([*before, forged, *doubled])


# -- what is made from the journal ------------------------------------------------------------------------------------


def edit(store: Store, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(store.files / "lumctl.db")) as connection, connection:
        assert connection.execute(statement, values).rowcount


def test_a_store_that_nobody_touched_is_as_it_was_written(store: Store) -> None:
    assert store.verify(plan_digest) == ()
    assert store.verify(plan_digest, store.journal.head()) == ()


CHANGES = [
    ("plan", "replace(plan, 's3-gpu0', 's4-gpu0')", "plan"),
    ("plan", "'{'", "plan"),
    ("plan_digest", "'0' || substr(plan_digest, 2)", "plan"),
    ("who", "'you'", "who"),
    ("title", "title || '.'", "title"),
    ("target", "'rack'", "target"),
    ("inventory_digest", "'1dea'", "inventory digest"),
    ("kind", "'fabric'", "kind"),
    ("version", "'9.9'", "version"),
    ("started_at", "started_at + 1", "start"),
    ("ended_at", "ended_at - 1", "end"),
    ("ended_at", "NULL", "end"),
    ("state", "'done'", "state"),
    ("state", "'running'", "state"),
    ("undone_by", "NULL", "undoing"),
    ("fence", "fence + 1", "lease number"),
]


@pytest.mark.parametrize(("column", "value", "named"), CHANGES)
def test_a_changed_run_is_found(store: Store, column: str, value: str, named: str) -> None:
    edit(store, f"UPDATE runs SET {column} = {value} WHERE id = 'swap-0002'")  # noqa: S608
    (found,) = store.verify(plan_digest)
    assert found.reason.startswith(
        (f"the {named} of swap-0002 differs from ", f"the {named} of swap-0002 does not follow ")
    )
    assert found.seq > 0


def test_a_run_that_is_gone_or_put_in_is_found(store: Store) -> None:
    edit(store, "UPDATE runs SET id = 'swap-0009' WHERE id = 'swap-0002'")
    reasons = [found.reason for found in store.verify(plan_digest)]
    assert reasons == [
        "swap-0009 is stored, but the journal does not contain it",
        "swap-0002 began here, but is no longer stored",
    ]


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("body", "replace(body, 's3-gpu0', 's4-gpu0')"),
        ("body", "'[]'"),
        ("digest", "'0'"),
        ("target", "'rack'"),
        ("created_at", "1"),
        ("id", "'plan-0badcafe'"),
    ],
)
def test_a_changed_plan_is_found(store: Store, column: str, value: str) -> None:
    edit(store, f"UPDATE plans SET {column} = {value}")  # noqa: S608
    (found,) = store.verify(plan_digest)
    assert found.reason.startswith("plan plan-")


def test_a_lease_whose_number_went_back_is_found(store: Store) -> None:
    edit(store, "UPDATE leases SET fence = 1")
    assert [found.reason for found in store.verify(plan_digest)] == [
        "the newest lease has number 1, but the journal contains number 3"
    ]
    edit(store, "DELETE FROM leases")
    assert store.leases.acquire("prototype", "me", term_s=30.0, now=1.0).fence == 4


def test_text_that_is_none_any_more_is_found(store: Store) -> None:
    edit(store, "UPDATE journal SET data = CAST(x'7bff7d' AS TEXT) WHERE seq = 7")
    (found,) = store.verify(plan_digest)
    assert found == store.first_break()
    assert (found.seq, found.reason) == (7, "its content was changed")


# -- against a head that was exported ---------------------------------------------------------------------------------


def test_an_end_that_was_cut_off_is_found_by_a_head_only(store: Store) -> None:
    head = store.journal.head()
    edit(store, "DELETE FROM journal WHERE seq > 42")
    assert store.verify(plan_digest) == ()
    (found,) = store.verify(plan_digest, head)
    assert found.seq == 43
    assert "it ends at entry 42, but had 43 entries" in found.reason


def test_a_journal_that_has_gone_on_is_well(store: Store) -> None:
    head = store.journal.head()
    store.journal.remark("decision", {}, at=1.0, who="me")
    assert store.verify(plan_digest, head) == ()


def test_an_older_copy_that_was_put_back_is_found_also_when_it_has_gone_on(store: Store, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    shutil.copy(tmp_path / "lumctl.db", copy)
    store.journal.remark("decision", {}, at=1.0, who="me")
    head = store.journal.head()
    older = store_at(str(copy), rack="prototype")
    assert "an older copy" in older.verify(plan_digest, head)[0].reason
    older.journal.remark("decision", {}, at=2.0, who="me")
    assert older.verify(plan_digest) == ()
    assert older.verify(plan_digest, head)[0].reason.startswith("entry 44 is not the one whose head was exported")
    older.close()


def test_a_journal_that_was_written_anew_as_a_whole_is_found(store: Store, swap: Rows) -> None:
    head = store.journal.head()
    with database.writing(store._engine) as connection:
        connection.execute(table.delete())
        connection.execute(table.insert(), [vars(row) for row in swap[:-1]])
        journal.append(connection, rack="prototype", run="", at=1.0, kind="x", step="", data={}, fence=0)
    assert store.verify(plan_digest) == ()
    assert store.verify(plan_digest, head)[0].seq == 43


@pytest.mark.parametrize("part", ["at", "count"])
def test_a_head_that_was_changed_is_found(store: Store, part: str) -> None:
    head = store.journal.head()
    values = {name: getattr(head, name) for name in ("rack", "seq", "hash", "at", "count")}
    altered_head = Head(**{**values, part: values[part] + 1})
    assert "the exported head was changed" in store.verify(plan_digest, altered_head)[0].reason


def test_a_journal_without_entries_has_a_head(tmp_path: Path) -> None:
    empty = store_at(str(tmp_path), rack="r1")
    head = empty.journal.head()
    assert (head.seq, head.count, head.hash) == (0, 0, journal.GENESIS)
    empty.journal.remark("decision", {}, at=1.0, who="me")
    assert empty.verify(plan_digest, head) == ()
    empty.close()


# -- whatever engines do ----------------------------------------------------------------------------------------------

STATES = ["done", "half-done", "rolled-back", "refused", "cut"]
ACTS = st.lists(st.tuples(st.sampled_from(STATES), st.integers(0, 7), st.booleans()), max_size=5)


@settings(max_examples=12)
@given(acts=ACTS)
def test_whatever_runs_end_as_and_take_back_follows_from_the_journal(
    opened_fresh: Callable[[], Store], acts: list[tuple[str, int, bool]]
) -> None:
    store, at = opened_fresh(), 100.0
    for state, which, undoing in acts:
        known = sorted(run.id for run in store.runs.all())
        undoes = known[which % len(known)] if undoing and known else None
        plan = {"title": "t", "undoes": undoes}
        plan["digest"] = plan_digest(plan)
        values = {"target": "rack", "title": "t", "plan_digest": plan["digest"], "inventory_digest": "i", "who": "me"}
        lease = store.leases.acquire("r1", "me", term_s=30.0, now=at)
        run = store.runs.begin(lease, {"kind": "swap", **values}, plan, now=at)
        store.runs.intend(lease, run, Record(at + 1, "intent", "1", {}))
        if state != "cut":
            undid = undoes if state == "done" else None
            store.runs.end(lease, run, Record(at + 2, "end", "", {"state": state}), state, undid=undid)
        elif which % 2:
            taken = store.runs.seize(lease, holder="guard", term_s=30.0, now=at + 3)
            assert taken is not None
            lease = taken[1]
            assert store.verify(plan_digest) == ()
            if which % 4 == 1:
                store.runs.end(lease, run, Record(at + 4, "end", "", {"state": "rolled-back"}), "rolled-back")
        store.leases.release(lease)
        at += 100.0
        still_open = store.runs.unfinished(now=at)
        if still_open and which % 3 == 0:
            lease = store.leases.acquire("r1", "me", term_s=30.0, now=at)
            assert store.runs.reopen(lease, still_open[0], Record(at, "resume", "", {})) is not None
            assert store.verify(plan_digest) == ()
            undid = store.runs.get(still_open[0]).plan["undoes"]
            store.runs.end(lease, still_open[0], Record(at + 1, "end", "", {"state": "done"}), "done", undid=undid)
            store.leases.release(lease)
        at += 100.0
    assert store.verify(plan_digest) == ()


@pytest.fixture(scope="module")
def opened_fresh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], Store]]:
    stores: list[Store] = []

    def fresh() -> Store:
        stores.append(store_at(str(tmp_path_factory.mktemp("store")), rack="r1"))
        return stores[-1]

    yield fresh
    for store in stores:
        store.close()
