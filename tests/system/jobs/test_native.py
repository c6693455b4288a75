"""Scripts with PyTorch's own parallelism, see ``scripts/native``: few lines differ, and a failure changes no bit.

Each draw is a whole job: its script, what befalls it and when come from its seed. A few by default, 100 with
LUMCTL_CAMPAIGN set; LUMCTL_DRAWN="17" or "17-40" does those alone.
"""

import difflib
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from running_jobs import RunningJob

pytestmark = pytest.mark.timeout(600)  # not that it takes so long: machines may be busy

SCRIPTS = Path(__file__).parent / "scripts" / "native"
KINDS = {"fsdp2": [], "pipeline": [], "ddp": ["--fixed-buckets"], "tensor": [], "hsdp": []}
"""The scripts, and the options with which they repeat a step to the last bit."""
STRIKES = ("kill", "kill", "lose", "stop")
MOST_LINES = 10
RANKS, STEPS = 4, 24
CAMPAIGN, SAMPLE = 100, 1
FIRST, _, LAST = os.environ.get("LUMCTL_DRAWN", "").partition("-")
SEEDS = (
    range(int(FIRST), int(LAST or FIRST) + 1)
    if FIRST
    else range(CAMPAIGN if "LUMCTL_CAMPAIGN" in os.environ else SAMPLE)
)


@pytest.mark.parametrize("kind", KINDS)
def test_few_lines_of_a_script_differ(kind) -> None:
    before, after = ((SCRIPTS / f"{kind}{end}.py").read_text().splitlines() for end in ("_before", ""))
    lines = [line for line in difflib.ndiff(before, after) if line[2:].strip()]
    changed = max(sum(line.startswith(sign) for line in lines) for sign in "+-")
    assert changed <= MOST_LINES


def outcomes(out: Path) -> list[dict]:
    found = [json.loads((out / f"rank-{rank}.json").read_text()) for rank in range(RANKS)]
    return [{name: each[name] for name in ("state", "losses")} for each in found]


@pytest.fixture(scope="module")
def unfailed(tmp_path_factory):
    """What the ranks have in the end where nothing fails, by script: the same script under torchrun."""
    found = {}

    def of(kind: str) -> list[dict]:
        if kind not in found:
            out = tmp_path_factory.mktemp(kind)
            command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={RANKS}"]
            script = [SCRIPTS / f"{kind}.py", "--out", out, *KINDS[kind]]
            environment = {**os.environ, "OMP_NUM_THREADS": "1"}
            subprocess.run([*command, *script], env=environment, check=True, capture_output=True)
            found[kind] = outcomes(out)
        return found[kind]

    return of


def strike(job: RunningJob, kind: str, draw: random.Random) -> None:
    """Let something befall a rank at a drawn moment of a step."""
    job.until(lambda found: found["done"] >= draw.randrange(1, STEPS - 4))
    time.sleep(0.1 * draw.random())  # any moment of a step
    rank = draw.randrange(RANKS)
    match kind:
        case "kill":
            job.kill(rank)
        case "stop":
            job.kill(rank, signal.SIGSTOP)
        case "lose":
            job.lose(job.placed()[rank])


@pytest.mark.parametrize("seed", SEEDS)
def test_a_lost_rank_changes_no_bit_of_the_result(tmp_path, unfailed, seed) -> None:
    draw = random.Random(seed)  # noqa: S311 - the same choices in every run
    kind = list(KINDS)[seed % len(KINDS)]
    script = [str(SCRIPTS / f"{kind}.py"), "--out", str(tmp_path), "--pace", "0.1", *KINDS[kind]]
    script += ["--workers", str(draw.choice([0, 2]))]
    with RunningJob(command=[sys.executable, *script], standby=draw.choice([True, False])) as job:
        job.run()
        strike(job, draw.choice(STRIKES), draw)
        job.recovered()
        assert job.coordinator.ended() == 0, "\n".join(job.coordinator.said)
        job.all_gone()
    assert shared(outcomes(tmp_path), kind) == shared(unfailed(kind), kind)


def shared(found: list[dict], kind: str) -> list[dict]:
    """What does not depend on which rank was lost: with DDP, each rank has running means of its own."""
    if kind != "ddp":
        return found
    return [{**each, "state": {n: v for n, v in each["state"].items() if not n.endswith("mean")}} for each in found]


def test_a_stopped_job_continues_from_the_shards_that_it_wrote(tmp_path, unfailed) -> None:
    script = [str(SCRIPTS / "fsdp2.py"), "--out", str(tmp_path), "--pace", "0.1"]
    with RunningJob(command=[sys.executable, *script]) as job:
        job.run()
        job.until(lambda found: found["done"] >= STEPS // 3)
        job.stop()
        assert not list(tmp_path.iterdir())
        job.run()
        job.coordinator.heard("continue after")
        assert job.coordinator.ended() == 0, "\n".join(job.coordinator.said)
        job.all_gone()
    assert outcomes(tmp_path) == unfailed("fsdp2")
