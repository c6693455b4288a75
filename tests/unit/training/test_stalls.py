"""All live, and nothing continues: what all wait for has not come within its time."""

import pytest
from fake_cluster import FakeCluster

from lumctl.inventory.job_run import PAUSED_WITHIN_S
from lumctl.training.coordinator import requests
from lumctl.training.coordinator.state import JobStage


def steps(cluster):
    cluster.does_a_step()
    assert len({rank["done"] for rank in requests.document(cluster.state)["ranks"]}) == 1


def test_a_job_that_does_no_step_is_looked_at_and_forms_its_group_anew(cluster):
    generation = cluster.state.group.generation
    cluster.wait(cluster.run.stall_s - 1)
    assert cluster.state.group.generation == generation
    cluster.wait(2)
    assert cluster.state.group.generation == generation + 1
    steps(cluster)
    assert any("no step was done within 600 s" in line for line in cluster.said)
    assert cluster.runs == 0


def test_an_accelerator_that_is_found_lost_then_is_replaced(cluster):
    cluster.broken.add("h2-a")
    cluster.wait(cluster.run.stall_s)
    cluster.come_to_rest()
    steps(cluster)
    assert cluster.placed == ["h0-a", "h1-a", "h4-a", "h3-a"]


def test_it_waits_for_light_that_is_missing_and_says_so_and_goes_on_with_it(cluster):
    cluster.dark = "no light: c3"
    cluster.wait(cluster.run.stall_s)
    for _ in range(5):
        cluster.wait(10)
        assert cluster.state.phase is JobStage.RECOVERING
        assert requests.document(cluster.state)["why"] == "no light: c3"
    assert [line for line in cluster.said if "no light: c3" in line] == [
        "no light: c3; the job waits for it, and checks every 5 s"
    ]
    assert requests.document(cluster.state)["state"] == "waiting"
    cluster.dark = ""
    cluster.wait(10)
    steps(cluster)


def test_a_rank_that_crashes_goes_on_in_a_light_that_was_good_enough_until_then(cluster):
    cluster.dark = "no light: c3"
    cluster.kill("h1-a#1")
    cluster.come_to_rest()
    cluster.dark = ""
    steps(cluster)


def test_a_group_that_is_not_found_has_light_and_accelerators_looked_at(cluster):
    cluster.mute.add("h3-a#1")
    cluster.kill("h1-a#1")
    cluster.settle()
    assert cluster.state.phase is JobStage.RECOVERING
    cluster.mute.clear()
    cluster.wait(cluster.run.stall_s)  # it has never said that it holds
    assert any("h3-a#1" in line and "does not pause within 600 s" in line for line in cluster.said)
    steps(cluster)
    cluster.kill("h1-a#2")
    while not cluster.state.group.join_sent or cluster.state.phase is JobStage.RUNNING:
        assert cluster.turn()
    cluster.mute.update(cluster.processes)  # nobody finds the others
    cluster.settle()
    cluster.mute.clear()
    cluster.broken.add("h2-a")
    cluster.wait(PAUSED_WITHIN_S)
    assert any("the ranks formed no group within 60 s" in line for line in cluster.said)
    cluster.come_to_rest()
    steps(cluster)
    assert "h2-a" not in cluster.placed


@pytest.mark.parametrize("layout", ["replicated", "unique"])
def test_a_process_that_never_loads_its_state_is_killed_and_another_takes_the_rank(tmp_path, layout):
    cluster = FakeCluster(tmp_path, layout=layout)
    cluster.start()
    steps(cluster)
    cluster.broken.add("h1-a")
    cluster.kill("h1-a#1")
    while (spare := cluster.state.workers.get("h4-a#1")) is None or spare.loading is None:
        assert cluster.turn()
    cluster.mute.add("h4-a#1")
    cluster.at += cluster.run.stall_s
    for _ in range(100):
        cluster.turn()
    assert any("h4-a#1" in line and "has not loaded its state within 600 s" in line for line in cluster.said)
    cluster.come_to_rest()
    steps(cluster)


def test_a_job_that_is_paused_for_longer_than_a_step_may_take_stays_so(cluster):
    answers = []
    requests.receive(cluster.state, {"ask": "pause"}, answers.append)
    cluster.settle()
    cluster.wait(cluster.run.stall_s)
    cluster.wait(cluster.run.stall_s)
    assert answers == [{"state": "paused"}]
    assert cluster.state.phase is JobStage.PAUSED
    requests.receive(cluster.state, {"ask": "resume"}, answers.append)
    cluster.wait(0)
    steps(cluster)


def test_what_has_been_said_before_the_end_of_the_time_counts(cluster):
    generation = cluster.state.group.generation
    assert cluster.step()
    cluster.at += cluster.run.stall_s  # as if the coordinator had been stopped meanwhile
    cluster.settle()
    assert cluster.state.group.generation == generation
    steps(cluster)


def test_who_does_not_leave_the_step_that_failed_is_told_and_ended_at_last(cluster):
    cluster.mute.add("h3-a#1")
    cluster.kill("h1-a#1")
    cluster.settle()
    for _ in range(125):
        cluster.wait(1)
    told = [line.rpartition(" (") for line in cluster.said if "waiting" in line]
    assert [words for words, _, _ in told] == ["recovering: waiting for h3-a to leave the step"] * 3
    assert [float(late.partition(" ")[0]) for _, _, late in told] == pytest.approx([30, 60, 120], abs=5)
    assert requests.document(cluster.state)["why"].startswith("waiting for h3-a to leave the step (12")
    cluster.wait(cluster.run.stall_s)
    cluster.come_to_rest()
    assert "h3-a#1" not in cluster.processes
    steps(cluster)
