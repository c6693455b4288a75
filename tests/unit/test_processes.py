"""Processes are identified by more than their PID: a reused PID is never taken for another process, nor killed."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace

import pytest

from lumctl.processes import find, kill_and_wait, process_with, this_process

WITHIN_S = 30.0


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", "a b", "\x1b[2J"])
    yield process
    process.kill()
    process.wait()


def test_this_process_is_found_running_and_ours() -> None:
    state = find(this_process())
    assert state is not None
    assert state.id == this_process() == process_with(os.getpid())
    assert state.is_mine
    assert not state.stopped
    assert state.started_at is not None


def test_a_stopped_process_is_told_from_a_running_one(sleeper: subprocess.Popen[bytes]) -> None:
    process = process_with(sleeper.pid)
    assert process is not None
    os.kill(sleeper.pid, signal.SIGSTOP)
    os.waitpid(sleeper.pid, os.WUNTRACED)
    state = find(process)
    assert state is not None
    assert state.stopped
    assert "'a b'" in state.command
    assert "\x1b" not in state.command


def test_a_stopped_process_is_killed_and_then_gone(sleeper: subprocess.Popen[bytes]) -> None:
    process = process_with(sleeper.pid)
    assert process is not None
    os.kill(sleeper.pid, signal.SIGSTOP)
    os.waitpid(sleeper.pid, os.WUNTRACED)
    assert kill_and_wait(process, WITHIN_S)
    assert find(process) is None  # although nobody has reaped it yet
    assert sleeper.wait() == -signal.SIGKILL
    assert kill_and_wait(process, 0.0)


def test_without_pidfd_a_process_is_killed_by_its_pid(
    sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    process = process_with(sleeper.pid)
    assert process is not None
    monkeypatch.delattr(os, "pidfd_open")
    assert kill_and_wait(process, WITHIN_S)
    assert sleeper.wait() == -signal.SIGKILL


def test_a_process_with_a_reused_pid_is_left_alone(sleeper: subprocess.Popen[bytes]) -> None:
    now = process_with(sleeper.pid)
    assert now is not None
    before = replace(now, started=now.started - 1)
    assert find(before) is None
    assert kill_and_wait(before, 0.0)
    assert find(now) is not None


def test_a_process_of_another_machine_is_not_looked_up() -> None:
    elsewhere = replace(this_process(), boot_id="another")
    assert not elsewhere.is_here
    with pytest.raises(ValueError, match="cannot be inspected from here"):
        find(elsewhere)
    with pytest.raises(ValueError, match="cannot be inspected from here"):
        kill_and_wait(elsewhere, 0.0)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_process_of_another_user_is_not_ours(sleeper: subprocess.Popen[bytes]) -> None:
    process = process_with(sleeper.pid)
    assert process is not None
    code = f"""
import os
from lumctl.processes import ProcessId, find, kill_and_wait
os.setuid(65534)
process = ProcessId({process.host!r}, {process.boot_id!r}, {process.pid}, {process.started})
print(find(process).is_mine, kill_and_wait(process, 0.0))
"""
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert told.stdout.split() == ["False", "False"], told.stderr
    assert find(process) is not None
