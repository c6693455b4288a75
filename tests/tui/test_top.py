"""The command itself: what it refuses, what it says when the screen is closed, and how it takes being stopped."""

import fcntl
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import threading
from pathlib import Path

import pytest

from lumctl.cli.main import run
from lumctl.cli.top.command import Observer
from lumctl.errors import ExitCode, UnreachableError

# The dashboard of these tests' stage in the frame that the command gives it; an apply ends with the pipe that it reads.
HERE = Path(__file__).parent
FOLDERS = f"{HERE}:{HERE.parent / 'contract'}"
"""Where the program finds the stage."""
PROGRAM = """
import os, sys
sys.path[:0] = sys.argv[1].split(":")
from conftest import Stage
from lumctl.cli.top import shutdown
from lumctl.cli.invocation import Invocation
from lumctl.cli.main import report
from lumctl.errors import LumctlError, RolledBackError

class Pipe:
    def wait(self, _):
        return os.read(int(sys.argv[2]), 1) == b""

stage = Stage(may_end=Pipe())
if sys.argv[3] == "fails":
    stage.apply_error = RolledBackError("run-7 failed and was rolled back", run="run-7")
dashboard = stage.dashboard()
try:
    with shutdown.stopped_by_signals(dashboard):
        dashboard.run()
        code = shutdown.end(Invocation.compose({}, {}), dashboard)
except LumctlError as error:
    code = report(error)
sys.exit(code)
"""
LEFT = b"\x1b[?1049l"
"""What leaves the alternate screen."""


class Terminal:
    """The dashboard on a terminal of its own."""

    def __init__(self, apply="works"):
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 110, 0, 0))
        end, self._hold = os.pipe()
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, FOLDERS, str(end), apply],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            pass_fds=[end],
            env=os.environ | {"TERM": "xterm-256color"},
            start_new_session=True,
        )
        os.close(slave)
        os.close(end)
        self.printed = b""

    def read_until(self, wanted):
        """Read what is drawn until something stands there; pytest's time limit ends it if it never does."""
        while wanted not in self.printed:
            try:
                self.printed += os.read(self.master, 65536)
            except OSError:  # the program has ended
                break
        assert wanted in self.printed, self.printed[-2000:]

    def press(self, keys):
        os.write(self.master, keys)

    def begin_apply(self):
        self.read_until(b"utilisation in %")
        self.press(b"2")
        self.read_until(b"JOB/RANK")
        self.press(b"p")
        self.read_until(b"Type yes")
        self.press(b"y\r")
        self.read_until(b"2. program")

    def let_apply_end(self):
        os.close(self._hold)

    def code(self):
        """Its exit code; whatever it still prints is read meanwhile."""
        reader = threading.Thread(target=self._read_all)
        reader.start()
        code = self.process.wait()
        reader.join()
        return code

    def _read_all(self):
        try:
            while piece := os.read(self.master, 65536):
                self.printed += piece
        except OSError:
            pass

    def after_the_screen(self):
        return self.printed.rpartition(LEFT)[2].decode()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_closes_the_screen_and_waits_for_the_apply(number):
    terminal = Terminal()
    terminal.begin_apply()
    terminal.process.send_signal(number)
    terminal.read_until(b"continues to its end")
    terminal.process.send_signal(number)  # impatience changes nothing
    terminal.let_apply_end()
    assert terminal.code() == ExitCode.DONE
    assert "run-7: done in 1.51 s, 4 receivers proved" in terminal.after_the_screen()


def test_a_signal_without_an_apply_leaves_at_once():
    terminal = Terminal()
    terminal.read_until(b"utilisation in %")
    terminal.process.send_signal(signal.SIGTERM)
    assert terminal.code() == ExitCode.INTERRUPTED
    assert LEFT in terminal.printed


def test_quitting_in_an_apply_that_fails_gives_its_error_and_its_code():
    terminal = Terminal(apply="fails")
    terminal.begin_apply()
    terminal.press(b"q")
    terminal.read_until(b"Quit as soon as")
    terminal.printed = b""
    terminal.press(b"y")
    terminal.read_until(b"applying to TARGET")
    terminal.let_apply_end()
    assert terminal.code() == ExitCode.ROLLED_BACK
    assert "lumctl: run-7 failed and was rolled back" in terminal.after_the_screen()


def test_a_terminal_that_is_gone_does_not_cut_the_apply():
    terminal = Terminal()
    terminal.begin_apply()
    os.close(terminal.master)
    terminal.process.send_signal(signal.SIGHUP)
    with pytest.raises(subprocess.TimeoutExpired):
        terminal.process.wait(timeout=0.5)
    terminal.let_apply_end()
    assert terminal.process.wait() == ExitCode.DONE


def test_without_a_terminal_it_names_the_way_that_needs_none(capsys):
    assert run(["top"]) == ExitCode.USAGE
    assert capsys.readouterr().err == ("lumctl: the dashboard needs a terminal\n  hint: lumctl status --watch\n")


def test_it_prints_no_data_and_names_what_does(capsys):
    assert run(["top", "-o", "json"]) == ExitCode.USAGE
    assert "hint: lumctl status -o json" in capsys.readouterr().err


@pytest.mark.parametrize("seconds", ["0", "86401", "inf", "nan"])
def test_an_interval_that_is_no_pause_is_refused(capsys, seconds):
    assert run(["top", "--interval", seconds]) == ExitCode.USAGE
    assert "--interval" in capsys.readouterr().err


class OneLook:
    """A context that was opened, and what it sees."""

    def __init__(self, seen):
        self.seen = seen
        self.closed = False

    def observe(self):
        return self.seen

    def close(self):
        self.closed = True


def test_a_rack_of_which_nothing_answers_is_opened_anew(kit):
    well = kit.observation()
    sites = [OneLook(well), OneLook(well)]
    opened = iter(sites)
    with Observer(lambda: next(opened)) as observe:
        assert observe() is observe() is well
        sites[0].seen = kit.unreachable(well)
        assert observe() is sites[0].seen
        assert sites[0].closed
        assert observe() is well
        assert not sites[1].closed
    assert sites[1].closed


def test_the_daemon_looks_while_it_runs_and_the_dashboard_itself_when_it_dies(kit):
    own, seen_by_daemon = kit.observation(), kit.observation(at=kit.START + 1)
    sites = [OneLook(own), OneLook(own)]
    opened = iter(sites)
    daemon = [seen_by_daemon]
    with Observer(lambda: next(opened), lambda: daemon[0]) as observe:
        assert observe() is seen_by_daemon
        daemon[0] = None
        assert observe() is own
        assert not sites[0].closed
        daemon[0] = seen_by_daemon
        assert observe() is seen_by_daemon
        assert sites[0].closed
        daemon[0] = None
        assert observe() is own
    assert sites[1].closed


def test_without_a_daemon_a_simulator_that_does_not_run_is_an_error_at_once():
    def open_context():
        raise UnreachableError("no simulator is running")

    with pytest.raises(UnreachableError), Observer(open_context):
        pass
