"""A store moved to another database: all of it, proved, or nothing."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from lumctl.errors import LumctlError, RefusedError, UsageError
from lumctl.health.acknowledgements import Acknowledgement
from lumctl.store import Record, Store, StoreError
from lumctl.store.packed_hours import Values
from lumctl.store.transfer import copy

NOW = 100.0
RUN = {"kind": "swap", "target": "rack", "title": "t", "inventory_digest": "i", "who": "me"}
PLAN = {"schema": "x", "rack": "r1", "digest": "d" * 64}


def digest(document: object) -> str:
    del document
    return PLAN["digest"]


def lived(store: Store, *, rack: str = "r1", ends: bool = True) -> str:
    """A store in which a run has placed a job and written a mesh, and an operator has said something."""
    lease = store.leases.acquire(rack, "me", term_s=30.0, now=NOW)
    plan = {**PLAN, "rack": rack}
    run = store.runs.begin(lease, {**RUN, "plan_digest": PLAN["digest"]}, plan, now=NOW)
    record = Record(NOW + 1 / 3, "outcome", "1", {"done": True, "said": "é\udcff", "none": None})
    store.runs.conclude(lease, run, record, states={"mesh": {0: "bar", 1: "cross"}}, placed={"job": ("a", "b")})
    if ends:
        store.runs.end(lease, run, Record(NOW + 2, "end", "", {"state": "done"}), "done")
        store.leases.release(lease)
    return run


def test_all_is_there_and_back_again(place: str, folder: str, opening: Callable[..., Store], tmp_path: Path) -> None:
    old = opening(folder)
    run = lived(old)
    old.health.acknowledge(Acknowledgement("a", None, "me", "known", NOW, None))
    done = copy(folder, place, "r1", digest=digest, now=NOW)
    back = str(tmp_path / "back")
    assert copy(place, back, "r1", digest=digest, now=NOW) == done
    assert done.rows["journal"] == done.head.count == 3
    for new in (opening(place), opening(back)):
        assert new.journal.head() == old.journal.head()
        assert new.runs.get(run) == old.runs.get(run)
        assert new.journal.of_run(run) == old.journal.of_run(run)
        assert new.fabric.assignment() == {"job": ("a", "b")}
        assert new.fabric.device_cells("mesh") == {0: "bar", 1: "cross"}
        assert new.health.acknowledgements(now=NOW) == old.health.acknowledgements(now=NOW) != ()
        assert new.verify(digest) == ()
        assert new.leases.acquire("r1", "me", term_s=30.0, now=NOW + 3).fence == 2


def test_readings_over_time_stay_behind_and_do_not_stand_in_the_way(
    place: str, folder: str, opening: Callable[..., Store]
) -> None:
    old, new = opening(folder), opening(place)
    lived(old)
    for store in (old, new):
        store.readings.add({int(NOW // 60): {"a": {"power": Values(1.0, 2.0, 3.0)}}})
    assert "readings" not in copy(folder, place, "r1", digest=digest, now=NOW).rows


def test_a_rack_that_is_being_changed_or_has_an_open_run_stays(
    place: str, folder: str, opening: Callable[..., Store]
) -> None:
    old = opening(folder)
    lived(old, ends=False)
    with pytest.raises(RefusedError, match="rack r1 is being changed by me; its lease ends in 30 s"):
        copy(folder, place, "r1", digest=digest, now=NOW)
    with pytest.raises(RefusedError, match="swap-0001 of rack r1 is open") as refused:
        copy(folder, place, "r1", digest=digest, now=NOW + 31)
    assert refused.value.hint == "finish it first: lumctl swap resume swap-0001 or lumctl swap abort swap-0001"
    assert opening(place).runs.all() == ()


def test_a_database_that_keeps_something_of_the_rack_stays_as_it_is(
    place: str, folder: str, opening: Callable[..., Store]
) -> None:
    lived(opening(folder))
    other, mine = opening(place, "r2"), opening(place)
    lived(other, rack="r2")
    copy(folder, place, "r1", digest=digest, now=NOW + 3)  # which another rack may share
    head = mine.journal.head()
    with pytest.raises(RefusedError, match=r"already contains .* of rack r1"):
        copy(folder, place, "r1", digest=digest, now=NOW + 3)
    assert (mine.journal.head(), other.journal.head().count) == (head, 3)


def test_a_journal_that_was_changed_is_not_copied(place: str, folder: str, opening: Callable[..., Store]) -> None:
    lived(opening(folder))
    with closing(sqlite3.connect(Path(folder) / "lumctl.db")) as database:
        database.execute("UPDATE journal SET step = '2' WHERE seq = 2")
        database.commit()
    with pytest.raises(RefusedError, match="differs from what was written: its content was changed"):
        copy(folder, place, "r1", digest=digest, now=NOW + 3)
    assert opening(place).journal.head().count == 0


def test_what_a_database_does_not_keep_as_it_was_is_not_copied_at_all(
    emptied: str, folder: str, opening: Callable[..., Store]
) -> None:
    old = opening(folder)
    lived(old)
    old.health.acknowledge(Acknowledgement("a", None, "me", "no\0text", NOW, None))
    with pytest.raises(StoreError):
        copy(folder, emptied, "r1", digest=digest, now=NOW + 3)
    assert opening(emptied).journal.head().count == 0


def test_while_it_is_copied_nobody_writes(
    place: str, folder: str, opening: Callable[..., Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    old = opening(folder)
    lived(old)
    monkeypatch.setattr("lumctl.store.sqlite.BUSY_TIMEOUT_S", 0.05)
    tried: list[str] = []

    def now_and_then(document: object) -> str:
        if not tried:
            with pytest.raises(StoreError) as held:
                opening(folder).journal.remark("x", {}, at=NOW, who="me")
            tried.append(held.value.message)
        return digest(document)

    copy(folder, place, "r1", digest=now_and_then, now=NOW + 3)
    assert tried == ["the store is not writable: its lock is held by this process itself, in another thread"]


def test_there_must_be_something_to_copy_and_somewhere_else(
    folder: str, tmp_path: Path, opening: Callable[..., Store]
) -> None:
    with pytest.raises(UsageError, match="contains nothing of rack r1: nothing to copy"):
        copy(folder, str(tmp_path / "new"), "r1", digest=digest, now=NOW)
    assert not (tmp_path / "new").exists()
    lived(opening(folder))
    with pytest.raises(UsageError, match=r"is already at .*"):
        copy(folder, folder, "r1", digest=digest, now=NOW + 3)
    with pytest.raises(LumctlError, match="cannot be opened"):
        copy(folder, "/dev/null/new", "r1", digest=digest, now=NOW + 3)
