"""What makes a waiting guard act, and what lets it go: time and the pipes' readiness are told to it."""

import os

import pytest

from lumctl.change.guard_watch import GONE, SILENT, STOP_GRACE_S, STOPPED, Watch


class Pipes:
    """The engine's pipe and the one of signals, with a clock that only waiting moves."""

    def __init__(self) -> None:
        self.read, self.write = os.pipe()
        self.stop, self.stopping = os.pipe()
        self.time = 100.0
        self.script: list = []

    def at(self, seconds, do):
        """Something happens so many seconds after the start."""
        self.script.append((100.0 + seconds, do))

    def says(self, text):
        return lambda: os.write(self.write, text)

    def ends(self):
        os.close(self.write)
        self.write = None

    def told_to_end(self):
        os.write(self.stopping, b"\x0f")

    def wait(self, files, seconds):
        until = self.time + (3600.0 if seconds is None else seconds)
        if not self.script or self.script[0][0] > until:
            self.time = until
            return []
        self.time, do = self.script.pop(0)
        do()
        ready = {do.__func__: self.stop} if getattr(do, "__func__", None) is Pipes.told_to_end else {}
        return [next(iter(ready.values()), self.read)] if files else []

    def watch(self, silent_s=60.0):
        """One that was armed at the start."""
        os.write(self.write, f"{silent_s}\n".encode())
        self.script.insert(0, (100.0, lambda: None))
        return self.standing_by()

    def standing_by(self):
        return Watch(self.read, self.stop, clock=lambda: self.time, wait=self.wait)

    def close(self):
        for end in (self.read, self.write, self.stop, self.stopping):
            if end is not None:
                os.close(end)


@pytest.fixture
def pipes():
    made = Pipes()
    yield made
    made.close()


def test_an_engine_that_says_that_it_has_ended_lets_the_guard_go(pipes):
    pipes.at(1, pipes.says(b"70.000\n6"))
    pipes.at(60, pipes.says(b"2.5\nend\n"))
    assert pipes.watch().reason() is None
    assert pipes.time == 160


def test_an_engine_that_is_gone_is_not_waited_for(pipes):
    pipes.at(1, pipes.says(b"70.000\n"))
    pipes.at(3, pipes.ends)
    assert pipes.watch().reason() == GONE
    assert pipes.time == 103


def test_an_engine_that_is_gone_in_mid_word_is_gone(pipes):
    pipes.at(1, pipes.says(b"en"))
    pipes.at(3, pipes.ends)
    assert pipes.watch().reason() == GONE


def test_an_engine_that_says_nothing_is_given_its_time(pipes):
    assert pipes.watch(62.0).reason() == SILENT
    assert pipes.time == 162


def test_whatever_it_says_begins_its_time_anew(pipes):
    pipes.at(50, pipes.says(b"10.000\n"))
    pipes.at(59, pipes.says(b"1.000\n302.000\n"))
    watch = pipes.watch(62.0)
    assert watch.reason() == SILENT
    assert (pipes.time, watch.silent_s) == (100 + 59 + 302, 302.0)


def test_half_a_word_shows_that_it_lives_and_changes_no_time(pipes):
    pipes.at(50, pipes.says(b"99"))
    assert pipes.watch(62.0).reason() == SILENT
    assert pipes.time == 212


def test_a_guard_that_is_told_to_end_gives_its_engine_a_moment_to_end_by_itself(pipes):
    pipes.at(5, pipes.told_to_end)
    pipes.at(9, pipes.says(b"62.000\n"))
    pipes.at(12, pipes.says(b"end\n"))
    assert pipes.watch().reason() is None


def test_and_then_acts(pipes):
    pipes.at(5, pipes.told_to_end)
    pipes.at(9, pipes.says(b"62.000\n"))
    assert pipes.watch().reason() == STOPPED
    assert pipes.time == 100 + 9 + STOP_GRACE_S


def test_and_acts_at_once_where_its_engine_is_gone(pipes):
    pipes.at(5, pipes.told_to_end)
    pipes.at(6, pipes.ends)
    assert pipes.watch().reason() == GONE


def test_one_that_stands_by_waits_for_as_long_as_it_takes(pipes):
    pipes.at(5000, pipes.says(b"62.000\n"))
    watch = pipes.standing_by()
    assert watch.reason() == SILENT
    assert pipes.time == 100 + 5000 + 62


@pytest.mark.parametrize("end", ["ends", "told_to_end"])
def test_one_that_stands_by_has_nothing_to_take_back(pipes, end):
    pipes.at(5, getattr(pipes, end))
    assert pipes.standing_by().reason() is None
    assert pipes.time == (105 if end == "ends" else 105 + STOP_GRACE_S)
