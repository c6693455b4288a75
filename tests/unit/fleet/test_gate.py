import threading
import time

import pytest

from lumctl.fleet.rounds import Gate

PATIENCE_S = 20.0


class Visitor:
    """Goes through a gate and stays inside until told to leave."""

    def __init__(self, gate):
        self.inside, self.leave = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self._visit, args=(gate,), daemon=True)
        self.thread.start()

    def _visit(self, gate):
        with gate.passing():
            self.inside.set()
            self.leave.wait(PATIENCE_S)


@pytest.fixture
def visit():
    visitors = []

    def visit(gate, count=1):
        new = [Visitor(gate) for _ in range(count)]
        visitors.extend(new)
        return new

    yield visit
    for visitor in visitors:
        visitor.leave.set()
    for visitor in visitors:
        visitor.thread.join(PATIENCE_S)
        assert not visitor.thread.is_alive()


def test_no_more_than_so_many_at_a_time(visit):
    gate = Gate(most=2, patience_s=PATIENCE_S)
    first = visit(gate, 2)
    assert all(each.inside.wait(PATIENCE_S) for each in first)
    third, fourth = visit(gate, 2)
    assert not third.inside.wait(0.05)
    assert not fourth.inside.is_set()
    # Who leaves lets in one.
    first[0].leave.set()
    waiting = [third, fourth]
    started = time.monotonic()
    while not any(each.inside.is_set() for each in waiting):
        assert time.monotonic() - started < PATIENCE_S / 2
        time.sleep(0.001)
    time.sleep(0.02)
    assert sum(each.inside.is_set() for each in waiting) == 1
    first[1].leave.set()
    assert all(each.inside.wait(PATIENCE_S / 2) for each in waiting)


def test_those_who_stay_long_do_not_keep_the_others_out(visit):
    gate = Gate(most=2, patience_s=0.1)
    long = visit(gate, 2)
    assert all(each.inside.wait(PATIENCE_S) for each in long)
    # Nobody leaves, and all come in: at most two at a time, so the sixth waits for two patiences more.
    started = time.monotonic()
    others = visit(gate, 6)
    assert all(each.inside.wait(PATIENCE_S) for each in others)
    assert 0.25 <= time.monotonic() - started < PATIENCE_S / 2


def test_an_error_gives_the_place_back():
    gate = Gate(most=1, patience_s=PATIENCE_S)
    for _ in range(3):
        started = time.monotonic()
        with pytest.raises(ZeroDivisionError), gate.passing():
            _ = 1 / 0
        assert time.monotonic() - started < PATIENCE_S / 2
