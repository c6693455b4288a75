"""The line of progress: not before a second has passed, in its own place, out of the way of other output."""

import io
import sys
import threading

from lumctl.cli.output import Output
from lumctl.cli.progress import ProgressLine, progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


class EscapesOtherThreads(Terminal):
    def __init__(self, terminal):
        super().__init__()
        self.terminal = terminal

    def write(self, text):
        is_main = threading.current_thread() is threading.main_thread()
        return self.terminal.write(text if is_main else repr(text))


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def test_it_is_silent_for_a_second_and_then_counts():
    shown, clock = Terminal(), Clock()
    line = ProgressLine("routing", shown, clock)
    clock.now = 0.9
    line.draw()
    assert shown.getvalue() == ""
    clock.now = 2.2
    line.draw()
    assert shown.getvalue().endswith("routing ... 2 s")
    line.tell("matching 3\x1b[2J")
    line.draw()
    assert shown.getvalue().endswith("matching 3\\x1b[2J ... 2 s")


def test_it_leaves_nothing_behind_and_makes_way_for_others(monkeypatch):
    shown, clock = Terminal(), Clock()
    monkeypatch.setattr(sys, "stderr", shown)
    line = ProgressLine("routing", shown, clock)
    clock.now = 3.0
    line.draw()
    with line.hidden():
        Output().narrate("a remark")
    assert shown.getvalue() == "\r\x1b[Krouting ... 3 s\r\x1b[Ka remark\n"
    with line.hidden():
        pass
    assert shown.getvalue().endswith("a remark\n")


def test_it_is_drawn_while_the_block_runs_and_gone_after_it(monkeypatch):
    class Waited(Terminal):
        drawn = threading.Event()

        def write(self, text):
            if "programming" in text:
                self.drawn.set()
            return super().write(text)

    shown = Waited()
    # As once code of a plug-in may run: what another thread writes to sys.stderr is escaped. The line must not be.
    monkeypatch.setattr(sys, "stderr", EscapesOtherThreads(shown))
    monkeypatch.setattr(sys, "__stderr__", shown)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("lumctl.cli.progress._AFTER_S", 0.0)
    monkeypatch.setattr("lumctl.cli.progress._EVERY_S", 0.001)
    with progress("starting") as tell:
        tell("programming")
        assert shown.drawn.wait(30)
        Output().narrate("a remark")
    assert "\r\x1b[Ka remark\n" in shown.getvalue()
    assert "\\x1b" not in shown.getvalue()
    assert shown.getvalue().rpartition("\n")[2].endswith("\r\x1b[K") or shown.getvalue().endswith("a remark\n")


def test_a_pipe_and_quiet_see_none_of_it(monkeypatch):
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stderr", pipe)
    with progress("routing") as tell:
        tell("more")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress("routing", quiet=True) as tell:
        tell("more")
    assert (pipe.getvalue(), terminal.getvalue()) == ("", "")
