"""A job that somebody holds stays so until it is resumed, whatever fails meanwhile."""

from fake_cluster import FakeCluster

from lumctl.errors import UnreachableError
from lumctl.training.coordinator import requests
from lumctl.training.coordinator.state import JobEnd, JobStage

PLACES = ["h0-a", "h1-a", "h2-a", "h3-a"]


def asks(cluster, what):
    answers = []
    cluster.coordinator.post(requests.receive, {"ask": what}, answers.append)
    cluster.coordinator.turn()
    return answers


def steps_at(cluster, places):
    cluster.does_a_step()
    assert [rank["accelerator"] for rank in requests.document(cluster.state)["ranks"]] == places


def holds(cluster):
    assert requests.document(cluster.state)["state"] == "paused"
    assert not cluster.step()
    cluster.wait(20)
    assert requests.document(cluster.state)["state"] == "paused"


def resumes(cluster, places):
    cluster.placed[:] = places
    answers = asks(cluster, "resume")
    cluster.come_to_rest()
    assert answers == [{"state": "running"}]
    steps_at(cluster, places)


def test_a_pause_during_a_recovery_is_kept_until_it_is_resumed(cluster):
    cluster.kill("h1-a#1")
    while cluster.state.phase is not JobStage.RECOVERING:
        cluster.turn()
    answers = asks(cluster, "pause")
    cluster.settle()
    assert answers == [{"state": "paused"}]
    holds(cluster)
    resumes(cluster, ["h0-a", "h1-a", "h4-a", "h3-a"])


def test_a_pause_while_a_group_is_formed_is_answered_and_kept(cluster):
    cluster.kill("h1-a#1")
    while not cluster.state.group.join_sent or cluster.state.phase is JobStage.RUNNING:
        assert cluster.turn()
    answers = asks(cluster, "pause")
    cluster.settle()
    assert answers == [{"state": "paused"}]
    holds(cluster)
    resumes(cluster, PLACES)


def test_a_process_that_dies_while_the_job_is_held_does_not_have_it_go_on(cluster):
    asks(cluster, "pause")
    cluster.settle()
    cluster.kill("h1-a#1")
    cluster.come_to_rest()
    holds(cluster)
    resumes(cluster, ["h0-a", "h1-a", "h2-a", "h5-a"])


def test_a_job_that_nobody_resumes_any_more_can_be_stopped(cluster):
    asks(cluster, "pause")
    cluster.settle()
    cluster.kill("h1-a#1")
    cluster.come_to_rest()
    asks(cluster, "stop")
    cluster.settle()
    assert cluster.state.phase is JobStage.STOPPED
    assert cluster.state.end is JobEnd.STOPPED


def test_a_resume_reads_the_placement_of_a_job_that_runs(cluster):
    resumes(cluster, ["h0-a", "h1-a", "h4-a", "h3-a"])
    generation = cluster.state.group.generation
    resumes(cluster, ["h0-a", "h1-a", "h4-a", "h3-a"])
    assert cluster.state.group.generation == generation


def test_a_pause_at_the_start_holds_the_first_group(tmp_path):
    cluster = FakeCluster(tmp_path)
    for host in cluster.state.hosts():
        cluster.open(host)
    answers = asks(cluster, "pause")
    cluster.settle()
    assert answers == [{"state": "paused"}]
    holds(cluster)
    resumes(cluster, ["h0-a", "h1-a", "h2-a", "h5-a"])


def test_lumctl_that_is_killed_while_the_job_holds_is_followed_by_one_that_has_it_go_on(cluster):
    asks(cluster, "pause")
    cluster.settle()
    assert all(cluster.processes[name].parked for name in cluster.group())
    cluster.restart_lumctl()
    cluster.settle()
    assert cluster.state.group.generation > 2
    steps_at(cluster, PLACES)


def test_lumctl_that_is_killed_while_some_hold_is_followed_by_one_that_has_all_hold(cluster):
    cluster.lose_line("h2", refused=9)
    asks(cluster, "pause")
    while cluster.processes["h0-a#1"].last.get("held") is None:
        cluster.turn()
    cluster.refuses.clear()
    cluster.restart_lumctl()
    cluster.settle()
    steps_at(cluster, PLACES)


def test_a_store_that_cannot_be_read_is_told_to_who_pauses_and_the_job_runs(cluster):
    def down():
        raise UnreachableError("the store does not answer")

    means = cluster.state.store_placement
    read, means._placement = means._placement, down
    assert asks(cluster, "pause") == [{"error": "the store does not answer"}]
    steps_at(cluster, PLACES)
    means._placement = read
    asks(cluster, "pause")
    cluster.settle()
    means._placement = down
    assert asks(cluster, "resume") == [{"error": "the store does not answer"}]
    holds(cluster)
    means._placement = read
    resumes(cluster, PLACES)


def test_a_run_is_done_when_its_light_is_right_though_another_failure_keeps_the_job(cluster):
    answers = asks(cluster, "pause")
    cluster.settle()
    cluster.placed[1] = "h4-a"
    cluster.broken.add("h2-a")
    cluster.kill("h2-a#1")
    cluster.coordinator.post(requests.receive, {"ask": "resume"}, answers.append)
    cluster.coordinator.turn()
    cluster.come_to_rest()
    assert answers == [{"state": "paused"}, {"state": "recovering"}]
    assert cluster.placed == ["h0-a", "h4-a", "h5-a", "h3-a"]
    assert cluster.state.phase is JobStage.RUNNING
