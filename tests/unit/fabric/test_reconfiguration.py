"""Between configurations: who goes dark when, what it draws, and in which order a set of them changes the least."""

import random
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lumctl.devices.types import PucState
from lumctl.errors import UsageError
from lumctl.fabric import InconsistentFabricError, Route, changes, exits, mesh, route, trace
from lumctl.fabric.reconfiguration.groups import in_turn
from lumctl.fabric.reconfiguration.ordering import Heater, reconfigure
from lumctl.fabric.reconfiguration.tour import tour

BAR, CROSS = PucState.BAR, PucState.CROSS


def setting(found, rng):
    return {puc: rng.choice((BAR, CROSS)) for puc in range(found.puc_count)}


def some_routes(found, states, rng, count):
    pairs = [(a, b) for a, b in exits(found, states).items() if a < b]
    return [Route(pair, trace(found, states, pair[0]).passes) for pair in rng.sample(pairs, min(count, len(pairs)))]


@st.composite
def two_configurations(draw):
    """Two settings of a mesh, and some of the circuits that each makes; those of the first are live.

    The second is the first with some PUCs changed, so that many circuits stand on both sides.
    """
    found = mesh(draw(st.integers(1, 4)), draw(st.integers(1, 4)))
    rng = draw(st.randoms(use_true_random=False))
    before = setting(found, rng)
    after = {puc: rng.choice((BAR, CROSS)) if rng.random() < 0.2 else state for puc, state in before.items()}
    live = [planned.ports for planned in some_routes(found, before, rng, draw(st.integers(0, 8)))]
    return found, before, live, some_routes(found, after, rng, draw(st.integers(0, 8)))


@settings(max_examples=150)
@given(two_configurations())
def test_only_the_circuits_of_a_batch_go_dark_in_it(task):
    found, before, live, routes = task
    result = reconfigure(found, before, routes, live=live)
    staying = [pair for pair in live if pair in {planned.ports for planned in routes}]
    now = dict(before)
    for batch in result.batches:
        ways = {pair: trace(found, now, pair[0]) for pair in staying}
        written = {change.puc for change in batch.changes}
        dark = {pair for pair, way in ways.items() if not written.isdisjoint(way.pucs)}
        assert dark <= set(batch.circuits)
        assert all(now[change.puc] is change.before for change in batch.changes)
        now |= {change.puc: change.after for change in batch.changes}
        assert all(trace(found, now, a).exit == b for a, b in staying)
    for planned in routes:
        assert trace(found, now, planned.ports[0]).passes == planned.passes
    assert {c.puc: c.after for c in result.changes} == changes(before, routes)
    named = [pair for batch in result.batches for pair in batch.circuits]
    assert len(named) == len(set(named))
    assert all(not batch.circuits for batch in result.batches[1:] if batch.circuits == ())
    assert all(set(group) <= set(named) for group in result.together)


@settings(max_examples=60)
@given(two_configurations(), st.floats(0, 1), st.floats(0, 1))
def test_drive_power_is_that_of_the_states(task, bar_pi, cross_pi):
    found, before, live, routes = task
    heater = Heater(mw_per_pi=80, bar_pi=bar_pi, cross_pi=cross_pi)
    result = reconfigure(found, before, routes, live=live, heater=heater, settle_ms=4)
    draws = {BAR: 80 * bar_pi, CROSS: 80 * cross_pi}
    assert result.before_mw == pytest.approx(sum(draws[state] for state in before.values()))
    assert result.after_mw == pytest.approx(sum(draws[s] for s in {**before, **changes(before, routes)}.values()))
    assert result.peak_mw >= max(result.before_mw, result.after_mw) - 1e-6
    both = result.before_mw + sum(max(0, draws[c.after] - draws[c.before]) for c in result.changes)
    assert result.peak_mw <= both + 1e-6
    assert result.settle_ms == 4 * len(result.batches)


def test_bar_draws_unless_the_device_says_otherwise():
    cell = mesh(1, 1)
    assert Heater().total_mw(cell, {}) == 6 * 90
    assert Heater().total_mw(cell, {0: CROSS}) == 5 * 90
    assert Heater(bar_pi=0, cross_pi=1).total_mw(cell, {0: CROSS}) == 90


def test_the_peak_has_what_comes_on_beside_what_is_not_off_yet():
    found = mesh(2, 2)
    states = dict.fromkeys(range(0, found.puc_count, 2), CROSS)
    ways = exits(found, {})
    routes = [Route((a, b), trace(found, {}, a).passes) for a, b in ways.items() if a < b]
    result = reconfigure(found, states, routes)
    assert len(result.batches) == 1
    assert result.peak_mw == result.after_mw > result.before_mw
    back = [Route((a, b), trace(found, states, a).passes) for a, b in exits(found, states).items() if a < b]
    down = reconfigure(found, {}, back)
    assert down.peak_mw == down.before_mw > down.after_mw


def test_nothing_to_do_takes_no_time():
    found = mesh(3, 3)
    routes = route(found, [(2, 17)], states={})
    states = changes({}, routes)
    result = reconfigure(found, states, routes, live=[(17, 2)], settle_ms=5)
    assert (result.batches, result.settle_ms) == ((), 0)
    assert result.peak_mw == result.before_mw == result.after_mw


def test_a_live_circuit_that_is_not_there_is_named():
    with pytest.raises(InconsistentFabricError, match="circuit 0:5 is said to be live"):
        reconfigure(mesh(3, 3), {}, [], live=[(0, 5)])


def test_what_is_stuck_in_the_other_state_is_named():
    found = mesh(3, 3)
    (planned,) = route(found, [(2, 17)], states={})
    puc, state = planned.passes[2]
    with pytest.raises(UsageError, match=f"PUC {puc} in {state.word}: it is stuck"):
        reconfigure(found, {}, [planned], stuck={puc: BAR if state is CROSS else CROSS})


def test_routes_that_exclude_each_other_are_named():
    with pytest.raises(UsageError, match="another route wants it in the other"):
        reconfigure(mesh(1, 1), {}, [Route((0, 1), ((0, BAR),)), Route((2, 3), ((0, CROSS),))])


def test_circuits_that_stand_in_each_others_way_are_switched_together():
    a, b, c, d = (0, 1), (2, 3), (4, 5), (6, 7)
    waits = {a: {b}, b: {c}, c: {b}, d: {a}}
    assert in_turn([a, b, c, d], waits) == ((b, c), (a,), (d,))


@given(st.integers(1, 7), st.randoms(use_true_random=False))
def test_nobody_waits_for_a_later_group(count, rng):
    circuits = [(2 * at, 2 * at + 1) for at in range(count)]
    waits = {pair: {other for other in circuits if other != pair and rng.random() < 0.3} for pair in circuits}
    groups = in_turn(circuits, waits)
    assert sorted(pair for group in groups for pair in group) == circuits
    turn = {pair: at for at, group in enumerate(groups) for pair in group}
    assert all(turn[other] <= turn[pair] for pair in circuits for other in waits[pair])


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
        configurations.append({puc: state for made in some_routes(found, states, rng, 3) for puc, state in made.passes})
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
