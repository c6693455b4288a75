"""How long a job is away when a GPU dies in the middle of a training step, with phases and without.

    python tests/bench/rails/failure.py [--runs 3] [--change-ms 10]

The job of ``make demo-rails`` on one of its rails: four ranks of gloo (data 2, pipeline 2), a switch, a gateway in a
process of its own. *With* phases the light changes twice a step. *Without*, each rank has two lanes, and the circuits
of both phases have light all the time. In each run the GPU of a rank falls off the bus, and its process is killed at a
drawn moment of a step; a spare replaces it. The time counts from the kill to the next step of all ranks. Runs of both
kinds take turns. The aim is a ratio of 1.5 at most; the exit code is 1 if it is missed.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any

import demo

from lumctl.training.timeline import Timeline, timeline_of

STEPS = 1_000_000
"""More than are done: the job is stopped after its recovery."""
BEFORE = 6
"""Steps before the failure: both modes of changing light were tried by then."""
SPARES = 2
"""Processes that must be ready on the spares: their start is no part of what is measured."""
WITHIN_S = 300.0
LIMIT = 1.5
SECOND_LANE = """\
  - id: h[1-5]-gpu0-b
    accelerator: h[1-5]-gpu0
    interface: eth4
    device: rail0
    port: [5, 6, 7, 8, 9]
"""
ONE_RAIL = (
    ("--steps,", "--tensor, '1', --steps,"),
    ("    ranks: h[1-4]-gpu[0-1]\n", "    ranks: h[1-4]-gpu0\n"),
    ("[[0, 2], [1, 3], [4, 6], [5, 7]]", "[[0, 1], [2, 3]]"),
    ("[[0, 4], [1, 5], [2, 6], [3, 7]]", "[[0, 2], [1, 3]]"),
    ('        tied: "{host}"\n', ""),
    ('        tied: "{host}"\n', ""),
)
"""What makes the inventory that of one rail."""
STATIC = (
    ("port_count: 8\n    input_count: 8", "port_count: 16\n    input_count: 16"),
    ("    device: rail1\n    port: [0, 1, 2, 3, 4]\n", "    device: rail1\n    port: [0, 1, 2, 3, 4]\n" + SECOND_LANE),
    ("    phases:\n", "    links:\n"),
    ("      # Ranks 0 to 3 are one replica: stage 0 on h1, stage 1 on h2.\n      pipeline:\n", ""),
    ("      gradients:\n", ""),
    ("    order: [pipeline, gradients]\n", ""),
)
"""What gives the circuits of both phases light all the time."""


def edited(text: str, changes: Sequence[tuple[str, str]]) -> str:
    """The inventory with each of these replaced once."""
    for old, new in changes:
        if old not in text:
            raise SystemExit(f"{demo.INVENTORY} has no {old!r}")
        text = text.replace(old, new, 1)
    return text


KINDS: Mapping[str, Callable[[str], str]] = {
    "without": lambda text: edited(text, (*ONE_RAIL, *STATIC)),
    "with": lambda text: edited(text, ONE_RAIL),
}


def recovered(edit: Callable[[str], str], change_ms: int, draw: random.Random) -> Timeline:
    """One job, whose GPU dies; the timeline of its recovery."""
    with (
        tempfile.TemporaryDirectory(prefix="lumctl-rails-") as made,
        demo.rack(Path(made), STEPS, change_ms, edit) as environment,
        (Path(made) / "said").open("w") as said,
        subprocess.Popen(
            [sys.executable, "-m", "lumctl", "job", "run", "train", "--yes"], env=environment, stderr=said
        ) as job,
    ):
        try:
            return struck(environment, draw)
        finally:
            demo.lumctl(environment, "job", "stop", "train", "--yes")
            job.wait()


def struck(environment: Mapping[str, str], draw: random.Random) -> Timeline:
    """Have a GPU of a running job die; wait for its next step."""
    found = awaited(environment, lambda status: status["done"] >= BEFORE and len(status["ready"]) == SPARES)
    victim = draw.choice(found["ranks"])
    demo.lumctl(environment, "sim", "fault", victim["accelerator"], "gpu-lost")
    time.sleep(draw.random() / (found["rate_steps_per_s"] or 1.0))  # any moment of a step
    killed_at = time.time()
    os.kill(victim["pid"], signal.SIGKILL)
    after = awaited(environment, lambda status: bool(status["recoveries"]))
    recovery = after["recoveries"][-1]
    detected = datetime.fromisoformat(recovery["at"]).timestamp()
    return timeline_of({**recovery, "at": detected}, job="train", killed_at=killed_at)


def awaited(environment: Mapping[str, str], condition: Callable[[Mapping[str, Any]], bool]) -> dict[str, Any]:
    """The first status of the job that meets a condition."""
    deadline, command = time.monotonic() + WITHIN_S, [sys.executable, "-m", "lumctl", "job", "status", "train"]
    while time.monotonic() < deadline:
        run = subprocess.run([*command, "-o", "json"], env=environment, capture_output=True, text=True, check=False)
        if run.stdout and condition(found := json.loads(run.stdout)):
            return found
        time.sleep(0.5)
    raise SystemExit(f"the job did not get on within {WITHIN_S:g} s: {run.stdout[-500:]} {run.stderr[-500:]}")


def main() -> int:
    """Measure both kinds in turns, and print their times and the ratio of their medians."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--change-ms", type=int, default=demo.CHANGE_MS, help="how long a switch takes for a change")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    draw, found = random.Random(options.seed), {kind: [] for kind in KINDS}
    for number in range(options.runs):
        for kind in list(KINDS)[:: 1 if number % 2 == 0 else -1]:
            timeline = recovered(KINDS[kind], options.change_ms, draw)
            found[kind].append(timeline.moments[-1].seconds)
            shown = ", ".join(f"{moment.name} {moment.seconds:.2f}" for moment in timeline.moments)
            print(f"{kind:7} phases: {shown} s; load {os.getloadavg()[0]:.1f}", flush=True)
    for kind, times in found.items():
        print(f"{kind:7} phases: next step {median(times):.2f} s after the kill ({min(times):.2f} to {max(times):.2f})")
    ratio = median(found["with"]) / median(found["without"])
    print(f"ratio {ratio:.2f}; at most {LIMIT}")
    return 0 if ratio <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
