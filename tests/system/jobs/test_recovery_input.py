"""What cannot be run is said at once, with what to do; what cannot continue stops with a reason."""

import sys

import pytest
from campaigning import campaign
from job_coordinator import JOB
from running_jobs import RunningJob


@pytest.fixture(scope="module")
def dark():
    """A rack whose fabric was never programmed."""
    with RunningJob(commissioned=False) as job:
        yield job


def test_a_job_that_is_not_there_or_says_not_how_it_is_run(dark, tmp_path) -> None:
    said = dark.lumctl("job", "run", "trian", "--yes", status=2)
    assert "train" in said
    text = (dark.home / "rack.yaml").read_text()
    without = tmp_path / "without.yaml"
    without.write_text(text[: text.index("    run:\n")])
    said = dark.lumctl("-i", str(without), "job", "run", JOB, "--yes", status=5)
    assert "has no `run:` in the inventory" in said
    assert "`run:`" in said
    assert dark.processes() == []


def test_nobody_runs_it(dark) -> None:
    for verb in (["status", JOB], ["stop", JOB, "--yes"]):
        assert "no lumctl on this machine runs job train" in dark.lumctl("job", *verb, status=5)


def test_without_a_yes_and_without_a_terminal_nothing_is_started(dark) -> None:
    assert "--yes" in dark.lumctl("job", "run", JOB, status=2)
    assert dark.processes() == []


def test_a_fabric_that_was_never_programmed(dark) -> None:
    said = dark.lumctl("job", "run", JOB, "--yes", status=5)
    assert "lumctl fabric apply" in said
    assert dark.processes() == []


@campaign
def test_a_fabric_that_is_dark_though_the_record_says_otherwise() -> None:
    with RunningJob() as job:
        job.sim.renew()
        coordinator = job.run()
        job.until(lambda found: found["generation"] == 1)  # all are told to join, and nobody hears another
        job.lumctl("fabric", "apply", "--yes")
        job.until(lambda found: found["done"] >= 5)
        coordinator.heard("4 ranks begin")


def test_without_a_simulator() -> None:
    with RunningJob() as job:
        job.sim.stop()
        assert "lumctl sim up" in job.lumctl("job", "run", JOB, "--yes", status=3)
        assert job.processes() == []


@campaign
def test_a_simulator_that_ends_under_a_job() -> None:
    with RunningJob() as job:
        coordinator = job.run()
        job.until(lambda found: found["done"] >= 5)
        job.sim.stop()
        assert coordinator.ended() == 4
        said = "\n".join(coordinator.said)
        assert "its simulator has ended" in said
        assert "lumctl sim up --detach" in said
        job.all_gone()
        assert job.newest_checkpoint() >= 5
        assert "its simulator has ended" in job.lumctl("job", "status", JOB)


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (["no-such-program"], "no-such-program cannot be run"),
        (
            [sys.executable, "-c", "raise SystemExit('no data is here')"],
            "ended with exit code 1 before it was ready: no data is here (log: ",
        ),
    ],
)
@pytest.mark.timeout(180)
def test_a_program_that_cannot_run_stops_the_job_and_names_its_log(command, why: str) -> None:
    with RunningJob(command=command) as job:
        coordinator = job.run()
        assert coordinator.ended() == 4
        said = "\n".join(coordinator.said)
        assert "job train has stopped" in said
        assert why in said
        assert ".log" in said
        job.all_gone()
