"""What a lane carries in a time, by a clock that the test holds."""

import math

import pytest

from lumctl.sim.lanes.joint import Bucket


def test_over_time_the_rate_is_exact():
    bucket, now, taken = Bucket(1e6), 100.0, 0
    while now < 110.0:
        now = bucket.ready_at(now)
        bucket.take(bucket.piece, now)
        taken += bucket.piece
    assert taken == pytest.approx(10e6, rel=0.01)


def test_who_takes_a_piece_leaves_a_debt():
    bucket = Bucket(1e6)
    while bucket.ready_at(0.0) == 0.0:
        bucket.take(bucket.piece, 0.0)
    later = bucket.ready_at(0.0)
    assert 0.0 < later <= bucket.piece / 1e6 + 1e-6
    assert bucket.ready_at(later) == later


def test_a_long_rest_saves_up_a_few_milliseconds_and_no_more():
    bucket, taken = Bucket(1e6), 0
    while bucket.ready_at(1000.0) == 1000.0:
        bucket.take(bucket.piece, 1000.0)
        taken += bucket.piece
    assert taken <= 0.005 * 1e6 + 2 * bucket.piece


def test_without_a_rate_nobody_waits():
    bucket = Bucket(math.inf)
    bucket.take(1 << 40, 0.0)
    assert bucket.ready_at(0.0) == 0.0


@pytest.mark.parametrize("rate", [1e5, 1e6, 1e9])
@pytest.mark.parametrize("late_s", [0.0, 0.002, 0.05])
def test_a_late_timer_loses_nothing_while_somebody_waits(rate, late_s):
    bucket, now, taken = Bucket(rate), 0.0, 0
    while now < 4.0:
        due = bucket.ready_at(now)
        now = due + late_s
        bucket.take(bucket.piece, now, due=due)
        taken += bucket.piece
        while bucket.ready_at(now) == now:
            bucket.take(bucket.piece, now)
            taken += bucket.piece
    assert taken == pytest.approx(now * rate, rel=0.02, abs=2 * bucket.piece)


def test_who_waited_for_another_lane_leaves_no_room_behind():
    """A lane that one connection uses at half its rate does not save up the other half for the next."""
    bucket, now = Bucket(1e6), 0.0
    for _ in range(1000):
        now += 2 * bucket.piece / 1e6
        bucket.take(bucket.piece, now, due=now)
    taken = 0
    while bucket.ready_at(now) == now:
        bucket.take(bucket.piece, now)
        taken += bucket.piece
    assert taken <= 0.005 * 1e6 + 2 * bucket.piece
