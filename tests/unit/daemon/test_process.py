"""What every daemon process needs: a lock that names it, a notice to systemd, and a log of its own errors."""

import fcntl
import os
import socket
import subprocess
import sys

import pytest

from lumctl.daemon.process import ErrorLog, exclusive_lock, lock_holder, notify_systemd
from lumctl.errors import ExitCode, RefusedError, UsageError


def test_a_second_one_is_refused_and_named_the_first(tmp_path):
    lock = tmp_path / "new" / "watch.lock"
    with exclusive_lock(lock, "rack r1"), pytest.raises(RefusedError) as refused, exclusive_lock(lock, "rack r1"):
        pass
    assert refused.value.message == f"a daemon already watches rack r1 (pid {os.getpid()})"
    assert refused.value.exit_code is ExitCode.REFUSED
    with exclusive_lock(lock, "rack r1"):
        pass


def test_the_lock_dies_with_its_process(tmp_path):
    lock = tmp_path / "watch.lock"
    script = (
        "import os, pathlib, sys; from lumctl.daemon.process import exclusive_lock;"
        "held = exclusive_lock(pathlib.Path(sys.argv[1]), 'it'); held.__enter__(); os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", script, str(lock)], check=False).returncode == -9
    assert lock.read_text().isdigit()
    with exclusive_lock(lock, "it"):
        assert lock.read_text() == str(os.getpid())


def test_who_holds_it_can_be_asked_without_taking_it(tmp_path):
    lock = tmp_path / "lock"
    assert lock_holder(lock) is None
    with exclusive_lock(lock, "rack"):
        assert lock_holder(lock) == os.getpid()
    assert lock_holder(lock) is None


def test_a_process_that_asks_who_holds_it_keeps_no_other_from_taking_it(tmp_path):
    lock = tmp_path / "lock"
    lock.touch()
    asking = lock.open("rb")
    fcntl.flock(asking, fcntl.LOCK_SH)  # as lock_holder does while it asks
    with exclusive_lock(lock, "rack", pause=lambda _: asking.close()):
        assert lock_holder(lock) == os.getpid()


def test_a_process_that_was_frozen_while_it_asked_is_not_waited_for_without_end(tmp_path):
    lock = tmp_path / "lock"
    lock.touch()
    with lock.open("rb") as frozen:
        fcntl.flock(frozen, fcntl.LOCK_SH)
        with pytest.raises(RefusedError), exclusive_lock(lock, "rack", pause=lambda _: None):
            pass


def test_a_full_disk_keeps_nobody_from_locking(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    lock = tmp_path / "watch.lock"
    monkeypatch.setattr("lumctl.daemon.process.os.pwrite", full)
    with exclusive_lock(lock, "it"), pytest.raises(RefusedError, match="pid unknown"), exclusive_lock(lock, "it"):
        pass


def test_a_place_where_no_lock_can_be_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot make"), exclusive_lock(tmp_path / "file" / "watch.lock", "it"):
        pass


def test_a_link_that_another_user_left_in_place_of_the_lock_is_not_written_through(tmp_path):
    precious, lock = tmp_path / "precious", tmp_path / "gateway.lock"
    precious.write_text("keep this")
    lock.symlink_to(precious)
    with pytest.raises(UsageError, match="cannot make "), exclusive_lock(lock, "rack"):
        pass
    assert precious.read_text() == "keep this"


@pytest.fixture
def errors(said):
    return ErrorLog(said.append)


def test_each_kind_is_told_once_and_counted_each_time(errors, said):
    for _ in range(3):
        errors.record("look", UsageError("the mesh is gone", hint="plug it in"))
    errors.record("look", ValueError("odd"))
    errors.record("history", UsageError("full"))
    assert said[0] == "look: the mesh is gone (hint: plug it in)"
    assert said[1] == "look: unexpected ValueError: odd"
    assert said[2] == "history: full"
    assert len(said) == 3
    assert errors.counts() == {("look", "UsageError"): 3, ("look", "ValueError"): 1, ("history", "UsageError"): 1}


def test_the_end_is_told_and_the_next_time_is_news_again(errors, said):
    errors.resolve("look")
    assert said == []
    errors.record("look", UsageError("gone"))
    errors.record("look", UsageError("gone"))
    errors.resolve("history")
    errors.resolve("look")
    errors.resolve("look")
    errors.record("look", UsageError("gone"))
    assert said == ["look: gone", "look: ok again after 2 failures", "look: gone"]
    assert errors.counts()["look", "UsageError"] == 3


def test_a_bug_is_named_with_its_place_and_its_trace_on_request(errors, said, monkeypatch):
    def fall(where):
        try:
            {}["h01"]
        except KeyError as error:
            errors.record(where, error)

    fall("look")
    assert said[0].startswith("look: unexpected KeyError: 'h01' at test_process.py:")
    monkeypatch.setenv("LUMCTL_TRACEBACK", "1")
    fall("history")
    assert "Traceback" in said[1]


@pytest.mark.parametrize("abstract", [False, True])
def test_whoever_listens_hears_it(short, monkeypatch, abstract):
    address = f"{short}/notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as supervisor:
        supervisor.bind(f"\0{address}" if abstract else address)
        monkeypatch.setenv("NOTIFY_SOCKET", f"@{address}" if abstract else address)
        notify_systemd("READY=1")
        supervisor.settimeout(10)
        assert supervisor.recv(64) == b"READY=1"


@pytest.mark.parametrize("address", [None, "", "relative", "/nowhere/at/all", "vsock:1:2"])
def test_where_nobody_listens_nothing_happens(monkeypatch, address):
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    if address is not None:
        monkeypatch.setenv("NOTIFY_SOCKET", address)
    notify_systemd("READY=1")
