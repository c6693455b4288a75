"""A store of an older version is brought up to date when it is opened, and loses nothing."""

import sqlite3
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from multiprocessing import get_context
from pathlib import Path

import pytest

from lumctl.devices.types import PucState
from lumctl.errors import RefusedError
from lumctl.store import StoreError, migrations, store_at
from lumctl.store.schema import SCHEMA_VERSION, metadata

GOLDEN = Path(__file__).parents[2] / "system" / "golden"
GAINED = {"assignment", "devices", "device_states", "journal", "plans"}
"""Tables whose rows say since version 3 whose they are."""


def laid(folder: Path, left: str) -> Path:
    folder.mkdir(exist_ok=True)
    with closing(sqlite3.connect(folder / "lumctl.db")) as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.executescript((GOLDEN / left).read_text(encoding="utf-8"))
    return folder


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """The folder of a store that version 1 wrote."""
    return laid(tmp_path, "cut-1.sql")


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """The folder of a store that version 2 wrote for two racks."""
    return laid(tmp_path, "racks-2.sql")


def rows(folder: Path) -> dict[str, list[dict[str, object]]]:
    """Everything in the tables of a database but the schema's own version."""
    with closing(sqlite3.connect(folder / "lumctl.db")) as database:
        database.row_factory = sqlite3.Row
        names = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {
            name: [dict(row) for row in database.execute(f"SELECT * FROM {name}")]  # noqa: S608
            for name in names
            if name != "meta"
        }


def version(folder: Path) -> str:
    with closing(sqlite3.connect(folder / "lumctl.db")) as database:
        return str(database.execute("SELECT value FROM meta WHERE key = 'schema_version'").fetchone()[0])


@pytest.mark.parametrize("left", ["cut-1.sql", "swap-2.sql"])
def test_every_row_of_an_older_version_is_kept(tmp_path: Path, left: str) -> None:
    before = rows(laid(tmp_path, left))
    store_at(str(tmp_path)).close()
    after = rows(tmp_path)
    for name in GAINED:
        assert {row.pop("rack") for row in after[name]} == {"prototype"}
    assert {row.pop("process") for row in after["leases"]} == {""}
    added = after["journal"].pop()
    assert (added["kind"], added["seq"]) == ("migrated", len(before["journal"]) + 1)
    assert {name: after[name] for name in before} == before
    assert version(tmp_path) == str(SCHEMA_VERSION)


def test_and_can_be_read(old: Path) -> None:
    store = store_at(str(old), rack="prototype")
    assert store.assignment() == {"finetune": ("s0-gpu0", "s3-gpu0", "s2-gpu0")}
    assert store.device_states("mesh") == {0: PucState.BAR, 1: PucState.CROSS, 2: PucState.BAR}
    assert store.unfinished(now=231.0) == ("swap-0002",)
    assert store.run("swap-0001").state == "done"
    assert store.plan("plan-0badcafe") is not None
    assert [entry.kind for entry in store.entries("swap-0001")] == ["begin", "intent", "outcome", "end"]
    assert store.first_break() is None
    assert [entry.data["entries"] for entry in store.remarks("migrated")] == [6]
    assert store.health_memory() is None
    assert (store.acknowledgements(now=0.0), store.windows(now=0.0), store.transitions()) == ((), (), ())


@pytest.mark.parametrize(("mine", "yours", "unfinished"), [("r1", "r2", ()), ("r2", "r1", ("swap-0002",))])
def test_racks_that_shared_a_database_have_each_what_is_theirs(
    shared: Path, mine: str, yours: str, unfinished: tuple[str, ...]
) -> None:
    store = store_at(str(shared), rack=mine)
    assert store.assignment() == {f"{mine}-job": ("a", "b")}
    assert [run.rack for run in store.runs()] == [mine]
    assert store.unfinished(now=1000.0) == unfinished
    assert store.last_written_by(f"{mine}-mesh") == store.runs()[0].id
    assert store.last_written_by(f"{yours}-mesh") is None
    assert store.device_cells("r1-mesh") == ({0: "=", 1: "x"} if mine == "r1" else {})
    assert store.plan(f"plan-0000000{mine[1]}")["rack"] == mine
    assert store.plan(f"plan-0000000{yours[1]}") is None
    assert [entry.kind for entry in store.entries(store.runs()[0].id)][:3] == ["begin", "intent", "outcome"]
    assert store.first_break() is None
    assert store.health_memory() == {"seen": mine}
    assert [said.component for said in store.acknowledgements(now=0.0)] == [f"{mine}-h1"]
    assert [window.id for window in store.windows(now=0.0)] == [f"maintenance-{mine}"]
    assert [change.component for change in store.transitions()] == [f"{mine}-g1"]
    assert store.acquire(mine, "me", term_s=30.0, now=1000.0).fence == 2


@pytest.mark.parametrize("left", ["cut-1.sql", "racks-2.sql"])
def test_a_migrated_store_has_the_schema_of_a_new_one(tmp_path: Path, left: str) -> None:
    old, new = laid(tmp_path / "old", left), tmp_path / "new"
    store_at(str(old)).close()
    store_at(str(new)).close()

    def schema(folder: Path) -> set[str]:
        with closing(sqlite3.connect(folder / "lumctl.db")) as database:
            made = database.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
        return {" ".join(sql.split()) for (sql,) in made}

    assert schema(old) == schema(new)
    assert set(rows(new)) == set(metadata.tables) - {"meta"}


@pytest.mark.parametrize("step", [1, 2, 3])
def test_a_migration_that_fails_half_way_leaves_the_old_store(
    old: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    before = rows(old)
    whole = migrations.STEPS[step]

    def cut(connection):
        whole(connection)
        connection.exec_driver_sql("INSERT INTO nowhere VALUES (1)")

    monkeypatch.setattr(migrations, "STEPS", {**migrations.STEPS, step: cut})
    with pytest.raises(Exception, match="nowhere"):
        store_at(str(old))
    assert (rows(old), version(old)) == (before, "1")


def test_a_store_on_which_an_older_engine_is_at_work_waits_for_it(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = rows(old)
    monkeypatch.setattr(migrations, "time", lambda: 229.0)
    with pytest.raises(RefusedError, match="rack prototype is being changed by an older lumctl") as caught:
        store_at(str(old))
    assert "in 1 s" in str(caught.value.hint)
    assert (rows(old), version(old)) == (before, "1")
    monkeypatch.setattr(migrations, "time", lambda: 231.0)
    store_at(str(old)).close()
    assert version(old) == str(SCHEMA_VERSION)


def test_a_lease_given_by_a_clock_that_was_set_back_since_does_not_hold_it_up(
    old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrations, "time", lambda: -1000.0)
    store_at(str(old)).close()
    assert version(old) == str(SCHEMA_VERSION)


def _open(folder: str) -> str:
    store = store_at(folder)
    store.remember_health({"seen": {}}, now=1.0)
    store.close()
    return "well"


def test_several_processes_may_open_an_old_store_at_once(old: Path) -> None:
    with ProcessPoolExecutor(4, mp_context=get_context("spawn")) as pool:
        assert list(pool.map(_open, [str(old)] * 8)) == ["well"] * 8
    assert version(old) == str(SCHEMA_VERSION)
    assert store_at(str(old)).first_break() is None


def test_a_process_that_finds_the_work_done_does_nothing(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The version that was read before the lock may be out of date once the lock is held."""
    store_at(str(old)).close()
    store = store_at(str(old))
    monkeypatch.setattr(migrations, "STEPS", {})
    with store._engine.begin() as connection:
        migrations.bring_up_to_date(connection)
    assert version(old) == str(SCHEMA_VERSION)


def test_an_old_store_that_cannot_be_written_is_read_all_the_same(old: Path, full_disk) -> None:
    with full_disk():
        store = store_at(str(old), rack="prototype")
        assert store.assignment()["finetune"][1] == "s3-gpu0"
        assert store.unfinished(now=231.0) == ("swap-0002",)
        assert store.first_break() is None
        assert (store.health_memory(), store.acknowledgements(now=0.0)) == (None, ())
        assert (store.windows(now=0.0), store.transitions(), store.last_states()) == ((), (), {})
        assert store.readings("s0-gpu0", since=0.0, until=600.0) == {}
        with pytest.raises(StoreError, match="cannot be written"):
            store.remember_health({}, now=1.0)
    assert version(old) == "1"
