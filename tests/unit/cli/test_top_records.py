"""What the dashboard reads of a store: what was written since, at once; nothing while nothing is written."""

from dataclasses import replace
from typing import Any

import pytest

from lumctl.cli.top.records import RENEWED_S, Recorder
from lumctl.inventory.load import example, load_inventory
from lumctl.store import StoreError, store_at


@pytest.fixture
def inventory() -> Any:
    return load_inventory(example("prototype"))


def test_a_store_is_read_when_something_was_written_and_else_now_and_then(inventory, tmp_path, monkeypatch) -> None:
    (rack,) = inventory.racks
    kept, other = (store_at(str(tmp_path), rack=rack) for _ in range(2))
    reads: list[float] = []
    head = kept.journal.head
    monkeypatch.setattr(kept.journal, "head", lambda: reads.append(clock[0]) or head())
    asked: list[float] = []
    clock = [100.0]
    with Recorder(
        inventory,
        "sim",
        opened=lambda _rack: kept,
        now=lambda: clock[0],
        watched=lambda: bool(asked.append(clock[0])),
    ) as records:
        assert records().log == ()
        assert (records().log, reads, asked) == ((), [100.0], [100.0])
        other.journal.remark("said", {}, at=100.5, who="me")
        clock[0] = 101.0
        assert len(records().log) == 1
        records()
        assert reads == [100.0, 101.0]
        clock[0] += RENEWED_S
        records()
        assert reads == asked == [100.0, 101.0, 101.0 + RENEWED_S]
    other.close()


def test_what_could_not_be_read_is_read_again_though_nothing_was_written(inventory, tmp_path, monkeypatch) -> None:
    (rack,) = inventory.racks
    store = store_at(str(tmp_path), rack=rack)

    def fails(*_: object) -> None:
        raise StoreError("the disk is tired")

    with Recorder(inventory, "sim", opened=lambda _rack: store) as records:
        records()
        store.journal.remark("said", {}, at=100.0, who="me")
        with monkeypatch.context() as patched:
            patched.setattr(store.journal, "latest", fails)
            assert records().trouble == "the disk is tired"
        shown = records()
        assert (shown.trouble, len(shown.log)) == (None, 1)


def test_one_question_to_the_daemon_serves_all_racks(inventory, tmp_path) -> None:
    (name,) = inventory.racks
    racks = {name: inventory.racks[name], "other": replace(inventory.racks[name], name="other")}
    asked: list[int] = []
    stores = {each: store_at(str(tmp_path / each), rack=each) for each in racks}
    with Recorder(
        replace(inventory, racks=racks), "sim", opened=stores.__getitem__, watched=lambda: bool(asked.append(1))
    ) as records:
        records()
    assert asked == [1]
