"""An hour of readings comes back from its bytes as it was, and parts of one hour make one."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumctl.store.packed_hours import MINUTES, Values, both, merged, pack, unpack

NUMBERS = st.floats(width=32, allow_nan=False)
VALUES = st.builds(Values, NUMBERS, NUMBERS, NUMBERS)
HOURS = st.dictionaries(
    st.text(min_size=1, max_size=30), st.dictionaries(st.integers(0, MINUTES - 1), VALUES, max_size=MINUTES), max_size=9
)


@given(HOURS)
def test_what_is_packed_is_unpacked(hour):
    assert unpack(pack(hour)) == hour


@given(HOURS, HOURS)
def test_to_add_a_part_again_changes_nothing_but_how_it_is_rounded(hour, added):
    once = merged(hour, added)
    again = merged(once, added)
    for name, minutes in once.items():
        for minute, values in minutes.items():
            assert (again[name][minute].low, again[name][minute].high) == (values.low, values.high)
    assert merged(hour, hour) == hour


@given(HOURS, HOURS)
def test_nothing_is_lost_in_a_merge(hour, added):
    whole = merged(hour, added)
    for part in (hour, added):
        for name, minutes in part.items():
            for minute, values in minutes.items():
                assert whole[name][minute].low <= values.low
                assert whole[name][minute].high >= values.high


def test_an_hour_in_which_nothing_changes_is_small():
    still = {minute: Values(0.0, 0.0, 0.0) for minute in range(MINUTES)}
    assert len(pack(dict.fromkeys(("ECC uncorrectable", "ECC correctable", "ECC all time"), still))) < 120


def test_light_that_went_out_in_a_minute_leaves_the_mean_of_what_there_was():
    dark = Values(-math.inf, -math.inf, -math.inf)
    assert both(dark, Values(-4.5, -4.25, -4.0)) == Values(-math.inf, -4.25, -4.0)
    assert both(dark, dark) == dark


@pytest.mark.parametrize("body", [b"", b"\x02", b"\x01", b"\x01abc", pack({"power": {}})[:-3]])
def test_what_is_no_packed_hour_is_told(body):
    with pytest.raises(ValueError, match="packed hour"):
        unpack(body)
