"""What the library costs a step of a script with PyTorch's own parallelism, where nothing fails.

    PYTHONPATH=tests/contract python tests/bench/jobs/cost.py [--scripts fsdp2,ddp] [--rounds 10] [--width 512]
        [--batch 512]

Each round runs the script as it was before (``tests/system/jobs/scripts/native/*_before.py``) and with the library,
four ranks over loopback; which goes first alternates. Prints the median time of a step for both, and the ratio with its
95 % interval.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from statistics import median

from job_desk import Desk

SCRIPTS = Path(__file__).parents[2] / "system" / "jobs" / "scripts" / "native"
RANKS, STEPS = 4, 20


class Starter:
    """Starts a script as the worker of a desk."""

    def __init__(self, words: list[str]) -> None:
        self._words = words
        self._started: dict[int, subprocess.Popen] = {}

    def ask(self, request: dict) -> int:
        if (pid := request.get("wait")) is not None:
            return self._started[pid].wait()
        environment = {**os.environ, "OMP_NUM_THREADS": "1", **request["environment"]}
        with Path(request["options"]["log"]).open("w") as log:
            started = subprocess.Popen(self._words, env=environment, stdout=log, stderr=log)
        self._started[started.pid] = started
        return started.pid


def as_before(words: list[str]) -> None:
    """Run the script as it was."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    shared = {"OMP_NUM_THREADS": "1", "WORLD_SIZE": str(RANKS), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    started = [
        subprocess.Popen(words, env={**os.environ, **shared, "RANK": str(rank)}, stderr=subprocess.DEVNULL)
        for rank in range(RANKS)
    ]
    assert [each.wait() for each in started] == [0] * RANKS


def with_library(words: list[str]) -> None:
    """Run the script with the library."""
    desk = Desk(Starter(words))
    crew = desk.start(*(f"w{rank}" for rank in range(RANKS)))
    desk.until(*crew, say="ready", within_s=60)
    desk.joined(crew, 1)
    desk.until(*crew, say="exiting", within_s=600)
    assert [each.ended() for each in crew] == [0] * RANKS, crew[0].log.read_text()
    desk.close()


def step_s(kind: str, end: str, options: list[str]) -> float:
    """The median time of a step."""
    with tempfile.TemporaryDirectory() as out:
        words = [sys.executable, str(SCRIPTS / f"{kind}{end}.py"), "--out", out, *options]
        (as_before if end else with_library)(words)
        return max(json.loads(path.read_text())["step_s"] for path in Path(out).glob("rank-*.json"))


def interval(ratios: list[float]) -> tuple[float, float]:
    """The 95 % interval of the median, by resampling."""
    draw = Random(1)
    medians = sorted(median(draw.choices(ratios, k=len(ratios))) for _ in range(2000))
    return medians[50], medians[-51]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scripts", default="ddp,fsdp2,hsdp,tensor,pipeline")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--batch", type=int, default=512)
    given = parser.parse_args()
    options = ["--width", str(given.width), "--batch", str(given.batch), "--epochs", "1"]
    options += ["--samples", str(STEPS * RANKS * given.batch)]
    shape = f"width {given.width}, {given.batch} samples of each rank in a step"
    print(f"{datetime.now(UTC):%Y-%m-%d %H:%M}  {RANKS} ranks, {shape}, {given.rounds} rounds")
    for kind in given.scripts.split(","):
        pairs = []
        for number in range(given.rounds):
            ends = ["_before", ""] if number % 2 else ["", "_before"]
            pairs.append({end: step_s(kind, end, options) for end in ends})
        ratios = [each[""] / each["_before"] for each in pairs]
        low, high = interval(ratios)
        before, now = (median(each[end] for each in pairs) * 1000 for end in ("_before", ""))
        print(
            f"{kind:<9} {before:6.1f} ms as before, {now:6.1f} ms with the library: "
            f"ratio {median(ratios):.3f} (95 %: {low:.3f} to {high:.3f})",
            flush=True,
        )


if __name__ == "__main__":
    main()
