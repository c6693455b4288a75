"""Processes of workers: which one is meant, how it ended, and what ends with it."""

import os
import select
import signal
import subprocess
import sys

import pytest

from lumctl.training.agent.process import Process, ProcessEnd, WorkerNotStartedError, belongs_to, stat_of

GRANDCHILD = "sleep 300 & echo $!; wait"
OWN_SESSION = (
    "import subprocess; p = subprocess.Popen(['sleep', '300'], start_new_session=True); print(p.pid, flush=True)"
)


@pytest.fixture
def start(tmp_path):
    """Start processes; each ends with the test."""
    started = []

    def go(*argv):
        # What it prints is read here, as it comes.
        fifo = tmp_path / f"log{len(started)}"
        os.mkfifo(fifo)
        output = os.fdopen(os.open(fifo, os.O_RDWR), "r")
        started.append((Process.start(argv, os.environ, tmp_path, fifo), output))
        return started[-1]

    yield go
    for process, output in started:
        process.kill()
        await_end(process)
        process.close()
        output.close()


def await_end(thing):
    assert select.select([thing], [], [], 10)[0]


@pytest.mark.parametrize(
    ("argv", "end"),
    [
        (["sh", "-c", "exit 0"], ProcessEnd(0, None)),
        (["sh", "-c", "exit 3"], ProcessEnd(3, None)),
        (["sh", "-c", "kill -KILL $$"], ProcessEnd(None, signal.SIGKILL)),
        (["sh", "-c", "kill -TERM $$"], ProcessEnd(None, signal.SIGTERM)),
    ],
)
def test_how_a_child_ended(start, argv, end):
    process, _ = start(*argv)
    await_end(process)
    assert process.end() == end


def test_somebody_elses_child_is_watched_too_but_gives_no_code(start):
    process, _ = start("sleep", "300")
    found = Process.found(process.pid, process.started)
    assert found is not None
    assert not select.select([found], [], [], 0)[0]
    found.kill()
    await_end(found)
    assert found.end() == ProcessEnd(None, None)
    found.close()


def test_an_id_that_is_used_again_is_not_mistaken(start):
    process, _ = start("sleep", "300")
    assert Process.found(process.pid, process.started - 1) is None
    other = Process(process.pid, process.started - 1, os.pidfd_open(process.pid))
    other.kill()
    assert not select.select([process], [], [], 0)[0]
    assert stat_of(process.pid).started == process.started
    other.close()


def test_one_that_has_gone_is_not_found():
    with subprocess.Popen(["true"]) as gone:
        gone.wait()
    assert Process.found(gone.pid, 1) is None


def test_what_is_left_of_a_group_is_killed_after_its_leader(start):
    process, output = start("sh", "-c", GRANDCHILD)
    child = os.pidfd_open(int(output.readline()))
    os.kill(process.pid, signal.SIGKILL)
    await_end(process)
    assert not select.select([child], [], [], 0)[0]
    process.kill()
    await_end(child)
    os.close(child)


def test_who_belongs_to_a_worker(start):
    wrapper, output = start("sh", "-c", GRANDCHILD)
    child = int(output.readline())
    assert belongs_to(wrapper.pid, wrapper.pid)
    assert belongs_to(child, wrapper.pid)
    assert not belongs_to(os.getpid(), wrapper.pid)
    assert not belongs_to(child, child + 1)
    python, output = start(sys.executable, "-c", OWN_SESSION + "; p.wait()")
    apart = int(output.readline())
    assert os.getsid(apart) == apart
    assert belongs_to(apart, python.pid)
    os.kill(apart, signal.SIGKILL)


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (["/no/such/program"], "/no/such/program cannot be run: No such file"),
        (["/etc/passwd"], "/etc/passwd cannot be run: Permission denied"),
        (["a\0b"], "cannot be run: embedded null byte"),
        (["\ud800"], "cannot be run: "),
    ],
)
def test_why_a_program_cannot_be_run(tmp_path, argv, why):
    with pytest.raises(WorkerNotStartedError, match=why):
        Process.start(argv, {}, tmp_path, tmp_path / "log")
