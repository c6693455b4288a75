"""A job on a rack whose hosts are reached over OpenSSH: agents are started there, ranks die, hosts are cut off."""

import os
import signal
from pathlib import Path

import pytest
from campaigning import campaign
from job_coordinator import JOB
from rack_jobs import RackJob
from small_rack import of_two_ranks

pytestmark = pytest.mark.timeout(300)  # not that it takes so long: machines may be busy


def given(pid: int) -> dict[str, str]:
    """The variables of a process."""
    shown = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
    return dict(each.split("=", 1) for each in shown if each)


def test_agents_are_started_over_openssh_and_a_rank_goes_on_in_place_and_on_a_spare(require_program) -> None:
    with RackJob(require_program, edited=of_two_ranks) as job:
        job.run()
        first = job.until(lambda found: found["done"] >= 3)
        for rank in first["ranks"]:
            variables, address = given(rank["pid"]), job.sshds.addresses[rank["host"]]
            assert variables["LUMCTL_JOB_ADDRESS"] == address
            assert variables["SSH_CONNECTION"].split()[2] == address
            assert variables["HOME"] == str(Path(f"/proc/{rank['pid']}/cwd").readlink())
            assert variables["HOME"] == str(job.sshds.home(rank["host"]))
        job.kill(1)
        told = job.recovered()
        assert (told["failed"], told["replaced_by"], told["run"]) == (["h2-gpu0"], {}, None)
        job.steps(3)
        assert "h2-gpu0: was killed by signal 9" in job.lumctl("job", "status", JOB)
        job.until(lambda found: len(found["ready"]) == 1)
        job.lose("h2-gpu0")
        told = job.recovered(2)
        assert told["replaced_by"] == {"h2-gpu0": "h5-gpu0"}
        # The step is done as soon as the light is proved; that the run has ended is told a little later.
        told = job.until(lambda found: found["recoveries"][-1]["run"])["recoveries"][-1]
        assert next(run for run in job.runs() if run.id == told["run"]).state == "done"
        assert job.placed() == ["h1-gpu0", "h5-gpu0"]
        job.steps(3)
        job.stop()
        assert job.steps_missing() == set()
        # A step counts once the optimiser has stepped: if the stop comes then, the next run writes the step's loss.
        assert job.newest_checkpoint() - len(job.losses()) in {0, 1}


@campaign
def test_connections_break_lumctl_is_killed_and_a_host_is_lost(require_program) -> None:
    with RackJob(require_program) as job:
        job.sshds.know({**dict.fromkeys(job.sshds.addresses), "h6": "h5"})
        first = job.run()
        first.heard("host h6 cannot be reached", "has CHANGED")
        job.until(lambda found: found["done"] >= 3 and len(found["ready"]) == 1)
        agent = job.agent("h2")
        job.sshds.cut("h2")
        job.steps(5)
        assert job.agent("h2") == agent
        job.kill(1)
        assert job.recovered()["failed"] == ["h2-gpu0"]
        crew = {each["pid"] for each in job.steps(3)["ranks"]}
        first.kill()
        job.run().heard("4 ranks are taken over")
        assert {each["pid"] for each in job.status()["ranks"]} == crew
        job.until(lambda found: len(found["ready"]) == 1)
        doomed = [each["pid"] for each in job.status()["ranks"] if each["host"] == "h4"]
        job.sshds.end("h4")
        job.sim.inject("h4", "unreachable")
        for pid in [job.agent("h4"), *doomed]:
            os.kill(pid, signal.SIGKILL)
        assert job.recovered()["replaced_by"] == {"h4-gpu0": "h5-gpu0"}
        job.steps(3)
        job.stop()
        assert job.steps_missing() == set()


@campaign
def test_a_host_without_lumctl_is_named_with_what_it_says(require_program) -> None:
    with RackJob(require_program, edited=of_two_ranks, agent=["no-such-python", "-m", "lumctl.training.agent"]) as job:
        job.run("--no-swap", yes=False).heard("host h1 cannot be reached: no agent starts there", "no-such-python")
        job.stop()
