"""Sharded: each rank keeps a slice of every layer's weights and optimiser, and sees whole layers one at a time."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch import Tensor, nn

from lumctl.training.example.config import Size
from lumctl.training.example.learner import Batches, Layout, adamw, clip, share_of_loss
from lumctl.training.example.model import Llama


class Sharded:
    """As ZeRO-3 and FSDP do it; see :class:`lumctl.training.example.learner.Learner`.

    A unit is a block, or the two ends. Its parameters lie in one flat vector of which each rank holds an equal slice.
    A block is gathered, run and dropped; on the way back it is gathered again and run again with gradients, whose sum
    over the ranks is scattered onto the slices. The ends are needed first and last and stay for the step.
    """

    layout: Layout = "unique"

    def __init__(self, size: Size, *, seed: int) -> None:
        self.size = size
        self._seed = seed
        self._start: Llama | None = Llama(size, seed=seed)
        whole = Llama(size, seed=seed)
        self._ends, self._blocks = whole.ends, list(whole.blocks)
        self._units: list[nn.Module] = [self._ends, *self._blocks]
        self._shapes = [[parameter.shape for parameter in unit.parameters()] for unit in self._units]
        for unit in self._units:
            _drop(unit)
        self.model = nn.ParameterList(nn.Parameter(torch.empty(0)) for _ in self._units)
        self.optimizer = adamw(self.model)
        self._rank, self._world = 0, 1

    def shape(self, rank: int, world: int) -> None:
        """Cut this rank's slices out of the weights of the start."""
        self._rank, self._world = rank, world
        start = self._start or Llama(self.size, seed=self._seed)
        self._start = None
        self.optimizer.state.clear()
        for unit, shard in zip((start.ends, *start.blocks), self.model, strict=True):
            shard.data = self._flat(list(unit.parameters())).chunk(world)[rank].clone()

    def gradients(self, batches: Batches) -> Tensor:
        """Gradients of the mean over all ranks' tokens on our slices, and that mean."""
        tokens = batches(self._rank, self._world)
        with self._whole(0):
            loss = self._learn(tokens[:, :-1], tokens[:, 1:])
            self._scatter(0)
        return clip(self.model, loss, self._world)

    def _learn(self, tokens: Tensor, targets: Tensor) -> Tensor:
        """Forward and backward; the gradients of the ends are left with them."""
        embedded = self._ends.embed(tokens)
        inputs = [embedded.detach()]
        with torch.no_grad():
            for index, block in enumerate(self._blocks, 1):
                with self._whole(index):
                    inputs.append(block(inputs[-1]))
        last = inputs.pop().requires_grad_()
        loss = share_of_loss(self._ends.loss(last, targets), self.size)
        torch.autograd.backward(loss)
        gradient = last.grad
        for index, block in reversed(list(enumerate(self._blocks, 1))):
            x = inputs.pop().requires_grad_()
            with self._whole(index):
                torch.autograd.backward(block(x), gradient)
                self._scatter(index)
            gradient = x.grad
        torch.autograd.backward(embedded, gradient)
        return loss

    def logits(self, tokens: Tensor) -> Tensor | None:
        """Each rank runs its share of the sequences; their logits come together."""
        own = tokens[self._rank :: self._world]
        with torch.no_grad(), self._whole(0):
            x = self._ends.embed(own)
            for index, block in enumerate(self._blocks, 1):
                with self._whole(index):
                    x = block(x)
            logits = torch.zeros(*tokens.shape, self.size.vocabulary)
            logits[self._rank :: self._world] = self._ends.logits(x)
        if self._world > 1:
            dist.all_reduce(logits)
        return logits if self._rank == 0 else None

    @contextmanager
    def _whole(self, index: int) -> Iterator[None]:
        """A unit has all its weights meanwhile."""
        shard = self.model[index].detach()
        flat = shard
        if self._world > 1:
            flat = torch.empty(shard.numel() * self._world)
            dist.all_gather_single(flat, shard)
        at = 0
        for parameter, shape in zip(self._units[index].parameters(), self._shapes[index], strict=True):
            parameter.data = flat[at : at + shape.numel()].view(shape)
            at += shape.numel()
        try:
            yield
        finally:
            _drop(self._units[index])

    def _scatter(self, index: int) -> None:
        """The sum of the ranks' gradients of one unit, each rank its slice."""
        flat = self._flat([_gradient(parameter) for parameter in self._units[index].parameters()])
        if self._world > 1:
            own = torch.empty(flat.numel() // self._world)
            dist.reduce_scatter_single(own, flat)
            flat = own
        self.model[index].grad = flat

    def _flat(self, tensors: list[Tensor] | list[nn.Parameter]) -> Tensor:
        """One vector, filled up with zeros so that it falls into equal slices."""
        parts = [tensor.detach().flatten() for tensor in tensors]
        short = -sum(part.numel() for part in parts) % self._world
        return torch.cat([*parts, torch.zeros(short)])


def _drop(unit: nn.Module) -> None:
    for parameter in unit.parameters():
        parameter.grad = None
        parameter.data = torch.empty(0)


def _gradient(parameter: nn.Parameter) -> Tensor:
    if parameter.grad is None:
        raise AssertionError("a parameter that the loss does not depend on")
    return parameter.grad
