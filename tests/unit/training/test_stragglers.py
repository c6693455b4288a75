"""Who is late is told from the record of a job, and what to do depends on what health knows and on the arithmetic."""

from dataclasses import replace

import pytest
from drawn_arrivals import STEP_S, drawn_steps

from lumctl.training.collective_record import WORLD, AllReduce, TrainingStepRecord
from lumctl.training.stragglers import LateRankAction, act_of, lateness_of, verdicts_of

EVEN_S = 0.02 * STEP_S


def recorded(steps, *, ranks=None, group=WORLD, generation=1, all_reduces=()):
    return [
        TrainingStepRecord(
            group,
            generation,
            step.step,
            1000.0 + step.step,
            ranks or tuple(range(len(step.left_s))),
            *by(step),
            all_reduces,
        )
        for step in steps
    ]


def by(step):
    return step.entered_s, step.left_s


def late(share=0.2, **given):
    return drawn_steps(1, ranks=4, steps=40, slow=2, slow_s=share * STEP_S, gap_s=EVEN_S, **given)


def test_the_late_rank_of_a_job_whose_machines_disagree_by_days():
    clocks = [0.0, 86_400.0, -3.0, 1e6]
    (found,) = lateness_of(recorded(late(clocks_s=clocks)), ["a", "b", "c", "d"])
    assert (found.named, found.late.rank, found.late.ranks) == (2, 2, 4)
    assert found.late.gap_median_s == pytest.approx(0.2 * STEP_S, rel=0.1)
    assert found.clocks["d"].offset_s == pytest.approx(-1e6, abs=found.clocks["d"].error_s)
    assert (found.began, found.ended) == (1000.0, 1039.0)


def test_clocks_that_begin_anew_with_another_group_are_compared_anew():
    before, after = late(clocks_s=[0.0, 5.0, 0.0, 0.0]), late(clocks_s=[0.0, 900.0, 0.0, 0.0])
    (found,) = lateness_of([*recorded(before), *recorded(after, generation=2)], ["a", "b", "a", "a"])
    assert (found.named, len(found.steps)) == (2, 80)
    assert found.clocks["b"].offset_s == pytest.approx(-900.0, abs=found.clocks["b"].error_s)


def test_ranks_of_a_part_of_the_job_keep_their_numbers():
    pair = drawn_steps(3, ranks=2, steps=40, slow=1, slow_s=STEP_S / 2, gap_s=EVEN_S)
    even = drawn_steps(4, ranks=4, steps=40)
    few = drawn_steps(5, ranks=2, steps=3)
    found = lateness_of(
        [
            *recorded(pair, ranks=(1, 3), group="1-3 by 2"),
            *recorded(few, ranks=(0, 2), group="0-2 by 2"),
            *recorded(even),
        ],
        ["a"] * 4,
    )
    assert [(each.group, each.named and each.ranks[each.named]) for each in found] == [("", None), ("1-3 by 2", 3)]


def test_nothing_is_to_be_done_if_no_rank_is_late():
    (found,) = lateness_of(recorded(drawn_steps(4, ranks=4, steps=40)), ["a"] * 4)
    assert act_of(found, (), replaced=True) is LateRankAction.NOTHING


def test_the_advice_depends_on_what_health_knows():
    (found,) = lateness_of(recorded(late()), ["a"] * 4)
    assert act_of(found, ("its fan stands still",), replaced=False) is LateRankAction.LOOK
    assert act_of(found, ("a row remap failed",), replaced=True) is LateRankAction.SWAP
    assert act_of(found, (), replaced=False) is LateRankAction.LOOK


def test_a_schedule_is_advised_only_where_it_hides_half_of_the_wait():
    """With many ranks, and a gap of about the time of a reduce-scatter, it does."""
    gap_s = 0.005
    steps = drawn_steps(1, ranks=16, steps=40, slow=3, slow_s=gap_s, gap_s=0.0001)
    (found,) = lateness_of(recorded(steps), ["a"] * 16)
    assert found.named == 3
    assert found.schedule.recommended
    assert act_of(found, (), replaced=False) is LateRankAction.SCHEDULE
    assert act_of(found, ("a fault",), replaced=False) is LateRankAction.LOOK


def ring_s(ranks, size, alpha_s, beta_s):
    rounds = 2 * (ranks - 1)
    return rounds * (alpha_s + size / ranks * beta_s)


GAP_S = 0.005


def with_sizes(sizes, alpha_s, beta_s, *, ranks=16, last=3, waited_s=GAP_S):
    """Steps with a late rank, with all-reduces of these sizes; in the last one the others wait for it."""
    steps = drawn_steps(1, ranks=ranks, steps=40, slow=3, slow_s=GAP_S, gap_s=0.0001)
    all_reduces = tuple(AllReduce(size, last, ring_s(ranks, size, alpha_s, beta_s), waited_s) for size in sizes)
    (found,) = lateness_of(recorded(steps, all_reduces=all_reduces), ["a"] * ranks)
    return found


def test_alpha_and_beta_are_those_of_the_jobs_own_all_reduces():
    alpha_s, beta_s = 2e-5, 5e-9
    found = with_sizes([8, 1_000_000], alpha_s, beta_s)
    assert found.sizes == (8, 1_000_000)
    assert found.links.link.alpha_s == pytest.approx(alpha_s)
    assert found.links.link.beta_s == pytest.approx(beta_s)
    assert found.schedule.size_bytes == 1_000_000
    assert found.schedule.cost.ring_s == pytest.approx(ring_s(16, 1_000_000, alpha_s, beta_s))
    assert found.schedule.recommended


def test_where_messages_cost_more_than_bytes_the_gain_is_another_one():
    """The same time of the largest all-reduce, of many bytes or of many messages."""
    of_bytes = with_sizes([8, 1_000_000], 0.0, 5e-9).schedule.cost
    of_messages = with_sizes([8, 1_000_000], 3e-4, 2e-10).schedule.cost
    assert of_bytes.ring_s == pytest.approx(of_messages.ring_s, rel=0.01)
    assert of_bytes.after_s == pytest.approx(18 / 15 * 0.005)
    assert of_messages.after_s == pytest.approx(18 * 3e-4 + 18 / 15 * 2e-4)


@pytest.mark.parametrize("sizes", [[], [1_000_000]])
def test_with_one_size_the_collectives_of_a_step_count_as_one(sizes):
    found = with_sizes(sizes, 2e-5, 5e-9)
    assert (found.sizes, found.links, found.schedule.size_bytes) == (tuple(sizes), None, None)
    assert found.schedule.cost.ring_s == pytest.approx(found.late.collective_s)


@pytest.mark.parametrize("elsewhere", [{"waited_s": 0.0}, {"last": 5}])
@pytest.mark.parametrize("sizes", [[1_000_000], [8, 1_000_000]])
def test_no_schedule_is_advised_for_an_all_reduce_in_which_nobody_waits_for_the_late_rank(sizes, elsewhere):
    """A barrier before it, say, has taken the wait: the schedule has no head start, and is slower than ring."""
    found = with_sizes(sizes, 0.0, 5e-9, **elsewhere)
    assert (found.named, found.schedule.gap_s) == (3, 0.0)
    assert found.schedule.gain.high < 1.0
    assert act_of(found, (), replaced=False) is LateRankAction.LOOK


def test_a_size_that_is_measured_seldom_does_not_count():
    known = AllReduce(8, 2, 0.001, 0.0), AllReduce(4000, 2, 0.01, 0.0)
    often = recorded(late(), all_reduces=known)
    once = [replace(often[0], all_reduces=(*known, AllReduce(1e9, 2, 9.0, 0.0))), *often[1:]]
    (found,) = lateness_of(once, ["a"] * 4)
    assert found.sizes == (8, 4000)


def test_health_is_told_who_is_late_now_and_by_how_much():
    even = [replace(step, step=step.step + 40) for step in drawn_steps(4, ranks=4, steps=40, gap_s=EVEN_S)]
    (found,) = verdicts_of(recorded(late()), ["a"] * 4)
    assert (found.named, found.ended) == (2, 1039.0)
    assert found.gap_s == pytest.approx(0.2 * STEP_S, rel=0.1)
    assert found.step_s == pytest.approx(1.3 * STEP_S, rel=0.1)
    before = recorded(late() + late())
    (found,) = verdicts_of(before, ["a"] * 4)
    assert found.named == 2
    (found,) = verdicts_of([*before, *recorded(even)], ["a"] * 4)
    assert found.named is None  # although over all steps it was the last in most
    assert verdicts_of(recorded(late())[:9], ["a"] * 4) == []
