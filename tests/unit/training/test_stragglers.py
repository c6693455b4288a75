"""Who is late is told from the record of a job, and what to do depends on what health knows and on the arithmetic."""

import pytest
from drawn_arrivals import STEP_S, drawn_steps

from lumctl.training.collective_record import WORLD, RecordedStep
from lumctl.training.stragglers import Act, act_of, lateness_of

EVEN_S = 0.02 * STEP_S


def recorded(steps, *, ranks=None, group=WORLD, generation=1):
    return [
        RecordedStep(
            group, generation, step.step, 1000.0 + step.step, ranks or tuple(range(len(step.left_s))), *by(step)
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
    assert act_of(found, (), replaced=True) is Act.NOTHING


def test_the_advice_depends_on_what_health_knows():
    (found,) = lateness_of(recorded(late()), ["a"] * 4)
    assert act_of(found, ("its fan stands still",), replaced=False) is Act.LOOK
    assert act_of(found, ("a row remap failed",), replaced=True) is Act.SWAP
    assert act_of(found, (), replaced=False) is Act.LOOK


def test_a_schedule_is_advised_only_where_it_hides_half_of_the_wait():
    """With many ranks, and a gap of about the time of a reduce-scatter, it does."""
    gap_s = 0.005
    steps = drawn_steps(1, ranks=16, steps=40, slow=3, slow_s=gap_s, gap_s=0.0001)
    (found,) = lateness_of(recorded(steps), ["a"] * 16)
    assert found.named == 3
    assert found.schedule.recommended
    assert act_of(found, (), replaced=False) is Act.SCHEDULE
    assert act_of(found, ("a fault",), replaced=False) is Act.LOOK
