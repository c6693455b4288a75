"""When the last free spare is taken: from the history of failures, in seconds, as data and in words."""

import pytest

from lumctl.health.states import State
from lumctl.health.transitions import Transition
from lumctl.inventory.load import example, load_inventory
from lumctl.spares.forecast import READ_EVERY_S, ForecastReader, PoolForecast, pool_forecast, rack_forecasts
from lumctl.spares.rates import FailureHistory, Outage, poisson_interval
from lumctl.store import store_at

DAY_S = 86_400.0
FROM, TO = 1_800_000_000.0, 1_800_000_000.0 + 50 * DAY_S


def history(accelerators=None, hosts=None):
    return FailureHistory("rack64", FROM, TO, accelerators or {}, hosts or {})


def down(day):
    return Outage(FROM + day * DAY_S, FROM + day * DAY_S)


@pytest.fixture
def members():
    return list(load_inventory(example("rack64")).accelerators.values())


def test_failures_of_accelerators_and_of_their_hosts_count(members):
    forecast = pool_forecast(members, history({"h03-gpu2": [down(10), down(20)]}, {"h07": [down(30)]}))
    assert forecast.failures == 3
    # Two accelerators by themselves, and four with their host, in fifty days.
    assert forecast.rate * DAY_S == pytest.approx(6 / 50)
    assert forecast.document(3)["days"] == pytest.approx(25)
    low, high = poisson_interval(2)
    assert forecast.low * DAY_S == pytest.approx((low + 4 * poisson_interval(1)[0]) / 50)
    assert forecast.high * DAY_S == pytest.approx((high + 4 * poisson_interval(1)[1]) / 50)


def test_what_other_accelerators_suffer_does_not_count(members):
    assert pool_forecast(members[:4], history({"h03-gpu2": [down(10)]}, {"h07": [down(30)]})).rate == 0


def test_as_data_and_in_words():
    forecast = PoolForecast(5, FROM, TO, rate=0.1 / DAY_S, low=0.05 / DAY_S, high=0.2 / DAY_S)
    document = forecast.document(4)
    assert (document["days"], document["days_low"], document["days_high"]) == pytest.approx((40, 20, 80))
    assert (document["failures"], document["failures_per_day"]) == (5, pytest.approx(0.1))
    assert forecast.words(4, TO) == (
        "the last of 4 free spares is taken in about 40d if none is repaired (5 failures in 50d; 95 %: 20d to 80d)"
    )
    assert forecast.words(1, TO).startswith("the only free spare is taken in about 10d")
    assert forecast.words(0, TO) == "no spare is free (5 failures in 50d)"
    # Nothing was recorded for three days: they belong to no history.
    assert forecast.words(0, TO + 3 * DAY_S) == "no spare is free (5 failures in 50d, recorded until 3d ago)"


def test_without_a_failure_only_the_earliest_time_is_known():
    forecast = PoolForecast(0, FROM, TO, rate=0.0, low=0.0, high=0.2 / DAY_S)
    assert (forecast.document(4)["days"], forecast.document(4)["days_high"]) == (None, None)
    assert (
        forecast.words(4, TO) == "the last of 4 free spares is taken in 20d at the earliest (0 failures in 50d; 95 %)"
    )


def test_a_history_is_read_again_after_ten_minutes(tmp_path):
    inventory, reader = load_inventory(example("rack64")), ForecastReader()
    store = store_at(str(tmp_path), rack="rack64")

    def fails(day):
        at = FROM + day * DAY_S
        store.health.add_transitions([Transition(at, f"h0{int(day)}-gpu0", "accelerator", None, State.FAILED, (), "")])

    assert reader.read(inventory, "rack64", store, TO) == {}
    fails(1)
    fails(1.5)
    assert rack_forecasts(inventory, "rack64", store) == {}  # half a day says too little
    fails(2)
    assert reader.read(inventory, "rack64", store, TO + READ_EVERY_S - 1) == {}
    ((key, forecast),) = reader.read(inventory, "rack64", store, TO + READ_EVERY_S).items()
    assert key == ("rack64", "NVIDIA H100 80GB HBM3")
    assert forecast.failures == 1  # that with which the history begins gives it its begin only
    store.close()
