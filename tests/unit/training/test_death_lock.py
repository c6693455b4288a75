"""A lifeline breaks when its holder dies, however it dies, and at nothing else."""

import signal
import subprocess
import sys
import threading

import pytest

from lumctl.training import death_lock

HOLDER = """
import os, sys
from pathlib import Path
from lumctl.training import death_lock
print(death_lock.hold(Path(sys.argv[1])), flush=True)
for line in sys.stdin:
    exec(line)
"""


@pytest.fixture
def path(tmp_path):
    assert death_lock.make(tmp_path / "life")
    return tmp_path / "life"


@pytest.fixture
def holder(path):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "True\n"
    with process:
        yield process
        process.kill()


class Watch:
    def __init__(self, path):
        self.found = []
        self.thread = threading.Thread(target=lambda: self.found.append(death_lock.breaks(path)), daemon=True)
        self.thread.start()

    def ended(self, within_s=10.0):
        self.thread.join(within_s)
        return self.found


def do(holder, line):
    holder.stdin.write(line + "\n")
    holder.stdin.flush()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_it_breaks_when_its_holder_is_killed(path, holder, how):
    watch = Watch(path)
    assert watch.ended(0.1) == []
    holder.send_signal(how)
    assert watch.ended() == [True]


def test_it_breaks_when_its_holder_ends(path, holder):
    watch = Watch(path)
    do(holder, "raise SystemExit(0)")
    assert watch.ended() == [True]
    assert holder.wait(10) == 0


def test_it_breaks_when_its_holder_becomes_another_program(path, holder):
    watch = Watch(path)
    do(holder, "os.execvp('sleep', ['sleep', '60'])")
    assert watch.ended() == [True]


def test_children_of_its_holder_come_and_go(path, holder):
    watch = Watch(path)
    do(holder, "pid = os.fork(); os._exit(0) if pid == 0 else print(os.waitpid(pid, 0)[1], flush=True)")
    assert holder.stdout.readline() == "0\n"
    assert watch.ended(0.1) == []
    holder.kill()
    assert watch.ended() == [True]


def test_who_looks_later_finds_it_broken_and_who_is_not_held_is_not_waited_for(path, holder):
    holder.kill()
    holder.wait(10)
    assert death_lock.breaks(path)
    assert not death_lock.breaks(path)


def test_a_file_of_another_library_or_none_is_no_lifeline(path, tmp_path):
    assert not death_lock.breaks(tmp_path / "none")
    assert not death_lock.hold(tmp_path / "none")
    with path.open("r+b") as file:
        file.seek(1024)
        file.write(b"musl")
    assert not death_lock.hold(path)
    path.write_bytes(b"")
    assert not death_lock.hold(path)


def test_one_thread_only_can_hold_it_and_a_new_one_of_the_name_is_another(path, holder):
    assert not death_lock.hold(path)
    assert death_lock.make(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert not death_lock.breaks(path)
    assert holder.poll() is None
