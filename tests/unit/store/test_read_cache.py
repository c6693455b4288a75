"""What was read of a store is asked for again after every commit, and only then."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, text

from lumctl.store import Store, store_at
from lumctl.store.rack_rows import CommitCounter, ReadCache


def asked(store: Store) -> tuple[ReadCache, Callable[..., Any], list[str]]:
    """A cache of a store, a question that counts the entries of its journal, and how often that was asked."""
    questions: list[str] = []

    def ask(connection: Connection) -> Any:
        questions.append("asked")
        return connection.execute(text("SELECT count(*) FROM journal")).scalar()

    return ReadCache(store._engine, CommitCounter(store._engine)), ask, questions


def remark(store: Store) -> None:
    store.journal.remark("said", {}, at=100.0, who="me")


def test_an_answer_counts_until_anybody_commits(tmp_path: Path) -> None:
    store, other = store_at(str(tmp_path)), store_at(str(tmp_path))
    cache, ask, questions = asked(store)
    assert [cache.get("entries", ask) for _ in range(3)] == [0, 0, 0]
    assert len(questions) == 1
    for entries, writer in enumerate((store, other, other, store), start=1):
        remark(writer)
        assert [cache.get("entries", ask) for _ in range(3)] == [entries] * 3
        assert len(questions) == 1 + entries


def test_an_answer_counts_only_for_what_it_was_asked_of(tmp_path: Path) -> None:
    cache, ask, questions = asked(store_at(str(tmp_path)))
    for of in (1, 1, 2, 2, 1):
        cache.get("entries", ask, of=of)
    assert len(questions) == 3


def test_what_is_committed_while_it_is_read_is_asked_for_again(tmp_path: Path) -> None:
    store = store_at(str(tmp_path))
    cache, ask, questions = asked(store)

    def ask_slowly(connection: Connection) -> Any:
        found = ask(connection)
        remark(store)
        return found

    assert cache.get("entries", ask_slowly) == 0
    assert cache.get("entries", ask) == 1
    assert len(questions) == 2


def test_a_file_that_was_moved_away_gives_no_answer_from_memory(tmp_path: Path) -> None:
    store = store_at(str(tmp_path / "store"))
    cache, ask, questions = asked(store)
    assert cache.get("entries", ask) == 0
    (tmp_path / "store").rename(tmp_path / "away")
    other = store_at(str(tmp_path / "away"))
    remark(other)
    other.close()
    (tmp_path / "away").rename(tmp_path / "store")
    assert cache.get("entries", ask) == 1
    assert len(questions) == 2


def test_a_server_is_asked_every_time(opened: Callable[..., Store], place: str) -> None:
    cache, ask, questions = asked(opened())
    for _ in range(3):
        cache.get("entries", ask)
    assert len(questions) == (3 if place.startswith("postgresql") else 1)


def test_answers_are_the_callers_own(tmp_path: Path) -> None:
    store = store_at(str(tmp_path), rack="r1")
    lease = store.leases.acquire("r1", "me", term_s=30, now=100.0)
    values = {"kind": "swap", "target": "sim", "title": "t", "plan_digest": "d", "inventory_digest": "i", "who": "me"}
    run = store.runs.begin(lease, values, {"digest": "d"}, now=100.0)
    store.runs.advance(lease, run, [], states={"m1": {1: "bar"}}, placed={"job": ("a", "b")})
    store.fabric.device_cells("m1").clear()
    store.fabric.assignment().clear()
    assert store.fabric.device_cells("m1") == {1: "bar"}
    assert store.fabric.assignment() == {"job": ("a", "b")}
