"""One form for moments and ages; what is printed can be typed again."""

import time

import pytest

from lumctl.cli.times import moment
from lumctl.time_text import age_text, ago_text, iso_text, moment_text, moment_with_age, seconds_of

AT = 1_800_000_000.25


@pytest.fixture(params=["UTC", "Europe/Berlin", "Asia/Kolkata"])
def zone(request, monkeypatch):
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield request.param
    monkeypatch.undo()
    time.tzset()


def test_a_moment_names_its_zone_and_can_be_typed_again(zone):
    offset = {"UTC": "+00:00", "Europe/Berlin": "+01:00", "Asia/Kolkata": "+05:30"}[zone]
    assert moment_text(AT).endswith(offset)
    assert iso_text(AT).endswith(offset)
    assert moment(moment_text(AT), 0.0) == int(AT)
    assert moment(iso_text(AT), 0.0) == seconds_of(iso_text(AT)) == AT


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-1, "0.0s"), (0.44, "0.4s"), (9.94, "9.9s"), (10, "10s"), (99.9, "99s"), (100, "1m"), (5999, "99m"),
     (6000, "1h"), (47.9 * 3600, "47h"), (48 * 3600, "2d"), (30 * 86_400, "30d")],
)  # fmt: skip
def test_an_age_has_one_unit(seconds, text):
    assert age_text(seconds) == text


def test_what_is_to_come_says_in():
    assert ago_text(AT, AT + 720) == "12m ago"
    assert ago_text(AT + 7200, AT) == "in 2h"
    assert moment_with_age(AT, AT + 3).endswith(" (3.0s ago)")
