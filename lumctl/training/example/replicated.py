"""Data parallel: every rank holds the whole model and learns from its share of each step's sequences."""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_

from lumctl.training.example.config import Size
from lumctl.training.example.learner import LONGEST_GRADIENT, Batches, Layout, adamw, share_of_loss
from lumctl.training.example.model import Llama

Average = Callable[[Iterable[nn.Parameter]], None]
"""Replace gradients by their mean over the ranks: what `job.average` does."""


class Replicated:
    """The whole model on each rank; see :class:`lumctl.training.example.learner.Learner`."""

    layout: Layout = "replicated"

    def __init__(self, size: Size, *, seed: int, average: Average) -> None:
        self.size = size
        self.model = Llama(size, seed=seed)
        self.optimizer = adamw(self.model.parameters())
        self._average = average
        self._rank, self._world = 0, 1
        # The loss travels as one more gradient, in the same bucket: one all-reduce a step.
        self._loss = nn.Parameter(torch.zeros(()))

    def shape(self, rank: int, world: int) -> None:
        """Remember which sequences are ours; the state is the same on every rank."""
        self._rank, self._world = rank, world

    def gradients(self, batches: Batches) -> Tensor:
        """Gradients of the mean over all ranks' tokens, and that mean."""
        self.optimizer.zero_grad()
        # A mean over ranks follows, and shares need not be of one size: so not the mean of ours, but our part of all.
        loss = share_of_loss(self.model.loss(batches(self._rank, self._world)), self.size) * self._world
        torch.autograd.backward(loss)
        self._loss.grad = loss.detach()
        self._average([*self.model.parameters(), self._loss])
        clip_grad_norm_(self.model.parameters(), LONGEST_GRADIENT)
        return self._loss.grad
