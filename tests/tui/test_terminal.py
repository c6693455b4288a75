"""The terminal: redirected, suspended, gone; and what is remembered of a user's choices."""

import fcntl
import os
import pty
import signal
import stat
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from lumctl.errors import ExitCode
from lumctl.tui import preferences
from lumctl.tui.look.themes import SIXTEEN, THEMES, next_theme, theme_name
from lumctl.tui.terminal import hung_up

HERE = Path(__file__).parent
PROGRAM = """
import sys
sys.path[:0] = sys.argv[1].split(":")
from conftest import Stage
from lumctl.cli.invocation import Invocation
from lumctl.cli.top import shutdown

dashboard = Stage(interval_s=3600).dashboard()
with shutdown.stopped_by_signals(dashboard):
    dashboard.run()
    sys.exit(shutdown.end(Invocation.compose({}, {}), dashboard))
"""
LEFT = b"\x1b[?1049l"


class Terminal:
    """A dashboard on a terminal of its own, with standard error in a file."""

    def __init__(self, errors):
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 110, 0, 0))
        with errors.open("wb") as stderr:
            self.process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, f"{HERE}:{HERE.parent / 'contract'}"],
                stdin=slave,
                stdout=slave,
                stderr=stderr,
                env=os.environ | {"TERM": "xterm-256color"},
                start_new_session=True,
            )
        os.close(slave)
        self.printed = b""

    def read_until(self, wanted):
        while wanted not in self.printed:
            try:
                self.printed += os.read(self.master, 65536)
            except OSError:  # the program has ended
                break
        assert wanted in self.printed, self.printed[-2000:]


@pytest.fixture
def terminal(tmp_path):
    made = Terminal(tmp_path / "stderr")
    yield made
    made.process.kill()
    made.process.wait()


def test_it_draws_on_standard_output_so_that_standard_error_may_be_redirected(terminal, tmp_path):
    terminal.read_until(b"utilisation in %")
    os.write(terminal.master, b"q")
    terminal.read_until(LEFT)
    assert terminal.process.wait() == ExitCode.DONE
    assert (tmp_path / "stderr").read_bytes() == b""


def test_a_terminal_that_vanishes_without_a_signal_ends_it(terminal):
    terminal.read_until(b"utilisation in %")
    os.close(terminal.master)
    assert terminal.process.wait() == ExitCode.INTERRUPTED


def test_ctrl_z_stops_the_process_and_it_draws_again_when_it_goes_on(terminal):
    terminal.read_until(b"utilisation in %")
    os.write(terminal.master, b"\x1a")
    terminal.read_until(LEFT)
    _, status = os.waitpid(terminal.process.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    terminal.printed = b""
    terminal.process.send_signal(signal.SIGCONT)
    terminal.read_until(b"utilisation in %")


def test_the_other_end_of_a_terminal_is_there_or_gone():
    master, slave = pty.openpty()
    assert not hung_up(slave)
    os.close(master)
    assert hung_up(slave)
    os.close(slave)


def test_it_is_not_suspended_in_the_middle_of_an_apply(stage, kit):
    async def script(pilot):
        await pilot.press("p")
        await kit.until(pilot, lambda: "Type yes" in kit.screen_text(pilot.app))
        await pilot.press("y", "enter")
        await kit.until(pilot, lambda: pilot.app.applying.under_way)
        await pilot.press("ctrl+z")
        await kit.until(pilot, lambda: any("would be interrupted" in n.message for n in pilot.app._notifications))
        stage.may_end.set()
        await kit.until(pilot, lambda: not pilot.app.applying.under_way)

    kit.drive(stage.dashboard(), script)


@pytest.fixture
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "lumctl" / preferences.FILE


def test_a_theme_that_is_chosen_by_key_is_remembered_for_this_user_only(stage, kit, state):
    async def script(pilot):
        await pilot.press("T")
        await pilot.pause()
        assert f"theme {next_theme('dark')}" in kit.screen_text(pilot.app)

    stage.preferences = preferences.own_preferences()
    kit.drive(stage.dashboard(), script)
    chosen = preferences.own_preferences().theme
    assert chosen == next_theme("dark")
    assert stat.S_IMODE(state.stat().st_mode) == 0o600
    assert stat.S_IMODE(state.parent.stat().st_mode) == 0o700
    many = {"TERM": "xterm-256color"}
    assert theme_name(None, many, chosen) == next_theme("dark")
    assert theme_name("light", many, chosen) == "light"
    assert theme_name(None, {"TERM": "linux"}, chosen) == SIXTEEN
    assert theme_name(None, many, "no theme any more") == "dark"


@pytest.mark.parametrize("content", [b"", b"[1]", b"{", b"\xff\xfe", b'{"hidden_columns": {"log": ["age"]}}'])
def test_what_is_remembered_may_be_damaged_and_other_choices_stay(state, content):
    state.parent.mkdir(mode=0o700)
    state.write_bytes(content)
    assert preferences.own_preferences().remember_theme("classic") == ""
    chosen = preferences.own_preferences()
    assert chosen.theme == "classic"
    assert (chosen.hidden("log") == {"age"}) == (b"hidden_columns" in content)


def test_a_choice_that_cannot_be_kept_is_no_error(monkeypatch, tmp_path):
    (tmp_path / "lumctl").write_text("a file in the way")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert "is not saved" in preferences.own_preferences().remember_theme("classic")
    assert preferences.own_preferences().theme is None


def test_the_key_turns_through_all_themes():
    names, name = [], "dark"
    for _ in THEMES:
        names.append(name)
        name = next_theme(name)
    assert sorted(names) == sorted(THEMES)
    assert name == "dark"
