"""The job outlives what runs it: lumctl and its agents are killed, interrupted and started again."""

import os
import signal
from contextlib import suppress

import pytest
from campaigning import campaign
from job_coordinator import JOB
from running_jobs import RunningJob

from lumctl.errors import LumctlError

pytestmark = pytest.mark.timeout(300)  # not that it takes so long: machines may be busy


def steps_go_on(job: RunningJob, more: int = 3) -> None:
    """Steps are done though nobody looks."""
    at = len(job.losses())
    job.wait(lambda: len(job.losses()) >= at + more)


@campaign
def test_lumctl_is_killed_and_another_takes_the_job_over() -> None:
    with RunningJob() as job:
        first = job.run()
        job.until(lambda found: found["done"] >= 5)
        assert f"pid {first.process.pid}" in job.lumctl("job", "run", JOB, "--yes", status=5)
        crew = {each["pid"] for each in job.status()["ranks"]}
        first.kill()
        steps_go_on(job)
        second = job.run()
        second.heard("4 ranks are taken over")
        assert {each["pid"] for each in job.status()["ranks"]} == crew
        doomed = job.pid(2)
        second.kill(signal.SIGINT)
        assert f"take it over: lumctl job run {JOB}" in "\n".join(second.said)
        steps_go_on(job)
        os.kill(doomed, signal.SIGKILL)
        job.wait(lambda: doomed not in job.processes())
        job.run()
        told = job.recovered()
        assert (told["failed"], told["replaced_by"]) == (["h3-gpu0"], {})
        job.steps(3)
        done = job.status()["done"]
        job.stop()
        kept = job.newest_checkpoint()
        assert kept >= done
        job.run().heard(f"4 ranks continue after {kept} steps")
        job.steps(3)
        job.stop()
        assert job.steps_missing() == set()


@campaign
def test_an_agent_is_killed_and_the_next_failure_on_its_host_is_noticed() -> None:
    with RunningJob() as job:
        job.run()
        job.at_work()
        before, crew = job.agent("h2"), {each["pid"] for each in job.status()["ranks"]}
        os.kill(before, signal.SIGKILL)
        job.wait(lambda: before not in job.processes())
        job.steps(5)
        assert {each["pid"] for each in job.status()["ranks"]} == crew
        assert job.status()["recoveries"] == []
        job.kill(1)
        assert job.recovered()["failed"] == ["h2-gpu0"]
        before = job.agent("h3")
        for pid in (before, job.pid(2)):  # both at once
            os.kill(pid, signal.SIGKILL)
        assert "h3-gpu0" in job.recovered(2)["failed"]
        job.steps(3)
        job.stop()


@campaign
@pytest.mark.parametrize("said", ["is not healthy", "replace h2-gpu0 by"])
@pytest.mark.parametrize("guarded", [True, False])
def test_lumctl_is_killed_in_the_middle_of_a_swap(said: str, guarded: bool) -> None:
    with RunningJob(delay_ms=700.0) as job:
        first = job.run()
        job.at_work()
        guards = {pid for pid in job.processes() if "guard" in job.words(pid)} if not guarded else set()
        job.lose("h2-gpu0")
        first.heard(said)
        for pid in guards:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        first.kill()
        second = job.run()
        job.wait(lambda: job.goes_on() or not second.alive or "needs a hand" in "".join(second.said), within_s=120)
        if not job.goes_on():
            run = job.runs()[0]
            assert f"lumctl swap resume {run.id}" in "\n".join(second.said)
            with suppress(LumctlError):
                job.lumctl("swap", "abort", run.id, "--yes")
        job.wait(job.goes_on, within_s=120)
        assert "h2-gpu0" not in job.placed()
        job.steps(3)
        job.stop()


@campaign
def test_failures_in_a_row_and_in_the_middle_of_a_recovery() -> None:
    with RunningJob(delay_ms=300.0) as job:
        coordinator = job.run()
        job.at_work()
        job.lose("h2-gpu0")
        coordinator.heard("replace h2-gpu0 by")
        job.kill(3)  # its GPU is well
        told = job.recovered()
        assert (told["failed"], told["replaced_by"].keys()) == (["h2-gpu0", "h4-gpu0"], {"h2-gpu0"})
        job.until(lambda found: found["state"] == "running" and len(found["ready"]) == 1)
        job.steps(3)
        job.lose("h3-gpu0")
        spare = coordinator.heard("replace h3-gpu0 by").rpartition(" ")[2]
        os.kill(job.on(spare), signal.SIGKILL)
        told = job.recovered(2)
        assert told["replaced_by"]["h3-gpu0"] == spare
        job.steps(3)
        assert job.steps_missing() == set()
        job.stop()


@campaign
def test_the_spare_is_lost_while_it_takes_a_rank_over() -> None:
    with RunningJob(delay_ms=300.0) as job:
        coordinator = job.run()
        job.at_work()
        job.lose("h3-gpu0")
        spare = coordinator.heard("replace h3-gpu0 by").rpartition(" ")[2]
        job.sim.inject(spare, "gpu-lost")
        os.kill(job.on(spare), signal.SIGKILL)
        job.recovered()
        job.steps(3)
        assert not {"h3-gpu0", spare} & set(job.placed())
        job.stop()
