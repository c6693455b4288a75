"""Beats come at fixed times; missed ones are counted, and never made up for."""

from hypothesis import given
from hypothesis import strategies as st

from lumctl.daemon.loop import Cadence


def test_a_short_look_waits_for_the_next_beat(clock):
    cadence = Cadence(1.0, clock)
    clock.at += 0.25
    assert cadence.to_next() == (0.75, 0)


def test_a_long_look_misses_beats_and_keeps_the_time(clock):
    cadence = Cadence(1.0, clock)
    clock.at += 3.25
    assert cadence.to_next() == (0.75, 3)
    clock.at += 0.75
    assert cadence.to_next() == (1.0, 0)


def test_a_look_that_takes_just_one_interval_misses_none(clock):
    cadence = Cadence(1.0, clock)
    clock.at += 1.0
    assert cadence.to_next() == (0.0, 0)


@given(st.sampled_from([0.25, 0.5, 1.0, 2.0]), st.lists(st.integers(0, 200), max_size=20))
def test_every_beat_stands_on_the_grid_and_none_lies_in_the_past(interval, looks):
    at = [1000.0]
    cadence = Cadence(interval, lambda: at[0])
    beats = 0
    for eighths in looks:
        at[0] += eighths / 8
        wait, missed = cadence.to_next()
        beats += missed + 1
        assert 0 <= wait <= interval
        assert missed >= 0
        at[0] += wait
        assert at[0] == 1000.0 + beats * interval
