import random
from collections import defaultdict
from functools import cache
from itertools import combinations, permutations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumctl.devices.types import PucState
from lumctl.errors import ExitCode, LumctlError, UsageError
from lumctl.fabric import InconsistentFabricError, Unroutable, changes, exits, mesh, route, routing, trace

BAR, CROSS = PucState.BAR, PucState.CROSS


def attempt(*question, **rest):
    """What ``route`` found, and what it refused with."""
    try:
        return route(*question, **rest), None
    except Unroutable as refused:
        return None, refused


def seeded(seed):
    return random.Random(seed)  # noqa: S311 - the same choices in every run


@st.composite
def rerouting_tasks(draw):
    """A programmed mesh, circuits on it that are live, and new ones wanted between ports that these leave free."""
    found = mesh(draw(st.integers(2, 6)), draw(st.integers(2, 6)))
    rng = draw(st.randoms(use_true_random=False))
    states = {puc: rng.choice((BAR, CROSS)) for puc in range(found.puc_count)}
    pairs = [(a, b) for a, b in exits(found, states).items() if a < b]
    live = rng.sample(pairs, draw(st.integers(0, 3)))
    free = [port for port in range(found.port_count) if all(port not in pair for pair in live)]
    ends = rng.sample(free, 2 * draw(st.integers(1, 3)))
    return found, states, live, list(zip(ends[::2], ends[1::2], strict=True))


@given(rerouting_tasks())
def test_a_route_found_is_a_route_traced_and_live_circuits_stay(task):
    found, states, live, demands = task
    routes, refused = attempt(found, demands, states=states, live=live)
    if refused:
        assert refused.demands
        assert set(refused.demands) <= set(demands)
        return
    written = changes(states, routes)
    after = {**states, **written}
    assert [planned.ports for planned in routes] == demands
    for planned in routes:
        way = trace(found, after, planned.ports[0])
        assert (way.exit, way.passes) == (planned.ports[1], planned.passes)
    for a, _ in live:
        assert trace(found, after, a) == trace(found, states, a)
        assert written.keys().isdisjoint(trace(found, states, a).pucs)
    assert written.keys() <= {puc for planned in routes for puc in planned.pucs}
    assert all(states[puc] is not state for puc, state in written.items())


@given(rerouting_tasks())
def test_same_question_same_answer(task):
    found, states, live, demands = task

    first, second = (attempt(found, demands, states=states, live=live) for _ in range(2))
    assert first[0] == second[0]
    assert str(first[1]) == str(second[1])


@given(st.randoms(use_true_random=False))
def test_stuck_pucs_are_passed_as_they_stand(rng):
    found = mesh(4, 4)
    stuck = {puc: rng.choice((BAR, CROSS)) for puc in rng.sample(range(found.puc_count), 12)}
    states = {puc: rng.choice((BAR, CROSS)) for puc in range(found.puc_count)}  # a record that knows nothing of it
    a, b = rng.sample(range(found.port_count), 2)
    routes, refused = attempt(found, [(a, b)], states=states, stuck=stuck)
    if refused:
        return
    (planned,) = routes
    assert all(stuck.get(puc, state) is state for puc, state in planned.passes)
    really = {**states, **changes(states, [planned]), **stuck}
    assert trace(found, really, a).exit == b


@cache
def possible_pairings(columns, rows):
    """By trying every setting of a small mesh: all sets of port pairs it can make, and the shortest way of each."""
    found = mesh(columns, rows)
    pairings, shortest = set(), defaultdict(lambda: found.puc_count * 2)
    for setting in product((BAR, CROSS), repeat=found.puc_count):
        states = dict(enumerate(setting))
        ways = [trace(found, states, port) for port in range(found.port_count)]
        pairings.add(frozenset((way.port, way.exit) for way in ways))
        for way in ways:
            shortest[way.port, way.exit] = min(shortest[way.port, way.exit], len(way.passes))
    return pairings, shortest


@pytest.mark.parametrize("shape", [(1, 1), (2, 1), (1, 2)])
def test_one_circuit_is_routed_exactly_if_any_setting_makes_it_and_by_the_shortest_way(shape):
    found = mesh(*shape)
    _, shortest = possible_pairings(*shape)
    for pair in permutations(range(found.port_count), 2):
        routes, refused = attempt(found, [pair], states={})
        assert (refused is None) == (pair in shortest)
        if routes:
            assert len(routes[0].passes) == shortest[pair]


def test_two_circuits_are_never_called_impossible_when_they_are_not():
    found = mesh(2, 1)
    pairings, _ = possible_pairings(2, 1)
    together = {frozenset(pairs) for made in pairings for pairs in combinations(sorted(made), 2)}
    missed = tried = 0
    for ends in seeded(7).sample(list(permutations(range(found.port_count), 4)), 600):
        demands = [ends[:2], ends[2:]]
        possible = frozenset(demands) in together
        tried += possible
        _, refused = attempt(found, demands, states={})
        missed += possible and refused is not None
        assert not (possible and refused and refused.proven)
        assert possible or refused
    assert tried > 100
    assert missed <= tried * 0.005


def test_sixteen_circuits_at_once_on_the_large_mesh():
    found = mesh(9, 9)
    # Beside the sharp corners some ports exclude each other: one PUC would be wanted in both states.
    usable = [*range(4, 36), *range(42, 72)]
    for seed in range(10):
        ends = seeded(seed).sample(usable, 32)
        assert len(route(found, list(zip(ends[::2], ends[1::2], strict=True)), states={})) == 16


def test_crossing_a_live_circuit_uses_the_other_side_of_its_crossed_pucs():
    found = mesh(3, 3)
    first = route(found, [(2, 17)], states={})
    states = changes({}, first)
    second = route(found, [(26, 8)], states=states, live=[(2, 17)])
    shared = dict(first[0].passes).keys() & dict(second[0].passes).keys()
    assert shared
    assert all(dict(first[0].passes)[puc] is dict(second[0].passes)[puc] for puc in shared)


def test_states_that_serve_already_are_not_changed():
    found = mesh(5, 4)
    made = route(found, [(0, 20)], states={})
    states = changes({}, made)
    assert route(found, [(0, 20)], states=states) == made
    assert changes(states, made) == {}


def test_no_demands_no_routes():
    assert route(mesh(2, 2), [], states={}) == ()


def test_what_cannot_be_is_proven():
    # Light that enters a single cell clockwise can only leave it clockwise.
    with pytest.raises(Unroutable, match="no route exists for 0:2, even alone") as refused:
        route(mesh(1, 1), [(0, 2)], states={})
    assert refused.value.proven
    assert refused.value.demands == ((0, 2),)
    assert refused.value.exit_code is ExitCode.REFUSED


def test_what_cannot_be_together_is_proven():
    # Each has a way alone; together they want the PUCs of the sharp corner in both states.
    with pytest.raises(Unroutable, match="no routes exist for 1:40, 74:20 together") as refused:
        route(mesh(9, 9), [(1, 40), (74, 20)], states={})
    assert refused.value.proven


def test_what_was_not_found_in_short_is_not_called_proven():
    with pytest.raises(Unroutable, match="does not prove") as refused:
        route(mesh(9, 9), [(1, 40), (74, 20)], states={}, brisk=True)
    assert not refused.value.proven


@pytest.mark.parametrize("objective", routing.Objective)
def test_every_objective_finds_routes_that_trace(objective):
    demands = [(2, 40), (5, 33), (10, 61), (15, 71), (20, 52)]
    states = changes({}, route(mesh(9, 9), demands, states={}, objective=objective))
    assert [exits(mesh(9, 9), states)[a] for a, _ in demands] == [b for _, b in demands]


def test_an_objective_gets_what_it_asks_for():
    def cost(objective):
        found = [route(mesh(5, 5), pairs, states={}, objective=objective) for pairs in draws]
        shared = [sum(len(set(a.pucs) & set(b.pucs)) for a, b in combinations(routes, 2)) for routes in found]
        longest = [max(len(planned.passes) for planned in routes) for routes in found]
        total = [sum(len(planned.passes) for planned in routes) for routes in found]
        return sum(total), sum(longest), sum(shared)

    rng, draws = seeded(5), []
    while len(draws) < 30:
        ports = rng.sample(range(2, 40), 8)
        pairs = list(zip(ports[::2], ports[1::2], strict=True))
        if attempt(mesh(5, 5), pairs, states={})[0]:
            draws.append(pairs)
    pucs, loss, apart = (
        cost(each) for each in (routing.Objective.PUCS, routing.Objective.LOSS, routing.Objective.CROSSTALK)
    )
    assert pucs[0] <= min(loss[0], apart[0])
    assert loss[1] <= min(pucs[1], apart[1])
    assert apart[2] < min(pucs[2], loss[2])


def test_what_costs_more_is_passed_less_and_damage_never():
    (plain,) = route(mesh(5, 5), [(3, 25)], states={})
    (around,) = route(mesh(5, 5), [(3, 25)], states={}, excess=dict.fromkeys(plain.pucs[2:-2], 4.0))
    assert len(set(around.pucs) & set(plain.pucs[2:-2])) < len(plain.pucs[2:-2])
    (avoiding,) = route(mesh(5, 5), [(3, 25)], states={}, damaged=plain.pucs[2:-2])
    assert set(avoiding.pucs).isdisjoint(plain.pucs[2:-2])


def test_a_blocked_port_is_no_way_in():
    with pytest.raises(Unroutable, match="4:9: a port is blocked"):
        route(mesh(3, 3), [(0, 7), (4, 9)], states={}, blocked_ports={9})


def test_a_live_circuit_that_is_not_there_is_named():
    with pytest.raises(InconsistentFabricError, match=r"circuit 0:5 should be live, but .* leaves at 1"):
        route(mesh(3, 3), [(8, 12)], states={}, live=[(0, 5)])


def test_a_live_circuit_through_a_puc_stuck_otherwise_is_not_there():
    found = mesh(3, 3)
    live = (2, 17)
    made = route(found, [live], states={})
    puc, state = made[0].passes[3]
    stuck = {puc: BAR if state is CROSS else CROSS}
    with pytest.raises(InconsistentFabricError):
        route(found, [(8, 12)], states=changes({}, made), live=[live], stuck=stuck)


@pytest.mark.parametrize(
    ("demands", "live", "said"),
    [
        ([(0, 99)], [], "port 99 is not on the mesh"),
        ([(0, 3), (3, 8)], [], "port 3 is used twice"),
        ([(4, 4)], [], "port 4 is used twice"),
        ([(1, 8)], [(0, 1)], "port 1 is used twice"),
    ],
)
def test_wrong_ports_are_named(demands, live, said):
    with pytest.raises(UsageError, match=said):
        route(mesh(3, 3), demands, states={}, live=live)


def test_a_wrong_answer_of_the_search_never_leaves_the_room(monkeypatch):
    astray = routing.negotiate
    monkeypatch.setattr(
        routing, "negotiate", lambda shape, demands, prices, **_: astray(shape, [(0, 17)], prices) * len(demands)
    )
    with pytest.raises(LumctlError, match="the route of 0:5 cannot be traced"):
        route(mesh(3, 3), [(0, 5)], states={}, objective=routing.Objective.FEASIBLE)
