"""Kills, stops, held interpreters and exceptions at random moments of real scripts, on a busy machine.

Each draw is a whole job of ``scripts/digits.py``: its loader, what befalls it and when come from its seed. A few by
default, 200 with LUMCTL_CAMPAIGN set; LUMCTL_DRAWN="17" or "17-40" does those alone. Four processes that only compute
run beside them.
"""

import os
import random
import signal
import subprocess
import sys
import time

import pytest
from script_jobs import RANKS, ScriptJob, done_by_all

from lumctl.training.coordinator.state import JobEnd

pytestmark = pytest.mark.timeout(600)  # not that it takes so long: machines may be busy

HOGS, STEPS = 4, 40
CAMPAIGN, SAMPLE = 200, 2
FIRST, _, LAST = os.environ.get("LUMCTL_DRAWN", "").partition("-")
SEEDS = (
    range(int(FIRST), int(LAST or FIRST) + 1)
    if FIRST
    else range(CAMPAIGN if "LUMCTL_CAMPAIGN" in os.environ else SAMPLE)
)
LOADERS = ("fork", "forkserver", "spawn")
KINDS = ("kill", "stop", "bug", "kill", "bug-of-one", "stop", "bug-after", "gil")
CAUSES = {"kill": "was killed by signal 9", "stop": "hangs: it has been stopped for"}


@pytest.fixture(scope="module", autouse=True)
def busy():
    hogs = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(HOGS)]
    yield
    for hog in hogs:
        hog.kill()
        hog.wait()


def is_there(pid: int, rank: int, job: ScriptJob) -> bool:
    """Whether this is still the process of the rank, which has not run the last line of the script."""
    return pid in job.processes() and not (job.out / f"last-line-of-rank-{rank}").exists()


def strike(job: ScriptJob, kind: str, draw: random.Random) -> bool:
    """Kill or stop a rank at a drawn moment; whether it was at work then."""
    at, rank = draw.randrange(1, STEPS), draw.randrange(RANKS)
    pids: list[int] = []

    def comes() -> bool:
        found = job.status()
        if found is None or found["done"] < at:
            return not job.coordinator.alive
        pids[:] = [each["pid"] for each in found["ranks"] if each["rank"] == rank]
        return bool(pids)

    job.wait(comes, within_s=200)
    time.sleep(0.2 * draw.random())  # any moment of a step
    if not pids or not is_there(pids[0], rank, job):
        return False
    try:
        os.kill(pids[0], signal.SIGKILL if kind == "kill" else signal.SIGSTOP)
    except ProcessLookupError:
        return False
    return not (job.out / f"last-line-of-rank-{rank}").exists()


def judged(job: ScriptJob, kind: str, *, struck: bool) -> None:
    """Nothing is lost, nobody is killed without need, and the reason told is the cause."""
    code = job.coordinator.ended()
    said = "\n".join(job.coordinator.said)
    found = job.ended(code)
    assert code == JobEnd(found["end"]).exit_code, said
    recoveries = [each["cause"] for each in found["recoveries"]]
    if kind.startswith("bug"):
        error = found["script_error"]
        expected = ("OSError", STEPS) if kind == "bug-after" else ("ValueError", job.bug_at)
        assert found["end"] == "script-error", said
        assert (error["type"], error["step"]) == expected, said
        assert error["error"] in found["why"]
    elif found["end"] == "unfinished":  # it was struck after its last step
        assert struck
        assert any(cause in found["why"] for cause in CAUSES.values()), found["why"]
    else:
        done_by_all(job, found)
    if kind in CAUSES:
        assert len(recoveries) <= 1, said
        assert all(CAUSES[kind] in cause for cause in recoveries), said
        assert struck or not recoveries, said
    if kind == "gil":
        assert not recoveries, said
    if kind != "stop":
        assert "hangs" not in said
    assert "has not ended within" not in said


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_befalls_a_script_it_goes_on_or_says_the_cause(tmp_path, seed) -> None:
    draw = random.Random(seed)  # noqa: S311 - the same choices in every run
    kind, loader = KINDS[seed % len(KINDS)], LOADERS[seed % len(LOADERS)]
    options = ["--steps", STEPS, "--loader", loader, "--pace", 0.05, "--every", draw.choice([5, 10])]
    bug_at = draw.randrange(1, STEPS)
    options += {
        "bug": ["--bug-at", bug_at],
        "bug-of-one": ["--bug-at", bug_at, "--bug-rank", draw.randrange(RANKS)],
        "bug-after": ["--bug-after"],
        "gil": ["--gil-at", bug_at],
    }.get(kind, [])
    with ScriptJob(tmp_path, *options, restarts=2, stall_s=60) as job:
        job.bug_at = bug_at
        job.run()
        struck = strike(job, kind, draw) if kind in CAUSES else False
        judged(job, kind, struck=struck)
