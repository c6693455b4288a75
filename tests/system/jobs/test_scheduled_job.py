"""Real ranks that work around a late one: they fail in rounds of the schedule, and the job ends as without failures."""

import os
import sys
from pathlib import Path

import pytest
import torch
from job_coordinator import JOB, WITHIN_S
from running_jobs import RunningJob

from lumctl.context.job_files import coordinator_socket
from lumctl.errors import RefusedError
from lumctl.training.job_control import ask

pytestmark = pytest.mark.timeout(1800 if "LUMCTL_CAMPAIGN" in os.environ else 300)

SCRIPT = Path(__file__).with_name("scheduled_job.py")
LATE, ROUNDS = 2, 6
"""The late rank, and the rounds of four ranks in which each rank does something."""
WHAT = ("kill", "stop", "late")
EVERY = [f"{rank}:{number}:{what}" for what in WHAT for rank in (0, LATE) for number in range(ROUNDS - 2)]
FAILURES = EVERY if "LUMCTL_CAMPAIGN" in os.environ else ["0:1:kill", f"{LATE}:2:stop", "1:3:late", "3:0:kill"]
STEPS = 200 + 100 * len(FAILURES)
REFUSALS = ("is late by more than chance", "is not faster than ring", "straggler_schedule is off")
"""Why no schedule is used; a busy machine may really make one of the equal ranks late, a little or much."""


def order(job: RunningJob, rank: int | None) -> dict:
    return ask(coordinator_socket(job.inventory.path, job.target, JOB), "schedule", timeout_s=WITHIN_S, rank=rank)


def in_use(job: RunningJob, rank: int | None) -> None:
    """Have the ranks use a schedule, or none, and wait until they do."""
    job.until(lambda found: found["state"] == "running" and found["of"] == len(found["ranks"]))
    assert order(job, rank) == {"rank": rank}
    job.until(lambda found: found["scheduled_for"] == rank)


def weights(ranks: int, steps: int) -> dict:
    """The weights after so many steps of one process that does all ranks' work."""
    model = torch.nn.Linear(64, 64).double()
    with torch.no_grad():
        model.weight.copy_(torch.eye(64))
        model.bias.zero_()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for _ in range(steps):
        optimizer.zero_grad()
        for rank in range(ranks):
            (model(torch.full((2, 64), 1.0 + rank, dtype=torch.float64)).square().mean() / ranks).backward()
        optimizer.step()
    return model.state_dict()


def test_ranks_that_fail_in_a_round_of_the_schedule_are_recovered_like_others() -> None:
    command = [sys.executable, str(SCRIPT), ".", str(STEPS), *FAILURES]
    with RunningJob(command=command, heartbeat_s=1) as job:
        job.run()
        job.until(lambda found: found["done"] >= 1)
        recoveries = 0
        for number, failure in enumerate(FAILURES, 1):
            in_use(job, LATE)
            job.wait(lambda number=number: happened(job) >= number)
            if not failure.endswith(":late"):
                recoveries += 1
                job.recovered(recoveries)
                assert order(job, None) == {"rank": None}  # a new group begins without a schedule
        in_use(job, LATE)
        shown = job.lumctl("job", "status", "train")
        assert f"works around rank {LATE}, which is late" in shown
        in_use(job, None)
        assert job.coordinator.ended() == 0
        found = [torch.load(job.home / f"{rank}.pt") for rank in range(4)]
        alone = weights(4, STEPS)
        for name, value in alone.items():
            assert all(torch.equal(rank[name], found[0][name]) for rank in found)
            assert torch.allclose(found[0][name], value, rtol=1e-12, atol=1e-12)


def happened(job: RunningJob) -> int:
    """How many failures have begun."""
    file = job.home / "happened"
    return len(file.read_text().split()) if file.exists() else 0


def test_a_schedule_that_is_forbidden_or_of_no_use_is_refused() -> None:
    command = [sys.executable, str(SCRIPT), ".", "100000"]
    with RunningJob(command=command, straggler_schedule="off") as job:
        job.run()
        job.until(lambda found: found["done"] >= 1)
        for rank, why in ((2, "straggler_schedule is off"), (4, "straggler_schedule is off")):
            with pytest.raises(RefusedError, match=why):
                order(job, rank)
        assert order(job, None) == {"rank": None}
        job.until(lambda found: found["done"] >= 30)
        refusal = job.lumctl("job", "stragglers", "train", "--use-schedule", status=5)
        assert any(reason in refusal for reason in REFUSALS), refusal
        assert job.lumctl("job", "stragglers", "train", "--stop-schedule") == "job train was told to use no schedule\n"
