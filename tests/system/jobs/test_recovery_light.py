"""Recoveries whose light does not come as planned, or comes by another's hand."""

import pytest
from campaigning import campaign
from job_coordinator import JOB
from running_jobs import RunningJob, Status

from lumctl.errors import ExitCode
from lumctl.store import SERVED, WAITING

pytestmark = pytest.mark.timeout(300)  # not that it takes so long: machines may be busy


def lost(job: RunningJob, accelerator: str, step: int = 5) -> None:
    job.run()
    job.until(lambda found: found["done"] >= step and len(found["ready"]) == 2)
    job.lose(accelerator)


def waits(job: RunningJob, *words: str) -> int:
    """The job waits and says why; after how many steps."""

    def waiting(found: Status) -> bool:
        return found["state"] == "waiting" and found["parked"] and all(word in found["why"] for word in words)

    return job.until(waiting)["done"]


def test_no_step_is_done_in_a_light_that_lies() -> None:
    with RunningJob() as job:
        job.run()
        job.at_work()
        job.sim.inject("mesh", "mesh-lying")
        job.lose("h2-gpu0")
        done = waits(job, "rolled back")
        assert job.runs()[0].state == "rolled-back"
        tried = len(job.runs())
        job.wait(lambda: len(job.runs()) > tried)
        assert job.status()["done"] == done
        assert len(job.losses()) <= done + 1
        job.sim.clear("mesh")
        told = job.recovered()
        assert told["replaced_by"].keys() == {"h2-gpu0"}
        assert job.runs()[0].state == "done"
        job.steps(5)
        with job.context() as context:
            assert all(str(c.state) == "ok" for c in context.observe().report.circuits.values() if c.owner == JOB)
        job.stop()


@campaign
def test_a_job_whose_light_goes_out_while_all_live_says_which_and_goes_on_with_it() -> None:
    with RunningJob(stall_s=2) as job:
        job.run()
        job.until(lambda found: found["done"] >= 5)
        for lane in ("a", "b"):  # with one of them the ranks reach each other the other way round
            job.sim.inject(f"h2-gpu0-{lane}", "dark")
        done = waits(job, "no light", "h2-gpu0")
        assert job.status()["done"] == done
        job.sim.clear()
        told = job.recovered()
        assert told["replaced_by"] == {}
        job.steps(5)
        assert job.steps_missing() == set()
        job.stop()


@campaign
def test_nothing_is_swapped_while_the_autopilot_is_stopped() -> None:
    with RunningJob() as job:
        job.lumctl("autopilot", "stop")
        runs = len(job.runs())
        lost(job, "h4-gpu0")
        done = waits(job, "the autopilot is stopped")
        assert job.coordinator.heard("the autopilot is stopped", "lumctl autopilot start")
        assert len(job.runs()) == runs
        job.kill(0)  # nor is it forgotten that it waits when something else fails
        job.coordinator.heard("rank 0 ")
        waits(job, "the autopilot is stopped")
        assert job.status()["done"] == done
        job.lumctl("autopilot", "start", "--yes")
        job.recovered()
        assert len(job.runs()) > runs
        assert job.runs()[0].state == "done"
        job.stop()


@campaign
def test_without_anybodys_consent_it_waits_until_a_person_swaps_by_hand() -> None:
    with RunningJob() as job:
        job.run("--no-swap", yes=False)
        job.until(lambda found: found["done"] >= 5)
        job.lose("h1-gpu0")
        waits(job, "no one has agreed")
        job.lumctl("swap", "plan", JOB, "--failed", "h1-gpu0", "--out", str(job.home / "plan.json"))
        job.lumctl("swap", "apply", str(job.home / "plan.json"), "--yes")
        job.steps(3)
        assert "h1-gpu0" not in job.placed()
        job.stop()


@campaign
def test_a_swap_by_hand_holds_the_job_and_a_rollback_brings_it_back() -> None:
    with RunningJob() as job:
        job.run()
        job.at_work()
        job.sim.inject("h2-gpu0", "overheat")
        before = job.placed()
        job.lumctl("swap", "plan", JOB, "--failed", "h2-gpu0", "--out", str(job.home / "plan.json"))
        job.lumctl("swap", "apply", str(job.home / "plan.json"), "--yes")
        swapped = job.steps(3)
        assert [each["accelerator"] for each in swapped["ranks"]] != before
        job.sim.clear()
        job.lumctl("swap", "rollback", job.runs()[0].id, "--yes")
        job.steps(3)
        assert job.placed() == before
        assert job.steps_missing() == set()
        job.stop()


def use_up_spares(job: RunningJob) -> None:
    """Run the job and lose two ranks, which both spares replace."""
    job.run()
    for count, accelerator in enumerate(("h1-gpu0", "h2-gpu0"), 1):
        job.until(lambda found: found["state"] == "running" and found["done"] >= 5)
        job.lose(accelerator)
        job.recovered(count)
        job.steps(3)


def test_a_job_that_waits_for_a_spare_has_its_place_in_the_queue_and_takes_the_next_that_comes_free() -> None:
    with RunningJob(without_spare="wait") as job:
        use_up_spares(job)
        spare = job.placed()[0]
        job.lose("h3-gpu0")
        waits(job, "spare")
        (demand,) = job.demands()
        assert (demand.job, demand.accelerators, demand.state) == (JOB, ("h3-gpu0",), WAITING)
        job.sim.clear("h1-gpu0")
        job.lumctl("swap", "plan", JOB, "--back", "--out", str(job.home / "back.json"))
        job.lumctl("swap", "apply", str(job.home / "back.json"), "--yes")
        assert job.recovered(3)["replaced_by"] == {"h3-gpu0": spare}
        (demand,) = job.demands()
        assert demand.state == SERVED
        job.stop()


@campaign
@pytest.mark.parametrize("then", ["wait", "shrink", "stop"])
def test_when_all_spares_are_used_up(then: str) -> None:
    with RunningJob(without_spare=then) as job:
        use_up_spares(job)
        job.lose("h3-gpu0")
        if then == "wait":
            waits(job, "spare")
            job.sim.clear("h3-gpu0")
            assert job.recovered(3)["replaced_by"] == {}
            assert "h3-gpu0" in job.placed()
            job.stop()
        elif then == "shrink":
            job.recovered(3)
            assert len(job.steps(3)["ranks"]) == 3
            job.stop()
        else:
            assert job.coordinator.ended() == ExitCode.REFUSED
            job.all_gone()
            assert "no spare is available" in "\n".join(job.coordinator.said)
            kept = max(int(path.stem.removeprefix("step-")) for path in job.checkpoints.iterdir())
            assert kept - len(job.losses()) in {0, 1}
            job.sim.clear()
            coordinator = job.run()
            coordinator.heard(f"continue after {kept} steps")
            job.steps(2)
            assert job.steps_missing() == set()
            job.stop()
