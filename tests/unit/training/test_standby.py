"""Processes that wait for a rank: where, and what follows when they cannot start."""

import pytest
from fake_cluster import FakeCluster, at_work

from lumctl.errors import UnreachableError
from lumctl.inventory.job_run import WithoutSpare
from lumctl.training.coordinator import requests
from lumctl.training.coordinator.state import JobStage


def steps(cluster, number=1):
    for _ in range(number):
        cluster.does_a_step()


def crash_on(cluster, accelerators):
    """Have each process die that is started there from now on; gives the names of those that were started."""
    started, ask = [], cluster.ask

    def crash(host, message):
        found = ask(host, message)
        if found and message["ask"] == "start" and message["accelerator"] in accelerators:
            started.append(message["worker"])
            cluster.kill(message["worker"])
        return found

    object.__setattr__(cluster.effects, "ask", crash)
    return started


def test_processes_beside_the_ranks_that_cannot_start_do_not_stop_a_job_that_runs_well(tmp_path):
    cluster = FakeCluster(tmp_path, standby=True)
    cluster.start()
    started = crash_on(cluster, cluster.placed)
    steps(cluster, 50)
    assert len(started) == 4
    assert cluster.state.failed_attempts == 0


def test_a_spare_that_always_crashes_is_started_with_growing_pauses_and_told_once(tmp_path):
    cluster = at_work(FakeCluster(tmp_path))
    started = crash_on(cluster, {"h4-a"})
    cluster.kill("h4-a#1")
    for _ in range(500):
        cluster.at += 1
        steps(cluster)
    assert 5 <= len(started) <= 9
    assert len([line for line in cluster.said if "before it was ready" in line]) == 1


def test_a_spare_that_gets_ready_again_is_waited_for_anew_when_it_dies(tmp_path):
    cluster = at_work(FakeCluster(tmp_path))
    ask = cluster.effects.ask
    crash_on(cluster, {"h4-a"})
    cluster.kill("h4-a#1")
    steps(cluster, 3)
    object.__setattr__(cluster.effects, "ask", ask)
    cluster.at += 10
    steps(cluster, 2)
    assert "h4-a" in [each["accelerator"] for each in requests.document(cluster.state)["ready"]]
    assert not cluster.state.standby_retries.waits("h4-a", cluster.at)


def test_the_store_is_not_read_with_each_step_and_may_be_away(tmp_path):
    cluster = at_work(FakeCluster(tmp_path))
    reads, places = [], cluster.state.store_placement

    def down():
        reads.append(cluster.at)
        raise UnreachableError("the store does not answer")

    places._ready_on = places._placement = down
    steps(cluster, 10)
    assert reads == []
    cluster.kill("h4-a#1")
    steps(cluster, 10)
    assert len(reads) == 1
    assert cluster.said.count("the store cannot be read, the last placement is used: the store does not answer") == 1
    assert "h4-a" in [each["accelerator"] for each in requests.document(cluster.state)["ready"]]
    cluster.kill("h1-a#1")
    cluster.come_to_rest()
    steps(cluster)


@pytest.mark.parametrize("by_hand", [True, False])
def test_a_rank_that_was_given_up_comes_back_when_it_is_placed_elsewhere(tmp_path, by_hand):
    cluster = at_work(FakeCluster(tmp_path, without_spare=WithoutSpare.SHRINK))
    cluster.broken |= {"h4-a", "h5-a", "h1-a"}
    cluster.kill("h1-a#1")
    cluster.come_to_rest()
    steps(cluster)
    assert len(cluster.group()) == 3
    cluster.broken.clear()
    cluster.placed[1] = "h4-a"
    if by_hand:
        cluster.by_hand()
    else:
        cluster.kill("h0-a#1")
    cluster.come_to_rest()
    steps(cluster)
    placed = [rank["accelerator"] for rank in requests.document(cluster.state)["ranks"]]
    assert placed == ["h0-a", "h4-a", "h2-a", "h3-a"]


@pytest.mark.parametrize("how", ["it ends", "it never ends"])
def test_none_is_started_where_one_is_dying_until_it_has_ended(tmp_path, how):
    cluster = at_work(FakeCluster(tmp_path, seed=1))
    hears = cluster.hears
    ends = []
    cluster.hears = lambda host, message: ends.append(message) if message["tell"] == "exited" else hears(host, message)
    cluster.kill("h1-a#1")
    cluster.settle()
    assert [each["worker"] for each in ends] == ["h1-a#1"]
    assert [name for name in cluster.processes if name.startswith("h1-a")] == []
    cluster.hears = hears
    if how == "it ends":
        cluster.later("h1-a#1", lambda: hears("h1", ends[0]))
        cluster.settle()
    else:
        cluster.wait(cluster.run.stall_s)
    assert [name for name in cluster.processes if name.startswith("h1-a")] == ["h1-a#2"]
    assert cluster.state.phase is JobStage.RUNNING


def test_what_a_host_loses_at_once_is_replaced_by_one_run(tmp_path, monkeypatch):
    cluster = at_work(FakeCluster(tmp_path))
    real = cluster.state.host_of
    monkeypatch.setattr(cluster.state, "host_of", lambda name: "h1" if name == "h2-a" else real(name))
    cluster.broken |= {"h1-a", "h2-a"}
    cluster.kill("h1-a#1")
    cluster.come_to_rest()
    assert cluster.runs == 1
    assert set(cluster.placed) == {"h0-a", "h4-a", "h5-a", "h3-a"}
    assert "h2-a#1" not in cluster.processes
    assert cluster.state.phase is JobStage.RUNNING
