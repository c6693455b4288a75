"""The order in which a set of configurations changes the fewest PUCs, and the bounds of that."""

import random
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lumctl.devices.types import PucState
from lumctl.errors import UsageError
from lumctl.fabric import exits, mesh, trace
from lumctl.fabric.research.tour import tour

BAR, CROSS = PucState.BAR, PucState.CROSS


def settled_changes(configurations, order, states):
    """Rounds played by hand, PUC by PUC, until one is like the one before: its changes, and those of the first."""
    held, rounds, standing = dict(states), [], []
    while len(standing) < 2 or standing[-1] != standing[-2]:
        changed = []
        for at in order:
            wrong = {p: s for p, s in configurations[at].items() if held.get(p, BAR) is not s}
            changed.append(len(wrong))
            held.update(wrong)
        rounds.append(tuple(changed))
        standing.append(dict(held))
    return rounds


@st.composite
def sets_of_configurations(draw, most):
    rng = draw(st.randoms(use_true_random=False))
    pucs = draw(st.integers(1, 12))

    def one():
        return {puc: rng.choice((BAR, CROSS)) for puc in range(pucs) if rng.random() < 0.6}

    return [one() for _ in range(draw(st.integers(1, most)))]


@settings(max_examples=60)
@given(sets_of_configurations(14), st.randoms(use_true_random=False))
def test_a_tours_cost_is_what_rounds_played_by_hand_cost(configurations, rng):
    states = {puc: rng.choice((BAR, CROSS)) for puc in range(12)}
    found = tour(configurations, states=states, trials=300)
    assert sorted(found.order) == list(range(len(configurations)))
    rounds = settled_changes(configurations, found.order, states)
    assert found.changes == rounds[-1] == rounds[1]
    assert found.first_round == sum(rounds[0])
    assert found.per_round == sum(found.changes)
    assert 0 <= found.bound <= found.per_round
    assert 0 <= found.gap <= 1


@settings(max_examples=25)
@given(sets_of_configurations(6))
def test_no_order_of_a_few_is_better(configurations):
    found = tour(configurations, states={})
    costs = [sum(settled_changes(configurations, order, {})[-1]) for order in permutations(range(len(configurations)))]
    assert found.per_round == min(costs)
    assert found.optimal


@pytest.mark.parametrize("seed", range(8))
def test_no_order_is_below_the_bounds(seed):
    rng = random.Random(seed)  # noqa: S311 - the same choices in every run
    configurations = [{p: rng.choice((BAR, CROSS)) for p in range(40) if rng.random() < 0.8} for _ in range(9)]
    plain = tour(configurations, states={}, trials=2000)
    pytest.importorskip("highspy")
    sharper = tour(configurations, states={}, trials=2000, relax_s=10)
    assert plain.order == sharper.order
    assert plain.bound <= sharper.bound <= sharper.per_round
    for _ in range(60):
        order = rng.sample(range(9), 9)
        assert sum(settled_changes(configurations, order, {})[-1]) >= sharper.bound


def test_the_order_of_a_set_of_circuits_gets_better_and_is_always_the_same():
    found, rng = mesh(5, 5), random.Random(4)  # noqa: S311 - the same choices in every run
    configurations = []
    for _ in range(12):
        states = {puc: BAR if rng.random() < 0.4 else CROSS for puc in range(found.puc_count)}
        entries = rng.sample([a for a, b in exits(found, states).items() if a < b], 3)
        configurations.append({puc: state for a in entries for puc, state in trace(found, states, a).passes})
    as_given = sum(settled_changes(configurations, range(12), {})[-1])
    result = tour(configurations, states={}, trials=4000)
    assert result.bound <= result.per_round < as_given
    assert result == tour(configurations, states={}, trials=4000)


def test_one_configuration_needs_no_change_once_it_stands():
    result = tour([{3: CROSS, 4: BAR}], states={})
    assert (result.order, result.changes, result.first_round, result.bound) == ((0,), (0,), 1, 0)


def test_no_configurations_are_refused():
    with pytest.raises(UsageError, match="no configuration"):
        tour([], states={})
