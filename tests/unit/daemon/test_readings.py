"""Readings reach their store a minute later; a store that is full or gone costs no look and, for a while, no minute."""

import pytest

from lumctl.daemon.history import ReadingHistory
from lumctl.daemon.process import ErrorLog
from lumctl.store.packing import Values

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

    def add_readings(self, minutes):
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
