"""The bound of matchings never exceeds what an exact cover of small meshes takes, and is more than ports alone give."""

import os
import random
from functools import cache
from itertools import combinations, islice, product
from math import inf

import pytest

from lumctl.devices.types import PucState
from lumctl.fabric import MeshCondition, exits, mesh
from lumctl.fabric.matching_bound import matching_bound, matchings_at_least
from lumctl.fabric.port_choice import port_sets

if os.environ.get("LUMCTL_REQUIRE_SYSTEM_PARTS") != "1":
    pytest.importorskip("highspy", reason="HiGHS is not installed: pip install 'lumctl[optimal]'")

from lumctl.fabric.research.integer_program import has_solution, program, run

BAR, CROSS = PucState.BAR, PucState.CROSS


def seeded(seed):
    return random.Random(seed)  # noqa: S311 - the same choices in every run


@cache
def settings(columns, rows):
    """The states of every setting of a small mesh, with the pairs of ports that it joins."""
    found = mesh(columns, rows)
    made = []
    for setting in product((BAR, CROSS), repeat=found.puc_count):
        states = dict(enumerate(setting))
        made.append((states, frozenset((a, b) for a, b in exits(found, states).items() if a < b)))
    return made


def fewest_by_cover(shape, ports, condition):
    """The fewest settings that join all pairs that any setting joins, and those pairs."""
    allowed = {
        frozenset(pair for pair in pairs if set(pair) <= set(ports))
        for states, pairs in settings(*shape)
        if condition.stuck.items() <= states.items()
    }
    largest = [pairs for pairs in allowed if not any(pairs < other for other in allowed)]
    wanted = sorted(set().union(*largest))
    if not wanted:
        return 0, wanted
    number = {pair: at for at, pair in enumerate(wanted)}
    columns = [(1.0, [(number[pair], 1.0) for pair in pairs]) for pairs in largest if pairs]
    solver = program([(1.0, inf)] * len(wanted), columns, whole=True)
    assert run(solver, 60.0) == "optimal"
    assert has_solution(solver)
    return round(solver.getObjectiveValue()), wanted


@pytest.mark.parametrize("stuck", [0, 2])
@pytest.mark.parametrize("shape", [(1, 1), (2, 1)])
def test_it_never_exceeds_the_fewest_settings_that_join_all_pairs(shape, stuck):
    rng, found = seeded(8), mesh(*shape)
    tight = 0
    for _ in range(12):
        ports = sorted(rng.sample(range(found.port_count), rng.randint(3, found.port_count)))
        condition = MeshCondition(
            stuck={puc: rng.choice((BAR, CROSS)) for puc in rng.sample(range(found.puc_count), stuck)}
        )
        fewest, pairs = fewest_by_cover(shape, ports, condition)
        bound = matching_bound(found, ports, pairs, condition=condition)
        assert bound <= fewest
        tight += bound == fewest
    assert tight


@pytest.mark.parametrize(("shape", "least"), [((2, 2), 39), ((3, 3), 51)])
def test_on_a_crowded_mesh_it_proves_more_than_the_ports_do(shape, least):
    found = mesh(*shape)
    ports = range(found.port_count)
    bound = matching_bound(found, ports, list(combinations(ports, 2)))
    # The optimum of the fractional problem, which no prices exceed, is 39.5 and 51.
    assert least <= bound <= least + 1
    assert bound > matchings_at_least(found.port_count)


def test_ports_behind_a_narrow_corner_are_seen_and_left_out():
    found, count = mesh(9, 9), 60
    spared, facing = islice(port_sets(found, count, MeshCondition(), 3), 2)
    assert matching_bound(found, spared, list(combinations(spared, 2))) == count - 1
    assert matching_bound(found, facing, list(combinations(facing, 2)), enough=100) >= 100


def test_rounds_end_with_the_time_and_with_what_is_enough():
    found = mesh(2, 2)
    ports = range(found.port_count)
    pairs = list(combinations(ports, 2))
    assert matching_bound(found, ports, pairs, left=lambda: 0.0) == 19
    assert matching_bound(found, ports, pairs, enough=25) in range(25, 40)


def test_an_odd_number_of_ports_rests_in_turn():
    found = mesh(5, 5)
    ports = [0, 8, 16, 24, 32]
    assert matching_bound(found, ports, list(combinations(ports, 2))) == matchings_at_least(5) == 5
