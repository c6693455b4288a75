"""Rounds on light: what the present light carries, and the fewest changes, against trying every division of rounds."""

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumctl.collectives import Schedule, Send, ring
from lumctl.collectives.light import rounds_in_light

RANKS = 5


def schedule_of(rounds):
    sends = tuple([Send(a, b, (0,), reduces=True) for a, b in pairs] for pairs in rounds)
    return Schedule("drawn", RANKS, RANKS, None, (), sends, 0)


def fewest(rounds, lit, lanes):
    """The changes of the best division of all rounds into parts that one light carries each, by trying all."""

    def fits(part):
        pairs = {pair for each in part for pair in each}
        most = [*Counter(a for a, _ in pairs).values(), *Counter(b for _, b in pairs).values()]
        return max(most, default=0) <= lanes

    best = len(rounds)
    for cuts in range(2 ** len(rounds)):
        marks = [0, *(at for at in range(1, len(rounds)) if cuts >> at & 1), len(rounds)]
        parts = [rounds[a:b] for a, b in pairwise(marks)]
        free = all(pair in lit for each in parts[0] for pair in each)
        if all(map(fits, parts[free:])):
            best = min(best, len(parts) - free)
    return best


pairs = st.tuples(st.integers(0, RANKS - 1), st.integers(0, RANKS - 1)).filter(lambda pair: pair[0] != pair[1])
rounds_of_pairs = st.lists(pairs, min_size=1, max_size=2, unique_by=(lambda pair: pair[0], lambda pair: pair[1]))


@given(st.lists(rounds_of_pairs.map(frozenset), min_size=1, max_size=6), st.frozensets(pairs, max_size=6))
@pytest.mark.parametrize("lanes", [1, 2])
def test_no_division_of_the_rounds_needs_fewer_changes(lanes, rounds, lit):
    found = rounds_in_light(schedule_of(rounds), lit, lanes, 0.5)
    assert found.changes == fewest(rounds, lit, lanes)
    assert found.change_s == found.changes * 0.5
    assert [set(each) for each in found.without_light] == [each - lit for each in rounds]
    assert found.carried == sum(each <= lit for each in rounds)


def test_ring_runs_on_a_ring_of_light():
    found = rounds_in_light(ring(6), {(rank, (rank + 1) % 6) for rank in range(6)}, 2, 0.5)
    assert (found.carried, found.changes, found.change_s) == (10, 0, 0.0)
