"""Lengths and moments of time as operators type them."""

import os
import time
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumctl.cli.times import beginning, ending, moment
from lumctl.errors import UsageError
from lumctl.time_text import LONGEST_S, UNITS_S, length_s

NOON = datetime(2026, 11, 21, 12, 0).astimezone().timestamp()


@pytest.fixture
def berlin(monkeypatch):
    monkeypatch.setitem(os.environ, "TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("30m", 1800), ("2h", 7200), ("1d", 86_400), ("1.5h", 5400), (" 2H ", 7200)]
)
def test_lengths(text, seconds):
    assert length_s(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "2", "h", "-2h", "0s", "2 h", "2w", "1e3s", "nans", "infd", "9999d", "2h30m", "٣h"]
)
def test_what_is_no_length_is_refused_with_examples(text):
    with pytest.raises(UsageError) as error:
        length_s(text)
    assert "90s" in str(error.value.hint)


@given(number=st.integers(1, 10**9), unit=st.sampled_from(sorted(UNITS_S)))
def test_every_length_that_is_taken_ends(number, unit):
    try:
        seconds = length_s(f"{number}{unit}")
    except UsageError:
        assert number * UNITS_S[unit] > LONGEST_S or number >= 10**9
    else:
        assert seconds == number * UNITS_S[unit] <= LONGEST_S


@given(text=st.text(max_size=30))
def test_any_other_text_is_a_length_or_a_domain_error(text):
    for read in (length_s, lambda said: moment(said, NOON)):
        try:
            assert read(text) == read(text)
        except UsageError as error:
            assert error.hint  # noqa: PT017 - either way is right


def test_a_time_of_day_is_the_next_one_to_come():
    assert moment("18:00", NOON) == NOON + 6 * 3600
    assert moment("12:00", NOON) > NOON + 20 * 3600
    assert moment("6:30", NOON) == moment("06:30", NOON)


@pytest.mark.usefixtures("berlin")
def test_a_time_of_day_is_right_on_the_day_on_which_clocks_change():
    evening = datetime(2027, 3, 27, 20, 0).astimezone().timestamp()
    found = datetime.fromtimestamp(moment("18:00", evening))  # noqa: DTZ006
    assert (found.day, found.hour) == (28, 18)  # 21 hours later, not 22


def test_a_date_may_name_its_zone():
    assert moment("2026-11-21T18:00+01:00", NOON) == moment("2026-11-21T17:00Z", NOON)
    assert moment("2026-11-22 18:00", NOON) == NOON + 30 * 3600


@pytest.mark.parametrize("text", ["25:00", "12:60", "tomorrow", "2026-13-01T00:00", "", "99999-01-01"])
def test_what_is_no_moment_is_refused(text):
    with pytest.raises(UsageError, match="not a valid time"):
        moment(text, NOON)


def test_an_end_is_a_length_or_a_moment_and_lies_ahead():
    assert ending(None, None, starts=NOON, now=NOON) is None
    assert ending("2h", None, starts=NOON + 60, now=NOON) == NOON + 60 + 7200
    assert ending(None, "13:00", starts=NOON, now=NOON) == NOON + 3600
    assert ending(None, "16:00", starts=NOON + 3 * 3600, now=NOON) == NOON + 4 * 3600
    for length, until, starts in (
        ("2h", "13:00", NOON),
        (None, "2020-01-01T00:00", NOON),
        (None, "13:00", NOON + 7200),
        ("1h", None, NOON - 7200),
    ):
        with pytest.raises(UsageError):
            ending(length, until, starts=starts, now=NOON)


def test_work_over_midnight_ends_after_it_begins_whatever_the_time_is_now():
    ten_hours_on = NOON + 10 * 3600
    over_midnight = ending(None, "02:00", starts=ten_hours_on, now=NOON)
    assert over_midnight == NOON + 14 * 3600
    thirteen_hours_back = NOON - 11 * 3600
    assert ending(None, "02:00", starts=ten_hours_on, now=thirteen_hours_back) == over_midnight


def test_a_period_begins_a_length_ago_or_at_a_time_that_was():
    assert beginning("2h", NOON) == NOON - 7200
    assert beginning("2026-11-20T12:00", NOON) == NOON - 86_400
    assert beginning("09:00", NOON) == NOON - 3 * 3600
    assert beginning("18:00", NOON) == NOON - 18 * 3600  # yesterday
    with pytest.raises(UsageError, match="'soon' is not a valid time"):
        beginning("soon", NOON)
