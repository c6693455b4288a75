"""What every contender's program does: so many kills, each in a job of its own, and the figures."""

import argparse
import contextlib
import json
import random
import socket
import statistics
import tempfile
import time
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass
from pathlib import Path

from steps import Ear

WARM_STEPS = 20
START_S, RECOVER_S = 120, 60


@dataclass(frozen=True)
class Measured:
    """One job, one kill."""

    contender: str
    ranks: int
    killed: int
    step_ms: float
    """Of a step before the kill."""
    whole_s: float | None
    """From the kill to the first step done by all ranks again; None: not within the limit."""
    shrunk_s: float | None = None
    """To the first step done by the ranks that were left, where the contender continues without."""


Measure = Callable[[str, int, int, Path], Measured]
"""Of a kind of job, so many ranks, the rank to kill, in a folder."""


Job = Callable[[str], contextlib.AbstractContextManager[None]]
"""A job at work that tells of its steps at a path."""


def killed_at_work(
    job: Job, ranks: int, killed: int, worlds: Collection[int], folder: Path
) -> tuple[float, dict[int, float]]:
    """Start a job, kill one rank, wait for the next step of worlds of these sizes.

    Gives how long a step took before that, in ms, and after how many seconds the first step of each size was done.
    """
    ear = Ear(folder)
    with contextlib.closing(ear), job(ear.path):
        ear.flowing(ranks, steps=WARM_STEPS, within_s=START_S)
        step_ms = ear.step_ms()
        return step_ms, ear.first_after(ear.kill(killed), set(worlds), within_s=RECOVER_S)


def free_port() -> int:
    """A port of loopback that nobody listens at."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    return port


def main(measure: Measure, kinds: list[str]) -> None:
    """Measure what the command line names, and print it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("ranks", type=int)
    parser.add_argument("--kind", choices=kinds, default=kinds[0])
    parser.add_argument("--times", type=int, default=3, help="kills, each in a job of its own")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rank", type=int, help="which rank to kill; without it any")
    parser.add_argument("--json", action="store_true", help="one object a line")
    options = parser.parse_args()
    choice = random.Random(options.seed)
    found = []
    for _ in range(options.times):
        rank = choice.randrange(options.ranks) if options.rank is None else options.rank
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="contender") as folder:
            one = measure(options.kind, options.ranks, rank, Path(folder))
        found.append(one)
        if options.json:
            print(json.dumps(asdict(one)), flush=True)
        else:
            print(
                f"{one.contender}: rank {one.killed} of {one.ranks} killed; step {one.step_ms:.0f} ms;"
                f" whole again {_seconds(one.whole_s)}; shrunk {_seconds(one.shrunk_s)}"
                f" ({time.monotonic() - began:.0f} s in all)",
                flush=True,
            )
    if not options.json:
        for name in ("whole_s", "shrunk_s"):
            times = [getattr(one, name) for one in found if getattr(one, name) is not None]
            if times:
                worst, median = max(times), statistics.median(times)
                print(f"{name}: {len(times)} of {len(found)}, median {median:.3f}, worst {worst:.3f}")


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f} s"
