"""Counters: whatever they do between two readings, what is made of it is never negative and never huge."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumctl.health.rulebook import Counter, rulebook
from lumctl.health.trend import Tally, Trend, growth, trend_from

NARROW = Counter(bits=8, saturates=True)
WIDE = Counter(bits=32)
kinds = st.builds(Counter, bits=st.sampled_from([4, 8, 16, 32, 64]), saturates=st.booleans())


@pytest.mark.parametrize(
    ("before", "after", "counter", "grown"),
    [
        (7, 9, WIDE, 2),
        (9, 9, WIDE, 0),
        (2**32 - 3, 4, WIDE, 7),
        # Begun again, be it by a reset or a reloaded driver: what it counted before that is not known.
        (5_000, 12, WIDE, None),
        (2**32 - 3, 2**31, WIDE, None),
        # A counter that saturates never wraps.
        (255, 3, NARROW, None),
        (250, 255, NARROW, 5),
        (255, 255, NARROW, 0),
    ],
)
def test_growth(before, after, counter, grown):
    assert growth(before, after, counter) == grown


@given(st.data(), kinds)
def test_growth_is_never_negative_and_never_more_than_was_counted(data, counter):
    values = st.integers(0, counter.greatest)
    before, after = data.draw(values), data.draw(values)
    grown = growth(before, after, counter)
    assert grown is None or 0 <= grown <= max(after, counter.greatest // 1024)


@given(
    st.lists(st.tuples(st.floats(0, 900), st.integers(0, 2**32 - 1), st.booleans()), max_size=60),
    st.sampled_from(sorted(rulebook().windows())),
)
def test_events_are_bounded_whatever_a_counter_says(readings, counter):
    trend, at, most = Trend(), 1000.0, 0
    for wait, value, booted in readings:
        at += wait
        if booted:
            trend.begin_again()
        most = max(most, value)
        trend.read(counter, "p", value, at)
        for window_s in rulebook().windows()[counter]:
            events = trend.events(counter, window_s, at).get("p", 0)
            assert 0 <= events <= len(readings) * max(most, 2**22)


def test_the_first_reading_is_only_compared_with():
    trend = Trend()
    assert trend.read("link_downed", "p", 200, 10.0) == 0
    assert trend.events("link_downed", 600.0, 10.0) == {}
    assert trend.read("link_downed", "p", 201, 20.0) == 1
    assert trend.events("link_downed", 600.0, 20.0) == {"p": 1}
    assert trend.events("link_downed", 600.0, 621.0) == {}


def test_a_reading_that_is_shown_twice_counts_once():
    trend = Trend()
    for value, at in ((5, 1.0), (6, 2.0), (6, 2.0), (7, 2.0)):
        trend.read("link_downed", "p", value, at)
    assert trend.events("link_downed", 600.0, 2.0) == {"p": 1}


def test_a_boot_and_a_clock_that_is_set_back_begin_anew():
    trend = Trend()
    trend.read("carrier_changes", "p", 2, 100.0)
    trend.begin_again()
    trend.read("carrier_changes", "p", 90, 110.0)
    trend.read("carrier_changes", "p", 99, 50.0)
    assert trend.events("carrier_changes", 3600.0, 110.0) == {}
    trend.read("carrier_changes", "p", 100, 60.0)
    assert trend.events("carrier_changes", 3600.0, 60.0) == {"p": 1}


def test_a_rate_over_a_long_time_without_a_look_counts_its_share():
    trend = Trend()
    trend.read("symbol_error", "p", 0, 0.0)
    trend.read("symbol_error", "p", 6000, 600.0)
    # Ten a second over ten minutes are 600 in the last one.
    assert trend.events("symbol_error", 60.0, 600.0) == {"p": 600}
    assert trend.events("symbol_error", 3600.0, 600.0) == {"p": 6000}


def test_what_nobody_looked_at_for_a_day_is_no_event_of_now():
    trend = Trend()
    trend.read("link_downed", "p", 0, 0.0)
    trend.read("link_downed", "p", 50, 90_000.0)
    assert trend.events("link_downed", 600.0, 90_000.0) == {}


@given(st.lists(st.tuples(st.floats(0, 30), st.integers(1, 5)), max_size=300), st.floats(60, 4000))
def test_a_tally_is_bounded_and_off_by_one_step_at_most(events, window_s):
    tally, at, noted = Tally(window_s), 0.0, []
    for wait, count in events:
        at += wait
        tally.add(at, count)
        noted.append((at, count))
    total = tally.total(at)
    step = window_s / 60
    assert total <= sum(count for when, count in noted if when > at - window_s)
    assert total >= sum(count for when, count in noted if when > at - window_s + 2 * step)
    assert len(tally.document()) <= 61
    assert Tally(window_s, tally.document()).total(at) == total


def test_a_trend_survives_being_written():
    trend = Trend(down_since=5.0, quiet_until=3.0, worked={"NVLink 3"})
    for at, value in enumerate((1, 4, 9)):
        trend.read("symbol_error", "mlx5_0/1", value, float(at))
    again = trend_from(trend.document())
    assert again.document() == trend.document()
    assert again.events("symbol_error", 60.0, 2.0) == {"mlx5_0/1": 8}


def test_a_host_that_makes_up_ports_does_not_fill_the_memory():
    trend = Trend()
    for number in range(5000):
        trend.read("symbol_error", f"p{number}", 1, 1.0)
    assert len(trend.counters) <= 512


def test_the_narrow_counters_of_infiniband_are_known_to_saturate():
    assert (rulebook().counters["link_downed"].greatest, rulebook().counters["link_downed"].saturates) == (255, True)
    trend = Trend()
    trend.read("link_downed", "mlx5_1/1", 255, 1.0)
    trend.read("symbol_error", "mlx5_1/1", 255, 1.0)
    assert list(trend.saturated()) == [("link_downed", "mlx5_1/1")]
