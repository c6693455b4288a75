"""What the three ways of sharing a model out among ranks have in common."""

import math
from collections.abc import Callable, Iterable
from typing import Any, Literal, Protocol

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.utils import clip_grads_with_norm_, get_total_norm

from lumctl.training.example.model import Size

LONGEST_GRADIENT = 1.0
"""Gradients of all ranks together are scaled down to this norm."""

PEAK = 3e-3
LAST = PEAK / 10
"""The learning rates after the warm-up and at the end."""

Layout = Literal["replicated", "unique"]

Batches = Callable[[int, int], Tensor]
"""The sequences of one step for a rank of a world."""


class Learner(Protocol):
    """A model that several ranks train together. Nothing in it remembers a process group: each failure makes a new one.

    A worker is made before it knows its rank. :meth:`shape` tells it, before any state is loaded into it.
    """

    layout: Layout
    """`replicated`: every rank holds the same state; `unique`: each has a part that no other has."""
    size: Size

    @property
    def model(self) -> nn.Module:
        """What this rank holds of the model."""
        ...

    @property
    def optimizer(self) -> torch.optim.Optimizer:
        """The same object for the life of the worker; what it steps may change with the rank."""
        ...

    def shape(self, rank: int, world: int) -> None:
        """Take the part of one rank, as it is before the first step."""
        ...

    def gradients(self, batches: Batches) -> Tensor:
        """Put this step's gradients in place; the mean loss of all ranks' tokens.

        Raises:
            RuntimeError: the process group broke.
        """
        ...


class Served(Learner, Protocol):
    """A model whose parts answer together."""

    def logits(self, tokens: Tensor) -> Tensor | None:
        """All ranks run the same sequences through the model together; only rank 0 gets an answer.

        Raises:
            RuntimeError: the process group broke.
        """
        ...


def adamw(parameters: Iterable[nn.Parameter]) -> torch.optim.AdamW:
    """The optimiser, as Llamas are trained with it."""
    return torch.optim.AdamW(parameters, lr=PEAK, betas=(0.9, 0.95), weight_decay=0.1, fused=True)


def share_of_loss(summed: Tensor, size: Size) -> Tensor:
    """The part that some sequences have in the mean over all tokens of a step."""
    return summed / (size.sequences * size.context)


def clip(parameters: Iterable[nn.Parameter], loss: Tensor, world: int) -> Tensor:
    """Scale gradients that are spread over the ranks, each number on one of them; the sum of the ranks' losses."""
    held = list(parameters)
    norm = get_total_norm([parameter.grad for parameter in held if parameter.grad is not None])
    sums = torch.stack([norm.square(), loss.detach()])
    if world > 1:
        dist.all_reduce(sums)
    clip_grads_with_norm_(held, LONGEST_GRADIENT, sums[0].sqrt())
    return sums[1]


def bytes_of(learner: Learner) -> int:
    """What a rank holds in parameters and in its optimiser."""
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
    """Set the learning rate of a step: a warm-up, then half a cosine down to a tenth. Nothing is left to hand over."""
    for group in optimizer.param_groups:
        group["lr"] = rate(step, steps)
