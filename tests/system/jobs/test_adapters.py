"""Scripts with a framework that owns the loop, see ``scripts/native``: at most three lines differ, and no bit."""

import difflib
import importlib.util
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
    "transformers_trainer": ("transformers", ["--fixed-buckets"], 3),
    "accelerate_loop": ("accelerate", ["--fixed-buckets"], 3),
    "lightning_trainer": ("lightning", ["--fixed-buckets"], 3),
    "stateful_loader": (
        "torchdata",
        ["--fixed-buckets", "--workers", "2"],
        7,
    ),  # no adapter: a loader keeps its own position
}
"""The scripts: the framework, the options with which they repeat a step to the last bit, and the lines that differ."""
RANKS, STEPS = 4, 24
QUIET = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}


def of_framework(kind: str):
    module = KINDS[kind][0]
    missing = importlib.util.find_spec(module) is None
    return pytest.param(kind, marks=pytest.mark.skipif(missing, reason=f"{module} is not installed"))


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
            script = [SCRIPTS / f"{kind}.py", "--out", out, *KINDS[kind][1]]
            subprocess.run([*command, *script], env={**os.environ, **QUIET}, check=True)
            found[kind] = outcomes(out)
        return found[kind]

    return of


@pytest.mark.parametrize("kind", map(of_framework, KINDS))
@pytest.mark.parametrize("after", [STEPS // 3 + 1], ids=["in_an_epoch"])
def test_a_killed_rank_is_replaced_and_the_result_is_equal_to_the_last_bit(
    tmp_path, unfailed, monkeypatch, kind, after
) -> None:
    for name, value in QUIET.items():
        monkeypatch.setenv(name, value)
    script = [str(SCRIPTS / f"{kind}.py"), "--out", str(tmp_path), "--pace", "0.1", *KINDS[kind][1]]
    with RunningJob(command=[sys.executable, *script]) as job:
        job.run()
        job.until(lambda found: found["done"] >= after)
        job.kill(1)
        job.recovered()
        assert job.coordinator.ended() == 0, "\n".join([*job.coordinator.said, job.log()])
        job.all_gone()
    assert outcomes(tmp_path) == unfailed(kind)


@pytest.mark.parametrize("kind", KINDS)
def test_few_lines_of_a_script_differ(kind) -> None:
    before, after = (
        [line for line in (SCRIPTS / f"{name}.py").read_text().splitlines() if line]
        for name in (f"{kind}_before", kind)
    )
    changed = [line for line in difflib.ndiff(before, after) if line[:2] == "+ "]
    assert len(changed) <= KINDS[kind][2], "\n".join(changed)
