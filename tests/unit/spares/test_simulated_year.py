"""A simulated year of failures: nothing is lost, seeds repeat it, and it finds what is known of the policies."""

from math import isclose

import pytest

from lumctl.spares.policies import POLICIES, best_fit, fifo
from lumctl.spares.sharing import Reserve
from lumctl.spares.simulated_year import YEAR_S, SpareClass, YearModel, compare_years, failures_of, year

HOUR_S, DAY_S = 3600.0, 86_400.0


def model(common=8, rare=4, *, mtbf_h=30_000.0, largest=8, repair_s=(DAY_S, 10 * DAY_S)):
    classes = (SpareClass("common", common, 0.7), SpareClass("rare", rare, 0.3))
    return YearModel(1024, classes, mtbf_h * HOUR_S, repair_s, largest)


def test_failures_are_as_frequent_as_stated_and_as_often_rare():
    found = [each for seed in range(20) for each in failures_of(model(), seed)]
    assert isclose(len(found) / 20, 1024 * YEAR_S / (30_000 * HOUR_S), rel_tol=0.05)
    assert isclose(sum(each.accelerator_class == "rare" for each in found) / len(found), 0.3, abs_tol=0.02)
    assert all(DAY_S <= each.repaired_at - each.at <= 10 * DAY_S for each in found)
    assert {each.size for each in found} == set(range(1, 9))


@pytest.mark.parametrize("name", POLICIES)
def test_every_demand_is_served_repaired_or_told_that_it_never_can_be(name):
    found, failures = year(model(), POLICIES[name], 7), failures_of(model(), 7)
    for of_class in ("common", "rare"):
        mine = [each for each in failures if each.accelerator_class == of_class]
        assert len(found[of_class].waits_s) + found[of_class].never == len(mine)
        assert all(0 <= wait <= 10 * DAY_S for wait in found[of_class].waits_s)
    assert found["rare"].never == sum(each.size > 4 for each in failures if each.accelerator_class == "rare")
    assert found == year(model(), POLICIES[name], 7)


def test_nobody_waits_if_there_are_spares_for_all():
    found = year(model(common=500, rare=500), fifo, 3)
    assert not any(each.mean_s for each in found.values())


def test_a_single_class_waits_as_often_as_queueing_theory_says():
    # Erlang's loss formula is the limit in which a waiting demand is repaired before it is served; with repairs that
    # take as long as service, the number down is Poisson, and a demand waits if at least `spares` others are down.
    one = YearModel(1024, (SpareClass("one", 6, 1.0),), 30_000 * HOUR_S, (DAY_S, 10 * DAY_S), largest_group=1)
    waits = [wait for seed in range(40) for wait in year(one, fifo, seed)["one"].waits_s]
    load = 1024 * 5.5 * DAY_S / (30_000 * HOUR_S)
    probability, term = 1.0, 2.718281828459045**-load
    for count in range(6):
        probability -= term
        term *= load / (count + 1)
    assert isclose(sum(wait > 0 for wait in waits) / len(waits), probability, rel_tol=0.08)


def test_best_fit_leaves_rare_parts_to_those_that_need_them_and_a_reserve_more_so():
    seeds = range(12)
    first_found, fit, held = (
        [year(model(), policy, seed, Reserve(reserve)) for seed in seeds]
        for policy, reserve in ((fifo, {}), (best_fit, {}), (best_fit, {"rare": 2}))
    )
    beside = {each.name: each for each in compare_years(fit, first_found)}
    assert beside["rare"].ratio is not None
    assert beside["rare"].ratio < 0.9
    beside = {each.name: each for each in compare_years(held, fit)}
    assert beside["rare"].ratio is not None
    assert beside["rare"].ratio < 0.75
    # The price of the reserve is paid by the others.
    assert beside["common"].ratio is not None
    assert beside["common"].ratio > 1.2


def test_policies_that_do_not_differ_are_said_not_to():
    years = [year(model(), best_fit, seed) for seed in range(3)]
    assert [each.ratio for each in compare_years(years, years)] == [None, None, None]


def test_a_policy_that_answers_nonsense_ends_the_year():
    with pytest.raises(ValueError, match="there is no demand 'x'"):
        year(model(), lambda _: {"x": ()}, 1)
