"""A store of an older version is brought up to date when it is opened, and loses nothing."""

import sqlite3
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from multiprocessing import get_context
from pathlib import Path

import pytest

from lumctl.devices.types import PucState
from lumctl.store import StoreError, migrations, store_at
from lumctl.store.schema import SCHEMA_VERSION, metadata

VERSION_1 = Path(__file__).with_name("version-1.sql").read_text(encoding="utf-8")


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """The folder of a store that version 1 wrote."""
    with closing(sqlite3.connect(tmp_path / "lumctl.db")) as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.executescript(VERSION_1)
    return tmp_path


def rows(folder: Path) -> dict[str, list[tuple[object, ...]]]:
    """Everything in the tables of a database but the schema's own version."""
    with closing(sqlite3.connect(folder / "lumctl.db")) as database:
        names = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: database.execute(f"SELECT * FROM {name}").fetchall() for name in names if name != "meta"}  # noqa: S608


def version(folder: Path) -> str:
    with closing(sqlite3.connect(folder / "lumctl.db")) as database:
        return str(database.execute("SELECT value FROM meta WHERE key = 'schema_version'").fetchone()[0])


def test_every_row_of_version_1_is_kept_and_can_be_read(old: Path) -> None:
    before = rows(old)
    store = store_at(str(old))
    assert store.assignment() == {"finetune": ("s0-gpu0", "s3-gpu0", "s2-gpu0")}
    assert store.device_states("mesh") == {0: PucState.BAR, 1: PucState.CROSS, 2: PucState.BAR}
    assert store.unfinished(now=231.0) == ("swap-0002",)
    assert store.run("swap-0001").state == "done"
    assert store.plan("plan-0badcafe") is not None
    assert [entry.kind for entry in store.entries("swap-0001")] == ["begin", "intent", "outcome", "end"]
    assert store.first_break() is None
    assert store.health_memory() is None
    assert (store.acknowledgements(now=0.0), store.windows(now=0.0), store.transitions()) == ((), (), ())
    store.close()
    after = rows(old)
    assert {name: after[name] for name in before} == before
    assert version(old) == str(SCHEMA_VERSION)


def test_a_migrated_store_has_the_schema_of_a_new_one(old: Path, tmp_path: Path) -> None:
    store_at(str(old)).close()
    new = tmp_path / "new"
    store_at(str(new)).close()

    def schema(folder: Path) -> set[str]:
        with closing(sqlite3.connect(folder / "lumctl.db")) as database:
            made = database.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
        return {" ".join(sql.split()) for (sql,) in made}

    assert schema(old) == schema(new)
    assert set(rows(new)) == set(metadata.tables) - {"meta"}


def test_a_migration_that_fails_half_way_leaves_the_old_store(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = rows(old)

    def cut(connection):
        migrations._to_2(connection)
        connection.exec_driver_sql("INSERT INTO nowhere VALUES (1)")

    monkeypatch.setattr(migrations, "STEPS", {1: cut})
    with pytest.raises(Exception, match="nowhere"):
        store_at(str(old))
    assert (rows(old), version(old)) == (before, "1")


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


def test_an_old_store_that_cannot_be_written_is_read_as_it_is(old: Path, full_disk) -> None:
    with full_disk():
        store = store_at(str(old))
        assert store.assignment()["finetune"][1] == "s3-gpu0"
        assert (store.health_memory(), store.acknowledgements(now=0.0)) == (None, ())
        assert (store.windows(now=0.0), store.transitions(), store.last_states()) == ((), (), {})
        with pytest.raises(StoreError, match="cannot be written"):
            store.remember_health({}, now=1.0)
    assert version(old) == "1"
