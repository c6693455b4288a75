"""A disk that is full or read-only: what is there can be read, what is to be written is refused."""

import errno
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from lumctl.errors import RefusedError, UsageError
from lumctl.store import Record, StoreError, store_at

RUN = {"kind": "swap", "target": "sim", "title": "t", "plan_digest": "d", "inventory_digest": "i", "who": "me"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A store in which a job was placed."""
    place = tmp_path / "a store?#%"
    store = store_at(str(place))
    lease = store.leases.acquire("r1", "me", term_s=30.0, now=100.0)
    run = store.runs.begin(lease, RUN, {"digest": "d"}, now=100.0)
    store.runs.conclude(lease, run, Record(101.0, "outcome", "1", {}), placed={"job": ("x", "y")})
    store.close()
    return place


@pytest.fixture
def closed_to_writers(monkeypatch):
    """As on a file system that was mounted read-only: nothing is opened for writing."""

    def arrange(code):
        real = os.open

        def refuse(path, flags, *rest, **more):
            if flags & os.O_RDWR:
                raise OSError(code, os.strerror(code))
            return real(path, flags, *rest, **more)

        mounted = SimpleNamespace(f_flag=os.ST_RDONLY if code == errno.EROFS else 0)
        monkeypatch.setattr(os, "open", refuse)
        monkeypatch.setattr(os, "access", lambda _path, mode: not mode & os.W_OK)
        monkeypatch.setattr(os, "statvfs", lambda _path: mounted)

    return arrange


def test_a_store_on_a_full_disk_is_read(folder: Path, full_disk) -> None:
    with full_disk():
        store = store_at(str(folder))
        assert store.fabric.assignment() == {"job": ("x", "y")}
        assert store.runs.unfinished(now=200.0) == ("swap-0001",)


def test_and_every_write_to_it_is_a_domain_error(folder: Path, full_disk) -> None:
    with full_disk():
        store = store_at(str(folder))
        for write in (
            lambda: store.leases.acquire("r1", "you", term_s=30.0, now=200.0),
            lambda: store.health.remember({}, now=200.0),
            lambda: store.health.unacknowledge("x"),
        ):
            with pytest.raises(StoreError, match="cannot be written"):
                write()
    assert store_at(str(folder)).fabric.assignment() == {"job": ("x", "y")}


def test_a_disk_that_fills_up_while_a_store_is_open_is_a_domain_error(folder: Path, full_disk) -> None:
    store = store_at(str(folder))
    assert store.fabric.assignment() == {"job": ("x", "y")}
    with full_disk():
        with pytest.raises(StoreError, match="is not writable"):
            store.health.remember({}, now=200.0)
        assert store.fabric.assignment() == {"job": ("x", "y")}
    assert store.health.remember({}, now=201.0)


@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES])
def test_a_store_that_may_only_be_read_is_read(folder: Path, closed_to_writers, code: int) -> None:
    closed_to_writers(code)
    store = store_at(str(folder))
    assert store.fabric.assignment() == {"job": ("x", "y")}
    with pytest.raises(StoreError, match=os.strerror(code)):
        store.leases.acquire("r1", "you", term_s=30.0, now=200.0)


def test_what_another_process_has_just_written_is_seen(folder: Path, closed_to_writers) -> None:
    writer = store_at(str(folder))
    writer.health.remember({"newest": 1}, now=200.0)  # still in the log beside the file
    closed_to_writers(errno.EROFS)
    assert store_at(str(folder)).health.memory() == {"newest": 1}
    writer.close()


def test_where_there_is_no_store_and_no_room_for_one_it_is_empty(tmp_path: Path, full_disk) -> None:
    with full_disk():
        store = store_at(str(tmp_path / "new"))
        assert (store.fabric.assignment(), store.runs.all(), store.health.memory()) == ({}, (), None)
        with pytest.raises(StoreError, match="cannot be written"):
            store.leases.acquire("r1", "me", term_s=30.0, now=100.0)
    store_at(str(tmp_path / "new")).leases.acquire("r1", "me", term_s=30.0, now=100.0)


def test_where_a_store_may_not_be_made_the_operator_has_to_name_a_place(tmp_path: Path, closed_to_writers) -> None:
    closed_to_writers(errno.EACCES)
    with pytest.raises(UsageError, match="cannot be opened: Permission denied") as error:
        store_at(str(tmp_path / "new"))
    assert "LUMCTL_STATE" in str(error.value.hint)


def test_a_newer_store_is_refused_even_if_it_cannot_be_written(folder: Path, closed_to_writers) -> None:
    with closing(sqlite3.connect(folder / "lumctl.db")) as database:
        database.execute("UPDATE meta SET value = '99' WHERE key = 'schema_version'")
        database.commit()
    closed_to_writers(errno.EROFS)
    with pytest.raises(RefusedError, match="schema 99"):
        store_at(str(folder))


def test_a_file_that_is_no_database_is_an_error(tmp_path: Path, full_disk) -> None:
    (tmp_path / "lumctl.db").write_bytes(b"not a database " * 100)
    with pytest.raises(UsageError, match="cannot be opened"):
        store_at(str(tmp_path))
    with full_disk(), pytest.raises(UsageError, match="cannot be opened"):
        store_at(str(tmp_path))


def test_a_database_url_is_read_as_well(folder: Path, full_disk) -> None:
    with full_disk():
        store = store_at(f"sqlite:///{folder.parent / 'plain' / 'lumctl.db'}", files=folder)
        assert store.runs.all() == ()


def spoil(file: Path, first: int, last: int) -> None:
    with file.open("r+b") as damaged:
        damaged.seek(first)
        damaged.write(b"\xa5" * (last - first))


def test_a_damaged_file_is_named_and_says_what_to_do(folder):
    file = folder / "lumctl.db"
    with closing(sqlite3.connect(file)) as connection:
        (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'assignment'").fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    spoil(file, (page - 1) * size, page * size)
    store = store_at(str(folder))
    with pytest.raises(StoreError, match=r"cannot be read: .*malformed") as caught:
        store.fabric.assignment()
    assert str(folder) in caught.value.message
    assert "move it away" in str(caught.value.hint)
    store.close()


@pytest.mark.parametrize("first", [0, 4096])
def test_a_file_that_is_no_store_any_more_is_not_a_matter_of_leave(folder, first):
    file = folder / "lumctl.db"
    spoil(file, first, file.stat().st_size)
    with pytest.raises(UsageError, match="cannot be opened") as caught:
        store_at(str(folder))
    assert "move it away" in str(caught.value.hint)
