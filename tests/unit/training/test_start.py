"""A job that begins: who does not come up, and why, is told, and nobody waits for ever."""

import pytest
from fake_cluster import FakeCluster

from lumctl.inventory.job_run import WithoutSpare
from lumctl.training.coordinator import requests
from lumctl.training.coordinator.state import JobEnd, JobStage


def opened(cluster):
    for host in cluster.state.hosts():
        cluster.open(host)
    cluster.settle()
    return cluster


def never_ready(cluster, *accelerators, met=False):
    """Have processes on these accelerators start and say nothing, or hello only."""
    said = {"say": "hello", "pid": 7} if met else {"say": "beat"}
    ready = cluster.ready
    cluster.ready = lambda process: said if process.accelerator in accelerators else ready(process)
    return cluster


def dying(cluster, **told):
    """Have every process end with code 1 before it is ready."""
    ask = cluster.ask

    def ask_and_die(host, message):
        found = ask(host, message)
        if message["ask"] == "start":
            exited = {"tell": "exited", "worker": message["worker"], "code": 1, "signal": None, "at": cluster.at}
            del cluster.processes[message["worker"]]
            cluster.later(message["worker"], lambda: cluster.hears(host, {**exited, **told}))
        return found

    object.__setattr__(cluster.effects, "ask", ask_and_die)
    return cluster


def test_the_last_line_of_a_log_is_told_with_the_reason(tmp_path):
    cluster = opened(dying(FakeCluster(tmp_path), printed="ModuleNotFoundError: No module named 'x'"))
    coordinator = cluster.coordinator
    assert coordinator.state.phase is JobStage.STOPPED
    assert (
        "h2-a#1 ended with exit code 1 before it was ready: ModuleNotFoundError: No module named 'x' "
        "(log: h2-a#1.log on h2)"
    ) in cluster.said
    assert (
        "before it was ready: ModuleNotFoundError: No module named 'x' (log: "
        in requests.document(coordinator.state)["why"]
    )


@pytest.mark.parametrize("told", [{}, {"printed": ""}, {"printed": None}])
def test_one_that_has_printed_nothing_has_its_log_named(tmp_path, told):
    cluster = opened(dying(FakeCluster(tmp_path), **told))
    assert "h2-a#1 ended with exit code 1 before it was ready (log: h2-a#1.log on h2)" in cluster.said


def test_what_an_agent_tells_of_a_log_cannot_move_the_terminal(tmp_path):
    cluster = opened(dying(FakeCluster(tmp_path), printed="a\n\x1b[2J" + "b" * 100_000))
    assert all(line.isprintable() and len(line) < 2_000 for line in cluster.said)


def test_the_first_group_begins_and_the_next_one_goes_on(cluster):
    assert cluster.said == ["4 ranks begin (group 1)"]
    cluster.kill("h1-a#1")
    cluster.settle()
    assert "4 ranks continue after 1 step (group 2)" in cluster.said


def test_where_ranks_have_found_a_checkpoint_of_their_own_it_is_told_where_they_go_on(tmp_path):
    cluster = FakeCluster(tmp_path)
    say = cluster.say
    cluster.say = lambda process, message, **more: say(
        process, {**message, "done": 705} if not callable(message) and message["say"] == "joined" else message, **more
    )
    opened(cluster)
    assert cluster.said == ["4 ranks continue after 705 steps (group 1)"]


def test_it_is_told_for_whom_the_job_waits_now_and_then(tmp_path):
    cluster = opened(never_ready(FakeCluster(tmp_path), "h1-a", "h2-a"))
    assert cluster.said == []
    for _ in range(125):
        cluster.wait(1)
    shown = [line for line in cluster.said if "waiting for" in line]
    assert [line.partition("(")[0] for line in shown] == ["starting: waiting for h[1-2]-a "] * 3
    assert [float(line.partition("(")[2].partition(" ")[0]) for line in shown] == pytest.approx([30, 60, 120], abs=5)
    assert requests.document(cluster.state)["why"].startswith("waiting for h[1-2]-a (12")
    assert cluster.state.phase is JobStage.STARTING


@pytest.mark.parametrize(
    ("met", "missing"), [(False, "has not connected to its agent"), (True, "has not reached its training")]
)
def test_a_job_one_of_whose_processes_never_gets_ready_stops_and_says_which(tmp_path, met, missing):
    cluster = opened(never_ready(FakeCluster(tmp_path, start_s=300), "h1-a", met=met))
    cluster.wait(299)
    assert cluster.state.phase is JobStage.STARTING
    cluster.wait(2)
    assert cluster.state.phase is JobStage.STOPPED
    assert cluster.state.end is JobEnd.NOT_STARTED
    why = cluster.state.why_ended
    assert why.startswith(f"h1-a#1 {missing}")
    assert why.endswith("within 300 s (start_s) (log: h1-a#1.log on h1)")
    assert "h1-a#1" not in cluster.processes


def test_once_a_job_has_run_another_process_is_started_instead(tmp_path):
    cluster = opened(FakeCluster(tmp_path, start_s=300))
    cluster.does_a_step()
    ready = cluster.ready
    never_ready(cluster, "h1-a")
    cluster.kill("h1-a#1")
    cluster.settle()
    cluster.wait(31)
    assert any(line.startswith("recovering: waiting for h1-a (3") for line in cluster.said)
    cluster.ready = ready
    cluster.wait(300)
    cluster.come_to_rest()
    cluster.does_a_step()
    assert "h1-a#3" in cluster.group()


def test_a_spare_that_never_gets_ready_does_not_stop_a_job_that_runs(tmp_path):
    cluster = opened(FakeCluster(tmp_path, start_s=300))
    never_ready(cluster, "h4-a")
    cluster.does_a_step()
    cluster.wait(310)
    assert cluster.state.phase is JobStage.RUNNING
    assert any("h4-a#1 hangs before it was ready" in line and "started later" in line for line in cluster.said)
    assert not any("waiting for" in line for line in cluster.said)


def test_a_rank_is_not_started_on_an_accelerator_that_is_known_to_have_failed(tmp_path):
    cluster = FakeCluster(tmp_path)
    cluster.broken.add("h1-a")
    opened(cluster)
    cluster.does_a_step()
    assert "h1-a#1" not in {process.name for process in [*cluster.processes.values(), *cluster.dead]}
    assert "h4-a#1" in cluster.group()
    (recovery,) = requests.document(cluster.state)["recoveries"]
    assert (recovery["cause"], recovery["replaced_by"]) == ("h1-a: it is lost", {"h1-a": "h4-a"})


@pytest.mark.parametrize("policy", [WithoutSpare.WAIT, WithoutSpare.STOP])
def test_without_a_spare_it_waits_or_refuses_as_its_policy_says(tmp_path, policy):
    cluster = FakeCluster(tmp_path, without_spare=policy)
    cluster.broken |= {"h1-a", "h4-a", "h5-a"}
    opened(cluster)
    assert not cluster.processes
    found = requests.document(cluster.state)
    if policy is WithoutSpare.STOP:
        assert (found["state"], found["end"]) == ("stopped", "no-spare")
        assert cluster.state.end.exit_code == 5
        return
    assert (found["state"], found["why"]) == ("waiting", "no spare is left")
    cluster.broken.discard("h1-a")
    cluster.wait(6)
    cluster.does_a_step()
    assert requests.document(cluster.state)["recoveries"] == []
