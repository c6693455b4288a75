"""The schedule in the fewest rounds: every n, any straggler, beside the bound and the published numbers."""

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lumctl.collectives import first_fault, stragglar
from lumctl.collectives.stragglar import kept_and_saved, lower_bound
from lumctl.errors import UsageError

CAMPAIGN = bool(os.environ.get("LUMCTL_CAMPAIGN"))
LARGE = (96, 128, 192, 256)
AUTHORS = {6: 7, 10: 12, 12: 15, 14: 17, 20: 24, 24: 27, 48: 57, 96: 108, 192: 208}
"""The rounds of the authors' matching, for even numbers only."""


def checked_rounds(ranks: int, straggler: int) -> int:
    """The rounds of a schedule that the checker passes."""
    schedule = stragglar(ranks, straggler)
    assert first_fault(schedule) is None
    assert sorted(schedule.owners) == [rank for rank in range(ranks) if rank != straggler]
    assert all(len(send.chunks) == 1 for sends in schedule.rounds for send in sends)
    return len(schedule.rounds)


@pytest.mark.parametrize("ranks", [*range(2, 65), *LARGE])
def test_every_number_of_ranks_is_at_the_bound(ranks):
    assert checked_rounds(ranks, ranks - 1) == lower_bound(ranks) == ranks + (ranks - 1).bit_length() - 2


def test_the_two_smallest_are_at_the_bound_too():
    assert (checked_rounds(2, 0), checked_rounds(3, 1)) == (1, 3)


@pytest.mark.parametrize("ranks", [1024] if not CAMPAIGN else range(2, 1025))
def test_the_largest_are_at_the_bound(ranks):
    assert checked_rounds(ranks, ranks // 3) == lower_bound(ranks)


@pytest.mark.parametrize(("ranks", "rounds"), AUTHORS.items())
def test_no_more_rounds_than_published(ranks, rounds):
    assert lower_bound(ranks) <= rounds


@given(st.integers(2, 70).flatmap(lambda ranks: st.tuples(st.just(ranks), st.integers(0, ranks - 1))))
@settings(deadline=None)
def test_any_rank_may_be_late(case):
    ranks, straggler = case
    assert checked_rounds(ranks, straggler) == lower_bound(ranks)


@given(st.integers(0, 5000))
def test_the_savings_of_keepers_add_up(excess):
    keepers = kept_and_saved(excess)
    assert sum(2**kept - 1 - 2**power for kept, power in keepers) == excess
    assert len(keepers) <= excess.bit_length() // 2 + 1
    assert all(0 <= power < kept for kept, power in keepers)


@pytest.mark.parametrize("ranks", [-1, 0, 1, 1025])
def test_a_number_of_ranks_out_of_range_is_refused(ranks):
    with pytest.raises(UsageError, match=f"{ranks} ranks: a schedule has 2 to 1024"):
        stragglar(ranks, 0)


@pytest.mark.parametrize("straggler", [-1, 8])
def test_a_straggler_out_of_range_is_refused(straggler):
    with pytest.raises(UsageError, match=f"straggler {straggler} is none of the ranks 0 to 7"):
        stragglar(8, straggler)
