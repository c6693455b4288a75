"""Real ranks, one of them slow: the command names it, from the running job and after its end; of equal ones none."""

import json
import sys
from pathlib import Path

import pytest
from running_jobs import RunningJob

pytestmark = pytest.mark.timeout(300)  # not that it takes so long: machines may be busy

SCRIPT = Path(__file__).with_name("late_rank.py")
SLOW, SLOW_S = 2, 0.1
"""So much that a busy machine does not make another rank later."""
FEW_STEPS = 30


def stragglers(job: RunningJob, *words: str) -> dict:
    return json.loads(job.lumctl("job", "stragglers", "train", "-o", "json", *words))


def named(job: RunningJob) -> int | None:
    (group,) = stragglers(job)["groups"]
    return group["late"] if group["steps"] >= FEW_STEPS else None


def test_a_slow_rank_is_named_within_thirty_steps_and_remembered_after_the_end() -> None:
    command = [sys.executable, str(SCRIPT), str(SLOW), str(SLOW_S), str(FEW_STEPS + 10)]
    with RunningJob(command=command) as job:
        assert "nobody has recorded the collectives of job train" in job.lumctl("job", "stragglers", "train", status=5)
        job.run()
        assert job.coordinator.ended() == 0
        document = stragglers(job)
        (group,) = document["groups"]
        assert document["schema"] == "lumctl/stragglers/v1"
        assert (group["late"], group["ranks"], group["advice"]) == (SLOW, [0, 1, 2, 3], "look-at-host")
        assert group["command"] == "lumctl health explain h3-gpu0"
        late = group["by_rank"][SLOW]
        assert (late["accelerator"], late["host"]) == ("h3-gpu0", "h3")
        assert late["share"]["low"] > 0.5
        assert SLOW_S / 2 < late["gap_median_s"] < group["step_s"]
        assert [clock["error_s"] for clock in group["clocks"]] == [0.0]  # all run on this machine
        job.sim.inject("h3-gpu0", "row-remap-failed")
        (group,) = stragglers(job)["groups"]
        assert group["advice"] == "swap"
        assert "a row remap failed" in [cause["evidence"] for cause in group["causes"]]
        assert group["command"] == "lumctl swap plan --failed h3-gpu0"
        job.lumctl(*group["command"].split()[1:])
        assert "0 of " in job.lumctl("job", "stragglers", "train", "--since", "1s", status=5)


@pytest.mark.parametrize(
    ("how", "costs"),
    [("averaged", "to all-reduces of 4 B and 304 B"), ("wrapped", "the sizes of the collectives are not known")],
)
def test_the_running_job_answers(how, costs) -> None:
    """Also for a model in DistributedDataParallel, whose collectives no Python code starts."""
    with RunningJob(command=[sys.executable, str(SCRIPT), "1", str(SLOW_S), "100000", how]) as job:
        job.run()
        job.until(lambda found: found["done"] > FEW_STEPS + 2)
        assert named(job) == 1
        shown = job.lumctl("job", "stragglers", "train")
        assert "rank 1 (h2-gpu0 on h2) is late: last in " in shown
        assert "advice: look at its host: lumctl health explain h2-gpu0" in shown
        assert costs in " ".join(shown.split())
        assert job.lumctl("job", "stragglers", "train", "-o", "name") == "h2-gpu0\n"


def degraded(job: RunningJob) -> list[str]:
    """The accelerators that health finds to be late, with the hint of each."""
    document = json.loads(job.lumctl("status", "-o", "json", status=None))
    return [
        f"{each['id']} {each['state']}: {found['advice'].rpartition(': ')[2]}"
        for each in document["accelerators"]
        for found in each["findings"]
        if found["rule"] == "gpu.straggler"
    ]


def test_health_finds_the_rank_while_the_job_runs_and_its_hint_works() -> None:
    with RunningJob(command=[sys.executable, str(SCRIPT), str(SLOW), str(SLOW_S), "100000"]) as job:
        job.run()
        # Half a minute after a judgement, of which there is one in 15 s, that a busy machine may make a later one.
        job.wait(lambda: degraded(job), within_s=240)
        (found,) = degraded(job)
        assert found == "h3-gpu0 degraded: lumctl job stragglers train"
        assert "rank 2 (h3-gpu0 on h3) is late" in job.lumctl(*found.split()[3:])
        assert "no swap repairs the present faults" in job.lumctl("swap", "plan", status=5)
        assert "train rank 2 is late: the others wait " in job.lumctl("health", "explain", "h3-gpu0")
        job.stop()
        assert degraded(job) == []
