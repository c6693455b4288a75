"""Rates that are given, and rates from the history in a store."""

import pytest

from lumctl.errors import UsageError
from lumctl.health.states import State
from lumctl.health.transitions import Transition
from lumctl.spares.rates import (
    FailureHistory,
    Outage,
    RateEstimate,
    RateRange,
    failure_history,
    host_rate,
    outages,
    poisson_interval,
    read_rates,
)
from lumctl.store import store_at

DAY_S = 86_400.0
START = 1_800_000_000.0


@pytest.fixture
def store(tmp_path):
    store = store_at(f"sqlite:///{tmp_path / 'lumctl.db'}", files=tmp_path, rack="r1")
    yield store
    store.close()


def change(day, component, after, kind="accelerator"):
    return Transition(START + day * DAY_S, component, kind, None, after, (), "")


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("0.02", 0.02, 0.02),
        (" 2% ", 0.02, 0.02),
        ("0.01-0.03", 0.01, 0.03),
        ("1-3%", 0.01, 0.03),
        ("1%-3%", 0.01, 0.03),
        ("1e-3 - 2e-3", 0.001, 0.002),
        ("0", 0, 0),
    ],
)
def test_a_rate_or_a_range_is_read(text, low, high):
    assert read_rates(text, "--failure-rate") == RateRange(low, high)


@pytest.mark.parametrize("text", ["", "x", "-0.1", "nan", "inf", "1", "2", "1e999", "1-3", "0.1-0.2-0.3", "1%-3"])
def test_what_is_no_rate_is_refused_with_its_place(text):
    with pytest.raises(UsageError) as caught:
        read_rates(text, "--failure-rate")
    assert caught.value.message.startswith(f"--failure-rate: {text!r} is not a probability from 0 to below 1")


def test_a_range_is_written_from_below():
    with pytest.raises(UsageError, match="the lower end of '3-1%' is above the upper one"):
        read_rates("3-1%", "--failure-rate")


@pytest.mark.parametrize(
    ("count", "low", "high"),
    # Chi-square quantiles: R, qchisq(c(.025, .975), c(2 n, 2 n + 2)) / 2
    [(0, 0.0, 3.688879), (1, 0.0253178, 5.571643), (10, 4.795389, 18.390356), (100, 81.363993, 121.626794)],
)
def test_the_interval_of_a_count_is_exact(count, low, high):
    assert poisson_interval(count) == pytest.approx((low, high), rel=1e-6)


def test_an_outage_lasts_until_the_component_works_again():
    rows = [
        change(1, "g1", State.DEGRADED),
        change(2, "g1", State.FAILED),
        change(2.5, "g2", State.DISABLED),  # maintenance of a healthy one
        change(3, "g1", State.DISABLED),  # a swap removed it from its job
        change(4, "g1", State.UNKNOWN),
        change(5, "g1", State.FAILED),
        change(7, "g1", State.OK),
        change(8, "h1", State.FAILED, "host"),
        change(9, "g1", State.FAILED),
    ]
    at = [START + day * DAY_S for day in range(10)]
    assert outages(rows, "accelerator") == {"g1": [Outage(at[2], at[7]), Outage(at[9], None)]}
    assert outages(rows, "host") == {"h1": [Outage(at[8], None)]}


def test_an_empty_store_is_an_error_and_no_guess(store):
    with pytest.raises(UsageError, match="the store of r1 has no history; to estimate failure rates, a day is needed"):
        failure_history(store, "r1")


def test_less_than_a_day_is_too_little(store):
    store.health.add_transitions([change(0, "g1", State.FAILED), change(0.01, "g1", State.OK)])
    with pytest.raises(UsageError, match="the store of r1 has 14m of history"):
        failure_history(store, "r1")
    store.health.remember({}, now=START + DAY_S)
    assert failure_history(store, "r1").until == START + DAY_S


def test_failures_are_counted_per_time_in_service(store):
    store.health.add_transitions(
        [
            change(0, "g9", State.DEGRADED),  # the history begins here
            change(10, "g1", State.FAILED),
            change(12, "g1", State.OK),
            change(20, "g2", State.FAILED),
            change(26, "g2", State.OK),
            change(30, "g3", State.FAILED),
        ]
    )
    store.health.remember({}, now=START + 40 * DAY_S)
    history = failure_history(store, "r1")
    assert (history.since, history.until) == (START, START + 40 * DAY_S)
    found = history.estimate("accelerator", [f"g{number}" for number in range(10)])
    assert (found.failures, found.repaired) == (3, 2)
    assert found.down_s == pytest.approx((2 + 6 + 10) * DAY_S)
    assert found.in_service_s == pytest.approx((400 - 18) * DAY_S)
    assert found.repair_s == pytest.approx(9 * DAY_S)  # the one that goes on counts for its length so far
    assert found.rate == pytest.approx(3 / (382 * DAY_S))
    assert found.low < found.rate < found.high
    none = history.estimate("accelerator", ["g8"])
    assert (none.rate, none.low, none.repair_s) == (0, 0, None)
    assert none.high == pytest.approx(3.688879 / (40 * DAY_S))


def test_history_older_than_ninety_days_does_not_count(store):
    store.health.add_transitions([change(0, "g1", State.FAILED)])  # kept, because it is still failed
    store.health.add_transitions([change(150, "g2", State.FAILED), change(151, "g2", State.OK)])
    history = failure_history(store, "r1")
    assert history.until - history.since == pytest.approx(90 * DAY_S)
    found = history.estimate("accelerator", ["g1", "g2"])
    assert (found.failures, found.down_s) == (1, pytest.approx(91 * DAY_S))


def test_the_failure_with_which_a_history_begins_does_not_count():
    history = FailureHistory("r1", START, START + 10 * DAY_S, {"g1": [Outage(START, START + DAY_S)]}, {})
    found = history.estimate("accelerator", ["g1"])
    assert (found.failures, found.repaired, found.down_s) == (0, 1, DAY_S)


def test_hosts_are_drawn_towards_their_class_and_keep_its_mean():
    own = [RateEstimate(8, failures, 1000.0, 0.0, 0) for failures in (0, 1, 5)]
    whole = RateEstimate(24, 6, 3000.0, 0.0, 0)
    found = [host_rate(each, whole) for each in own]
    assert 0 < found[0] < found[1] < found[2] < 5 / 1000
    assert sum(found) / 3 == pytest.approx(whole.rate)
    assert host_rate(own[0], RateEstimate(24, 0, 3000.0, 0.0, 0)) == 0
