"""The script of a rank that measures light, not the CPU: its computing is a wait of known length.

    python tests/bench/rails/ranks.py FOLDER

``run.py`` starts it under ``lumctl job run``, and under torchrun. The training steps come in *blocks*: for each time
that a change takes, some steps of each *variant* take turns. Each rank writes a line of JSON for each step into FOLDER.
Rank 0 sets the time of a change for the simulated switches, by a file in FOLDER.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.distributed as dist

from lumctl.training.phase_model import ChangeMode
from lumctl.training.phase_order import Boundary, PhaseOrder
from lumctl.training.protocol import SOCKET
from lumctl.training.torch import attach

CHANGES_MS = (0, 1, 10, 50, 100)
BARE, CONNECTED, LIT, ON_DEMAND, AHEAD = "bare gloo", "no phases", "one phase", *map(str, ChangeMode)
"""gloo under torchrun; gloo in a job; groups that need one phase, which has light all the time; both modes."""
VARIANTS = (CONNECTED, LIT, ON_DEMAND, AHEAD)
IDLE = "idle"
"""All ranks wait idle, and then want another phase at the same time."""
IDLE_MS = (0, 10)
STEPS, SETTLED = 13, 3
"""The steps of a block, and how many of the first are not measured."""
IDLE_STEPS = 120
COMPUTE_S = (0.08, 0.16)
"""The wait before each of the two phases of a step. Some change times are longer than the first."""
IDLE_S = 0.03
STRETCH = 4
"""The number of all-reduces in a phase."""
FLOATS = 1 << 10
CHANGE_FILE = "change_ms"
PIPELINE, GRADIENTS = ((0, 2), (1, 3), (4, 6), (5, 7)), ((0, 4), (1, 5), (2, 6), (3, 7))
"""The pairs of ranks of both phases, as in inventories/rails.yaml: even ranks are on one rail, odd ranks on another."""

_NEVER = threading.Event()


class Block(NamedTuple):
    """Steps of one variant while a change takes ``change_ms``."""

    variant: str
    change_ms: int
    steps: int


class Stretch(NamedTuple):
    """The all-reduces of one phase, in seconds: the first was started, and was done; the last was done."""

    asked_s: float
    first_s: float
    left_s: float


class RankStep(NamedTuple):
    """A step of a rank, as it writes it; ``began_s`` in seconds of the clock of this machine."""

    variant: str
    change_ms: int
    began_s: float
    stretches: Sequence[Stretch]
    change_s: float
    """How long the coordinator says that the last change took."""


def blocks(*, in_job: bool) -> list[Block]:
    """All blocks of a run, in their order."""
    if not in_job:
        return [Block(BARE, 0, 2 * STEPS)]
    idle = [Block(IDLE, change_ms, IDLE_STEPS) for change_ms in IDLE_MS]
    return idle + [Block(variant, change_ms, STEPS) for change_ms in CHANGES_MS for variant in VARIANTS]


def force(mode: Callable[[], ChangeMode]) -> None:
    """Let all boundaries use the mode that ``mode`` returns, and compare none."""

    def forced(_order: PhaseOrder, _boundary: Boundary) -> ChangeMode:
        return mode()

    setattr(PhaseOrder, "mode", forced)  # noqa: B010 - to mypy, assigning a method is an error


class Groups:
    """The groups of this rank, and its steps of each variant."""

    def __init__(self, rank: int, *, in_job: bool) -> None:
        def own(pairs: Sequence[tuple[int, int]], backend: str | None) -> Any:
            made = [dist.new_group(list(pair), backend=backend) for pair in pairs]
            return next(group for pair, group in zip(pairs, made, strict=True) if rank in pair)

        connected = own(PIPELINE, "gloo"), own(GRADIENTS, "gloo")
        self._of = {BARE: connected, CONNECTED: connected}
        self._tensor, self._light = torch.ones(FLOATS), None
        if in_job:
            pipeline, gradients = own(PIPELINE, None), own(GRADIENTS, None)
            self._of |= {LIT: (pipeline, pipeline), ON_DEMAND: (pipeline, gradients), AHEAD: (pipeline, gradients)}
            self._light = pipeline._groups.light

    @property
    def change_s(self) -> float:
        """How long the last change of light took, as the coordinator says."""
        return 0.0 if self._light is None else self._light._change_s

    def step(self, variant: str) -> list[Stretch]:
        """Do one training step."""
        if variant == IDLE:
            return [self._change()]
        return [self._stretch(group, wait_s) for group, wait_s in zip(self._of[variant], COMPUTE_S, strict=True)]

    def _stretch(self, group: Any, compute_s: float) -> Stretch:
        _NEVER.wait(compute_s)
        asked, ended = time.monotonic(), []
        for _ in range(STRETCH):
            dist.all_reduce(self._tensor.fill_(1.0), group=group)
            ended.append(time.monotonic())
        return Stretch(asked, ended[0], ended[-1])

    def _change(self) -> Stretch:
        dist.barrier()
        _NEVER.wait(IDLE_S)
        light, asked = self._light, time.monotonic()
        assert light is not None
        light.need("gradients" if light.holds == "pipeline" else "pipeline")
        lit = time.monotonic()
        return Stretch(asked, lit, lit)


def main(folder: Path) -> int:
    """Do all blocks."""
    torch.set_num_threads(1)
    in_job = SOCKET in os.environ
    schedule = [block for block in blocks(in_job=in_job) for _ in range(block.steps)]
    mode = ChangeMode.ON_DEMAND
    force(lambda: mode)
    before: Block | None = None
    with attach(model=torch.nn.Linear(1, 1), checkpoint=False, device="cpu") as job:
        groups: Groups | None = None
        for step in job.steps(len(schedule)):
            block = schedule[step.number]
            with step:
                groups = groups or Groups(job.rank, in_job=in_job)
                if block != before:
                    begin(block, folder, job.rank)
                before, mode = block, ChangeMode.AHEAD if block.variant == AHEAD else ChangeMode.ON_DEMAND
                began_s, stretches = time.monotonic(), groups.step(block.variant)
                with (folder / f"{'job' if in_job else 'bare'}-{job.rank}.jsonl").open("a") as lines:
                    found = RankStep(block.variant, block.change_ms, began_s, stretches, groups.change_s)
                    lines.write(json.dumps(found) + "\n")
    return 0


def begin(block: Block, folder: Path, rank: int) -> None:
    """Set the time of a change while no rank changes light."""
    dist.barrier()
    if rank == 0:
        (folder / CHANGE_FILE).write_text(str(block.change_ms))
    dist.barrier()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
