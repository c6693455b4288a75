"""Scripts as users write them, see ``scripts/digits.py``: none of them is lost, and what ends one is told."""

import os
import signal
from pathlib import Path

import pytest
from script_jobs import RANKS, ScriptJob, done_by_all

pytestmark = pytest.mark.timeout(300)  # not that it takes so long: machines may be busy

BUG_AT = 7


@pytest.mark.parametrize("loader", ["fork", "forkserver", "spawn"])
def test_a_job_with_loader_processes_ends_when_its_last_line_has_run_on_every_rank(tmp_path, loader) -> None:
    with ScriptJob(tmp_path, "--steps", 12, "--loader", loader, "--workers", 2, exit_s=20) as job:
        found = job.ends(0)
        done_by_all(job, found)
        assert not [line for line in job.coordinator.said if "killed" in line]


def test_a_rank_whose_loader_processes_live_is_taken_over_when_it_is_killed(tmp_path) -> None:
    with ScriptJob(tmp_path, "--steps", 60, "--pace", 0.05) as job:
        job.run()
        job.until(lambda found: found["done"] >= 5)
        job.kill(1)
        told = job.recovered()
        assert told["cause"] == "h2-gpu0: was killed by signal 9"
        done_by_all(job, job.ended(0))


def test_a_long_end_of_a_script_is_waited_for(tmp_path) -> None:
    """The limits are shorter than what it takes: they are for what comes after its last line."""
    with ScriptJob(tmp_path, "--workers", 0, "--last", 4, exit_s=1, stall_s=2, start_s=120) as job:
        job.run()
        job.until(lambda found: found["state"] == "finishing")
        done_by_all(job, job.ended(0))


def test_a_job_is_not_done_if_a_rank_is_killed_before_its_last_line(tmp_path) -> None:
    with ScriptJob(tmp_path, "--workers", 0, "--last", 60) as job:
        job.run()
        job.until(lambda found: found["state"] == "finishing")
        pids = {each["rank"]: each["pid"] for each in job.status()["ranks"]}
        for rank, number in ((1, signal.SIGKILL), (0, signal.SIGTERM)):
            os.kill(pids[rank], number)
        found = job.ended(7)
        assert (found["state"], found["end"]) == ("ended", "unfinished")
        assert "not the rest of the script: rank 0 (h1-gpu0#1) was killed by signal 15" in found["why"]


@pytest.mark.parametrize(("options", "ranks"), [((), {0, 1}), (("--bug-rank", 1), {1})], ids=["all", "one"])
def test_a_bug_that_comes_again_stops_the_job_with_the_scripts_own_error(tmp_path, options, ranks) -> None:
    with ScriptJob(tmp_path, "--workers", 0, "--bug-at", BUG_AT, "--every", 5, *options, restarts=2) as job:
        found = job.ends(4)
        error = found["script_error"]
        assert (found["state"], found["end"]) == ("stopped", "script-error")
        assert (error["type"], error["step"], error["rank"] in ranks) == ("ValueError", BUG_AT, True)
        assert error["error"] == f"ValueError: bad sample {BUG_AT}"
        assert error["traceback"][-1] == error["error"]
        assert any("digits.py" in line for line in error["traceback"])
        assert "bad sample" in Path(error["log"]).read_text()
        assert f"failed in step {BUG_AT}: ValueError: bad sample {BUG_AT} (log: {error['log']})" in found["why"]
        assert "3 attempts have ended like this, without a new step (restarts: 2)" in found["why"]
        said = "\n".join(job.coordinator.said)
        assert "script-error" in said
        assert not [word for word in ("hangs", "Connection", "state of a rank") if word in found["why"]]


def test_an_error_on_all_ranks_without_a_checkpoint_is_the_reason_and_not_the_lost_state(tmp_path) -> None:
    with ScriptJob(tmp_path, "--workers", 0, "--bug-at", BUG_AT, "--every", 0) as job:
        found = job.ends(4)
        assert found["end"] == "script-error"
        assert "ValueError: bad sample" in found["why"]


def test_an_error_after_the_steps_is_told_and_the_job_is_not_done(tmp_path) -> None:
    with ScriptJob(tmp_path, "--workers", 0, "--steps", 10, "--bug-after") as job:
        found = job.ends(4)
        assert (found["end"], found["script_error"]["type"], found["script_error"]["rank"]) == (
            "script-error",
            "OSError",
            0,
        )
        assert "all steps are done, but then rank 0" in found["why"]
        assert job.last_lines() == RANKS - 1


def test_a_rank_that_holds_the_interpreter_for_long_is_left_alone(tmp_path) -> None:
    with ScriptJob(tmp_path, "--workers", 0, "--gil-at", BUG_AT, "--gil-seconds", 4) as job:
        done_by_all(job, found := job.ends(0))
        assert found["recoveries"] == []
        assert not [line for line in job.coordinator.said if "hangs" in line]


def test_one_that_holds_it_for_longer_than_the_limit_of_silence_hangs(tmp_path) -> None:
    options = ("--workers", 0, "--gil-at", BUG_AT, "--gil-seconds", 600)
    with ScriptJob(tmp_path, *options, silence_s=2, restarts=1) as job:
        found = job.ends(4)
        assert (found["end"], found["script_error"]) == ("no-progress", None)
        assert "h2-gpu0: hangs: it has been silent for" in found["why"]


def test_one_process_that_is_told_to_end_is_replaced_and_the_job_goes_on(tmp_path) -> None:
    with ScriptJob(tmp_path, "--steps", 60, "--workers", 0, "--pace", 0.05) as job:
        job.run()
        job.until(lambda found: found["done"] >= 5)
        job.kill(1, signal.SIGTERM)
        assert job.recovered()["cause"] == "h2-gpu0: got SIGTERM"
        done_by_all(job, job.ended(0))


def test_a_job_is_not_started_on_a_gpu_that_check_calls_lost(tmp_path) -> None:
    with ScriptJob(tmp_path, "--workers", 0) as job:
        job.sim.inject("h2-gpu0", "gpu-lost")
        assert "h2-gpu0" in job.lumctl("check", status=2)
        found = job.ends(0)
        done_by_all(job, found)
        assert [each["accelerator"] for each in found["ranks"]] == ["h1-gpu0", "h5-gpu0"]
        assert "h2-gpu0: " in found["recoveries"][0]["cause"]
        assert not list(job.home.rglob("h2-gpu0#*.log"))


def test_without_a_yes_for_a_swap_a_job_that_does_not_wait_refuses_to_start_there(tmp_path) -> None:
    with ScriptJob(tmp_path, "--workers", 0, without_spare="stop") as job:
        job.sim.inject("h2-gpu0", "gpu-lost")
        job.lumctl("check", status=2)
        job.run("--no-swap")
        found = job.ended(5)
        assert (found["end"], found["done"]) == ("no-spare", 0)
        assert not list(job.home.rglob("h2-gpu0#*.log"))
