"""Transitions survive a store that has no room, as far as memory goes, and reach it in order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumctl.daemon.history import PAUSE_S, TransitionQueue
from lumctl.health.states import State
from lumctl.health.transitions import Transition


class Store:
    """Fails on command."""

    def __init__(self):
        self.rows = []
        self.full = set()

    def write(self, rack, changes):
        if rack in self.full:
            raise OSError(28, "No space left on device")
        self.rows += [(rack, change) for change in changes]


def change(number):
    return Transition(float(number), f"gpu{number}", "accelerator", State.OK, State.FAILED, ("gpu.lost",), "gone")


@pytest.fixture
def store():
    return Store()


def test_what_waits_is_written_once(store, clock):
    history = TransitionQueue(store.write, monotonic=clock)
    history.add("r1", change(1))
    history.add("r1", change(2))
    assert history.flush() is True
    assert history.flush() is False
    assert store.rows == [("r1", change(1)), ("r1", change(2))]


def test_a_full_store_is_left_alone_for_a_while_and_loses_nothing(store, clock):
    history = TransitionQueue(store.write, monotonic=clock)
    store.full = {"r1"}
    history.add("r1", change(1))
    history.add("r2", change(2))
    with pytest.raises(OSError, match="No space"):
        history.flush()
    assert store.rows == [("r2", change(2))]
    assert (history.waiting, history.failures) == (1, 1)
    store.full = set()
    history.add("r1", change(3))
    assert history.flush() is False
    clock.at += PAUSE_S
    assert history.flush() is True
    assert store.rows[1:] == [("r1", change(1)), ("r1", change(3))]
    assert history.waiting == 0


def test_memory_is_bounded_and_the_oldest_go(store, clock):
    history = TransitionQueue(store.write, most=3, monotonic=clock)
    for number in range(5):
        history.add("r1", change(number))
    assert (history.waiting, history.dropped) == (3, 2)
    history.flush()
    assert [each.component for _, each in store.rows] == ["gpu2", "gpu3", "gpu4"]


@given(st.lists(st.one_of(st.sampled_from(["r1", "r2"]), st.sampled_from(["full r1", "full r2", "room", "flush"]))))
def test_whatever_happens_each_is_written_once_and_in_order(script):
    store, at = Store(), [0.0]
    history = TransitionQueue(store.write, monotonic=lambda: at[0])
    added = []
    for number, word in enumerate([*script, "room", "flush"]):
        at[0] += PAUSE_S
        if word == "room":
            store.full = set()
        elif word.startswith("full"):
            store.full.add(word.split()[1])
        elif word == "flush":
            try:
                history.flush()
            except OSError:
                assert store.full
        else:
            history.add(word, change(number))
            added.append((word, change(number)))
    for rack in ("r1", "r2"):
        assert [row for row in store.rows if row[0] == rack] == [row for row in added if row[0] == rack]
