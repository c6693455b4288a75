"""Programs of the operator's own: what they are given, what is heard of them, and that all of them end."""

import os
import select
import sys
import time

import pytest

from lumctl.programs import MOST_SAID_BYTES, NotStartedError, run_program

SOON_S = 20.0


def python(code, **options):
    return run_program([sys.executable, "-c", code], **{"timeout_s": SOON_S, **options})


def gone(pid):
    """Whether a process ends within a while."""
    try:
        watched = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([watched], [], [], SOON_S)[0])
    finally:
        os.close(watched)


def test_it_reads_what_it_is_given_and_is_told_by_variables(tmp_path):
    code = "import os, sys; print(sys.stdin.read(), os.environ['LUMCTL_ACT'], os.getcwd())"
    ended = python(code, given=b"words", variables={"LUMCTL_ACT": "pause"}, folder=tmp_path)
    assert (ended.code, ended.late, ended.said) == (0, False, f"words pause {tmp_path}\n")


def test_how_it_ended_and_its_last_line():
    ended = python("import sys; print('first'); print('why\\n', file=sys.stderr); sys.exit(3)")
    assert (ended.code, ended.late) == (3, False)
    assert ended.last_line in {"first", "why"}
    assert python("import os; os.kill(os.getpid(), 9)").code == -9


def test_one_that_reads_nothing_and_prints_without_end():
    ended = python("print('x' * 1000000)", given=b"y" * 1000000)
    assert ended.code == 0
    assert len(ended.said) == MOST_SAID_BYTES


def test_one_that_is_late_ends_with_all_that_it_started(tmp_path):
    told = tmp_path / "pid"
    code = (
        "import os, signal, subprocess, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
        f"child = subprocess.Popen(['sleep', '300']); open({str(told)!r}, 'w').write(str(child.pid)); child.wait();"
        "signal.pause()"
    )
    began = time.monotonic()
    ended = python(code, timeout_s=1.0)
    assert ended.late
    assert ended.code == -9
    assert gone(int(told.read_text()))
    assert time.monotonic() - began < SOON_S


def test_what_it_leaves_running_is_not_waited_for(tmp_path):
    told = tmp_path / "pid"
    began = time.monotonic()
    ended = run_program(["sh", "-c", f"sleep 300 & echo $! >{told}; echo done"], timeout_s=SOON_S)
    assert (ended.code, ended.said) == (0, "done\n")
    assert time.monotonic() - began < SOON_S / 2
    left = int(told.read_text())
    os.kill(left, 0)  # it runs
    os.kill(left, 9)


@pytest.mark.parametrize("command", [["/nowhere/hook"], ["/"], ["a\0b"]])
def test_one_that_cannot_be_run(command):
    with pytest.raises(NotStartedError, match="cannot be run"):
        run_program(command, timeout_s=SOON_S)
