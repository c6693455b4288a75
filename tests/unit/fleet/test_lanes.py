import dataclasses

import pytest

from lumctl.fleet.frames import Frame, FrameMark
from lumctl.fleet.host_requests import HostRequests, Running
from lumctl.fleet.probes import probes_for

PROBES = [
    dataclasses.replace(probe, deadline_s=deadline)
    for name, deadline in (("gpu", 5.0), ("nvlink", 4.0), ("kernel", 3.0), ("net", 2.0), ("infiniband", 2.0))
    for probe in probes_for((), sudo=False)
    if probe.name == name
]
GPU, NVLINK, KERNEL, NET, INFINIBAND = range(5)


@pytest.fixture
def lanes():
    return HostRequests(PROBES)


def test_the_time_of_what_waits_begins_with_its_turn(lanes):
    lanes.asked(GPU, 1, now=10.0, at=1000.0)
    lanes.asked(NVLINK, 1, now=10.0, at=1000.0)
    assert lanes.next_deadline() == 15.0
    assert lanes.answered(GPU, 1, now=14.0, at=1004.0) == Running(GPU, 1, 10.0, 1000.0)
    assert lanes.next_deadline() == 18.0
    assert lanes.answered(NVLINK, 1, now=17.5, at=1007.5) == Running(NVLINK, 1, 14.0, 1004.0)
    assert lanes.next_deadline() == float("inf")


def test_each_lane_has_its_own_time(lanes):
    for probe in (GPU, KERNEL, NET):
        lanes.asked(probe, 1, now=0.0, at=0.0)
    assert lanes.expire(1.9) == []
    assert [(lane, late.probe) for lane, late in lanes.expire(2.0)] == [("", NET)]
    assert lanes.next_deadline() == 3.0
    assert [(lane, late.probe) for lane, late in lanes.expire(99.0)] == [("nvidia", GPU), ("kernel", KERNEL)]


def test_what_hangs_is_told_once_and_blocks_its_lane(lanes):
    lanes.asked(NET, 7, now=0.0, at=0.0)
    hanging = Running(NET, 7, 0.0, 0.0)
    assert lanes.blocked_by(NET) is None
    assert lanes.expire(5.0) == [("", hanging)]
    assert lanes.expire(6.0) == []
    assert lanes.next_deadline() == float("inf")
    assert lanes.blocked_by(NET) == lanes.blocked_by(INFINIBAND) == hanging
    assert lanes.blocked_by(GPU) is None
    assert (lanes.busy(NET), lanes.busy(INFINIBAND)) == (True, False)


def test_an_answer_that_comes_late_frees_its_lane(lanes):
    lanes.asked(GPU, 1, now=0.0, at=100.0)
    lanes.asked(NVLINK, 1, now=0.0, at=100.0)
    lanes.expire(5.0)
    assert lanes.answered(GPU, 1, now=60.0, at=160.0) == Running(GPU, 1, 0.0, 100.0)
    assert lanes.blocked_by(GPU) is None
    assert not lanes.busy(GPU)
    # Of what waited behind it nothing is late yet, and it can be late again.
    assert lanes.expire(63.9) == []
    assert lanes.expire(64.0) == [("nvidia", Running(NVLINK, 1, 60.0, 160.0))]


@pytest.mark.parametrize("answer", [(NVLINK, 1), (GPU, 2), (GPU, 0), (KERNEL, 1)], ids=str)
def test_an_answer_out_of_turn_is_nobody_s(lanes, answer):
    lanes.asked(GPU, 1, now=0.0, at=0.0)
    lanes.asked(NVLINK, 1, now=0.0, at=0.0)
    before = lanes.waiting_in("nvidia")
    lanes.expire(5.0)
    assert lanes.answered(*answer, now=6.0, at=6.0) is None
    assert lanes.waiting_in("nvidia") == before
    assert lanes.first_in("nvidia") == lanes.blocked_by(NVLINK) == Running(GPU, 1, 0.0, 0.0)


def test_an_answer_counts_once(lanes):
    lanes.asked(NET, 1, now=0.0, at=0.0)
    assert lanes.answered(NET, 1, now=1.0, at=1.0)
    assert lanes.answered(NET, 1, now=1.0, at=1.0) is None


def test_nothing_is_left_of_a_loop_that_is_gone(lanes):
    for probe in range(len(PROBES)):
        lanes.asked(probe, 1, now=0.0, at=0.0)
    lanes.expire(2.5)
    lanes.clear()
    assert lanes.next_deadline() == float("inf")
    assert lanes.expire(99.0) == []
    assert not any(lanes.busy(probe) or lanes.blocked_by(probe) for probe in range(len(PROBES)))
    assert lanes.first_in("nvidia") is None


def test_a_request_keeps_its_way_when_its_turn_comes(lanes):
    lanes.asked(GPU, 1, now=0.0, at=0.0)
    lanes.asked(NVLINK, 1, now=0.0, at=0.0, direct=True)
    lanes.answered(GPU, 1, now=2.0, at=102.0)
    assert lanes.first_in("nvidia") == Running(NVLINK, 1, 2.0, 102.0, direct=True)


def test_tools_of_one_lane_only_may_print_straight_to_us(lanes):
    assert all(lanes.can_be_direct(probe) for probe in range(len(PROBES)))
    lanes.asked(KERNEL, 1, now=0.0, at=0.0)
    assert lanes.can_be_direct(GPU)
    lanes.asked(GPU, 1, now=0.0, at=0.0, direct=True)
    assert [lanes.can_be_direct(probe) for probe in (GPU, NVLINK, KERNEL, NET)] == [True, True, False, False]
    # Also one that hangs continues printing some time.
    lanes.expire(99.0)
    assert not lanes.can_be_direct(KERNEL)
    lanes.answered(GPU, 1, now=99.0, at=99.0)
    assert lanes.can_be_direct(KERNEL)
    lanes.asked(GPU, 2, now=99.0, at=99.0, direct=True)
    lanes.clear()
    assert lanes.can_be_direct(KERNEL)


def frame(probe, request=1):
    return Frame(FrameMark.SAME, probe, request, 0)


@pytest.mark.parametrize("direct", [GPU, NVLINK])
def test_an_answer_that_came_by_a_faster_way_is_kept_for_its_turn(lanes, direct):
    for probe in (GPU, NVLINK):
        lanes.asked(probe, 1, now=0.0, at=0.0, direct=probe == direct)
    lanes.came_early(frame(NVLINK))
    assert lanes.came_before("nvidia") is None
    lanes.answered(GPU, 1, now=1.0, at=1.0)
    assert lanes.came_before("nvidia") == frame(NVLINK)
    assert lanes.came_before("nvidia") is None


@pytest.mark.parametrize("answer", [(NVLINK, 2), (GPU, 7), (KERNEL, 1)], ids=str)
def test_what_nobody_asked_for_is_not_kept(lanes, answer):
    lanes.asked(GPU, 1, now=0.0, at=0.0, direct=True)
    lanes.asked(NVLINK, 1, now=0.0, at=0.0)
    lanes.came_early(frame(*answer))
    lanes.answered(GPU, 1, now=1.0, at=1.0)
    assert lanes.came_before("nvidia") is lanes.came_before("kernel") is None


def test_by_one_way_nothing_overtakes_anything(lanes):
    for probe in (GPU, NVLINK):
        lanes.asked(probe, 1, now=0.0, at=0.0)
    lanes.came_early(frame(NVLINK))
    lanes.answered(GPU, 1, now=1.0, at=1.0)
    assert lanes.came_before("nvidia") is None


def test_what_came_early_goes_with_its_loop(lanes):
    for _ in range(2):
        lanes.asked(GPU, 1, now=0.0, at=0.0, direct=True)
        lanes.asked(NVLINK, 1, now=0.0, at=0.0)
    lanes.came_early(frame(NVLINK))
    lanes.clear()
    lanes.asked(NVLINK, 1, now=0.0, at=0.0)
    assert lanes.came_before("nvidia") is None
