"""What a job costs its coordinator grows with its ranks, and not with their square."""

import sys

import pytest
from fake_cluster import FakeCluster

from lumctl.training.coordinator.state import JobStage

FEW, MANY = 32, 256
TURNS = 100_000


def calls_while(play):
    """The number of calls of functions of the coordinator, with each item of a generator."""
    calls = 0

    def count(frame, event, _argument):
        nonlocal calls
        calls += event == "call" and "/training/coordinator/" in frame.f_code.co_filename

    sys.setprofile(count)
    try:
        play()
    finally:
        sys.setprofile(None)
    return calls


def step(cluster):
    assert cluster.step()
    cluster.settle(TURNS)


def crash(cluster):
    cluster.kill("h1-a#1")
    cluster.settle(TURNS)


def swap(cluster):
    cluster.broken.add("h1-a")
    crash(cluster)


def stall(cluster):
    cluster.at += cluster.run.stall_s
    cluster.coordinator.turn()
    cluster.settle(TURNS)


def start(tmp_path, ranks, layout, *, standby=False):
    cluster = FakeCluster(tmp_path, ranks=ranks, layout=layout, standby=standby)
    for host in cluster.state.hosts():
        cluster.open(host)
    cluster.settle(TURNS)
    assert cluster.state.phase is JobStage.RUNNING, cluster.said
    return cluster


@pytest.mark.parametrize("layout", ["replicated", "unique"])
def test_the_start_of_a_job_costs_each_rank_the_same(tmp_path, layout):
    few, many = (calls_while(lambda ranks=ranks: start(tmp_path, ranks, layout)) / ranks for ranks in (FEW, MANY))
    assert many < 1.5 * few


@pytest.mark.parametrize("standby", [False, True])
@pytest.mark.parametrize("layout", ["replicated", "unique"])
@pytest.mark.parametrize("what", [step, crash, swap, stall])
def test_what_happens_costs_each_rank_the_same(tmp_path, what, layout, standby):
    calls = []
    for ranks in (FEW, MANY):
        cluster = start(tmp_path, ranks, layout, standby=standby)
        for _ in range(3):
            step(cluster)
        calls.append(calls_while(lambda cluster=cluster: what(cluster)) / ranks)
        assert cluster.state.phase is JobStage.RUNNING, cluster.said
    few, many = calls
    assert many < 1.5 * few, (few, many)
