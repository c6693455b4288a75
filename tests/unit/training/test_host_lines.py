"""Lines to agents are lost, and found again: nothing that was said or ordered meanwhile is lost with them."""

import math

import pytest
from fake_cluster import FakeCluster, at_work

from lumctl.errors import RefusedError
from lumctl.training.coordinator import agent_reports, requests
from lumctl.training.coordinator.host_lines import LONGEST_S
from lumctl.training.coordinator.state import JobEnd, JobStage


def generation(cluster):
    return cluster.state.group.generation


def loses_while(cluster, host, word):
    """Have the line to a host lost just before a word of a worker of it is heard, and found again."""
    hears = cluster.hears

    def deaf(at, message):
        if at == host and message.get("message", {}).get("say") == word:
            cluster.hears = hears
            cluster.lose_line(host)
        else:
            hears(at, message)

    cluster.hears = deaf


@pytest.mark.parametrize("word", ["held", "joined", "stepped"])
def test_what_a_rank_says_while_the_line_is_lost_counts(cluster, word):
    loses_while(cluster, "h2", word)
    cluster.kill("h1-a#1")
    cluster.settle()
    cluster.does_a_step()
    assert cluster.state.recovery is None
    assert generation(cluster) == 2


@pytest.mark.parametrize("word", ["ready", "loaded"])
def test_what_a_new_process_says_while_the_line_is_lost_counts(cluster, word):
    loses_while(cluster, "h1", word)
    cluster.kill("h1-a#1")
    cluster.settle()
    cluster.does_a_step()
    assert generation(cluster) == 2


@pytest.mark.parametrize(("order", "groups"), [("hold", 2), ("load", 2), ("join", 3)])
def test_an_order_that_could_not_be_sent_is_given_again(cluster, order, groups):
    told = cluster.told

    def lost(process, message):
        if process.host == "h1" and message["do"] == order:
            cluster.told = told
            cluster.lose_line("h1")
        else:
            told(process, message)

    cluster.told = lost
    cluster.kill("h0-a#1" if order == "hold" else "h1-a#1")
    cluster.settle()
    cluster.does_a_step()
    assert generation(cluster) == groups


def test_a_job_that_ends_while_lines_are_lost_has_ended_well(cluster):
    for process in [cluster.processes[name] for name in cluster.group()]:
        cluster.lose_line(process.host)
        process.last["ended"], process.code = {"say": "ended", "done": 1}, 0
        del cluster.processes[process.name]
        cluster.dead.append(process)
    cluster.settle()
    assert cluster.state.phase is JobStage.ENDED, cluster.said
    assert cluster.state.end is JobEnd.DONE


def test_an_agent_that_is_new_says_nothing_new(cluster):
    said = [*cluster.said]
    for host in ("h0", "h1", "h2", "h3"):
        cluster.restart_agent(host)
    cluster.settle()
    assert cluster.said == said
    assert generation(cluster) == 1
    cluster.does_a_step()


def test_a_word_that_is_said_again_does_not_have_a_job_run_that_has_ended(cluster):
    for process in [cluster.processes[name] for name in cluster.group()]:
        cluster.say(process, {"say": "ended", "done": 1})
    cluster.settle()
    for name in cluster.group():
        cluster.exit(name)
    cluster.settle()
    assert cluster.state.phase is JobStage.ENDED
    joined = {"say": "joined", "generation": 1, "rank": 1}
    told = {"tell": "said", "worker": "h1-a#1", "message": joined, "at": cluster.at}
    agent_reports.receive(cluster.state, "h1", told, "")
    assert cluster.state.phase is JobStage.ENDED


def test_a_host_that_is_away_is_tried_again_with_pauses_and_its_ranks_go_on_when_it_is_back(cluster):
    cluster.broken |= {"h4-a", "h5-a"}
    cluster.lose_line("h3", refused=1000)
    cluster.settle()
    known = len(cluster.state.workers.by_name)
    before = len(cluster.opened)
    for _ in range(400):
        cluster.at += 0.5
        cluster.coordinator.post(lambda _state: None)
        cluster.coordinator.turn()
        cluster.settle()
    tried = len(cluster.opened) - before
    assert 200 / LONGEST_S - 1 <= tried <= 200 / LONGEST_S + 6
    assert len(cluster.state.workers.by_name) == known
    assert requests.document(cluster.state)["why"] == "host h3 cannot be reached: no route"
    assert cluster.said.count("host h3 cannot be reached: no route") == 1
    cluster.refuses.clear()
    cluster.wait(LONGEST_S)
    cluster.does_a_step()
    assert "h3-a#1" in cluster.group()


def test_what_ranks_have_is_not_lost_when_no_host_is_heard_for_a_while(tmp_path):
    cluster = at_work(FakeCluster(tmp_path, layout="unique"))
    for number in range(6):
        cluster.lose_line(f"h{number}", refused=5)
    cluster.come_to_rest()
    cluster.does_a_step()
    assert {process.done for process in cluster.processes.values() if process.name in cluster.group()} == {2}
    assert cluster.group() == {f"h{number}-a#1" for number in range(4)}


def test_a_process_that_lost_its_rank_while_its_host_was_away_is_ended(cluster):
    cluster.broken.add("h3-a")
    cluster.lose_line("h3", refused=4)
    while cluster.state.phase is JobStage.RUNNING:
        assert cluster.turn()
    cluster.settle()
    cluster.does_a_step()
    assert "h3-a#1" in cluster.processes
    cluster.come_to_rest()
    assert "h3-a#1" not in cluster.processes
    cluster.does_a_step()


def test_a_job_whose_host_is_away_at_the_start_starts_when_it_is_back(tmp_path):
    cluster = FakeCluster(tmp_path)
    cluster.refuses["h1"] = 5
    for host in cluster.state.hosts():
        cluster.state.lines.open(host)
    cluster.settle()
    assert cluster.state.phase is JobStage.STARTING
    assert requests.document(cluster.state)["why"] == "host h1 cannot be reached: no route"
    cluster.come_to_rest()
    cluster.does_a_step()
    assert len([worker for worker in cluster.state.workers if worker.accelerator == "h1-a"]) == 1


def test_the_line_to_a_host_that_had_nothing_to_do_with_the_job_is_opened_when_it_has(tmp_path):
    cluster = FakeCluster(tmp_path)
    cluster.state.store_placement._ready_on = lambda: ["h4-a"]
    at_work(cluster)
    assert "h5" not in cluster.opened
    cluster.placed[0] = "h5-a"
    answers = []
    cluster.coordinator.post(requests.receive, {"ask": "resume"}, answers.append)
    cluster.coordinator.turn()
    cluster.settle()
    assert answers == [{"state": "running"}]
    cluster.does_a_step()


@pytest.mark.parametrize(
    "message",
    [
        {"say": "held"},
        {"say": "saved", "done": 1},
        {"say": "stepped"},
        {"say": "stepped", "done": math.inf},
        {"say": "stepped", "done": 2, "generation": 1, "collectives": [["", 4, [1e400], [10**400], []]]},
        "held",
    ],
)
def test_a_word_that_cannot_be_understood_is_told_and_the_job_goes_on(cluster, message):
    told = {"tell": "said", "worker": "h1-a#1", "message": message, "at": 1}
    agent_reports.receive(cluster.state, "h1", told, "")
    assert cluster.said[-1].startswith("h1: its agent sent a malformed message")
    cluster.does_a_step()


def test_who_loses_an_agent_to_another_leaves_the_job_as_it_is(cluster):
    asked = []
    object.__setattr__(cluster.effects, "ask", lambda host, message: bool(asked.append((host, message))) or True)
    cluster.coordinator.post(agent_reports.receive, "h0", {"tell": "taken", "by": "pid 7 on other"}, "")
    with pytest.raises(RefusedError, match="the agent on h0 works for pid 7 on other") as refused:
        cluster.coordinator.run()
    assert "--take" in refused.value.hint
    assert asked == []


def test_an_agent_that_has_not_noticed_that_our_line_was_lost_is_tried_again(cluster):
    object.__setattr__(cluster.effects, "who", "pid 1 on here (00c0ffee)")
    taken = {"tell": "taken", "by": cluster.effects.who}
    agent_reports.receive(cluster.state, "h0", taken, "")
    cluster.lose_line("h0")
    cluster.settle()
    cluster.does_a_step()


def test_who_takes_the_job_over_asks_the_hosts_too_whose_accelerators_were_replaced(cluster):
    cluster.broken.add("h1-a")
    cluster.kill("h1-a#1")
    cluster.come_to_rest()
    assert "h1-a" not in cluster.placed
    cluster.restart_lumctl()
    assert "h1" in cluster.state.hosts()
