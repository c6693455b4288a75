from collections import Counter
from itertools import combinations
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumctl.devices.types import PucState
from lumctl.errors import UsageError
from lumctl.fabric import MeshCondition, hexagon, mesh, square, trace
from lumctl.fabric.matchings import AllToAllSearch, all_to_all, exchange, round_robin


def seeded(seed):
    return Random(seed)  # noqa: S311 - the same choices in every run


def pairs_of(rounds):
    return Counter(pair for pairs in rounds for pair in pairs)


def require_all_there(shape, found, condition=None):
    """Every pair once, none twice, each matching a matching, each circuit traced from both ends as it is to be set."""
    stuck = condition.stuck if condition else {}
    met = Counter(tuple(sorted(each.ports)) for matching in found.matchings for each in matching.routes)
    met.update(found.unreachable)
    assert met == Counter(combinations(found.ports, 2))
    for matching in found.matchings:
        ends = [port for each in matching.routes for port in each.ports]
        assert len(set(ends)) == len(ends)
        states = {**matching.states, **stuck}
        assert all(states[puc] is state for puc, state in matching.states.items())
        for each in matching.routes:
            a, b = each.ports
            assert trace(shape, states, a).exit == b
            assert trace(shape, states, b).exit == a
        assert matching.bound <= matching.pucs


@given(st.lists(st.integers(0, 90), min_size=2, max_size=24, unique=True), st.randoms(use_true_random=False))
def test_in_a_round_robin_each_meets_each_other_once(players, rng):
    rounds = round_robin(players, rng)
    assert len(rounds) == len(players) - 1 + len(players) % 2
    assert pairs_of(rounds) == Counter(combinations(sorted(players), 2))
    for pairs in rounds:
        playing = [player for pair in pairs for player in pair]
        assert len(set(playing)) == len(playing) == len(players) - len(players) % 2


@given(st.integers(2, 20), st.randoms(use_true_random=False))
def test_an_exchange_keeps_the_pairs_and_makes_rounds_again(count, rng):
    rounds = round_robin(range(count), rng)
    one, other = rng.choice(rounds), rng.choice(rounds)
    if one is other:
        return
    mine, theirs = exchange(one, other, rng)
    assert pairs_of([mine, theirs]) == pairs_of([one, other])
    for pairs in (mine, theirs):
        playing = [player for pair in pairs for player in pair]
        assert len(set(playing)) == len(playing)


def test_an_exchange_does_change_something():
    rounds = round_robin(range(16), seeded(0))
    assert any(
        set(exchange(one, other, seeded(seed))[0]) not in (set(one), set(other))
        for seed, (one, other) in enumerate(combinations(rounds[:6], 2))
    )


def test_the_nine_by_nine_with_32_ports_has_31_matchings_within_two_percent_of_what_is_proven():
    shape = mesh(9, 9)
    for seed in range(3):
        found = all_to_all(shape, 32, rng=seeded(seed))
        assert (len(found.ports), len(found.matchings), found.least, found.unreachable) == (32, 31, 31, ())
        require_all_there(shape, found)
        assert sum(each.pucs for each in found.matchings) <= 1.02 * sum(each.bound for each in found.matchings)


@pytest.mark.parametrize(
    ("shape", "ports"),
    [(mesh(5, 5), 16), (mesh(4, 6), 12), (hexagon(3), 12), (mesh(3, 3), 7), (mesh(2, 2), 5), (mesh(1, 1), 2)],
    ids=lambda value: getattr(value, "name", value),
)
def test_as_many_matchings_as_ports_less_one(shape, ports):
    found = all_to_all(shape, ports, rng=seeded(1))
    require_all_there(shape, found)
    assert len(found.matchings) == found.least == ports - 1 + ports % 2


def test_the_same_seed_gives_the_same_matchings():
    assert all_to_all(mesh(4, 4), 12, rng=seeded(7)) == all_to_all(mesh(4, 4), 12, rng=seeded(7))
    assert all_to_all(mesh(4, 4), 12, rng=seeded(7)) != all_to_all(mesh(4, 4), 12, rng=seeded(8))


def test_more_than_can_be_had_takes_more_matchings_and_leaves_nothing_out():
    shape = mesh(3, 3)
    found = all_to_all(shape, range(shape.port_count), rng=seeded(1))
    require_all_there(shape, found)
    assert len(found.matchings) > found.least


def test_pairs_that_a_square_mesh_can_never_join_are_told():
    shape = square(3, 3)
    found = all_to_all(shape, 8, rng=seeded(1))
    require_all_there(shape, found)
    assert found.unreachable


@given(st.integers(0, 10**6))
def test_what_is_stuck_damaged_or_blocked_is_respected(seed):
    rng, shape = seeded(seed), mesh(4, 4)
    pucs = rng.sample(range(shape.puc_count), 6)
    condition = MeshCondition(
        stuck={puc: rng.choice((PucState.BAR, PucState.CROSS)) for puc in pucs[:4]},
        damaged=frozenset(pucs[4:]),
        blocked_ports=frozenset(rng.sample(range(shape.port_count), 3)),
    )
    found = all_to_all(shape, 6, condition=condition, rng=rng)
    require_all_there(shape, found, condition)
    assert condition.blocked_ports.isdisjoint(found.ports)
    passed = {puc for matching in found.matchings for each in matching.routes for puc in each.pucs}
    assert condition.damaged.isdisjoint(passed)


@pytest.mark.parametrize(
    ("ports", "said"),
    [
        (1, "1 ports of 2x2 cannot be connected"),
        (21, "21 ports of 2x2 cannot be connected"),
        ((3,), "two ports or more"),
        ((3, 4, 3), "each listed once"),
        ((3, 20), "port 20 is not on the mesh"),
        ((-1, 2), "port -1 is not on the mesh"),
        ((5, 6), "port 5 is blocked"),
    ],
)
def test_ports_that_cannot_be_connected(ports, said):
    with pytest.raises(UsageError, match=said):
        all_to_all(mesh(2, 2), ports, condition=MeshCondition(blocked_ports=frozenset({5})), rng=seeded(0))


class Clock:
    """Seconds that pass with each look at the clock."""

    def __init__(self, step=0.01):
        self.now, self.step = 0.0, step

    def __call__(self):
        self.now += self.step
        return self.now


def require_accounted_for(shape, found):
    """Every pair has its circuit, or is said to have none, or to have none yet; circuits are what they should be."""
    routed = [tuple(sorted(each.ports)) for matching in found.matchings for each in matching.routes]
    assert Counter([*routed, *found.unreachable, *found.left]) == Counter(combinations(found.ports, 2))
    for matching in found.matchings:
        assert all(trace(shape, matching.states, each.ports[0]).exit == each.ports[1] for each in matching.routes)


@pytest.mark.parametrize("limit", [0.05, 0.3, 3.0, 30.0])
@pytest.mark.parametrize(("shape", "ports"), [(mesh(3, 3), 20), (mesh(3, 5), 20), (mesh(4, 4), 8)])
def test_a_limit_brings_the_best_so_far(shape, ports, limit):
    clock = Clock()
    found = AllToAllSearch(shape, ports, rng=seeded(1), limit_s=limit, clock=clock).run()
    require_accounted_for(shape, found)
    # It looks at the clock more often than it does anything long.
    assert clock.now < limit + 1.0
    if limit == 30.0:
        assert not found.left
        assert len(found.matchings) >= found.least


def test_crowded_meshes_take_few_matchings():
    for shape, ports, most in ((mesh(2, 2), 20, 50), (mesh(5, 5), 20, 20), (mesh(3, 3), 20, 30)):
        found = all_to_all(shape, ports, rng=seeded(0))
        require_all_there(shape, found)
        assert found.least <= len(found.matchings) <= most
        assert found.least > (19 if shape is mesh(2, 2) else 18)


@pytest.mark.parametrize("after", [1, 3, 8, 20, 60])
def test_an_interrupted_search_has_what_it_has_found(after):
    told = iter(range(after))

    def tell(_):
        if next(told, None) is None:
            raise KeyboardInterrupt

    shape = mesh(3, 5)
    search = AllToAllSearch(shape, 20, rng=seeded(1), tell=tell)
    with pytest.raises(KeyboardInterrupt):
        search.run()
    found = search.best()
    if after > 1:
        assert found is not None
        require_accounted_for(shape, found)
