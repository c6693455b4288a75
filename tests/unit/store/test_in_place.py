"""A database file that is moved away or replaced under a store: nothing that was written there is taken for kept."""

import shutil
import time

import pytest

from lumctl.store import StoreError, store_at


@pytest.fixture
def store(tmp_path):
    opened = store_at(str(tmp_path / "store"))
    lease = opened.leases.acquire("r1", "ops", term_s=30.0, now=time.time())
    yield opened
    opened.leases.release(lease)
    opened.close()


def taken(store):
    return store.leases.acquire("r2", "ops", term_s=30.0, now=time.time())


def test_a_file_that_is_gone_is_missed_until_it_is_back(store, tmp_path) -> None:
    (tmp_path / "store").rename(tmp_path / "away")
    with pytest.raises(StoreError, match=r"its file was removed from .*/store/lumctl\.db, or was replaced"):
        taken(store)
    (tmp_path / "away").rename(tmp_path / "store")
    store.leases.release(store.leases.acquire("r3", "ops", term_s=30.0, now=time.time()))


def test_a_copy_in_its_place_is_not_it(store, tmp_path) -> None:
    file = tmp_path / "store" / "lumctl.db"
    file.rename(tmp_path / "away.db")
    shutil.copy(tmp_path / "away.db", file)
    with pytest.raises(StoreError, match="or was replaced"):
        taken(store)
    (tmp_path / "away.db").replace(file)
