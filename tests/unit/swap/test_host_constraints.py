"""Spares of one job that are taken together: on one host, or each on a host of its own."""

from dataclasses import replace

import pytest

from lumctl.inventory.sharing import SpareConstraints, SpareHosts
from lumctl.swap.groups import group_choices, on_fitting_hosts

SPARES = ["h14-gpu0", "h15-gpu0", "h15-gpu1", "h16-gpu0", "h16-gpu1", "h16-gpu2"]
FAILED = ["h01-gpu0", "h02-gpu0"]


@pytest.fixture
def rack_that(rack64):
    def make(hosts):
        job = replace(rack64.jobs["train-a"], constraints=SpareConstraints(hosts=hosts))
        return replace(rack64, jobs={**rack64.jobs, "train-a": job})

    return make


def hosts_of(inventory, way):
    return [inventory.accelerators[SPARES[column]].host for column in way]


@pytest.mark.parametrize("count", [2, 3])
def test_the_cheapest_way_on_one_host_comes_first_and_no_other_way_at_all(rack_that, count):
    inventory = rack_that(SpareHosts.SAME)
    costs = [[0, 5, 5, 9, 9, 9]] * count
    ways = list(group_choices(inventory, ["h01-gpu0"] * count, ["train-a"] * count, SPARES, costs))
    assert {len(set(hosts_of(inventory, way))) for way in ways} == {1}
    assert hosts_of(inventory, ways[0])[0] == ("h15" if count == 2 else "h16")
    assert not list(group_choices(inventory, ["h01-gpu0"] * 4, ["train-a"] * 4, SPARES, [costs[0]] * 4))


def test_on_different_hosts_no_two_share_one(rack_that):
    inventory = rack_that(SpareHosts.DIFFERENT)
    ways = list(group_choices(inventory, FAILED, ["train-a"] * 2, SPARES, [[0] * 6] * 2))
    assert len(ways) == 2 * (1 * 2 + 1 * 3 + 2 * 3)
    assert {len(set(hosts_of(inventory, way))) for way in ways} == {2}


def test_what_the_sharing_policy_may_give_is_on_the_smallest_host_that_serves_all_or_one_of_each(rack_that):
    usable = [SPARES, SPARES]
    assert on_fitting_hosts(rack_that(SpareHosts.SAME), "train-a", usable) == [("h15-gpu0", "h15-gpu1")] * 2
    assert on_fitting_hosts(rack_that(SpareHosts.SAME), "train-a", [SPARES[:1], SPARES[1:2]]) == [(), ()]
    assert (
        on_fitting_hosts(rack_that(SpareHosts.DIFFERENT), "train-a", usable)
        == [("h14-gpu0", "h15-gpu0", "h16-gpu0")] * 2
    )
    # Only one of the two failures can use the first spare of the last host.
    assert on_fitting_hosts(rack_that(SpareHosts.DIFFERENT), "train-a", [SPARES[3:], SPARES[4:5]]) == [
        ("h16-gpu1",),
        ("h16-gpu1",),
    ]
    assert on_fitting_hosts(rack_that(SpareHosts.ANY), "train-a", usable) == [tuple(SPARES)] * 2
