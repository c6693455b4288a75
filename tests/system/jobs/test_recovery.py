"""Whole recoveries of a training job: what fails is found, replaced or started again, and not a bit of it is lost."""

import os
import random
import signal
import threading
from pathlib import Path

import pytest
import torch
from campaigning import campaign
from job_coordinator import JOB, unfailed
from running_jobs import RunningJob

from lumctl.training.example.data import read_losses

pytestmark = pytest.mark.timeout(300)  # not that it takes so long: machines may be busy

STEPS, EVERY = 24, 10
HEARTBEAT_S = 2.0
DRAWN = 60 if "LUMCTL_CAMPAIGN" in os.environ else 2
"""So many failures, one soon after the other."""
SEEN_WITHIN_S = 1.5
"""How much later than after its heartbeat a hang may be known here, on a machine that has much else to do."""


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """The folder of a training without a failure, by kind of parallelism and ranks."""
    made: dict[tuple[str, int], Path] = {}

    def reference(parallel: str = "data", ranks: int = 4) -> Path:
        if (parallel, ranks) not in made:
            folder = tmp_path_factory.mktemp(f"{parallel}-{ranks}")
            made[parallel, ranks] = unfailed(folder, parallel=parallel, ranks=ranks, steps=STEPS, every=EVERY)
        return made[parallel, ranks]

    return reference


def same_to_the_last_bit(job: RunningJob, reference: Path, ranks: int | None = None) -> None:
    """All losses and the final state, parameters and optimiser, are those of a training without a failure."""
    assert job.losses() == read_losses(reference / "losses.txt")
    assert len(job.losses()) == STEPS
    for rank in [None] if ranks is None else range(ranks):
        name = f"step-{STEPS:08d}.pt" if rank is None else f"step-{STEPS:08d}-rank-{rank}.pt"
        expected = torch.load(reference / "checkpoints" / name, weights_only=True)["state"]
        require_same(job.state(STEPS, rank), expected, name)


def require_same(ours, theirs, where: str) -> None:
    if isinstance(ours, torch.Tensor):
        assert torch.equal(ours, theirs), where
    elif isinstance(ours, dict):
        assert ours.keys() == theirs.keys(), where
        for key, value in ours.items():
            require_same(value, theirs[key], f"{where}/{key}")
    elif isinstance(ours, list | tuple):
        assert len(ours) == len(theirs), where
        for number, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            require_same(one, other, f"{where}/{number}")
    else:
        assert ours == theirs, where


def ended_well(job: RunningJob) -> None:
    assert job.coordinator.ended() == 0
    job.all_gone()


def test_a_lost_gpu_is_swapped_and_the_training_is_the_same_to_the_last_bit(reference) -> None:
    expected = reference()
    with RunningJob(steps=STEPS, every=EVERY) as job:
        job.run()
        job.until(lambda found: found["done"] >= 5)
        job.lose("h3-gpu0")
        job.recovered()
        told = job.until(lambda found: found["recoveries"][-1]["run"])["recoveries"][
            -1
        ]  # the run may end after the step
        placed = job.placed()
        ended_well(job)
        spare = told["replaced_by"]["h3-gpu0"]
        assert placed == ["h1-gpu0", "h2-gpu0", spare, "h4-gpu0"]
        assert 0 < told["failure_to_circuits_s"] <= told["failure_to_step_s"]
        same_to_the_last_bit(job, expected)
        swap = next(run for run in job.runs() if run.id == told["run"])
        assert swap.state == "done"
        with job.context() as context:
            assert list(context.assignment()[JOB]) == placed
            assert all(str(c.state) == "ok" for c in context.observe().report.circuits.values() if c.owner == JOB)
        shown = job.lumctl("runbook", "show", swap.id)
        assert shown.index("pause") < shown.index("program") < shown.index("resume")
        assert "identical" in job.lumctl("runbook", "replay", swap.id, "--target", "sim", "--yes")


def test_a_crash_and_a_hang_on_well_gpus_are_mended_in_place(reference) -> None:
    expected = reference()
    with RunningJob(steps=STEPS, every=EVERY, standby=True, heartbeat_s=HEARTBEAT_S) as job:
        job.run()
        job.until(lambda found: found["done"] >= 5)
        before = job.placed()
        runs = len(job.runs())
        job.kill(0)
        told = job.recovered()
        assert (told["replaced_by"], told["run"], told["failed"]) == ({}, None, ["h1-gpu0"])
        assert told["cause"] == "h1-gpu0: was killed by signal 9"
        job.steps(3)
        stopped = job.pid(2)
        job.kill(2, signal.SIGSTOP)
        hung = job.recovered(2)
        said = next(line for line in job.coordinator.said if "hangs" in line)
        silent_s = float(said.rpartition("stopped for ")[2].removesuffix(" s"))
        assert HEARTBEAT_S <= silent_s <= HEARTBEAT_S + SEEN_WITHIN_S
        assert stopped not in job.processes()
        assert (hung["replaced_by"], hung["run"]) == ({}, None)
        assert job.placed() == before
        ended_well(job)
        assert len(job.runs()) == runs
        same_to_the_last_bit(job, expected)


@campaign
@pytest.mark.parametrize("parallel", ["sharded", "pipeline"])
def test_where_each_rank_has_a_part_of_its_own_it_comes_from_its_neighbour(reference, parallel: str) -> None:
    expected = reference(parallel)
    with RunningJob(parallel=parallel, steps=STEPS, every=EVERY) as job:
        job.run()
        job.until(lambda found: found["done"] >= 5)
        job.lose("h2-gpu0")
        assert job.recovered()["replaced_by"].keys() == {"h2-gpu0"}
        job.steps(3)
        job.kill(3)
        assert job.recovered(2)["replaced_by"] == {}
        ended_well(job)
        assert not [line for line in job.coordinator.said if "returns to the checkpoint" in line]
        same_to_the_last_bit(job, expected, ranks=4)


@pytest.mark.timeout(1200 if "LUMCTL_CAMPAIGN" in os.environ else 300)
@pytest.mark.parametrize("parallel", ["sharded", *(["data", "pipeline"] if "LUMCTL_CAMPAIGN" in os.environ else [])])
def test_whenever_a_rank_dies_after_a_recovery_the_job_goes_on(parallel: str) -> None:
    """Also in the middle of what the ranks send each other, of which gloo forgets some."""
    draw = random.Random(7)  # noqa: S311 - the same choices in every run
    with RunningJob(parallel=parallel) as job:
        job.run()
        job.until(lambda found: found["done"] >= 5)
        job.lose("h2-gpu0")
        job.recovered()
        for times in range(2, DRAWN + 2):
            threading.Event().wait(0.8 * draw.random())  # what is tested is any moment
            job.kill(draw.randrange(4))
            assert job.recovered(times)["replaced_by"] == {}
        assert not [line for line in job.coordinator.said if "returns to the checkpoint" in line]
        job.stop()


@campaign
def test_a_host_that_is_lost_with_two_ranks_is_replaced_whole(reference) -> None:
    expected = reference(ranks=8)
    with RunningJob("ring8", steps=STEPS, every=EVERY) as job:
        job.run()
        job.until(lambda found: found["done"] >= 5)
        both = ["h3-gpu0", "h3-gpu1"]
        job.lose_host("h3")
        told = job.recovered()
        assert sorted(told["replaced_by"]) == both
        assert set(job.placed()[4:6]) == {"h5-gpu0", "h5-gpu1"}
        ended_well(job)
        same_to_the_last_bit(job, expected)
