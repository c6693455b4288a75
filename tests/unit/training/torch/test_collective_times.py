"""What a rank tells of a step: how long its collectives blocked it, and when it left the last of them."""

import gc
from types import SimpleNamespace

import pytest
import torch
import torch.distributed as dist

from lumctl.training.torch import collective_times as room
from lumctl.training.torch.collective_times import MOST_GROUPS, CollectiveTimes, clock_id, ranks_text
from lumctl.training.torch.group import JoinOrder, ProcessGroup

RANKS = {"all": [0, 1, 2, 3], "all again": [0, 1, 2, 3], "half": [0, 2], "alone": [1]}


def ranks_of(group):
    """The ranks of a group; each unknown one has ranks of its own."""
    return RANKS.get(group) or [0, 1 + int(group.split()[-1])]


class Work:
    """A collective under way."""


@pytest.fixture
def clock():
    return SimpleNamespace(now=100.0)


@pytest.fixture
def times(clock, monkeypatch):
    monkeypatch.setattr(dist, "get_process_group_ranks", lambda group: ranks_of(group.group_name))
    monkeypatch.setattr(dist, "get_world_size", lambda: 4)
    return CollectiveTimes(lambda: clock.now)


def collective(times, clock, group="all", *, blocked=1.0, later=0.0, size=0):
    """One that takes 0.25 s to start and is awaited ``later``; the wait blocks for a while."""
    work, began = Work(), clock.now
    clock.now += 0.25
    times.started(SimpleNamespace(group_name=group), work, began, size)
    clock.now += later
    began = clock.now
    clock.now += blocked
    times.ended(work, began)


def test_a_collective_is_entered_and_left(times, clock):
    collective(times, clock)
    assert times.take() == [["", 4, 100.0, 101.25]]
    assert times.take() == []


def test_a_collective_that_has_ended_when_it_is_started(times, clock):
    clock.now += 2.0
    times.started(SimpleNamespace(group_name="all"), None, 100.0)
    assert times.take() == [["", 4, 100.0, 102.0]]


def test_several_of_a_step_are_one_that_blocks_as_long_as_all_of_them(times, clock):
    collective(times, clock)
    clock.now += 5.0
    collective(times, clock, later=3.0)  # what is computed meanwhile is no wait
    assert times.take() == [["", 4, 110.5 - 2.5, 110.5]]


def test_each_group_has_its_own_and_a_rank_alone_waits_for_nobody(times, clock):
    for group in ("all", "half", "alone"):
        collective(times, clock, group)
    assert [found[:2] for found in times.take()] == [["", 4], ["0-2 by 2", 2]]


def test_groups_of_the_same_ranks_are_told_as_one(times, clock):
    """Two rows of one name would be taken for each other: ranks that report first and last would seem apart."""
    collective(times, clock, "all")
    collective(times, clock, "all again", blocked=2.0)
    assert times.take() == [["", 4, 103.5 - 3.5, 103.5]]


def test_groups_without_end_are_not_all_recorded(times, clock):
    for number in range(MOST_GROUPS + 5):
        collective(times, clock, f"group {number}")
    assert len(times.take()) == MOST_GROUPS


def test_all_reduces_are_recorded_by_their_size_and_the_newest_of_each(times, clock):
    for blocked, size in ((1.0, 4000), (2.0, 8), (3.0, 4000), (4.0, 0)):
        collective(times, clock, blocked=blocked, size=size)
    assert times.take()[0][4:] == [[4000, 3.25], [8, 2.25]]
    collective(times, clock, size=8)
    assert times.take()[0][4:] == [[8, 1.25]]


def test_of_many_sizes_the_smallest_and_the_largest_are_recorded(times, clock):
    for size in (30, 20, 10, 60, 50, 40):
        collective(times, clock, size=size)
    assert sorted(each for each, _ in times.take()[0][4:]) == [10, 40, 50, 60]


def test_an_all_reduce_that_ran_beside_others_tells_nothing_of_the_links(times, clock):
    collective(times, clock, blocked=1.0, later=0.2, size=8)  # the rank computed meanwhile
    first, second = Work(), Work()
    for work in (first, second):
        times.started(SimpleNamespace(group_name="all"), work, clock.now, 8)
    for work in (first, second):
        began = clock.now
        clock.now += 1.0
        times.ended(work, began)
    assert [row[4:] for row in times.take()] == [[]]


def test_what_is_never_awaited_is_forgotten_with_its_work(times, clock):
    for _ in range(10):
        times.started(SimpleNamespace(group_name="all"), Work(), clock.now)
    gc.collect()
    assert not times._started
    times.ended(Work(), clock.now)  # of a send, say
    assert times.take() == []


@pytest.mark.parametrize(
    ("ranks", "text"), [([0, 1, 2], "0-2"), ([3, 7, 11], "3-11 by 4"), ([0, 1, 5], "0, 1, 5"), ([4], "4-4")]
)
def test_the_ranks_of_a_group_in_words(ranks, text):
    assert ranks_text(ranks) == text


def test_processes_of_one_machine_have_one_clock(monkeypatch, tmp_path):
    assert clock_id() == clock_id() != ""
    monkeypatch.setattr(room, "BOOT_ID", tmp_path / "none")
    assert clock_id()


def test_a_real_group_is_recorded_and_computes_as_before(monkeypatch):
    group = ProcessGroup(torch.device("cpu"), "127.0.0.1", "token")
    try:
        seen = []
        monkeypatch.setattr(group.times, "started", lambda *given: seen.append(given))
        for generation in (1, 2):  # a second group must not be recorded twice
            group.make(JoinOrder(generation, 0, 1, group.store), wanted=lambda: True)
            one = torch.ones(3)
            dist.all_reduce(one)
            dist.all_reduce(torch.eye(2).to_sparse())
            dist.barrier()
            dist.broadcast(one, 0)  # whose source does not wait for the others
            assert one.tolist() == [1.0, 1.0, 1.0]
            assert len(seen) == 3 * generation
            assert [given[3] for given in seen[-3:]] == [12, 0, 0]  # the bytes of all-reduces; sparse ones have none
            group.destroy()
    finally:
        group.close()
