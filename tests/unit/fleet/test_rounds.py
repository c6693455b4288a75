import itertools
import threading
import time
from math import inf

import pytest

from lumctl.fleet import rounds
from lumctl.fleet.rounds import Owed, Round

PATIENCE_S = 20.0


def never(_now):
    pytest.fail("all is well, and somebody looked for what is late")


def settled(round_):
    """Whether nothing is owed: otherwise the wait would look for what is late, and end at once."""
    looked = []
    round_.wait(time.monotonic() + 0.02, lambda now: looked.append(now) or inf)
    started = time.monotonic()
    round_.wait(started + 0.02, lambda _: inf)
    return time.monotonic() - started < 0.015


def later(call):
    thread = threading.Timer(0.02, call)
    thread.start()
    return thread


def test_nobody_is_waited_for():
    Round().wait(inf, never)


def test_the_last_answer_ends_it():
    round_ = Round()
    hosts = [Owed(round_, [0, 1]), Owed(round_, [5])]
    for host in hosts:
        for probe in host.probes:
            host.require(probe, 3)
    hosts[0].answered(0, 3)
    hosts[1].answered(5, 3)
    assert not settled(round_)
    answering = later(lambda: hosts[0].answered(1, 3))
    started = time.monotonic()
    round_.wait(started + PATIENCE_S, never)
    assert time.monotonic() - started < PATIENCE_S / 2
    answering.join()


def test_it_ends_in_its_time():
    round_ = Round()
    Owed(round_, [0])
    started = time.monotonic()
    round_.wait(started + 0.05, never)
    assert 0.05 <= time.monotonic() - started < 2.0


def test_what_is_late_is_looked_for_again_and_again_and_when_it_says(monkeypatch):
    monkeypatch.setattr(rounds, "_LOOK_S", 0.01)
    round_ = Round()
    owed = Owed(round_, [0])
    looks = []

    def expire(now):
        looks.append(now)
        if len(looks) == 5:
            owed.forgive_all()
        return inf

    round_.wait(inf, expire)
    assert len(looks) == 5
    assert all(after - before >= 0.009 for before, after in itertools.pairwise(looks))


def test_a_deadline_is_met_before_the_next_look(monkeypatch):
    monkeypatch.setattr(rounds, "_LOOK_S", 0.1)
    round_ = Round()
    owed = Owed(round_, [0])
    looks = []

    def expire(now):
        looks.append(now)
        if len(looks) == 2:
            owed.forgive(0)
        return now + 0.02

    round_.wait(inf, expire)
    assert looks[1] - looks[0] < 0.09


def test_only_an_answer_to_the_right_request_counts():
    round_ = Round()
    owed = Owed(round_, [4])
    # What is under way was begun before anybody asked for something new.
    owed.answered(4, 7)
    assert owed.probes == {4}
    owed.require(4, 8)
    owed.answered(4, 7)
    owed.answered(3, 8)
    assert owed.probes == {4}
    owed.answered(4, 9)
    assert owed.probes == frozenset()
    round_.wait(inf, never)


def test_forgiving_twice_lets_no_other_go():
    round_ = Round()
    owed, other = Owed(round_, [1, 2]), Owed(round_, [1])
    owed.forgive_all()
    owed.forgive_all()
    owed.forgive(1)
    assert not settled(round_)
    other.forgive(1)
    round_.wait(inf, never)


def test_a_host_that_owes_nothing_is_not_counted():
    round_ = Round()
    Owed(round_, [])
    round_.wait(inf, never)
