"""A store's mark: another one after every commit, whoever made it, and none where only reading tells."""

import os
from collections.abc import Callable
from pathlib import Path

from lumctl.store import Store, store_at


def remark(store: Store) -> None:
    store.journal.remark("said", {}, at=100.0, who="me")


def test_a_mark_changes_with_every_commit_and_with_nothing_else(tmp_path: Path) -> None:
    store, other = store_at(str(tmp_path)), store_at(str(tmp_path))
    mark = store.mark()
    assert mark is not None
    store.runs.all()
    store.journal.head()
    other.journal.remarks()
    assert store.mark() == mark
    seen = {mark}
    for writer in (store, other, store, other):
        remark(writer)
        seen.add(store.mark())
        assert store.mark() in seen
    assert len(seen) == 5
    if (child := os.fork()) == 0:  # another process
        try:
            remark(store_at(str(tmp_path)))
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert store.mark() not in seen
    store.close()
    other.close()


def test_nothing_is_said_of_a_file_that_was_moved_away_and_its_return_is_a_change(tmp_path: Path) -> None:
    store = store_at(str(tmp_path / "store"))
    assert store.mark() is not None
    (tmp_path / "store").rename(tmp_path / "away")
    assert store.mark() is None
    (tmp_path / "away").rename(tmp_path / "store")
    assert store.mark() is not None
    store.close()


def test_other_databases_do_not_say(opened: Callable[..., Store], place: str) -> None:
    assert (opened().mark() is None) is place.startswith("postgresql")
