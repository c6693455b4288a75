"""Readings fold into minutes and reach their store a minute later, also if it is full or gone for a while."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumctl.daemon.history import MinuteFolds, ReadingHistory, merged_minutes
from lumctl.daemon.process import ErrorLog
from lumctl.store.packed_hours import Values

GPU, LANE = "s1-gpu0", "s1-gpu0-l0"


class Store:
    """Keeps what it is given, or fails on command."""

    def __init__(self):
        self.kept = {}
        self.full = False
        self.opened = self.closed = 0

    def open(self, rack):
        assert rack == "prototype"
        self.opened += 1
        return self

    @property
    def readings(self):
        return self

    def add(self, minutes):
        if self.full:
            raise OSError(28, "No space left on device")
        self.kept |= minutes

    def close(self):
        self.closed += 1


@pytest.fixture
def store():
    return Store()


@pytest.fixture
def readings(store, said):
    return ReadingHistory(store.open, ErrorLog(said.append), most=3)


def look_at(readings, seen, seconds):
    for _ in range(seconds):
        readings.see(seen.look())
        seen.now += 1


def test_a_minute_is_written_when_it_is_over(readings, store, seen):
    begun = int(seen.now // 60)
    look_at(readings, seen, 62)
    readings.write()
    assert list(store.kept) == [begun - 1, begun]  # the first reading was a second old
    power = store.kept[begun][GPU]["power"]
    assert power == Values(300.0, 300.0, 300.0)
    lane = next(iter(seen.inventory.transponders))
    assert store.kept[begun][lane]["sends"] == Values(0.5, 0.5, 0.5)
    assert set(store.kept[begun]) == {*seen.inventory.accelerators, *seen.inventory.transponders}


def test_what_is_not_read_any_more_leaves_a_gap(readings, store, seen):
    begun = int(seen.now // 60)
    look_at(readings, seen, 62)
    seen.gpu_read_at = seen.now - 1
    look_at(readings, seen, 120)
    readings.write()
    assert GPU in store.kept[begun]
    assert GPU not in store.kept[begun + 2]


def test_a_full_store_is_said_once_opened_anew_and_gets_what_waited(readings, store, seen, said):
    store.full = True
    for _ in range(3):
        look_at(readings, seen, 60)
        readings.write()
    assert len(said) == 1
    assert said[0].startswith("readings: ")
    store.full = False
    readings.write()
    assert said[1:] == ["readings: ok again after 2 failures"]
    assert store.opened == 3
    assert len(store.kept) == 3
    readings.write()
    assert len(said) == 2


def test_memory_is_bounded_and_the_oldest_minutes_go(readings, store, seen):
    begun = int(seen.now // 60)
    store.full = True
    look_at(readings, seen, 60 * 6 + 1)
    store.full = False
    readings.write()
    assert list(store.kept) == [begun + 3, begun + 4, begun + 5]


def test_the_end_writes_the_minute_that_is_not_over(readings, store, seen):
    begun = int(seen.now // 60)
    with readings:
        look_at(readings, seen, 5)
    assert begun in store.kept
    assert store.closed == 1


READINGS = st.lists(st.tuples(st.integers(0, 600), st.floats(-1e6, 1e6)), max_size=40, unique_by=lambda each: each[0])


@given(READINGS)
def test_each_minute_holds_the_least_the_mean_and_the_greatest(readings):
    folding = MinuteFolds()
    for at, value in sorted(readings):
        folding.add("g1", float(at), [("power", value)])
    by_minute = {}
    for at, value in readings:
        by_minute.setdefault(at // 60, []).append(value)
    folded = folding.take()
    assert set(folded) == set(by_minute)
    for minute, values in by_minute.items():
        low, mean, high = folded[minute]["g1"]["power"]
        assert (low, high) == (min(values), max(values))
        assert math.isclose(mean, sum(values) / len(values), abs_tol=1e-6)


def test_a_reading_that_was_not_taken_anew_counts_once():
    folding = MinuteFolds()
    for _ in range(9):
        folding.add("g1", 5.0, [("power", 100.0)])
    folding.add("g1", 6.0, [("power", 200.0)])
    assert folding.take() == {0: {"g1": {"power": Values(100.0, 150.0, 200.0)}}}


def test_only_minutes_that_are_over_are_handed_on():
    folding = MinuteFolds()
    folding.add("g1", 59.0, [("power", 1.0)])
    folding.add("g1", 61.0, [("power", 2.0)])
    assert list(folding.take(before=61.5)) == [0]
    assert list(folding.take(before=119.0)) == []
    assert list(folding.take(before=120.0)) == [1]
    assert folding.take() == {}


def test_a_minute_in_which_the_light_went_out():
    folding = MinuteFolds()
    for at, value in ((1.0, -4.0), (2.0, -math.inf), (3.0, math.nan)):
        folding.add("l1", at, [("receives", value)])
    assert folding.take() == {0: {"l1": {"receives": Values(-math.inf, -4.0, -4.0)}}}


def test_two_parts_of_a_minute_become_one():
    one = {0: {"g1": {"power": Values(1.0, 2.0, 3.0)}}}
    other = {0: {"g1": {"power": Values(0.0, 4.0, 5.0)}, "g2": {}}, 1: {"g1": {}}}
    assert merged_minutes(one, other) == {0: {"g1": {"power": Values(0.0, 3.0, 5.0)}, "g2": {}}, 1: {"g1": {}}}
