"""How long a replay that is watched waits before each step."""

import pytest

from lumctl.runbook.playback import LONGEST_S, SHORTENED_S, wait_of, waits

DOCUMENT = {
    "recorded": {"at": "2026-11-21T03:12:07.000+00:00"},
    "steps": [
        {"id": "1", "at": "2026-11-21T03:12:08.500+00:00"},
        {"id": "2", "at": "2026-11-21T03:12:10.500+00:00"},
        {"id": "3", "at": "2026-11-21T03:12:10.500+00:00"},
        {"id": "4", "at": "2026-11-21T03:20:10.500+00:00"},
        {"id": "5", "at": "2026-11-21T03:20:09.000+00:00"},
        {"id": "6"},
    ],
}


def test_each_step_waits_for_as_long_as_it_was_after_the_one_before():
    found = waits(DOCUMENT, 1.0)
    assert [found[step].seconds for step in "1235"] == [1.5, 2.0, 0.0, 0.0]
    assert (found["4"].seconds, found["4"].recorded, found["4"].shortened) == (SHORTENED_S, 480.0, True)
    assert not found["1"].shortened
    assert "6" not in found  # it was not reached


@pytest.mark.parametrize(("recorded", "speed", "seconds"), [(4.0, 2.0, 2.0), (100.0, 2.0, 2.5), (4.0, 0.1, LONGEST_S)])
def test_a_wait_is_played_so_many_times_as_fast_and_never_too_long(recorded, speed, seconds):
    assert wait_of(recorded, speed).seconds == pytest.approx(seconds)


def test_a_moment_that_was_edited_into_none_is_waited_for_by_nobody():
    document = {"recorded": {"at": "yesterday"}, "steps": [{"id": "1", "at": "2026-11-21T03:12:08.500+00:00"}]}
    assert waits(document, 1.0)["1"].seconds == 0.0
