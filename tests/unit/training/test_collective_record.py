"""The record of a job's collectives is small, complete step by step, and of the ranks that run now."""

import json

import pytest

from lumctl.training.collective_record import (
    LEAST_STEPS,
    MOST_INCOMPLETE,
    MOST_STEPS,
    MOST_TIMES,
    AllReduce,
    CollectiveRecord,
    RecordedCollectives,
)


def record_of(ranks=2):
    made = CollectiveRecord()
    made.begin(1, [f"h{rank}-a" for rank in range(ranks)], [f"clock{rank}" for rank in range(ranks)])
    return made


def note(record, step, *, ranks=2, group="", at=None, sizes=()):
    for rank in range(ranks):
        all_reduces = [[size, 0.5 - 0.1 * rank] for size in sizes]
        record.note(rank, step, [[group, ranks, step + 0.1 * rank, step + 0.5, *all_reduces]], at or float(step))


def read(record):
    return RecordedCollectives.read(json.loads(json.dumps(record.document())))


def test_a_step_is_recorded_when_all_its_ranks_have_told_but_not_the_first():
    record = record_of()
    note(record, 1)
    note(record, 2)
    record.note(0, 3, [["", 2, 3.0, 3.5]], 3.0)
    found = read(record)
    assert (found.accelerators, found.clocks) == (("h0-a", "h1-a"), ("clock0", "clock1"))
    assert [(step.step, step.ranks, step.entered, step.left) for step in found.steps] == [
        (2, (0, 1), (2.0, 2.1), (2.5, 2.5))
    ]


def test_groups_of_a_step_are_recorded_apart():
    record = record_of(4)
    for step in (1, 2):
        note(record, step, ranks=4)
        for rank in (1, 3):
            record.note(rank, step, [["1-3 by 2", 2, step, step + 0.2]], step)
    assert [(step.group, step.ranks) for step in read(record).steps] == [("", (0, 1, 2, 3)), ("1-3 by 2", (1, 3))]


def test_it_stays_small_however_long_a_job_runs_and_whatever_ranks_do_not_tell():
    record = record_of()
    for step in range(2 * MOST_STEPS):
        note(record, step)
    for step in range(2 * MOST_STEPS, 2 * MOST_STEPS + 3 * MOST_INCOMPLETE):
        record.note(1, step, [["", 2, step, step + 0.5]], step)
    steps = read(record).steps
    assert len(steps) == MOST_STEPS
    assert steps[-1].step == 2 * MOST_STEPS - 1
    assert len(record._incomplete) <= MOST_INCOMPLETE


def test_of_many_ranks_and_groups_enough_steps_are_kept():
    ranks = MOST_TIMES // LEAST_STEPS
    record = record_of(ranks)
    for step in range(2 * LEAST_STEPS):
        for rank in range(ranks):
            parts = [["", ranks], [f"{rank - rank % 8}-{rank - rank % 8 + 7}", 8]]
            record.note(rank, step, [[*part, step + 0.1, step + 0.5] for part in parts], step)
    steps = read(record).steps
    assert {step.step for step in steps if step.group == ""} == set(range(LEAST_STEPS, 2 * LEAST_STEPS))
    assert len([step for step in steps if step.step == LEAST_STEPS and step.group]) == ranks // 8


def test_an_all_reduce_is_recorded_with_the_wait_for_the_last_rank_if_all_ranks_tell_its_size():
    record = record_of()
    note(record, 1, sizes=[8, 4000])
    note(record, 2, sizes=[8, 4000])
    record.note(0, 3, [["", 2, 3.0, 3.5, [8, 0.5], [16, 0.5]]], 3.0)
    record.note(1, 3, [["", 2, 3.0, 3.5, [8, 0.6]]], 3.0)
    first, second = (step.all_reduces for step in read(record).steps)
    assert first == (AllReduce(8, 1, 0.4, pytest.approx(0.1)), AllReduce(4000, 1, 0.4, pytest.approx(0.1)))
    assert second == (AllReduce(8, 0, 0.5, pytest.approx(0.1)),)


def test_ranks_that_leave_an_all_reduce_early_have_not_waited_less():
    record = record_of(4)
    for step in (1, 2):
        for rank, seconds in enumerate((0.153, 0.169, 0.176, 0.116)):
            record.note(rank, step, [["", 4, 0.0, 0.2, [4000, seconds]]], step)
    assert read(record).steps[0].all_reduces == (AllReduce(4000, 3, 0.116, pytest.approx(0.053)),)


def test_all_reduces_count_where_the_record_is_limited():
    record = record_of(8)
    for step in range(MOST_STEPS):
        for rank in range(8):
            record.note(rank, step, [["", 8, step + 0.1, step + 0.5, [8, 0.1], [4000, 0.2]]], step)
    assert len(read(record).steps) == MOST_TIMES // (8 + 2 * 2)


def test_after_a_restart_in_place_it_goes_on_and_after_a_swap_it_begins_anew():
    record = record_of()
    note(record, 1)
    note(record, 2)
    record.begin(2, ["h0-a", "h1-a"], ["clock0", "clock1"])
    note(record, 2)
    note(record, 3)
    assert [(step.generation, step.step) for step in read(record).steps] == [(1, 2), (2, 3)]
    record.begin(3, ["h0-a", "h4-a"], ["clock0", "clock4"])
    assert read(record).steps == ()


@pytest.mark.parametrize(
    "times",
    [
        [float("nan"), 1.0],
        [2.0, 1.0],
        [1.0, float("inf")],
        [None, 1.0],
        ["x", 1.0],
        [1.0, 2.0, [8, 0.0]],
        [1.0, 2.0, 8],
    ],
)
def test_malformed_times_are_refused(times):
    with pytest.raises((TypeError, ValueError)):
        record_of().note(0, 1, [["", 2, *times]], 1.0)


@pytest.mark.parametrize("document", [None, {}, {"accelerators": [], "clocks": [], "steps": [[1]]}, {"steps": 3}])
def test_what_is_no_record_is_none(document):
    assert RecordedCollectives.read(document) is None
