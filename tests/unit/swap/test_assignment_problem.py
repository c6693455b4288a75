"""Joint choices: all there are, the cheapest first, held against trying everything."""

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from lumctl.swap.groups import assignments_by_cost, largest


@st.composite
def tables(draw):
    rows = draw(st.integers(1, 4))
    columns = draw(st.integers(1, 5))
    cost = st.none() | st.integers(0, 9) | st.integers(0, 1 << 300)
    return [[draw(cost) for _ in range(columns)] for _ in range(rows)]


def by_trying(costs):
    ways = permutations(range(len(costs[0])), len(costs))
    return {way for way in ways if all(costs[row][column] is not None for row, column in enumerate(way))}


def total(costs, way):
    return sum(costs[row][column] for row, column in enumerate(way))


@given(tables())
def test_every_way_is_given_once_and_the_cheapest_first(costs):
    given_ways = list(assignments_by_cost(costs))
    assert len(given_ways) == len(set(given_ways))
    assert set(given_ways) == by_trying(costs)
    totals = [total(costs, way) for way in given_ways]
    assert totals == sorted(totals)


@given(tables())
def test_where_not_all_can_be_served_as_many_as_possible_are(costs):
    served = largest(costs)
    assert len(set(served.values())) == len(served)
    assert all(costs[row][column] is not None for row, column in served.items())
    full = [row for row in range(len(costs)) if row in served]
    most = max(
        (
            sum(costs[row][column] is not None for row, column in enumerate(way) if column < len(costs[0]))
            for way in permutations(range(len(costs[0]) + len(costs)), len(costs))
        ),
        default=0,
    )
    assert len(full) == most


def test_a_joint_choice_is_found_that_a_greedy_one_misses():
    assert next(assignments_by_cost([[1, 5], [2, None]])) == (1, 0)
