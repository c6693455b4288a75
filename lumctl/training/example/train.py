"""Train the model: the loop that a user would write."""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

import lumctl.training.torch as recovery
from lumctl.training.example.config import SIZES, Size
from lumctl.training.example.data import Windows, own_text
from lumctl.training.example.learner import adamw, bytes_of, set_rate, share_of_loss
from lumctl.training.example.losses import Losses
from lumctl.training.example.model import Llama
from lumctl.training.example.parallelism import learner

TOLD_EVERY = 10


@dataclass(frozen=True)
class TrainOptions:
    """What is to be trained, and how long."""

    parallel: str = "data"
    steps: int = 200
    size: str = "tiny"
    seed: int = 1
    checkpoint: Path | None = None
    every: int = 50
    """A checkpoint after so many steps."""
    losses: Path | None = None
    text: Path | None = None


def train(options: TrainOptions) -> None:
    """Run this process's part of the job to its end.

    Raises:
        UsageError: the ranks are too many, or the text too short.
    """
    torch.set_num_threads(1)  # one rank, one core; and sums in one order
    size = SIZES[options.size]

    def average(parameters: Iterable[nn.Parameter]) -> None:
        job.average(parameters)

    ours = learner(options.parallel, size, seed=options.seed, average=average)
    text = options.text.read_bytes() if options.text else own_text()
    windows = Windows(text, context=size.context, sequences=size.sequences, seed=options.seed)
    losses = Losses(options.losses)
    _warm(size, windows)
    with recovery.attach(
        model=ours.model,
        optimizer=ours.optimizer,
        state={"losses": losses},
        layout=ours.layout,
        shape=ours.shape,
        seed=options.seed,
        checkpoint=options.checkpoint,
        every=options.every,
    ) as job:
        began, first = time.monotonic(), None
        for step in job.steps(options.steps):
            number = step.number
            first = number if first is None else first
            with step:
                set_rate(ours.optimizer, number, options.steps)
                loss = ours.gradients(lambda rank, world: windows.batch(number, rank, world)).item()  # noqa: B023 - now
                losses.note(number, loss)
                ours.optimizer.step()
                step.report(loss)
                if job.rank == 0:
                    losses.write()
                    if number % TOLD_EVERY == 0 or number == options.steps - 1:
                        _tell(f"step {number} loss {loss:.4f}")
        if job.rank == 0 and first is not None:
            each_ms = 1000 * (time.monotonic() - began) / (options.steps - first)
            _tell(f"{job.world} ranks, {each_ms:.1f} ms a step, {bytes_of(ours):,} bytes of state on this rank")


def _warm(size: Size, windows: Windows) -> None:
    """Do a step that counts for nothing: what PyTorch does at its first must not keep others waiting for a spare."""
    model = Llama(size, seed=0)
    torch.autograd.backward(share_of_loss(model.loss(windows.batch(0)), size))
    adamw(model.parameters()).step()


def _tell(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - the script's own output
