"""A study on workers in jobs of a real Slurm, through dask-jobqueue: equal rows, and no job is left behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import drawn_study
import pytest
from drawn_study import STUDY
from slurm import Slurm

from lumctl.errors import ExitCode
from lumctl.studies.folder import read_results
from lumctl.studies.results import run_study

PROGRAM = Path(drawn_study.__file__)
pytestmark = pytest.mark.slow
# These nodes are said to have no memory, so a job must not ask for some.
SETTINGS = """
jobqueue:
  slurm:
    queue: {queue}
    job-directives-skip: ['--mem=']
    scheduler-options: {{host: 127.0.0.1}}
    start-timeout: {start_timeout}
    death-timeout: 10
distributed: {{deploy: {{lost-worker-timeout: 200ms}}, adaptive: {{interval: 200ms}}}}
"""


@pytest.fixture(scope="module")
def cluster(require_program, require_extra):
    require_extra("studies", "dask_jobqueue")
    slurm = Slurm(require_program, 2)
    yield slurm
    slurm.close()


@pytest.fixture
def slurm(cluster):
    yield cluster
    cluster.clear()


@pytest.fixture
def started(slurm, tmp_path):
    """Start the study on Slurm, with a configuration of Dask."""

    def start(*words, queue="all", start_timeout=60, **environment):
        (tmp_path / "dask").mkdir()
        (tmp_path / "dask" / "jobqueue.yaml").write_text(SETTINGS.format(queue=queue, start_timeout=start_timeout))
        return subprocess.Popen(
            [sys.executable, PROGRAM, "study", "run", "drawn", "-o", "name", "--executor", "slurm", *words],
            env={
                **os.environ,
                **slurm.environment,
                "DASK_CONFIG": str(tmp_path / "dask"),
                "PYTHONPATH": os.pathsep.join([str(PROGRAM.parent), str(PROGRAM.parents[2])]),
                **environment,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            process_group=0,
        )

    return start


def jobs(slurm):
    """The numbers of the jobs that are there."""
    return slurm("squeue", "--noheader", "--states=PENDING,RUNNING", "--format=%A").stdout.split()


def cases(out, number, process):
    """Wait until so many cases are solved."""
    ends = time.monotonic() + 90
    while not (out / "cases.jsonl").exists() or (out / "cases.jsonl").read_bytes().count(b"\n") < number:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < ends
        time.sleep(0.02)


def test_a_job_that_is_cancelled_is_submitted_again_and_the_rows_are_equal(slurm, started, tmp_path):
    out = tmp_path / "run"
    words = ("--set", "seconds=0.2", "--seeds", "40", "--workers", "2", "--out", str(out))
    with started(*words) as process:
        cases(out, 4, process)
        lost, *others = jobs(slurm)
        assert len(others) == 1
        slurm("scancel", lost)
        slurm.until(lambda: len(jobs(slurm)) == 2 and lost not in jobs(slurm))
        _, err = process.communicate()
    assert (process.returncode, err) == (ExitCode.DONE, "")
    assert read_results(out)[2] == run_study(STUDY, STUDY.settings(["seeds=40"])).rows
    slurm.until(lambda: not jobs(slurm))
    assert sorted(each.name for each in tmp_path.iterdir()) == ["dask", "run"]  # no files of jobs


def test_ctrl_c_cancels_the_jobs(slurm, started, tmp_path):
    out = tmp_path / "run"
    with started("--set", "seconds=0.2", "--seeds", "1000", "--workers", "2", "--out", str(out)) as process:
        cases(out, 2, process)
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == ExitCode.INTERRUPTED, err
    assert "the same command with --resume continues" in err
    assert "Traceback" not in err
    slurm.until(lambda: not jobs(slurm))


def test_workers_end_when_the_command_is_killed(slurm, started, tmp_path):
    out = tmp_path / "run"
    with started("--set", "seconds=0.2", "--seeds", "1000", "--workers", "1", "--out", str(out)) as process:
        cases(out, 2, process)
        process.kill()
        process.communicate()
    slurm.until(lambda: not jobs(slurm))


def test_ctrl_c_cancels_a_job_that_waits(slurm, started):
    blocking = slurm.submit("blocking", "--nodes=2", "--exclusive")
    slurm.runs(blocking, "n[0-1]")
    with started("--workers", "1") as process:
        slurm.until(lambda: len(jobs(slurm)) == 2)
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == ExitCode.INTERRUPTED, err
    assert "Traceback" not in err
    slurm.until(lambda: jobs(slurm) == [blocking])


def test_a_queue_that_refuses_is_one_line(started):
    with started(queue="nowhere") as process:
        _, err = process.communicate()
    assert process.returncode == ExitCode.REFUSED, err
    assert err == (
        "lumctl: Slurm takes no worker's job: invalid partition specified: nowhere; "
        "Batch job submission failed: Invalid partition name specified\n"
    )


def test_no_worker_in_time_is_one_line_and_its_job_is_cancelled(slurm, started):
    blocking = slurm.submit("blocking", "--nodes=2", "--exclusive")
    slurm.runs(blocking, "n[0-1]")
    with started("--workers", "1", start_timeout=3) as process:
        _, err = process.communicate()
    assert process.returncode == ExitCode.UNREACHABLE
    assert err.splitlines()[0] == "lumctl: no worker has started within 3 s, the start-timeout of jobqueue.slurm"
    assert "Traceback" not in err
    slurm.until(lambda: jobs(slurm) == [blocking])


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"PATH": "/nowhere"}, "--executor slurm needs Slurm, but its command sbatch is not found"),
        (
            {"DASK_JOBQUEUE__SLURM__START_TIMEOUT": "soon"},
            "jobqueue.slurm.start-timeout in Dask's configuration is 'soon', expected seconds",
        ),
        (
            {"DASK_JOBQUEUE__SLURM__MEMORY": "much"},
            "jobqueue.slurm in Dask's configuration starts no cluster: Could not interpret 'much' as a byte unit",
        ),
    ],
)
def test_what_cannot_be_used_is_one_line(slurm, started, environment, said):
    with started("--workers", "1", **environment) as process:
        _, err = process.communicate()
    assert process.returncode == ExitCode.USAGE
    assert err.splitlines()[0].startswith(f"lumctl: {said}")
    assert "Traceback" not in err
    assert not jobs(slurm)
