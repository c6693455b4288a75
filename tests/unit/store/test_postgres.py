"""A store in PostgreSQL: several processes at once, a server that goes or stands still, and what it must be like."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from threading import Event

import psycopg
import pytest
from postgres import Postgres

from lumctl.errors import ExitCode, RefusedError, UsageError
from lumctl.health.states import State
from lumctl.health.transitions import Transition
from lumctl.store import (
    LeaseHeldError,
    Record,
    Store,
    StoreError,
    StoreUnreachableError,
    database,
    health_rows,
    postgres,
    store_at,
)
from lumctl.store.postgres import postgres_at
from lumctl.store.schema import SCHEMA_VERSION

RUN = {"kind": "swap", "target": "rack", "title": "t", "plan_digest": "d", "inventory_digest": "i", "who": "me"}


@pytest.fixture
def url(emptied: str) -> str:
    return emptied


@pytest.fixture
def opened(url: str, tmp_path: Path) -> Iterator[Callable[..., Store]]:
    stores: list[Store] = []

    def open_(rack: str = "r1") -> Store:
        stores.append(store_at(url, files=tmp_path, rack=rack))
        return stores[-1]

    yield open_
    for store in stores:
        store.close()


@pytest.fixture
def own(require_program) -> Iterator[Postgres]:
    """A server that a test may stop."""
    server = Postgres(require_program)
    yield server
    server.close()


def ask(url: str, statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


# -- several processes ------------------------------------------------------------------------------------------------


def _write(url: str, rack: str, number: int) -> tuple[list[str], int]:
    """What an engine does, and what `watch` does beside it: gives its runs' ids, and how often it was refused."""
    store, runs, refused = store_at(url, files=Path(), rack=rack), [], 0
    while len(runs) < 6:
        store.journal.remark("decision", {"number": number}, at=1.0, who="watch")
        try:
            lease = store.leases.acquire(rack, f"engine {number}", term_s=30.0, now=0.0)
        except LeaseHeldError:
            refused += 1
            continue
        run = store.runs.begin(lease, RUN, {"digest": "d"}, now=1.0)
        store.runs.intend(lease, run, Record(2.0, "intent", "1", {}), unsure="mesh")
        store.runs.conclude(
            lease, run, Record(3.0, "outcome", "1", {}), states={"mesh": {0: "="}}, placed={"job": ("a",)}
        )
        store.runs.end(lease, run, Record(4.0, "end", "", {"state": "done"}), "done")
        store.leases.release(lease)
        runs.append(run)
    store.close()
    return runs, refused


def test_engines_on_several_machines_change_a_rack_one_after_the_other(url: str, opened) -> None:
    work = [(url, rack, number) for number in range(2) for rack in ("r1", "r2")]
    with ProcessPoolExecutor(len(work), mp_context=get_context("spawn")) as pool:
        done = list(pool.map(_write, *zip(*work, strict=True)))
    for rack in ("r1", "r2"):
        store = opened(rack)
        assert store.first_break() is None
        ids = [run for (_, which, _), (runs, _) in zip(work, done, strict=True) if which == rack for run in runs]
        assert sorted(ids) == sorted(run.id for run in store.runs.all()) == [f"swap-{n:04d}" for n in range(1, 13)]
        assert len({run.fence for run in store.runs.all()}) == 12
        # Between the first entry of a run and its last one there is none of another run.
        everything = [entry for run in store.runs.all() for entry in store.journal.of_run(run.id)]
        in_order = [entry.run for entry in sorted(everything, key=lambda entry: entry.seq)]
        assert in_order == [run for run in dict.fromkeys(in_order) for _ in range(4)]
        assert len(store.journal.remarks("decision")) == 12 + sum(
            refused for (_, which, _), (_, refused) in zip(work, done, strict=True) if which == rack
        )


def _open(url: str) -> str:
    store = store_at(url, files=Path(), rack="r1")
    store.health.remember({}, now=1.0)
    store.close()
    return "well"


def test_several_processes_may_make_it_at_once(url: str) -> None:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        assert list(pool.map(_open, [url] * 2)) == ["well"] * 2
    assert ask(url, "SELECT value FROM meta WHERE key = 'schema_version'") == [(str(SCHEMA_VERSION),)]


def test_a_store_of_another_schema_is_refused(url: str, opened) -> None:
    opened()
    ask(url, "UPDATE meta SET value = '6' WHERE key = 'schema_version'")
    with pytest.raises(RefusedError, match="has schema 6") as refused:
        opened()
    assert "lumctl store adopt" in refused.value.hint


def test_racks_that_write_their_histories_at_once_keep_their_own_states(opened) -> None:
    mine, yours = opened("r1"), opened("r2")

    def broke(state: State) -> Transition:
        return Transition(1.0, "g1", "accelerator", None, state, ("gpu.xid",), "fell off the bus")

    with database.writing(mine._engine) as writer:
        health_rows.add_transitions(writer, "r1", [broke(State.FAILED)], keep=9, keep_s=9.0)
        yours.health.add_transitions([broke(State.DEGRADED)])
    assert mine.health.last_states() == {("g1", "accelerator"): State.FAILED}
    assert yours.health.last_states() == {("g1", "accelerator"): State.DEGRADED}


def test_reading_waits_for_no_writer_and_sees_one_moment(opened) -> None:
    store = opened()
    lease = store.leases.acquire("r1", "me", term_s=30.0, now=0.0)
    run = store.runs.begin(lease, RUN, {"digest": "d"}, now=1.0)
    with database.writing(store._engine) as writer:
        writer.exec_driver_sql("LOCK TABLE journal, runs, leases, assignment IN ROW EXCLUSIVE MODE")
        other = opened()
        assert [r.id for r in other.runs.all()] == [run]
        assert len(other.journal.of_run(run)) == 1
    with store._engine.connect() as reader:
        assert reader.exec_driver_sql("SELECT count(*) FROM journal").scalar() == 1
        store.journal.remark("decision", {}, at=1.0, who="me")
        assert reader.exec_driver_sql("SELECT count(*) FROM journal").scalar() == 1


STOPPED = """
import os, signal, sys
from pathlib import Path
from lumctl.store import StoreError, postgres, store_at
from lumctl.store.database import writing
from lumctl.store.journal import append
postgres._SETTINGS["idle_in_transaction_session_timeout"] = "300ms"
store = store_at(sys.argv[1], files=Path(), rack="r1")
try:
    with writing(store._engine) as connection:
        append(connection, rack="r1", run="", at=1.0, kind="late", step="", data={}, fence=0)
        os.kill(os.getpid(), signal.SIGSTOP)
except StoreError as error:
    print(error.message)
"""


def test_who_stands_still_in_the_middle_of_a_write_holds_nobody_up(url: str, opened) -> None:
    store = opened()
    with subprocess.Popen([sys.executable, "-c", STOPPED, url], stdout=subprocess.PIPE, text=True) as process:
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        store.journal.remark("early", {}, at=2.0, who="me")
        os.kill(process.pid, signal.SIGCONT)
        assert "the write was undone" in process.communicate()[0]
    assert [entry.kind for entry in store.journal.remarks()] == ["early"]


def test_a_lease_ends_by_the_clock_of_the_database(opened) -> None:
    mine, yours = opened(), opened()
    lease = mine.leases.acquire("r1", "me", term_s=30.0, now=1e6)
    run = mine.runs.begin(lease, RUN, {"digest": "d"}, now=1e6)
    for now in (0.0, 4e9):  # another machine's clock is wrong
        with pytest.raises(LeaseHeldError, match=r"ends in (30|29) s"):
            yours.leases.acquire("r1", "you", term_s=30.0, now=now)
        assert yours.runs.unfinished(now=now) == ()
        assert [moved.id for moved in yours.runs.moves(since=now, now=now)] == [run]
    ask_ends = "UPDATE leases SET expires_at = extract(epoch FROM clock_timestamp()) - 1"
    with database.writing(mine._engine) as connection:
        connection.exec_driver_sql(ask_ends)
    assert yours.runs.unfinished(now=0.0) == (run,)
    assert yours.leases.acquire("r1", "you", term_s=30.0, now=0.0).fence == lease.fence + 1


# -- a server that is not there ---------------------------------------------------------------------------------------


def test_a_server_that_comes_back_is_used_again(own: Postgres, tmp_path: Path) -> None:
    url = own.fresh()
    store = store_at(url, files=tmp_path, rack="r1")
    store.journal.remark("before", {}, at=1.0, who="me")
    own.stop()
    for call in (
        store.runs.all,
        lambda: store.journal.remark("lost", {}, at=2.0, who="me"),
        lambda: store_at(url, files=tmp_path),
    ):
        with pytest.raises(StoreUnreachableError) as caught:
            call()
        assert caught.value.exit_code == ExitCode.UNREACHABLE
        assert "\n" not in caught.value.message
        assert "can be reached from here" in str(caught.value.hint)
    own.start()
    store.journal.remark("after", {}, at=3.0, who="me")
    assert [entry.kind for entry in store.journal.remarks()] == ["before", "after"]
    assert store.first_break() is None
    store.close()


def test_a_server_that_goes_away_in_the_middle_of_a_write(own: Postgres, tmp_path: Path) -> None:
    store = store_at(own.fresh(), files=tmp_path, rack="r1")

    def write() -> None:
        with database.writing(store._engine) as connection:
            connection.exec_driver_sql("DELETE FROM meta")
            own.stop()
            connection.exec_driver_sql("DELETE FROM meta")

    with pytest.raises(StoreUnreachableError, match="is not writable"):
        write()
    own.start()
    store.close()
    store_at(store.place, files=tmp_path, rack="r1").close()  # its schema's version is still there


def test_a_server_that_stands_still_does_not_hold_us_for_ever(
    own: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = store_at(own.fresh(), files=tmp_path, rack="r1")
    stopped: list[int] = []

    def write() -> None:
        with database.writing(store._engine) as connection:
            stopped.append(connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one())
            os.kill(stopped[-1], signal.SIGSTOP)
            connection.exec_driver_sql("DELETE FROM meta")

    with store._engine.connect() as connection:
        stopped.append(connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one())
    monkeypatch.setattr(postgres, "ANSWERS_WITHIN_S", 0.3)
    os.kill(stopped[-1], signal.SIGSTOP)
    store.journal.remark("by another connection", {}, at=1.0, who="me")
    with pytest.raises(StoreUnreachableError, match="no answer within"):
        write()
    for backend in stopped:
        os.kill(backend, signal.SIGCONT)
    store.journal.remark("after", {}, at=3.0, who="me")
    assert [entry.kind for entry in store.journal.remarks()] == ["by another connection", "after"]
    store.close()


def test_a_lock_that_somebody_keeps_is_waited_for_only_so_long(opened, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(postgres._SETTINGS, "lock_timeout", "200ms")
    mine, yours, held, done = opened(), opened(), Event(), Event()

    def hold() -> None:
        with database.writing(mine._engine):
            held.set()
            done.wait()

    with ThreadPoolExecutor(1) as pool:
        holder = pool.submit(hold)
        held.wait()
        with pytest.raises(StoreError, match="its lock is held by this process itself") as caught:
            yours.journal.remark("decision", {}, at=1.0, who="me")
        assert caught.value.hint
        opened("r2").journal.remark("decision", {}, at=1.0, who="me")  # another rack is not held up
        done.set()
        holder.result()
    yours.journal.remark("decision", {}, at=1.0, who="me")


# -- what it must be like ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("set_to", "kept"), [("off", "on"), ("on", "on"), ("remote_apply", "remote_apply")])
def test_a_commit_is_on_disk_whatever_the_server_was_set_to(url: str, tmp_path: Path, set_to: str, kept: str) -> None:
    store = store_at(f"{url}&options=-csynchronous_commit%3D{set_to}", files=tmp_path)
    with store._engine.connect() as connection:
        assert connection.exec_driver_sql("SHOW synchronous_commit").scalar() == set_to
    with database.writing(store._engine) as connection:
        assert connection.exec_driver_sql("SHOW synchronous_commit").scalar() == kept
    store.close()


def test_a_database_that_does_not_keep_text_is_refused(url: str, tmp_path: Path) -> None:
    ask(url, "CREATE DATABASE plain ENCODING 'SQL_ASCII' TEMPLATE template0 LOCALE 'C'")
    with pytest.raises(UsageError, match="has the encoding SQL_ASCII, expected UTF8"):
        store_at(url.replace(url.split("/")[3].split("?", maxsplit=1)[0], "plain"), files=tmp_path)
    ask(url, "DROP DATABASE plain")


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg"])
def test_each_way_to_write_a_url_is_understood(url: str, tmp_path: Path, scheme: str) -> None:
    store = store_at(url.replace("postgresql+psycopg", scheme), files=tmp_path)
    assert store.runs.all() == ()
    store.close()


@pytest.mark.parametrize(
    "wrong", ["mysql://db/x", "postgresql+pg8000://db/x", "postgresql+asyncpg://db/x", "://", "x://"]
)
def test_any_other_is_refused(tmp_path: Path, wrong: str) -> None:
    with pytest.raises(UsageError, match="the store's URL"):
        store_at(wrong, files=tmp_path)


@pytest.mark.parametrize(
    "login", ["me:hunter2@localhost:1/x", "localhost:1/x?user=me&password=hunter2", "me:hunter2@localhost:none/x"]
)
def test_no_message_shows_a_password(tmp_path: Path, login: str) -> None:
    with pytest.raises((StoreError, UsageError)) as caught:
        store_at(f"postgresql://{login}", files=tmp_path)
    assert "hunter2" not in f"{caught.value.message} {caught.value.hint}"


def test_who_may_only_read_can_read(url: str, opened, tmp_path: Path) -> None:
    opened().journal.remark("decision", {}, at=1.0, who="me")
    ask(url, "DROP ROLE IF EXISTS reader")
    ask(url, "CREATE ROLE reader LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader")
    store = store_at(url.replace("lumctl@", "reader@"), files=tmp_path, rack="r1")
    assert len(store.journal.remarks()) == 1
    with pytest.raises(StoreError, match="lacks the permission"):
        store.journal.remark("decision", {}, at=2.0, who="me")
    store.close()
    ask(url, "DROP OWNED BY reader; DROP ROLE reader")


def test_names_at_length_are_kept(opened) -> None:
    store, long = opened(), "step " * 200
    lease = store.leases.acquire("r1", long, term_s=30.0, now=0.0)
    run = store.runs.begin(lease, {**RUN, "who": long}, {"digest": "d"}, now=1.0)
    store.runs.intend(lease, run, Record(2.0, "intent", long, {"said": "\udcff\x00"}), unsure=long)
    store.runs.conclude(lease, run, Record(3.0, "outcome", long, {}), states={long: {0: long}}, placed={long: (long,)})
    assert store.fabric.assignment() == {long: (long,)}
    assert store.journal.of_run(run)[1].data == {"said": "\udcff\x00"}
    assert store.first_break() is None


def test_a_connection_is_made_only_when_it_is_needed() -> None:
    postgres_at("postgresql://nobody@localhost:1/x").dispose()


def test_two_engines_do_not_change_a_rack_at_once(opened) -> None:
    opened().leases.acquire("r1", "me", term_s=30.0, now=0.0)
    with pytest.raises(RefusedError, match="being changed by me"):
        opened("r2").leases.acquire("r1", "you", term_s=30.0, now=0.0)
    assert opened("r2").leases.acquire("r2", "you", term_s=30.0, now=0.0).fence == 1
