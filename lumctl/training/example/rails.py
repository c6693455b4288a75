"""``python -m lumctl.training.example.rails``: train a small Llama with data, pipeline and tensor parallelism at once.

An ordinary script: its groups come from a device mesh, and it runs under torchrun too. Rank
``(d * stages + s) * tensor + t`` is slice t of stage s of replica d. In a training step the ranks of a pipeline
exchange activations first; then those that hold the same part of the model exchange its gradients.
"""

import argparse
import functools
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.pipelining import ScheduleGPipe
from torch.nn import functional

import lumctl.training.torch as recovery
from lumctl.errors import UsageError
from lumctl.training.example.__main__ import TOLD_EVERY, add_options, count, exit_code_of, tell, warm
from lumctl.training.example.data import Losses, Windows, own_text
from lumctl.training.example.model import SIZES
from lumctl.training.example.parallelism import adamw, set_rate, share_of_loss
from lumctl.training.example.stages import DATA, MICRO_BATCHES, PIPELINE, TENSOR, ComputingStage, ModelStage, RankGrid

RAIL_SIZES = {
    # Eight ranks on two cores do a step in 0.1 s. The heads of keys and values can be cut in two.
    "tiny": replace(SIZES["tiny"], layers=2, heads=8, key_heads=2),
    "small": SIZES["small"],
}


@dataclass(frozen=True)
class RailOptions:
    """Command-line options of the training."""

    steps: int
    size: str
    seed: int
    checkpoint: Path | None
    every: int
    losses: Path | None
    text: Path | None
    data: int = 2
    stages: int = 2
    tensor: int = 2
    sharded: bool = False
    pause_ms: int = 0

    @property
    def grid(self) -> RankGrid:
        """The number of ranks along each dimension."""
        return RankGrid(self.data, self.stages, self.tensor)


class RailTrainer:
    """One rank's part of the training in one process group."""

    def __init__(self, options: RailOptions, mesh: DeviceMesh, windows: Windows) -> None:
        self._options, self._windows = options, windows
        self._size = RAIL_SIZES[options.size]
        self._data, pipeline = mesh[DATA], mesh[PIPELINE]
        self.model = ModelStage(self._size, pipeline.get_local_rank(), pipeline.size(), seed=options.seed)
        self._is_first = pipeline.get_local_rank() == 0
        self.is_last = pipeline.get_local_rank() == pipeline.size() - 1
        if options.tensor > 1:
            self.model.slice(mesh[TENSOR].get_group())
        if options.sharded:
            self.model.shard(self._data)
        self.optimizer = adamw(self.model.parameters())
        micro = replace(self._size, sequences=self._size.sequences // (options.data * MICRO_BATCHES))
        stage = ComputingStage(self.model, pipeline, micro, compute=lambda: multiply_for(options.pause_ms))
        self._schedule = ScheduleGPipe(stage, MICRO_BATCHES, loss_fn=self._loss, scale_grads=False)

    def step(self, number: int) -> float:
        """Compute the gradients of a training step; return the mean loss over all tokens, in the last stage only."""
        tokens = self._windows.batch(number, self._data.get_local_rank(), self._data.size())
        losses: list[Tensor] = []
        inputs = (tokens[:, :-1],) if self._is_first else ()
        targets = tokens[:, 1:] if self.is_last else None
        self._schedule.step(*inputs, target=targets, losses=losses, return_outputs=False)
        # The loss is added like one more gradient. FSDP has added those of a sharded model.
        loss = torch.stack([torch.zeros(()), *losses]).detach().sum()
        parameters = () if self._options.sharded else self.model.parameters()
        self._add([*(each.grad for each in parameters if each.grad is not None), loss])
        return loss.item()

    def _loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        summed = functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="sum")
        return share_of_loss(summed, self._size)

    def _add(self, tensors: list[Tensor]) -> None:
        """Replace tensors by their sums over the ranks that hold the same part of the model."""
        bucket = torch.cat([each.flatten() for each in tensors])
        dist.all_reduce(bucket, group=self._data.get_group())
        at = 0
        for each in tensors:
            each.copy_(bucket[at : at + each.numel()].view_as(each))
            at += each.numel()


SQUARE = 128
"""The width of the matrices that :func:`multiply_for` multiplies."""
CALIBRATIONS = 100


def multiply_for(milliseconds: float) -> None:
    """Multiply matrices for about this time of a core."""
    if milliseconds > 0:
        _multiply(round(milliseconds / _multiplication_ms()))


@functools.cache
def _multiplication_ms() -> float:
    """The time of one multiplication by this thread's own clock: meanwhile other ranks may use the core."""
    _multiply(1)
    began = time.thread_time()
    _multiply(CALIBRATIONS)
    return 1000 * (time.thread_time() - began) / CALIBRATIONS


def _multiply(times: int) -> None:
    square = torch.ones(SQUARE, SQUARE)
    for _ in range(times):
        torch.mm(square, square)


def train(options: RailOptions) -> None:
    """Run this process's part of the job to its end.

    Raises:
        UsageError: the number of ranks is another, the model cannot be divided among them, or the text is too short.
    """
    torch.set_num_threads(1)  # one core per rank, and sums in a fixed order
    size = RAIL_SIZES[options.size]
    options.grid.require_divisible(size)
    text = options.text.read_bytes() if options.text else own_text()
    windows = Windows(text, context=size.context, sequences=size.sequences, seed=options.seed)
    warm(size, windows)
    multiply_for(options.pause_ms)
    recovery.run(
        lambda job: train_in_group(options, windows, job),
        layout="unique",
        seed=options.seed,
        checkpoint=options.checkpoint,
        every=options.every,
        device="cpu",
    )


def train_in_group(options: RailOptions, windows: Windows, job: recovery.RestartableJob) -> None:
    """Train in the present process group: all that belongs to it is made here.

    Raises:
        UsageError: the number of ranks is not that of the grid, or there is no group.
    """
    grid = options.grid
    grid.require_ranks(job.world)
    if not dist.is_initialized():
        raise UsageError("a rank alone has no process group", hint="start it by lumctl job run, or by torchrun")
    mesh = init_device_mesh("cpu", (grid.data, grid.stages, grid.tensor), mesh_dim_names=(DATA, PIPELINE, TENSOR))
    trainer = RailTrainer(options, mesh, windows)
    losses = Losses(options.losses)
    job.track(model=trainer.model, optimizer=trainer.optimizer, losses=losses)
    writes = job.rank == (grid.stages - 1) * grid.tensor  # the first rank that knows the loss
    began, first = time.monotonic(), job.done
    for number in job.steps(options.steps):
        set_rate(trainer.optimizer, number, options.steps)
        trainer.optimizer.zero_grad()
        loss = trainer.step(number)
        losses.note(number, loss)
        trainer.optimizer.step()
        if trainer.is_last:
            job.report(loss)
        if writes:
            losses.write()
            if number % TOLD_EVERY == 0 or number == options.steps - 1:
                tell(f"step {number} loss {loss:.4f}")
    if writes and first < options.steps:
        each_ms = 1000 * (time.monotonic() - began) / (options.steps - first)
        tell(f"{job.world} ranks, {each_ms:.1f} ms a step")


def main() -> int:
    """Train to the end; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m lumctl.training.example.rails",
        description="Train a small Llama with data, pipeline and tensor parallelism at once.",
    )
    parser.add_argument("--data", type=count, default=2, metavar="N", help="replicas of the model")
    parser.add_argument("--stages", type=count, default=2, metavar="N", help="pipeline stages of a replica")
    parser.add_argument(
        "--tensor", type=count, default=2, metavar="N", help="ranks that hold slices of one stage's layers"
    )
    parser.add_argument(
        "--sharded", action="store_true", help="divide parameters and gradients among the replicas (FSDP)"
    )
    parser.add_argument(
        "--pause-ms",
        type=count,
        default=0,
        metavar="MS",
        help="compute for this time of one core before the pipeline's transfers, and again before the gradients",
    )
    add_options(parser, RAIL_SIZES)
    return exit_code_of(lambda: train(RailOptions(**vars(parser.parse_args()))))


if __name__ == "__main__":
    sys.exit(main())
