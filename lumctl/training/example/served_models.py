"""Four ways to serve a model from several ranks: replicated, tensor parallel, sharded, pipeline."""

from typing import Protocol

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

from lumctl.errors import UsageError
from lumctl.training.example.model import Llama, Size
from lumctl.training.example.parallelism import SHARED, Layout, Replicated

SERVED = ("replicated", "tensor", *SHARED)


class Served(Protocol):
    """A model whose ranks compute answers together; :meth:`shape` sets the rank, as for a learner."""

    layout: Layout
    size: Size

    def shape(self, rank: int, world: int) -> None:
        """Take the part of one rank, in its initial state."""
        ...

    def logits(self, tokens: Tensor) -> Tensor | None:
        """The logits of sequences that all ranks run through the model together; ``None`` except on rank 0.

        Raises:
            RuntimeError: the process group broke.
        """
        ...


class TensorParallel:
    """A model for answers only, whose ranks each hold a slice of every feed-forward layer, as by Megatron.

    PyTorch slices the layers over a device mesh; so that is done in each new group.
    """

    layout: Layout = "replicated"

    def __init__(self, size: Size, *, seed: int) -> None:
        self.size = size
        self._seed = seed
        self._rank, self._world = 0, 1
        self._model: Llama | None = None
        self._group: object = None

    def shape(self, rank: int, world: int) -> None:
        """Note the rank; the weights are made and sliced with the first answer of a group."""
        self._rank, self._world = rank, world
        if self.size.feed_forward % world:
            raise UsageError(
                f"a feed-forward layer of width {self.size.feed_forward} cannot be cut into {world} equal slices",
                hint="choose another number of ranks, or another --size",
            )

    def logits(self, tokens: Tensor) -> Tensor | None:
        """All ranks run all sequences, each with its slice of the layers."""
        if self._model is None or self._group is not dist.group.WORLD:
            self._model, self._group = self._sliced(), dist.group.WORLD
        with torch.no_grad():
            logits: Tensor = self._model(tokens)
        return logits if self._rank == 0 else None

    def _sliced(self) -> Llama:
        model = Llama(self.size, seed=self._seed)
        if self._world > 1:
            mesh = init_device_mesh("cpu", (self._world,))
            ways = {"gate": ColwiseParallel(), "up": ColwiseParallel(), "down": RowwiseParallel()}
            for block in model.blocks:
                parallelize_module(block.get_submodule("feed"), mesh, ways)
        return model


def served(way: str, size: Size, *, seed: int) -> Served:
    """A model to serve, distributed over the ranks."""
    match way:
        case "replicated":
            return Replicated(size, seed=seed, average=lambda _parameters: None)
        case "tensor":
            return TensorParallel(size, seed=seed)
        case _:
            return SHARED[way](size, seed=seed)
