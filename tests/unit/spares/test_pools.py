"""Pools of an inventory: their classes, hosts and ties, rates from a history, and other assumptions."""

from dataclasses import replace

import pytest

from lumctl.errors import UsageError
from lumctl.inventory.load import example, load_inventory
from lumctl.inventory.model import Role
from lumctl.spares.assumptions import Assumptions, read_availability, read_change, read_count
from lumctl.spares.pools import assumed_pool, changed, estimated_pools, pools_of, sized
from lumctl.spares.rates import FailureHistory, Outage, RateRange
from lumctl.spares.sizing import FailureUnit

DAY_S = 86_400.0
WHOLE = 90 * DAY_S
TWO = Assumptions(failure_rate=RateRange(0.02, 0.02))


@pytest.fixture(scope="module")
def rack64():
    return load_inventory(example("rack64"))


def edited(inventory, **changes):
    """An inventory with other values of some accelerators: ``edited(rack64, h01_gpu0={"tied": "board"})``."""
    some = {name.replace("_", "-"): change for name, change in changes.items()}
    made = {name: replace(each, **some.get(name, {})) for name, each in inventory.accelerators.items()}
    return replace(inventory, accelerators=made)


def history(accelerators=None, hosts=None):
    """A history of 90 days; outages as (begin, end) in days."""

    def made(given):
        return {
            name: [Outage(begin * DAY_S, None if end is None else end * DAY_S) for begin, end in times]
            for name, times in (given or {}).items()
        }

    return lambda name: FailureHistory(name, 0.0, WHOLE, made(accelerators), made(hosts))


def test_a_pool_has_all_accelerators_of_a_class_and_its_spares(rack64):
    (pool,) = pools_of(rack64)
    assert sum(group.size for group in pool.groups) == 64
    assert (len(pool.groups), pool.rack, pool.spares, pool.reserved) == (16, "rack64", 4, 0)


def test_out_of_service_reserved_and_tied_accelerators(rack64):
    spare = next(each.id for each in rack64.accelerators.values() if each.role is Role.SPARE)
    changes = {spare.replace("-", "_"): {"reserved": True}, "h01_gpu0": {"role": Role.DISABLED}}
    tied = {f"h02_gpu{number}": {"tied": "board"} for number in (0, 1)}
    (pool,) = pools_of(edited(rack64, **changes, **tied))
    assert (pool.spares, pool.reserved) == (3, 1)
    assert [group.size for group in pool.groups][:2] == [3, 4]
    # The two are tied, but spares of two meshes replace them: if one is down, a spare of each is needed.
    assert pool.groups[1].units == (
        FailureUnit(1, 0.0, part=0, tied=2),
        FailureUnit(1, 0.0, part=1, tied=2),
        FailureUnit(1, 0.0, part=2),
        FailureUnit(1, 0.0, part=3),
    )
    assert FailureUnit(1, 0.1, tied=2).down == pytest.approx(FailureUnit(2, 0.1).down)


def test_each_class_has_a_pool_and_a_part_of_its_name_selects_it(rack64):
    large = {f"h0{host}_gpu{number}": {"memory_gib": 141.0} for host in (1, 2) for number in range(4)}
    mixed = edited(rack64, **large, h03_gpu0={"model": "AMD Instinct MI300X"})
    assert sorted((pool.accelerator_class, sum(g.size for g in pool.groups)) for pool in pools_of(mixed)) == [
        ("AMD Instinct MI300X", 1),
        ("NVIDIA H100 80GB HBM3 141 GiB", 8),
        ("NVIDIA H100 80GB HBM3 80 GiB", 55),
    ]
    assert [pool.accelerator_class for pool in pools_of(mixed, "mi300x")] == ["AMD Instinct MI300X"]
    with pytest.raises(UsageError, match="--class: no accelerator in service is a 'B200'"):
        pools_of(mixed, "B200")


def test_rates_come_from_the_history_with_worse_hosts_higher(rack64):
    failures = {f"h03-gpu{number}": [(10, 15), (40, 45)] for number in range(3)} | {"h01-gpu0": [(20, 25)]}
    (pool,) = estimated_pools(rack64, None, history(failures, {"h02": [(50, 51)]}), None)
    assert (pool.history.accelerators.failures, pool.history.by_host["h03"].failures) == (7, 6)
    assert (pool.history.repair_s, pool.history.host_repair_s) == (5 * DAY_S, DAY_S)
    rates = {host: group.units[0].rate for host, group in zip(pool.history.by_host, pool.groups, strict=True)}
    assert rates["h03"] > rates["h01"] > rates["h04"] > 0
    assert max(pool.groups, key=lambda group: group.rate) is pool.groups[1]
    # What was down in the history, in accelerators, is what is expected: 7 x 5 days, and a host of four for a day.
    found = sized(pool, 0.999)
    assert found.size.expected_down == pytest.approx((7 * 5 + 4) / 90, rel=0.02)
    assert found.low < found.exact < found.high
    assert found.missing == found.exact - 4 == sum(part.size.exact - 1 for part in found.parts)
    assert found.size.expected_waits_per_year(0) == pytest.approx((7 + 4) / 90 * 365.25, rel=0.05)


def test_a_history_without_failures_gives_an_upper_end(rack64):
    with pytest.raises(UsageError, match=r"0 failures of NVIDIA H100 80GB HBM3 or its hosts in 90d\) has no repair"):
        estimated_pools(rack64, None, history(), None)
    (pool,) = estimated_pools(rack64, None, history(), 5 * DAY_S)
    found = sized(pool, 0.999)
    assert (found.low, found.size.exact) == (0, 0)
    assert found.high > 0


def test_longer_repairs_leave_failures_as_frequent():
    base = changed(assumed_pool(64, 4), replace(TWO, repair_s=5 * DAY_S))
    twice = changed(base, Assumptions(repair_s=10 * DAY_S))
    assert twice.groups[0].units[0].rate == pytest.approx(0.04 / 1.02)
    assert sized(twice, 0.999).size.expected_waits_per_year(0) == pytest.approx(
        sized(base, 0.999).size.expected_waits_per_year(0) / 1.02
    )
    with pytest.raises(UsageError, match="--what-if repair needs the present repair time"):
        changed(changed(assumed_pool(64, 4), TWO), Assumptions(repair_s=DAY_S))


def test_hosts_that_fail_need_more_spares_and_known_hosts():
    alone = changed(assumed_pool(64, 8), TWO)
    whole = changed(alone, Assumptions(host_failure_rate=RateRange(0.01, 0.01)))
    assert sized(whole, 0.999).size.exact > sized(alone, 0.999).size.exact
    with pytest.raises(UsageError, match="needs the accelerators of a host"):
        changed(assumed_pool(64, None), Assumptions(host_failure_rate=RateRange(0.01, 0.01)))


def test_a_horizon_needs_the_repair_time():
    with pytest.raises(UsageError, match="--horizon needs the repair time"):
        sized(changed(assumed_pool(64, None), TWO), 0.999, WHOLE)
    long_run = changed(assumed_pool(64, None), replace(TWO, repair_s=30 * DAY_S))
    assert sized(long_run, 0.999, 10 * DAY_S).size.exact < sized(long_run, 0.999).size.exact
    assert sized(long_run, 0.999, 3650 * DAY_S).size.exact == sized(long_run, 0.999).size.exact


def test_changes_are_read_from_their_text():
    found = read_change("repair=10d, availability=99.9%,failure-rate=1-3%,accelerators=128")
    assert found == Assumptions(0.999, None, 128, RateRange(0.01, 0.03), None, 10 * DAY_S)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("repair", "--what-if: 'repair' is not a change of an assumption"),
        ("repairs=10d", "--what-if: 'repairs=10d' is not a change of an assumption"),
        ("repair=soon", "--what-if repair: 'soon' is not a valid duration"),
        ("availability=2", "--what-if availability: '2' is not above 0 and below 1"),
        ("accelerators=0", "--what-if accelerators: '0' is not a whole number from 1 to 20000"),
        ("", "--what-if: '' is not a change of an assumption"),
    ],
)
def test_a_wrong_change_is_named(text, said):
    with pytest.raises(UsageError) as caught:
        read_change(text)
    assert caught.value.message == said


@pytest.mark.parametrize("text", ["0", "1", "2", "nan", "-1", "100%", "50%%", "x", "", "inf", "1e-400"])
def test_a_wrong_availability_is_named(text):
    with pytest.raises(UsageError, match=r"^--availability: .* is not above 0 and below 1$"):
        read_availability(text, "--availability")


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "x", "", "20001", "9" * 5000, "²"])
def test_a_wrong_count_is_named(text):
    with pytest.raises(UsageError, match=r"^--accelerators: "):
        read_count(text, "--accelerators")
