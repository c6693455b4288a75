"""Three kinds of parallelism, and their common parts: replicated, sharded, pipeline."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, Protocol

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_, clip_grads_with_norm_, get_total_norm

from lumctl.errors import UsageError
from lumctl.training.example.model import Ends, Llama, Size

LONGEST_GRADIENT = 1.0
"""Gradients of all ranks together are scaled down to this norm."""

PEAK = 3e-3
LAST = PEAK / 10
"""The learning rates after the warm-up and at the end."""

Layout = Literal["replicated", "unique"]

Batches = Callable[[int, int], Tensor]
"""The sequences of one step for a rank of a world."""


class Learner(Protocol):
    """A model that several ranks train together. It stores no process group: a new group is formed after each failure.

    A worker is made before its rank is known. :meth:`shape` sets the rank, before any state is loaded.
    """

    layout: Layout
    """`replicated`: every rank holds the same state; `unique`: each rank has a part of its own."""
    size: Size

    @property
    def model(self) -> nn.Module:
        """The part of the model that this rank holds."""
        ...

    @property
    def optimizer(self) -> torch.optim.Optimizer:
        """The optimiser, the same object for the life of the worker; its parameters may change with the rank."""
        ...

    def shape(self, rank: int, world: int) -> None:
        """Take the part of one rank, in its initial state."""
        ...

    def gradients(self, batches: Batches) -> Tensor:
        """Compute this step's gradients; return the mean loss over all ranks' tokens.

        Raises:
            RuntimeError: the process group broke.
        """
        ...


def adamw(parameters: Iterable[nn.Parameter]) -> torch.optim.AdamW:
    """The optimiser, with the settings used for Llama models."""
    return torch.optim.AdamW(parameters, lr=PEAK, betas=(0.9, 0.95), weight_decay=0.1, fused=True)


def share_of_loss(summed: Tensor, size: Size) -> Tensor:
    """The share of some sequences in the mean loss over all tokens of a step."""
    return summed / (size.sequences * size.context)


def clip(parameters: Iterable[nn.Parameter], loss: Tensor, world: int) -> Tensor:
    """Limit the norm of gradients that are distributed over the ranks; return the sum of the ranks' losses."""
    held = list(parameters)
    norm = get_total_norm([parameter.grad for parameter in held if parameter.grad is not None])
    sums = torch.stack([norm.square(), loss.detach()])
    if world > 1:
        dist.all_reduce(sums)
    clip_grads_with_norm_(held, LONGEST_GRADIENT, sums[0].sqrt())
    return sums[1]


def bytes_of(learner: Learner) -> int:
    """The bytes of a rank's parameters and optimiser state."""
    held: list[Any] = list(learner.model.parameters())
    held += [value for state in learner.optimizer.state.values() for value in state.values()]
    return sum(value.numel() * value.element_size() for value in held if isinstance(value, Tensor))


def rate(step: int, steps: int) -> float:
    """The learning rate of one step of ``steps``."""
    warm_up = max(1, min(20, steps // 10))
    if step < warm_up:
        return PEAK * (step + 1) / warm_up
    done = min(1.0, (step - warm_up) / max(1, steps - warm_up))
    return LAST + (PEAK - LAST) * (1 + math.cos(math.pi * done)) / 2


def set_rate(optimizer: torch.optim.Optimizer, step: int, steps: int) -> None:
    """Set the learning rate of a step: a warm-up, then half a cosine down to a tenth. It adds no state to transfer."""
    for group in optimizer.param_groups:
        group["lr"] = rate(step, steps)


MICRO_BATCHES = 4
FORWARD, BACKWARD = 0, 1


class PipelineStage(nn.Module):
    """The part of one rank: some blocks, and on rank 0 both ends, which share one matrix."""

    ends: Ends | None

    def __init__(self) -> None:
        super().__init__()
        self.register_module("ends", None)  # keeps first place: optimisers number parameters in order
        self.blocks = nn.ModuleList()

    def forward(self, x: Tensor) -> Tensor:
        """Run this rank's blocks."""
        for block in self.blocks:
            x = block(x)
        return x


class Pipeline:
    """Stages in a ring; see :class:`lumctl.training.example.parallelism.Learner`.

    A step's sequences go round the ring in micro-batches: all forward, then all backward (GPipe). Each rank exchanges
    tensors only with its two neighbours.
    """

    layout: Layout = "unique"

    def __init__(self, size: Size, *, seed: int) -> None:
        self.size = size
        self._seed = seed
        self._micro = size.sequences // MICRO_BATCHES
        self._start: Llama | None = Llama(size, seed=seed)
        self.model = PipelineStage()
        self.optimizer = adamw(self._start.parameters())
        self._rank, self._world = 0, 1
        self._sent: list[tuple[dist.Work | None, Tensor]] = []

    def shape(self, rank: int, world: int) -> None:
        """Take one rank's layers of the initial model.

        Raises:
            UsageError: there are more ranks than layers.
        """
        if world > self.size.layers:
            raise UsageError(f"{self.size.layers} layers cannot be divided among {world} ranks")
        self._rank, self._world = rank, world
        start = self._start or Llama(self.size, seed=self._seed)
        self._start = None
        first, past = (self.size.layers * bound // world for bound in (rank, rank + 1))
        self.model.ends = start.ends if rank == 0 else None
        self.model.blocks = nn.ModuleList(list(start.blocks)[first:past])
        self.optimizer.state.clear()
        self.optimizer.param_groups[0]["params"] = list(self.model.parameters())

    def gradients(self, batches: Batches) -> Tensor:
        """Compute the gradients of the mean loss over all tokens, for our layers; return that mean."""
        self._sent.clear()  # sends of an interrupted step
        self.optimizer.zero_grad()
        loss = torch.zeros(())
        if self.model.ends is not None:
            loss = self._lead(self.model.ends, torch.split(batches(0, 1), self._micro))
        else:
            self._follow()
        self._flush()
        return clip(self.model.parameters(), loss, self._world)

    def _lead(self, ends: Ends, batches: Sequence[Tensor]) -> Tensor:
        """Do rank 0's part: the first stage, and the loss after the last stage."""
        outs = []
        for tokens in batches:
            outs.append(self.model(ends.embed(tokens[:, :-1])))
            self._send(outs[-1], FORWARD)
        loss = torch.zeros(())
        gradients = []
        for tokens, out in zip(batches, outs, strict=True):
            back = self._receive(out, FORWARD).requires_grad_()
            part = share_of_loss(ends.loss(back, tokens[:, 1:]), self.size)
            torch.autograd.backward(part)
            loss += part.detach()
            gradients.append(self._return(back))
        for out, gradient in zip(outs, gradients, strict=True):
            torch.autograd.backward(out, self._receive(out, BACKWARD) if gradient is None else gradient)
        return loss

    def _return(self, back: Tensor) -> Tensor | None:
        """Send the gradient to the last stage; return it if that stage is ours too."""
        gradient = back.grad
        if self._world > 1 and gradient is not None:
            self._send(gradient, BACKWARD)
            return None
        return gradient

    def _follow(self) -> None:
        """Do the part of another rank: receive from one neighbour, send to the other."""
        inputs, outs = [], []
        like = torch.empty(self._micro, self.size.context, self.size.width)
        for _ in range(self.size.sequences // self._micro):
            inputs.append(self._receive(like, FORWARD).requires_grad_())
            outs.append(self.model(inputs[-1]))
            self._send(outs[-1], FORWARD)
        for x, out in zip(inputs, outs, strict=True):
            torch.autograd.backward(out, self._receive(out, BACKWARD))
            if x.grad is not None:
                self._send(x.grad, BACKWARD)

    def logits(self, tokens: Tensor) -> Tensor | None:
        """Run sequences once round the ring."""
        self._sent.clear()
        ends = self.model.ends
        with torch.no_grad():
            x = torch.empty(*tokens.shape, self.size.width)
            x = self._receive(x, FORWARD) if ends is None else ends.embed(tokens)
            out = self.model(x)
            self._send(out, FORWARD)
            logits = None if ends is None else ends.logits(self._receive(out, FORWARD))
        self._flush()
        return logits

    def _send(self, tensor: Tensor, way: int) -> None:
        """Send to the next or the previous stage without waiting; with a single rank, send nothing."""
        if self._world > 1:
            whole = tensor.detach().contiguous()
            peer = (self._rank + (1 if way == FORWARD else -1)) % self._world
            # The tensor must live until its send is done.
            self._sent.append((dist.isend(whole, peer, tag=way), whole))

    def _receive(self, like: Tensor, way: int) -> Tensor:
        """Receive from the previous or the next stage."""
        if self._world == 1:
            return like.detach()
        got = torch.empty(like.shape)
        dist.recv(got, (self._rank - (1 if way == FORWARD else -1)) % self._world, tag=way)
        return got

    def _flush(self) -> None:
        """Wait until all sends are done."""
        for work, _tensor in self._sent:
            if work is not None:
                work.wait()
        self._sent.clear()


Average = Callable[[Iterable[nn.Parameter]], None]
"""Replaces gradients by their mean over the ranks, as `job.average` does."""


class Replicated:
    """The whole model on each rank; see :class:`lumctl.training.example.parallelism.Learner`."""

    layout: Layout = "replicated"

    def __init__(self, size: Size, *, seed: int, average: Average) -> None:
        self.size = size
        self.model = Llama(size, seed=seed)
        self.optimizer = adamw(self.model.parameters())
        self._average = average
        self._rank, self._world = 0, 1
        # The loss is averaged like one more gradient, in the same bucket: one all-reduce per step.
        self._loss = nn.Parameter(torch.zeros(()))

    def shape(self, rank: int, world: int) -> None:
        """Note the rank, which selects the sequences; the state is the same on every rank."""
        self._rank, self._world = rank, world

    def gradients(self, batches: Batches) -> Tensor:
        """Compute the gradients of the mean loss over all ranks' tokens; return that mean."""
        self.optimizer.zero_grad()
        # A mean over ranks follows, and the ranks' shares may differ in size: so use our share of the overall mean.
        loss = share_of_loss(self.model.loss(batches(self._rank, self._world)), self.size) * self._world
        torch.autograd.backward(loss)
        self._loss.grad = loss.detach()
        self._average([*self.model.parameters(), self._loss])
        clip_grad_norm_(self.model.parameters(), LONGEST_GRADIENT)
        return self._loss.grad

    def logits(self, tokens: Tensor) -> Tensor | None:
        """Each rank runs its share of the sequences; rank 0 gets all logits."""
        with torch.no_grad():
            own = self.model(tokens[self._rank :: self._world])
        return _on_rank_0(own, tokens, self._rank, self._world)


class Sharded:
    """Parameters sharded as by ZeRO-3 and FSDP; see :class:`lumctl.training.example.parallelism.Learner`.

    A unit is a block, or the two ends. Its parameters form one flat vector; each rank holds an equal slice of it. In
    the forward pass, a block is gathered, run and dropped. In the backward pass, it is gathered and run again with
    gradients; their sum over the ranks is scattered onto the slices. The ends are needed first and last, so they stay
    gathered during the step.
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
        """Cut this rank's slices out of the initial weights."""
        self._rank, self._world = rank, world
        start = self._start or Llama(self.size, seed=self._seed)
        self._start = None
        self.optimizer.state.clear()
        for unit, shard in zip((start.ends, *start.blocks), self.model, strict=True):
            shard.data = self._flat(list(unit.parameters())).chunk(world)[rank].clone()

    def gradients(self, batches: Batches) -> Tensor:
        """Compute the gradients of the mean loss over all ranks' tokens, for our slices; return that mean."""
        tokens = batches(self._rank, self._world)
        with self._whole(0):
            loss = self._learn(tokens[:, :-1], tokens[:, 1:])
            self._scatter(0)
        return clip(self.model, loss, self._world)

    def _learn(self, tokens: Tensor, targets: Tensor) -> Tensor:
        """Run the forward and backward pass; the gradients of the ends stay in their parameters."""
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
        """Each rank runs its share of the sequences; rank 0 gets all logits."""
        own = tokens[self._rank :: self._world]
        with torch.no_grad(), self._whole(0):
            x = self._ends.embed(own)
            for index, block in enumerate(self._blocks, 1):
                with self._whole(index):
                    x = block(x)
            found = self._ends.logits(x)
        return _on_rank_0(found, tokens, self._rank, self._world)

    @contextmanager
    def _whole(self, index: int) -> Iterator[None]:
        """Gather all weights of a unit for the duration of the context."""
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
        """Sum the ranks' gradients of one unit, and give each rank its slice."""
        flat = self._flat([_gradient(parameter) for parameter in self._units[index].parameters()])
        if self._world > 1:
            own = torch.empty(flat.numel() // self._world)
            dist.reduce_scatter_single(own, flat)
            flat = own
        self.model[index].grad = flat

    def _flat(self, tensors: list[Tensor] | list[nn.Parameter]) -> Tensor:
        """One vector, padded with zeros so that it divides into equal slices."""
        parts = [tensor.detach().flatten() for tensor in tensors]
        short = -sum(part.numel() for part in parts) % self._world
        return torch.cat([*parts, torch.zeros(short)])


def _drop(unit: nn.Module) -> None:
    for parameter in unit.parameters():
        parameter.grad = None
        parameter.data = torch.empty(0)


def _gradient(parameter: nn.Parameter) -> Tensor:
    if parameter.grad is None:
        raise AssertionError("the loss does not depend on a parameter")
    return parameter.grad


def _on_rank_0(own: Tensor, tokens: Tensor, rank: int, world: int) -> Tensor | None:
    """The logits of all sequences, on rank 0; each rank has those of every ``world``-th sequence."""
    logits = torch.zeros(*tokens.shape, own.shape[-1])
    logits[rank::world] = own
    if world > 1:
        dist.all_reduce(logits)
    return logits if rank == 0 else None


SHARED: dict[str, type[Sharded | Pipeline]] = {"sharded": Sharded, "pipeline": Pipeline}
"""The ways to train in which each rank holds a part of its own."""
WAYS = ("data", *SHARED)


def learner(way: str, size: Size, *, seed: int, average: Average) -> Learner:
    """A model to train with one kind of parallelism; ``average`` averages the gradients of `data`."""
    return Replicated(size, seed=seed, average=average) if way == "data" else SHARED[way](size, seed=seed)
