"""Looks are folded into minutes: nothing that was read is lost, and what was not read anew counts once."""

import math

from hypothesis import given
from hypothesis import strategies as st

from lumctl.daemon.history import MinuteFolds, merged_minutes
from lumctl.store.packing import Values

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
