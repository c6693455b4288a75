"""A file without content, a log without its file, and the store of another rack are damage, and no new store."""

import multiprocessing
from dataclasses import replace
from pathlib import Path

import pytest

from lumctl.errors import LumctlError
from lumctl.inventory.load import example, load_inventory
from lumctl.store import StoreError, open_store, store_at

ABOUT = {"kind": "fabric", "target": "rack", "title": "t", "plan_digest": "d", "inventory_digest": "i", "who": "me"}


def used(folder: Path, rack: str) -> None:
    """A store that keeps a run of this rack."""
    store = store_at(str(folder), rack=rack)
    lease = store.leases.acquire(rack, "me", term_s=30.0, now=100.0)
    store.runs.begin(lease, ABOUT, {"digest": "d"}, now=100.0)
    store.close()


@pytest.mark.parametrize("url", [False, True])
def test_a_file_without_content_is_no_new_store(tmp_path: Path, url: bool) -> None:
    folder = tmp_path / "store"
    used(folder, "r1")
    file = folder / "lumctl.db"
    file.write_bytes(b"")
    with pytest.raises(StoreError, match="is empty, so it was damaged") as error:
        store_at(f"sqlite:///{file}" if url else str(folder), files=folder)
    assert error.value.exit_code == 5
    assert f"mv {folder} {folder}.damaged" in str(error.value.hint)
    folder.rename(f"{folder}.damaged")  # as the hint says
    store_at(str(folder)).close()
    assert file.stat().st_size > 0


def test_a_log_whose_file_is_gone_is_not_read_into_a_new_store(tmp_path: Path) -> None:
    store = store_at(str(tmp_path), rack="r1")
    store.health.remember({"newest": 1}, now=200.0)
    (tmp_path / "lumctl.db").unlink()
    with pytest.raises(StoreError, match=r"is missing, but lumctl\.db-wal with its last entries exists"):
        store_at(str(tmp_path))
    store.close()


def test_a_store_that_is_new_is_whole_as_soon_as_it_has_its_name(tmp_path: Path) -> None:
    """Many processes make it at once: one of them does, and none meets a file without content."""
    with multiprocessing.get_context("fork").Pool(8) as pool:
        assert pool.map(opened, [str(tmp_path / "store")] * 32) == [0] * 32
    assert [file.name for file in (tmp_path / "store").glob(".lumctl*")] == []


def opened(place: str) -> int:
    store = store_at(place, rack="r1")
    count = len(store.runs.all())
    store.close()
    return count


def test_the_store_of_another_rack_is_refused(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("LUMCTL_STATE", str(tmp_path))
    inventory = load_inventory(example("prototype"))
    used(tmp_path / "prototype", "rack64")
    with pytest.raises(LumctlError, match="belongs to rack rack64 and contains nothing of rack prototype") as error:
        open_store(inventory, "prototype", "rack")
    assert error.value.exit_code == 5
    used(tmp_path / "prototype", "prototype")
    open_store(inventory, "prototype", "rack").close()


def test_racks_that_share_a_store_by_their_inventory_may(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.delenv("LUMCTL_STATE", raising=False)
    found = load_inventory(example("prototype"))
    rack = replace(found.racks["prototype"], store=str(tmp_path / "both"))
    inventory = replace(found, racks={"prototype": rack, "second": replace(rack, name="second")})
    used(tmp_path / "both", "prototype")
    open_store(inventory, "second", "rack").close()
    used(tmp_path / "both", "second")
    alone = replace(found, racks={"third": replace(rack, name="third")})
    with pytest.raises(StoreError, match="belongs to rack prototype, second"):
        open_store(alone, "third", "rack")
