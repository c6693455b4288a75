"""What recording a job's collectives costs: the share of a training step, and the bytes per rank.

    python tests/bench/collectives/recording.py [STEPS] [RANKS] [FEATURES]

RANKS gloo ranks on loopback train a layer of FEATURES x FEATURES numbers: `job.average`'s all-reduce of the gradients
and one of the loss. Steps with and without recording take turns, in an order drawn for each pair. With recording, the
methods of PyTorch are wrapped, and the times of the step are encoded for its report; without, they are PyTorch's own.
Rank 0 times each step from one barrier to the next: on the wall, and the CPU time of its process. Printed are medians,
and their difference as a share of a step, with its 95 % interval (resampled pairs). On a busy machine that is wide, so
the calls of the recording are also timed themselves, in more steps.

The bytes per rank are those of the coordinator's record when it is full. A rank itself keeps only the present step.
"""

import json
import os
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.distributed import ProcessGroup

from lumctl.training.collective_record import MOST_STEPS, CollectiveRecord
from lumctl.training.torch import collective_times
from lumctl.training.torch.collective_times import CollectiveTimes
from lumctl.training.torch.collectives import AgreedAllReduce, average
from lumctl.training.torch.waits import Waits

STEPS, RANKS, FEATURES = 2000, 2, 1024
BATCH = 256
WARM_UP = 10
RESAMPLED = 1000
RECORDED_RANKS = (2, 8, 64, 1024)
PATIENCE = timedelta(seconds=300)


class Switch:
    """Turns the recording of this process on and off."""

    def __init__(self) -> None:
        names = [name for name in collective_times.METHODS if hasattr(ProcessGroup, name)]
        native = {name: vars(ProcessGroup)[name] for name in names}
        self.times = CollectiveTimes()
        self.times.record()
        self._methods = {False: native, True: {name: vars(ProcessGroup)[name] for name in names}}

    def turn(self, *, on: bool) -> None:
        collective_times._current = self.times if on else None
        for name, method in self._methods[on].items():
            setattr(ProcessGroup, name, method)

    def time_calls(self, spent_s: list[float]) -> None:
        """From now on, note how long each call of the recording takes."""
        for name in ("started", "ended", "take"):
            setattr(self.times, name, timed(getattr(self.times, name), spent_s))


def timed(call: Callable[..., Any], spent_s: list[float]) -> Callable[..., Any]:
    def act(*given: Any) -> Any:
        began = time.perf_counter()
        found = call(*given)
        spent_s.append(time.perf_counter() - began)
        return found

    return act


def train(rank: int, ranks: int, features: int, steps: int, folder: str) -> None:
    """Rank 0 writes the seconds of all steps, and the last row that was reported."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=ranks, timeout=PATIENCE)
    Waits().take_over()
    switch, agreed = Switch(), AgreedAllReduce()
    model, inputs = nn.Linear(features, features), torch.randn(BATCH, features)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def step(*, on: bool) -> tuple[float, float]:
        switch.turn(on=on)
        dist.barrier()  # also, Python looks up the methods again, which is no part of the step
        began, cpu = time.perf_counter(), time.process_time()
        optimizer.zero_grad()
        loss = model(inputs).square().mean()
        loss.backward()
        average(model.parameters(), agreed, world=ranks, divide_by=ranks)
        mean = loss.detach()
        dist.all_reduce(mean)
        optimizer.step()
        if on:
            rows.append(json.dumps(switch.times.take(), separators=(",", ":")))
        return time.perf_counter() - began, time.process_time() - cpu

    rows: list[str] = []
    taken: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
    order = Random(1)
    for pair in range(WARM_UP + steps // 2):
        first = order.random() < 0.5
        for on in (first, not first):
            took = step(on=on)
            if pair >= WARM_UP:
                taken[on].append(took)
    spent_s: list[float] = []
    switch.time_calls(spent_s)
    of_steps: list[float] = []
    for _ in range(max(steps // 10, 1)):
        spent_s.clear()
        step(on=True)
        of_steps.append(sum(spent_s))
    switch.turn(on=False)
    dist.barrier()
    if rank == 0:
        found = {"with": taken[True], "without": taken[False], "row": rows[-1], "calls_s": median(of_steps)}
        Path(folder, "said").write_text(json.dumps(found))
    dist.destroy_process_group()


def share(with_s: Sequence[float], without_s: Sequence[float], rng: Random) -> str:
    """The medians, and their difference over a step."""

    def difference(pairs: Sequence[tuple[float, float]]) -> float:
        own, native = (median(each) for each in zip(*pairs, strict=True))
        return own / native - 1

    pairs = list(zip(with_s, without_s, strict=True))
    drawn = sorted(difference(rng.choices(pairs, k=len(pairs))) for _ in range(RESAMPLED))
    low, high = drawn[int(0.025 * RESAMPLED)], drawn[int(0.975 * RESAMPLED)]
    return (
        f"{1e3 * median(with_s):.3f} ms with, {1e3 * median(without_s):.3f} ms without: "
        f"{difference(pairs):+.2%} of a step (95 %: {low:+.2%} to {high:+.2%})"
    )


def bytes_per_rank(ranks: int, row: list[object]) -> float:
    """The bytes of a full record over its ranks; each rank reports such a row."""
    _, _, entered, left, *all_reduces = row
    tracemalloc.start()
    record = CollectiveRecord()
    record.begin(1, [f"h{rank}-gpu0" for rank in range(ranks)], [f"clock{rank}" for rank in range(ranks)])
    for step in range(2 + (MOST_STEPS if ranks <= 64 else 64)):
        for rank in range(ranks):
            sizes = [[size, seconds + 1e-6 * rank] for size, seconds in all_reduces]
            record.note(rank, step, [["", ranks, entered + step, left + step + 1e-6 * rank, *sizes]], float(step))
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return held / ranks


def main(steps: int, ranks: int, features: int) -> None:
    print(f"{ranks} ranks, {steps} steps, {4 * features * (features + 1) / 1e6:.1f} MB; load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory(prefix="lumctl-bench-") as folder:
        mp.spawn(train, (ranks, features, steps, folder), nprocs=ranks)
        said = json.loads(Path(folder, "said").read_text())
    rng = Random(1)
    for at, what in enumerate(("wall", "CPU of rank 0")):
        print(f"  {what}: {share(*([each[at] for each in said[way]] for way in ('with', 'without')), rng)}")
    step_s = median(wall for wall, _ in said["without"])
    print(f"  the calls themselves: {1e6 * said['calls_s']:.0f} us, {said['calls_s'] / step_s:.2%} of a step")
    (row,) = json.loads(said["row"])
    print(f"  reported with each step: {len(said['row'])} bytes a rank")
    for count in RECORDED_RANKS:
        print(f"  full record of {count:>5} ranks: {bytes_per_rank(count, row) / 1e6:.3f} MB per rank", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]), *(STEPS, RANKS, FEATURES)[len(sys.argv) - 1 :])
