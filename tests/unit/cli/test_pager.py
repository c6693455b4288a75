"""The pager: only on a terminal, only for what is longer than the screen, and none that is not there."""

import io
import sys

import pytest

from lumctl.cli.pager import fits, paged, pager_command


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"TERM": "xterm", "PAGER": "sh -c 'cat >x'"}, ["sh", "-c", "cat >x"]),
        ({"TERM": "xterm", "PAGER": ""}, []),
        ({"TERM": "xterm", "PAGER": "cat"}, []),
        ({"TERM": "xterm", "PAGER": "no-such-pager -x"}, []),
        ({"TERM": "xterm", "PAGER": "sh 'open"}, []),
        ({"TERM": "dumb", "PAGER": "sh"}, []),
        ({"PAGER": "sh"}, []),
    ],
)
def test_the_pager_is_what_the_environment_names(environment, words):
    assert pager_command(environment) == words


def test_what_wraps_takes_more_lines():
    assert fits("a\nb", 80, 4)
    assert not fits("a\nb", 80, 2)
    assert fits("x" * 80, 80, 3)
    assert not fits("x" * 240, 80, 3)
    assert fits("\x1b[31m" + "x" * 79 + "\x1b[0m", 80, 3)


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch, tmp_path):
    """Puts a terminal of 10 lines into place, whose pager writes what it is given into a file."""
    file = tmp_path / "paged"
    for name, value in {"TERM": "xterm", "COLUMNS": "80", "LINES": "10"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("LESS", raising=False)
    monkeypatch.setenv("PAGER", f"sh -c 'echo $LESS >{file}; cat >>{file}'")

    def install():
        shown = Terminal()
        monkeypatch.setattr(sys, "stdout", shown)
        monkeypatch.setattr(sys, "stdin", Terminal())
        return shown, file

    return install


def test_what_fits_is_printed_and_what_does_not_is_paged(terminal):
    shown, file = terminal()
    with paged():
        sys.stdout.write("short\n")
    assert (shown.getvalue(), file.exists()) == ("short\n", False)
    with paged():
        sys.stdout.write("line\n" * 20)
    assert (shown.getvalue(), file.read_text()) == ("short\n", "FRX\n" + "line\n" * 20)


def test_what_was_printed_before_an_error_is_shown_and_the_error_stays(terminal):
    shown, _ = terminal()

    def fails():
        with paged():
            sys.stdout.write("before\n")
            raise SystemExit(4)

    with pytest.raises(SystemExit):
        fails()
    assert shown.getvalue() == "before\n"


def test_without_a_pager_all_is_printed(terminal, monkeypatch):
    shown, file = terminal()
    monkeypatch.setenv("PAGER", "no-such-pager")
    with paged():
        sys.stdout.write("line\n" * 20)
    assert (shown.getvalue().count("line"), file.exists()) == (20, False)
