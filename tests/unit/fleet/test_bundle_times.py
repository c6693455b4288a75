"""When a capture was made, by its own words."""

from datetime import UTC, datetime

import pytest

from lumctl.fleet.bundle.reader import log_time, smi_time

AT = datetime(2025, 2, 23, 16, 30, 13, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    "stamp",
    [
        "[Sun Feb 23 16:30:13 2025]",
        "[Sun Feb 23 16:30:13 2025] [  T1234]",
        "2025-02-23T16:30:13+00:00",
        "2025-02-23T17:30:13,000000+01:00",
        "2025-02-23 16:30:13",
        "kern  :err   : [Sun Feb 23 16:30:13 2025]",
    ],
)
def test_every_form_that_has_a_calendar(stamp):
    assert log_time(f"{stamp} NVRM: Xid (PCI:0000:9b:00): 119\n") == AT


def test_the_newest_counts_wherever_it_stands():
    assert log_time("[Sun Feb 23 16:30:13 2025] b\n[Sun Feb 23 16:24:18 2025] a\nno stamp\n") == AT


@pytest.mark.parametrize("log", ["", "[   12.345678] since boot only\n", "[Sun Feb 99 16:30:13 2025] no such day\n"])
def test_no_time_is_no_time(log):
    assert log_time(log) is None


def test_a_stamp_far_above_all_others_is_passed_over():
    log = "[Sun Feb 23 16:24:18 2025] a\n[Sun Feb 23 16:30:13 2025] b\n[Sun Feb 23 16:30:13 2925] damaged\n"
    assert log_time(log) == AT


@pytest.mark.parametrize(
    "text",
    [
        "<timestamp>Sun Feb 23 16:30:13 2025</timestamp>",
        "Timestamp                     : Sun Feb 23 16:30:13 2025\nDriver Version : 1\n",
        "<timestamp>Sun Feb 23 16:00:00 2025</timestamp><timestamp>Sun Feb 23 16:30:13 2025</timestamp>",
    ],
)
def test_nvidia_smi_states_its_own(text):
    assert smi_time(text) == AT


@pytest.mark.parametrize("text", ["", "<timestamp>N/A</timestamp>", "<timestamp>Sun Foo 23 16:30:13 2025</timestamp>"])
def test_nvidia_smi_states_none(text):
    assert smi_time(text) is None
