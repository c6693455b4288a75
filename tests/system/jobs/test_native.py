"""Scripts with PyTorch's own parallelism, see ``scripts/native``: few lines differ, and a failure changes no bit."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from running_jobs import RunningJob

pytestmark = pytest.mark.timeout(300)  # not that it takes so long: machines may be busy

SCRIPTS = Path(__file__).parent / "scripts" / "native"
KINDS = {
    "ddp": ["--fixed-buckets"],
    "fsdp2": [],
    "hsdp": [],
    "tensor": [],
    "pipeline": [],
}
"""The scripts, and the options with which they repeat a step to the last bit."""
RANKS, STEPS = 4, 24


@pytest.fixture(scope="module")
def unfailed(tmp_path_factory):
    """What the ranks have in the end where nothing fails, by script: the same script under torchrun."""
    found = {}

    def of(kind: str) -> list[dict]:
        if kind not in found:
            out = tmp_path_factory.mktemp(kind)
            command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={RANKS}"]
            environment = {**os.environ, "OMP_NUM_THREADS": "1"}
            script = [SCRIPTS / f"{kind}.py", "--out", out, *KINDS[kind]]
            subprocess.run([*command, *script], env=environment, check=True)
            found[kind] = outcomes(out)
        return found[kind]

    return of


def outcomes(out: Path) -> list[dict]:
    return [json.loads((out / f"rank-{rank}.json").read_text()) for rank in range(RANKS)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_rank_is_replaced_and_the_result_is_equal_to_the_last_bit(tmp_path, unfailed, kind) -> None:
    script = [str(SCRIPTS / f"{kind}.py"), "--out", str(tmp_path), "--pace", "0.1", *KINDS[kind]]
    with RunningJob(command=[sys.executable, *script]) as job:
        job.run()
        job.until(lambda found: found["done"] >= STEPS // 3)
        job.kill(1)
        job.recovered()
        assert job.coordinator.ended() == 0, "\n".join(job.coordinator.said)
        job.all_gone()
    assert outcomes(tmp_path) == unfailed(kind)
