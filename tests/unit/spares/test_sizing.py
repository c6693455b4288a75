"""How many spares are enough: against enumeration, draws, the published table, and a simulation of waits."""

import heapq
import os
from dataclasses import replace
from itertools import product
from math import isclose, sqrt
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumctl.errors import UsageError
from lumctl.spares.sizing import (
    YEAR_S,
    FailureGroup,
    FailureUnit,
    down_distribution,
    even_groups,
    exceedance,
    resized,
    scaled,
    size_pool,
    spread,
    with_rates,
    within,
)

RACKS, DRAWS = (50, 1_000_000) if os.environ.get("LUMCTL_CAMPAIGN") else (8, 20_000)
DAY_S = 86_400.0

rates = st.floats(0.0, 0.6)
units = st.builds(FailureUnit, st.integers(1, 3), rates)
groups = st.lists(
    st.builds(FailureGroup, st.lists(units, min_size=1, max_size=4).map(tuple), rates), min_size=1, max_size=6
).map(tuple)
availabilities = st.floats(0.01, 0.9999)


def random_rack(rng):
    """Up to sixteen hosts of up to eight accelerators, with rates of their own; some tied, some hosts fail whole."""

    def group():
        tied = rng.choice([1, 1, 2])
        of = tuple(FailureUnit(tied, rng.uniform(0, 0.06)) for _ in range(rng.randint(1, 8 // tied)))
        return FailureGroup(of, rng.choice([0.0, rng.uniform(0, 0.02)]))

    return tuple(group() for _ in range(rng.randint(1, 16)))


@pytest.mark.parametrize(
    ("low", "high", "exact", "published"), [(0.0, 0.01, 1, 2), (0.01, 0.03, 3, 4), (0.03, 0.05, 5, 6)]
)
def test_the_published_table_for_64_accelerators(low, high, exact, published):
    found = size_pool(spread(even_groups(64, 4), low, high), 0.95)
    assert (found.exact, found.published) == (exact, published)
    assert found.server_eviction == 4 * {1: 1, 3: 3, 5: 5}[exact]
    assert found.rack_migration == 64


@pytest.mark.parametrize("rng", [Random(seed) for seed in range(5)])  # noqa: S311 - the same racks in every run
def test_a_small_rack_is_as_enumerated(rng):
    rack = tuple(replace(group, units=group.units[:2]) for group in random_rack(rng)[:3])
    wanted = [0.0] * (sum(group.size for group in rack) + 1)
    switches = [rate for group in rack for rate in (group.rate, *(unit.down for unit in group.units))]
    for case in product([False, True], repeat=len(switches)):
        probability, down, states = 1.0, 0, iter(case)
        for rate, is_down in zip(switches, case, strict=True):
            probability *= rate if is_down else 1 - rate
        for group in rack:
            whole = next(states)
            of_units = [unit.size for unit in group.units if next(states)]
            down += group.size if whole else sum(of_units)
        wanted[down] += probability
    found = down_distribution(rack)
    assert found == pytest.approx(wanted[: len(found)], abs=1e-15)
    assert sum(wanted[len(found) :]) < 1e-18


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(RACKS))
def test_random_racks_are_as_drawn(seed):
    """Every tail within five standard errors of that many draws; each draw is of hosts, then of their units."""
    rack = random_rack(Random(seed))  # noqa: S311 - the same racks in every run
    rng = np.random.default_rng(seed)
    down = np.zeros(DRAWS, dtype=int)
    for group in rack:
        of_units = np.zeros(DRAWS, dtype=int)
        for unit in group.units:
            faults = rng.random((unit.size, DRAWS)) < unit.rate  # one of tied accelerators is enough
            of_units += unit.size * faults.any(axis=0)
        down += np.where(rng.random(DRAWS) < group.rate, group.size, of_units)
    for spares, probability in enumerate(exceedance(down_distribution(rack))):
        error = sqrt(probability * (1 - probability) / DRAWS)
        assert abs((down > spares).mean() - probability) <= 5 * error + 5 / DRAWS, (spares, probability)


def test_a_distribution_is_complete_and_its_small_tails_keep_their_digits():
    found = down_distribution(even(4096, 0.02))
    assert sum(found) == pytest.approx(1, abs=1e-12)
    assert isclose(exceedance(down_distribution(even(3, 1e-4)))[2], 1e-12, rel_tol=1e-9)


def even(count, rate, per_host=1):
    return spread(even_groups(count, per_host), rate, rate)


@given(groups, availabilities)
def test_the_answer_is_the_smallest_that_is_enough_and_the_published_rule_one_more(rack, availability):
    found = size_pool(rack, availability)
    allowed = 1 - availability
    assert found.probability_more_down(found.exact) <= allowed
    assert found.exact == 0 or found.probability_more_down(found.exact - 1) > allowed
    # P(K or more down) is P(more than K - 1 down).
    at_least = [1.0, *found.more_down]
    assert found.published == next(spares for spares, each in enumerate(at_least) if each <= allowed)
    assert found.exact <= found.server_eviction + max(group.size for group in rack) * (found.server_eviction > 0)
    assert found.rack_migration in {0, sum(group.size for group in rack)}


@given(groups, availabilities, st.floats(0, 1), st.floats(1, 4), st.floats(1, 400), st.floats(1, 4))
def test_the_answer_never_falls_when_an_input_rises(rack, availability, share, factor, days, times):
    base = size_pool(rack, availability)
    more_available = availability + (0.99999 - availability) * share
    assert size_pool(rack, more_available).exact >= base.exact
    more_often = with_rates(rack, lambda rate: scaled(rate, factor))  # and so with longer repairs
    assert size_pool(more_often, availability).exact >= base.exact
    one_host_worse = (replace(rack[0], rate=scaled(rack[0].rate, factor)), *rack[1:])
    assert size_pool(one_host_worse, availability).exact >= base.exact
    assert size_pool((*rack, rack[0]), availability).exact >= base.exact

    def after(horizon_s):
        return size_pool(with_rates(rack, lambda rate: within(rate, 5 * DAY_S, horizon_s)), availability).exact

    assert after(days * DAY_S) <= after(times * days * DAY_S) <= base.exact


@given(groups, st.integers(1, 40))
def test_a_pool_of_another_size_has_hosts_like_those_that_are_there(rack, count):
    found = resized(rack, count)
    assert sum(group.size for group in found) == count
    assert all(group.rate == rack[at % len(rack)].rate for at, group in enumerate(found))


def test_a_horizon_without_returns_is_the_chance_of_a_failure_in_it():
    mtbf_s = 1000 * DAY_S
    repair_s = 1e6 * mtbf_s
    rate = repair_s / (mtbf_s + repair_s)
    assert within(rate, repair_s, 90 * DAY_S) == pytest.approx(1 - 2.718281828 ** (-0.09), rel=1e-3)


def test_more_spares_wait_less_and_all_failures_wait_without_any():
    found = size_pool(even(64, 0.02), 0.999, 5 * DAY_S)
    assert found.expected_waits_per_year(0) == pytest.approx(64 * 0.02 / (5 * DAY_S) * YEAR_S)
    waits = [found.expected_waits_per_year(spares) for spares in range(70)]
    assert waits == sorted(waits, reverse=True)
    assert waits[-1] == 0
    assert size_pool(even(64, 0.02), 0.999).expected_waits_per_year(3) is None


def test_the_expected_waits_are_those_of_a_simulated_rack():
    """Twelve accelerators and a host of three that fails whole, repairs of a fixed length, two spares, 4,000 years."""
    repair_s, spares, years = 5 * DAY_S, 3, 4000
    single, whole = 0.05, 0.03
    rack = (*even(12, single), FailureGroup((FailureUnit(1, 0.0),) * 3, whole))
    rng = Random(1)  # noqa: S311 - the same failures in every run
    members = [(1, single)] * 12 + [(3, whole)]
    mean_up_s = [repair_s * (1 - rate) / rate for _, rate in members]
    events = [(rng.expovariate(1 / up_s), at, True) for at, up_s in enumerate(mean_up_s)]
    heapq.heapify(events)
    down = waited = 0
    while events[0][0] < years * YEAR_S:
        at_s, member, fails = heapq.heappop(events)
        size = members[member][0]
        down += size if fails else -size
        waited += size * (fails and down > spares)
        length_s = repair_s if fails else rng.expovariate(1 / mean_up_s[member])
        heapq.heappush(events, (at_s + length_s, member, not fails))
    expected = size_pool(rack, 0.9, repair_s).expected_waits_per_year(spares)
    assert waited / years == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize("availability", [0.0, 1.0, 2.0, -0.5, float("nan"), float("inf")])
def test_an_availability_outside_is_refused(availability):
    with pytest.raises(UsageError, match="is not above 0 and below 1"):
        size_pool(even(4, 0.1), availability)
