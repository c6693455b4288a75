"""When a policy may act: by the clock on the wall of its time zone."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from lumctl.daemon.autopilot.policy import hours_text, open_now
from lumctl.inventory.policies import Hours, How, Policy, Selector

BERLIN = "Europe/Berlin"
WORKDAYS = frozenset(range(5))


def at(text: str, zone: str = BERLIN) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()


def policy(*hours: Hours, zone: str = BERLIN) -> Policy:
    return Policy("p", How.APPLY, Selector(("gpu.lost",)), timezone=zone, hours=hours)


def test_without_hours_it_is_open():
    assert open_now(policy(), 0.0) == (True, None)


@pytest.mark.parametrize(
    ("now", "expected", "until"),
    [
        ("2026-11-20 07:59", False, "2026-11-20 08:00"),
        ("2026-11-20 08:00", True, "2026-11-20 18:00"),
        ("2026-11-20 18:00", False, "2026-11-23 08:00"),
        ("2026-11-21 12:00", False, "2026-11-23 08:00"),
    ],
)
def test_on_workdays(now, expected, until):
    assert open_now(policy(Hours(WORKDAYS, 480, 1080)), at(now)) == (expected, at(until))


def test_a_night_belongs_to_the_day_on_which_it_begins():
    nights = policy(Hours(frozenset({4}), 22 * 60, 6 * 60))
    assert open_now(nights, at("2026-11-21 05:59")) == (True, at("2026-11-21 06:00"))
    assert open_now(nights, at("2026-11-20 05:59"))[0] is False


def test_hours_that_follow_each_other_are_one():
    both = policy(Hours(WORKDAYS, 480, 1440), Hours(frozenset({5}), 0, 120))
    assert open_now(both, at("2026-11-20 12:00")) == (True, at("2026-11-21 02:00"))


def test_on_the_day_on_which_clocks_change_eight_is_eight():
    daily = policy(Hours(frozenset(range(7)), 480, 1080))
    assert open_now(daily, at("2026-10-25 07:59")) == (False, at("2026-10-25 08:00"))


def test_in_words():
    assert hours_text(policy(Hours(WORKDAYS, 480, 1080))) == "mon-fri 08:00-18:00 (Europe/Berlin)"
    assert hours_text(policy(Hours(frozenset({1, 5}), 0, 1440), zone="UTC")) == "tue,sat 00:00-24:00 (UTC)"
