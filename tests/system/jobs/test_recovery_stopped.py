"""A job that is stopped and run again, whose script names no folder for checkpoints."""

import sys

import pytest
from campaigning import campaign
from job_coordinator import JOB
from running_jobs import RunningJob

from lumctl.context.job_files import job_folder


@campaign
@pytest.mark.parametrize("parallel", ["data", "pipeline"])
def test_it_goes_on_where_it_was_stopped(parallel: str) -> None:
    words = ["--parallel", parallel, "--size", "tiny", "--steps", "100000"]
    with RunningJob(command=[sys.executable, "-m", "lumctl.training.example", *words]) as job:
        job.run()
        job.until(lambda found: found["done"] >= 5)
        job.stop()
        folder = job_folder(job.inventory.path, job.target, JOB)
        (done,) = {int(path.stem.split("-")[1]) for path in folder.rglob("step-*.pt")}
        assert done >= 5
        job.run()
        job.until(lambda found: found["done"] > done)
        job.stop()
        assert f"the job continues after {done} steps, where it was stopped" in job.log()
        assert job.log().count("step 0 loss") == 1
