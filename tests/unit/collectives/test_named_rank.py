"""A slow rank is named soon, whatever the clocks of its host say; of equal ranks none ever is."""

import pytest
from drawn_arrivals import COLLECTIVE_S, STEP_S, drawn_steps
from late_rank_log import LOG

from lumctl.collectives.arrivals import late_rank
from lumctl.collectives.measured_files import read_arrivals
from lumctl.collectives.named_rank import BLOCKS, FEWEST_BLOCKS, named_rank, recently_named, step_s
from lumctl.training.clocks import on_one_clock


@pytest.mark.parametrize("ranks", [2, 3, 8])
@pytest.mark.parametrize("percent", [5, 20, 50])
@pytest.mark.parametrize("seed", range(3))
def test_a_slow_rank_is_named_within_thirty_steps_with_clocks_a_second_apart(ranks, percent, seed):
    slow = seed % ranks
    clocks = [(-1) ** rank * 0.5 * (rank > 0) + 0.25 * (rank % 3) for rank in range(ranks)]
    steps = drawn_steps(
        seed, ranks=ranks, steps=30, slow=slow, slow_s=percent / 100 * STEP_S, gap_s=0.02 * STEP_S, clocks_s=clocks
    )
    aligned, offsets = on_one_clock(steps, [f"h{rank}" for rank in range(ranks)])
    assert named_rank(aligned) == late_rank(aligned).rank == slow
    for rank in range(ranks):
        offset = offsets[f"h{rank}"]
        assert abs(offset.offset_s + clocks[rank] - clocks[0]) <= min(offset.error_s, 0.1 * COLLECTIVE_S)


@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_none_of_equal_ranks_is_named_in_ten_thousand_steps(ranks):
    steps = drawn_steps(ranks, ranks=ranks, steps=10_000)
    windows = range(FEWEST_BLOCKS, len(steps), 3)
    assert {named_rank(steps[max(end - BLOCKS, 0) : end]) for end in windows} == {None}
    assert named_rank(steps) is None


def test_a_rank_that_becomes_slow_late_is_named_although_most_steps_were_even():
    before = drawn_steps(1, ranks=4, steps=500)
    since = drawn_steps(2, ranks=4, steps=30, slow=3, slow_s=0.2 * STEP_S)
    assert recently_named(before) is None
    assert recently_named([*before, *since]) == 3


def test_less_than_a_percent_of_a_step_is_not_worth_a_name():
    steps = drawn_steps(1, ranks=4, steps=400, slow=2, slow_s=0.008 * STEP_S, gap_s=0.001 * STEP_S)
    assert late_rank(steps).rank == 2
    assert named_rank(steps) is None
    assert step_s(steps) == pytest.approx(STEP_S + COLLECTIVE_S, rel=0.1)


def test_a_log_of_times_alone_names_its_late_rank_once_it_is_long_enough():
    steps = read_arrivals(LOG.encode())[1:]
    assert named_rank(steps) is None
    assert named_rank(steps * 3) == 1
