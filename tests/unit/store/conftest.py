"""What tests of the store share."""

import resource
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import psycopg
import pytest
from postgres import Postgres

from lumctl.store import Store, clock, store_at


@pytest.fixture(scope="session")
def one_database(postgres: Postgres) -> str:
    """A database that tests use one after the other: to make one takes as long as a test."""
    return postgres.fresh()


@pytest.fixture
def emptied(one_database: str) -> str:
    """The URL of that database, with nothing in it."""
    with psycopg.connect(one_database.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute("SET client_min_messages = warning")
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
        connection.execute("GRANT USAGE ON SCHEMA public TO PUBLIC")
    return one_database


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where an empty store may be, of either kind; leases end by the times that a test names."""
    monkeypatch.setattr(clock, "lease_now", lambda _connection, now: now)
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'lumctl.db'}"
    return str(request.getfixturevalue("emptied"))


@pytest.fixture
def opened(place: str, tmp_path: Path) -> Iterator[Callable[..., Store]]:
    """Opens the store at that place, for one rack or for none, as often as asked."""
    stores: list[Store] = []

    def open_(rack: str = "") -> Store:
        stores.append(store_at(place, files=tmp_path, rack=rack))
        return stores[-1]

    yield open_
    for store in stores:
        store.close()


@contextmanager
def _full_disk() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture
def full_disk() -> Callable[[], AbstractContextManager[None]]:
    """While inside, this process can write to no file, whoever it runs as."""
    return _full_disk


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """The place of a store that is copied or retired."""
    return str(tmp_path / "old")


@pytest.fixture
def opening(tmp_path: Path) -> Iterator[Callable[..., Store]]:
    """Open stores at places, and close them after the test."""
    stores: list[Store] = []

    def open_(place: str, rack: str = "r1") -> Store:
        stores.append(store_at(place, files=tmp_path, rack=rack))
        return stores[-1]

    yield open_
    for store in stores:
        store.close()
