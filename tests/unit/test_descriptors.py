"""What a plug-in's library writes to descriptors 1 and 2 reaches a terminal escaped, and standard output never.

Each test runs a program of its own, whose standard error is a pseudo terminal and whose standard output is a pipe.
"""

import os
import pty
import signal
import subprocess
import sys
import time

import pytest

BEGIN = """
import ctypes, os, subprocess, sys, threading
from lumctl import descriptors
from lumctl.containment import Culprit, contained
descriptors.separate_streams()
def plug_in(call):
    return contained(Culprit("driver", "d", "acme 1.0"), "call of m1", call, 20.0)
print("{")
"""
PATIENCE_S = 20.0


def outcome(program):
    """The exit code of a program, what it wrote to its standard output, and what its terminal was sent."""
    ours, terminal = pty.openpty()
    try:
        with subprocess.Popen(
            [sys.executable, "-c", BEGIN + program], stdout=subprocess.PIPE, stderr=terminal, stdin=subprocess.DEVNULL
        ) as process:
            out, _ = process.communicate(timeout=PATIENCE_S)
    finally:
        os.close(terminal)
    seen = b""
    try:
        while piece := os.read(ours, 65536):
            seen += piece
    except OSError:  # nobody has the other end any more
        pass
    finally:
        os.close(ours)
    return process.returncode, out.decode(), seen.decode().replace("\r\n", "\n")


@pytest.mark.parametrize(
    "call",
    [
        r'lambda: os.write(2, b"\x1b[2Jhello\n")',
        r'lambda: os.write(1, b"\x1b[2Jhello")',
        r'lambda: (ctypes.CDLL(None).printf(b"\x1b[2Jhello\n"), ctypes.CDLL(None).fflush(None))',
        r'lambda: subprocess.run([sys.executable, "-c", "import os; os.write(2, b\"\\x1b[2Jhello\\n\")"])',
        # It is waited for: a thread that a plug-in starts is a daemon, and the process does not wait for those.
        r"""lambda: [
            (thread := threading.Thread(target=print, args=("\x1b[2Jhello",), kwargs={"file": sys.stderr})).start(),
            thread.join(),
        ]""",
    ],
    ids=["descriptor-2", "descriptor-1", "printf", "child", "thread"],
)
def test_it_is_escaped_and_not_on_standard_output(call):
    code, out, seen = outcome(f'plug_in({call})\nprint("}}")\n')
    assert (code, out) == (0, "{\n}\n")
    assert seen == "\\x1b[2Jhello\n"


def test_own_streams_are_not_touched():
    program = r"""
plug_in(lambda: None)
print("\x1b[1mbold", file=sys.stderr)
assert sys.stderr.isatty() and not sys.stdout.isatty()
assert sys.__stderr__.fileno() == sys.stderr.fileno() > 2
"""
    assert outcome(program) == (0, "{\n", "\x1b[1mbold\n")


def test_it_is_bounded_in_length_and_in_lines():
    program = r"""
plug_in(lambda: [os.write(2, b"x" * length + b"\n") for length in (3000, *[5] * 400)])
"""
    code, _, seen = outcome(program)
    longest, *lines, last = seen.splitlines()
    assert code == 0
    assert longest == "x" * 499 + "…"
    assert lines == ["xxxxx"] * 99
    assert last == "lumctl: a plug-in printed more than 100 lines in 60 s; the rest is not shown"


def test_nothing_is_lost_or_waited_for_at_the_end_while_a_child_keeps_the_pipe():
    program = r"""
child = plug_in(lambda: subprocess.Popen(["sleep", "60"], stdout=2))
os.write(2, b"last words")
print(child.pid)
"""
    begun = time.monotonic()
    code, out, seen = outcome(program)
    assert time.monotonic() - begun < PATIENCE_S / 2
    os.kill(int(out.split()[1]), signal.SIGKILL)
    assert (code, seen) == (0, "last words\n")


def test_while_a_screen_is_drawn_it_is_dropped():
    program = r"""
with descriptors.stray_output_dropped():
    plug_in(lambda: os.write(2, b"into the picture\n"))
    threading.Event().wait(0.5)
plug_in(lambda: os.write(2, b"after it\n"))
"""
    assert outcome(program) == (0, "{\n", "after it\n")


def test_without_foreign_code_the_descriptors_stay_as_they_are():
    program = r"""
assert not descriptors.is_caught()
os.write(2, b"\x1b[1mours\n")
"""
    assert outcome(program) == (0, "{\n", "\x1b[1mours\n")
