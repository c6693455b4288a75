import math
from collections import deque

import pytest
from fake_cluster import FakeCluster, at_work

from lumctl.errors import RefusedError
from lumctl.inventory.job_run import WithoutSpare
from lumctl.training.coordinator import agent_reports, failures, requests
from lumctl.training.coordinator.state import JobEnd, JobStage


def running(cluster):
    cluster.does_a_step()
    return requests.document(cluster.state)


def places(document):
    return [rank["accelerator"] for rank in document["ranks"]]


def done(document):
    return [rank["done"] for rank in document["ranks"]]


def test_a_job_starts_with_every_rank_where_the_inventory_says_and_spares_wait(tmp_path):
    cluster = FakeCluster(tmp_path)
    cluster.start()
    document = running(cluster)
    assert places(document) == ["h0-a", "h1-a", "h2-a", "h3-a"]
    assert done(document) == [1, 1, 1, 1]
    assert [each["accelerator"] for each in document["ready"]] == ["h4-a", "h5-a"]


def test_a_crash_on_a_well_accelerator_restarts_in_place_and_spends_no_spare(cluster):
    cluster.kill("h1-a#1")
    cluster.settle()
    document = running(cluster)
    assert places(document) == ["h0-a", "h1-a", "h2-a", "h3-a"]
    assert document["ranks"][1]["worker"] == "h1-a#2"
    assert done(document) == [2, 2, 2, 2]
    assert cluster.runs == 0
    assert document["recoveries"][0]["replaced_by"] == {}


def test_with_standby_the_ready_process_beside_the_rank_takes_it_over(tmp_path):
    cluster = at_work(FakeCluster(tmp_path, standby=True))
    running(cluster)
    assert "h1-a#2" in [each["worker"] for each in requests.document(cluster.state)["ready"]]
    cluster.kill("h1-a#1")
    cluster.settle()
    document = running(cluster)
    assert document["ranks"][1]["worker"] == "h1-a#2"
    running(cluster)
    assert "h1-a#3" in [each["worker"] for each in requests.document(cluster.state)["ready"]]


def test_a_dead_accelerator_is_replaced_by_a_spare_and_the_run_of_the_swap_is_told(cluster):
    cluster.broken.add("h1-a")
    cluster.kill("h1-a#1")
    cluster.settle()
    document = running(cluster)
    assert places(document) == ["h0-a", "h4-a", "h2-a", "h3-a"]
    assert done(document) == [2, 2, 2, 2]
    (recovery,) = document["recoveries"]
    assert recovery["replaced_by"] == {"h1-a": "h4-a"}
    assert recovery["run"] == "swap-0001"
    marks = recovery["marks"]
    assert 0 <= marks["held"] <= marks["step"]
    assert marks["health"] < marks["planned"] < marks["verified"] < marks["joined"] < marks["step"]


def test_a_step_that_some_had_done_when_another_died_counts(cluster):
    processes = cluster.processes
    processes["h0-a#1"].done = 2  # the optimiser had stepped there
    cluster.kill("h1-a#1")
    cluster.settle()
    assert done(running(cluster)) == [3, 3, 3, 3]


def test_a_process_that_hangs_is_killed_and_its_rank_goes_on(cluster):
    silent = {"tell": "silent", "worker": "h2-a#1", "for_s": 2.0}
    cluster.later("h2", lambda: agent_reports.receive(cluster.state, "h2", silent, ""))
    cluster.settle()
    assert "h2-a#1" not in cluster.processes
    assert running(cluster)["ranks"][2]["worker"] == "h2-a#2"


def test_a_host_that_is_gone_loses_all_its_ranks(cluster):
    cluster.kill_host("h3")
    cluster.settle()
    assert places(running(cluster)) == ["h0-a", "h1-a", "h2-a", "h4-a"]


def test_the_second_failure_of_two_in_a_row_takes_the_second_spare(cluster):
    for name in ("h1-a", "h2-a"):
        cluster.broken.add(name)
        cluster.kill(f"{name}#1")
        cluster.settle()
        running(cluster)
    assert places(requests.document(cluster.state)) == ["h0-a", "h4-a", "h5-a", "h3-a"]


def test_the_spare_that_dies_while_it_takes_over_is_replaced_as_well(cluster):
    cluster.broken.add("h1-a")
    cluster.kill("h1-a#1")
    while not any("replace h1-a" in line for line in cluster.said):
        cluster.turn()
    cluster.broken.add("h4-a")
    cluster.kill("h4-a#1")
    cluster.settle()
    assert places(running(cluster)) == ["h0-a", "h5-a", "h2-a", "h3-a"]


def test_a_job_that_waits_says_what_to_do(cluster):
    cluster.broken |= {"h4-a", "h5-a", "h1-a"}
    cluster.kill("h1-a#1")
    cluster.settle()
    hint = "see what to do: lumctl health explain mesh --target sim"
    failures.not_repaired(cluster.state, RefusedError("no swap can be applied while mesh does not answer", hint=hint))
    why = f"no swap can be applied while mesh does not answer ({hint})"
    assert requests.document(cluster.state)["why"] == why
    assert any(line.startswith(why) for line in cluster.said)


def test_without_a_spare_it_waits_and_goes_on_when_the_accelerator_is_well_again(cluster):
    cluster.broken |= {"h4-a", "h5-a", "h1-a"}
    cluster.kill("h1-a#1")
    cluster.settle()
    assert cluster.state.phase is JobStage.RECOVERING
    assert requests.document(cluster.state)["why"] == "no spare is left"
    cluster.broken.discard("h1-a")
    cluster.at += 10
    cluster.coordinator.turn()
    cluster.settle()
    assert places(running(cluster)) == ["h0-a", "h1-a", "h2-a", "h3-a"]


def test_without_a_spare_it_shrinks_if_told_to(tmp_path):
    cluster = at_work(FakeCluster(tmp_path, without_spare=WithoutSpare.SHRINK))
    cluster.broken |= {"h4-a", "h5-a", "h1-a"}
    cluster.kill("h1-a#1")
    cluster.settle()
    document = running(cluster)
    assert places(document) == ["h0-a", "h2-a", "h3-a"]
    assert [rank["rank"] for rank in document["ranks"]] == [0, 1, 2]


@pytest.mark.parametrize("layout", ["replicated", "unique"])
def test_without_a_spare_it_stops_with_a_checkpoint_if_told_to(tmp_path, layout):
    cluster = at_work(FakeCluster(tmp_path, without_spare=WithoutSpare.STOP, layout=layout))
    cluster.broken |= {"h4-a", "h5-a", "h1-a"}
    cluster.kill("h1-a#1")
    cluster.settle()
    assert cluster.state.phase is JobStage.STOPPED
    assert cluster.state.end is JobEnd.NO_SPARE
    stopped = {p.rank: p.stopped for p in cluster.processes.values() if p.rank is not None}
    assert {done for done, _ in stopped.values()} == {1}
    also = [rank for _, ranks in stopped.values() for rank in ranks]
    assert also == ([1] if layout == "unique" else [])


def test_each_ranks_own_state_comes_from_its_keeper(tmp_path):
    cluster = at_work(FakeCluster(tmp_path, layout="unique"))
    cluster.broken.add("h1-a")
    cluster.kill("h1-a#1")
    cluster.settle()
    assert done(running(cluster)) == [2, 2, 2, 2]


def test_a_pause_by_hand_holds_all_and_a_resume_goes_on_at_the_new_place(cluster):
    answers = []
    cluster.later("person", lambda: requests.receive(cluster.state, {"ask": "pause"}, answers.append))
    cluster.settle()
    assert answers == [{"state": "paused"}]
    assert cluster.state.phase is JobStage.PAUSED
    cluster.placed[2] = "h5-a"
    cluster.later("person", lambda: requests.receive(cluster.state, {"ask": "resume"}, answers.append))
    cluster.settle()
    assert answers[-1] == {"state": "running"}
    assert places(running(cluster)) == ["h0-a", "h1-a", "h5-a", "h3-a"]
    assert "h2-a#1" not in cluster.processes


def test_a_new_coordinator_takes_a_running_job_over(tmp_path):
    cluster = FakeCluster(tmp_path)
    cluster.start()
    before = running(cluster)
    successor = FakeCluster(tmp_path)
    successor.processes = cluster.processes
    successor.start()
    after = running(successor)
    assert [rank["worker"] for rank in after["ranks"]] == [rank["worker"] for rank in before["ranks"]]
    assert done(after) == [2, 2, 2, 2]


def test_what_died_while_no_coordinator_looked_is_recovered_by_the_next(tmp_path):
    cluster = at_work(FakeCluster(tmp_path))
    del cluster.processes["h2-a#1"]
    successor = FakeCluster(tmp_path)
    successor.processes = cluster.processes
    successor.start()
    document = running(successor)
    assert done(document) == [2, 2, 2, 2]
    assert document["ranks"][2]["accelerator"] == "h2-a"


def test_a_program_that_never_gets_ready_stops_the_job(tmp_path):
    cluster = FakeCluster(tmp_path)
    cluster.ready = lambda _player: {"say": "failed", "error": "no module named nothing"}
    ask = cluster.ask

    def ask_and_die(host, message):
        found = ask(host, message)
        if message["ask"] == "start":
            cluster.kill(message["worker"])
        return found

    object.__setattr__(cluster.effects, "ask", ask_and_die)
    for host in cluster.state.hosts():
        cluster.open(host)
    cluster.settle()
    assert cluster.state.phase is JobStage.STOPPED
    assert "before it was ready" in cluster.state.why_ended


def test_failures_without_a_step_between_them_stop_the_job(tmp_path):
    cluster = at_work(FakeCluster(tmp_path, restarts=2))
    for number in (1, 2, 3):
        cluster.kill(f"h0-a#{number}")
        cluster.settle()
    assert cluster.state.phase is JobStage.STOPPED
    assert "without a step in between" in cluster.state.why_ended


def test_whose_state_a_worker_has_is_known_though_it_says_late_that_it_had_joined(tmp_path):
    cluster = FakeCluster(tmp_path)
    for host in cluster.state.hosts():
        cluster.open(host)
    while not any(process.joining for process in cluster.processes.values()):
        cluster.turn()
    assert cluster.step()
    assert cluster.step()
    of_one, of_others = ([one for one in cluster.says if (one[0] == "h3-a#1") is so] for so in (True, False))
    cluster.says = deque(of_one[:1])
    cluster.turn()
    cluster.kill("h3-a#1")
    cluster.turn()
    cluster.says.extendleft(reversed(of_others))  # said in the group that they have been told to leave
    cluster.settle()
    assert done(running(cluster)) == [3, 3, 3, 3]


def test_a_loss_that_is_not_a_number_is_told_once_with_its_rank(cluster):
    for done, loss in ((2, 0.5), (3, math.nan), (4, math.nan), (5, 0.5), (6, math.inf)):
        message = {"say": "stepped", "generation": 1, "done": done, "loss": loss}
        told = {"tell": "said", "worker": "h1-a#1", "message": message, "at": cluster.at}
        agent_reports.receive(cluster.state, "h1", told, "")
    told = [line for line in cluster.said if "its loss" in line]
    assert told == [f"rank 1 (h1-a#1): its loss is {loss} in step {step}" for loss, step in (("nan", 2), ("inf", 5))]


def test_steps_that_an_agent_tells_together_count_each_and_a_malformed_one_alone_is_left_out(cluster):
    steps = {
        f"h{number}-a#1": {"say": "stepped", "generation": 1, "done": 2 if number != 1 else "two"}
        for number in range(3)
    }
    agent_reports.receive(cluster.state, "h0", {"tell": "said", "messages": steps, "at": cluster.at}, "")
    assert done(requests.document(cluster.state)) == [2, 1, 2, 1]
    assert cluster.said[-1].startswith("h0: its agent sent a malformed message (ValueError")
