"""Who holds a store's write lock is named with what frees it; each hint is followed literally."""

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lumctl.errors import ExitCode
from lumctl.processes import find, this_process
from lumctl.store import Store, StoreHeldError, lock_holders, postgres, sqlite, store_at
from lumctl.store.database import writing

WRITER = """
import os, signal, sys
from pathlib import Path
from lumctl.store import postgres, store_at
from lumctl.store.database import writing

postgres._SETTINGS["idle_in_transaction_session_timeout"] = sys.argv[3]
store = store_at(sys.argv[1], files=Path(), rack="r1")
if sys.argv[2] == "inside":
    with writing(store._engine) as connection:
        os.kill(os.getpid(), signal.SIGSTOP)
else:
    store.journal.remark("before", {}, at=1.0, who="me")
    os.kill(os.getpid(), signal.SIGSTOP)
"""
CLOSING = """
import fcntl, os, signal, sys
with open(sys.argv[1], "r+b") as file:
    fcntl.lockf(file, fcntl.LOCK_EX, 512, 0x40000000)
    os.kill(os.getpid(), signal.SIGSTOP)
"""
"""SQLite locks the main file so while the last one who leaves folds the log into it."""

Freeze = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def frozen() -> Iterator[Freeze]:
    """Starts a process and waits until it has stopped itself."""
    started: list[subprocess.Popen[bytes]] = []

    def freeze(code: str, *words: str) -> "subprocess.Popen[bytes]":
        process = subprocess.Popen([sys.executable, "-c", code, *words])
        started.append(process)
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        return process

    yield freeze
    for process in started:
        process.kill()
        process.wait()


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setattr(sqlite, "BUSY_TIMEOUT_S", 0.2)
    monkeypatch.setattr(sqlite, "HELD_TIMEOUT_S", 0.01)
    made = store_at(str(tmp_path), rack="r1")
    yield made
    made.close()


def write(store: Store) -> None:
    store.journal.remark("decision", {}, at=1.0, who="me")


def refused(store: Store) -> StoreHeldError:
    with pytest.raises(StoreHeldError) as caught:
        write(store)
    assert caught.value.exit_code is ExitCode.REFUSED
    return caught.value


def follow(hint: str | None) -> None:
    """Do what the hint says."""
    command = re.search(r"end it: (.*) \(its unfinished write is undone\), then repeat this command$", hint or "")
    assert command, hint
    subprocess.run(shlex.split(command[1]), check=True, stdout=subprocess.DEVNULL)


def test_a_stopped_writer_of_a_file_is_named_and_its_end_frees_the_store(
    frozen: Freeze, store: Store, tmp_path: Path
) -> None:
    writer = frozen(WRITER, str(tmp_path), "inside", "0")
    error = refused(store)
    me = find(this_process())
    assert me is not None
    assert re.search(
        rf"its lock is held by process {writer.pid} \({re.escape(sys.executable)} -c .* of {me.user} "
        rf"on {re.escape(me.id.host)}, started 20..-.*, is stopped$",
        error.message,
    ), error.message
    assert error.process is not None
    assert error.hint is not None
    assert error.hint.startswith(f"end it: kill -KILL {writer.pid} ")
    assert store.journal.remarks() == ()  # reading never waits
    follow(error.hint)
    writer.wait()
    write(store)
    assert len(store.journal.remarks()) == 1


def test_after_one_wait_in_vain_the_next_writes_of_a_command_wait_shortly(
    frozen: Freeze, store: Store, tmp_path: Path
) -> None:

    def patience_ms() -> int:
        with store._engine.connect() as connection:
            return int(connection.exec_driver_sql("PRAGMA busy_timeout").scalar_one())

    writer = frozen(WRITER, str(tmp_path), "inside", "0")
    refused(store)
    assert patience_ms() == 200
    for _ in range(2):
        refused(store)
        assert patience_ms() == 10
    writer.kill()
    writer.wait()
    for patience in (10, 200):  # the first one that does not wait in vain shows that the lock is free again
        write(store)
        assert patience_ms() == patience


def test_a_process_that_stopped_while_it_closed_the_store_is_named_when_it_is_opened(
    frozen: Freeze, store: Store, tmp_path: Path
) -> None:
    store.close()
    closing = frozen(CLOSING, str(tmp_path / "lumctl.db"))
    with pytest.raises(
        StoreHeldError, match=rf"cannot be opened: its lock is held by process {closing.pid} "
    ) as caught:
        store_at(str(tmp_path), rack="r1")
    follow(caught.value.hint)
    closing.wait()
    store_at(str(tmp_path), rack="r1").close()


def test_a_writer_that_runs_is_waited_for_first(frozen: Freeze, store: Store, tmp_path: Path) -> None:
    writer = frozen(WRITER.replace("SIGSTOP)", "SIGSTOP); signal.pause()"), str(tmp_path), "inside", "0")
    writer.send_signal(signal.SIGCONT)
    os.waitpid(writer.pid, os.WCONTINUED)
    error = refused(store)
    assert "is running" in error.message
    assert error.hint is not None
    assert error.hint.startswith("wait for it, or end it: kill -KILL ")
    follow(error.hint)


def test_a_process_of_another_user_needs_other_rights() -> None:
    state = find(this_process())
    assert state is not None
    assert replace(state, is_mine=False).kill_command == f"sudo kill -KILL {os.getpid()}"
    assert "of another user" in replace(state, user="", command="").described


def test_a_system_that_does_not_show_locks_says_so(
    frozen: Freeze, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frozen(WRITER, str(tmp_path), "inside", "0")
    monkeypatch.setattr(lock_holders, "_LOCKS", tmp_path / "none")
    error = refused(store)
    assert error.message.endswith("by another process, which this machine cannot identify")
    assert (
        error.hint
        == f"wait for it, or see which process has it open: fuser -v {tmp_path}/lumctl.db, then repeat this command"
    )


def test_a_lock_of_a_process_with_another_device_number_is_found_by_its_open_file(
    frozen: Freeze, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = frozen(WRITER, str(tmp_path), "inside", "0")
    elsewhere = tmp_path / "locks"  # as on btrfs and overlayfs
    elsewhere.write_text(re.sub(r" [0-9a-f]+:[0-9a-f]+:", " 00:7f:", Path("/proc/locks").read_text()))
    monkeypatch.setattr(lock_holders, "_LOCKS", elsewhere)
    assert f"process {writer.pid} " in refused(store).message


def test_a_lock_of_our_own_thread_is_not_to_be_killed(store: Store, tmp_path: Path) -> None:
    other = store_at(str(tmp_path), rack="r1")
    with writing(other._engine):
        error = refused(store)
    other.close()
    assert error.message.endswith("by this process itself, in another thread")
    assert error.hint == "wait for it, then repeat this command"


# -- PostgreSQL -------------------------------------------------------------------------------------------------------


@pytest.fixture
def served(emptied: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setitem(postgres._SETTINGS, "lock_timeout", "200ms")
    made = store_at(emptied, files=tmp_path, rack="r1")
    yield made
    made.close()


def test_a_stopped_session_is_named_and_its_end_frees_the_database(frozen: Freeze, served: Store, emptied: str) -> None:
    writer = frozen(WRITER, emptied, "inside", "0")
    error = refused(served)
    assert re.search(
        rf"process {writer.pid} .*, is stopped; it is session \d+ of .*, idle in transaction", error.message
    )
    assert error.hint is not None
    assert error.hint.startswith("end it: psql ")
    follow(error.hint)
    write(served)
    assert len(served.journal.remarks()) == 1


def test_a_session_of_another_machine_is_named_by_what_it_said(
    frozen: Freeze, served: Store, emptied: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = frozen(WRITER, emptied, "inside", "0")
    monkeypatch.setattr(lock_holders, "_short", lambda _boot_id: "00000000")
    error = refused(served)
    assert error.process is None
    assert f"process {writer.pid} on {this_process().host}; it is session" in error.message
    assert error.hint is not None
    assert error.hint.startswith("wait for it, or end it: psql ")
    follow(error.hint)
    write(served)


def test_the_server_itself_ends_who_stops_inside_a_write(frozen: Freeze, emptied: str, tmp_path: Path) -> None:
    frozen(WRITER, emptied, "inside", "300ms")
    store = store_at(emptied, files=tmp_path, rack="r1")
    write(store)
    store.close()


def test_who_stops_outside_a_write_holds_nobody_up(frozen: Freeze, served: Store, emptied: str) -> None:
    frozen(WRITER, emptied, "outside", "0")
    write(served)
    assert [entry.kind for entry in served.journal.remarks()] == ["before", "decision"]
