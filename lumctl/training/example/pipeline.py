"""Pipeline: the layers in stages, one a rank, in a ring: rank 0 embeds, and judges what comes back from the last."""

from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch import Tensor, nn

from lumctl.errors import UsageError
from lumctl.training.example.config import Size
from lumctl.training.example.learner import Batches, Layout, adamw, clip, share_of_loss
from lumctl.training.example.model import Ends, Llama

MICRO_BATCHES = 4
FORWARD, BACKWARD = 0, 1


class PipelineStage(nn.Module):
    """What one rank holds: some blocks, and rank 0 both ends, for one matrix serves both."""

    ends: Ends | None

    def __init__(self) -> None:
        super().__init__()
        self.register_module("ends", None)  # a place, first in the order that optimisers number parameters by
        self.blocks = nn.ModuleList()

    def forward(self, x: Tensor) -> Tensor:
        """Run this rank's blocks."""
        for block in self.blocks:
            x = block(x)
        return x


class Pipeline:
    """Stages in a ring; see :class:`lumctl.training.example.learner.Learner`.

    A step's sequences go round in micro-batches: all forward, then all back (GPipe). Ranks talk to their two
    neighbours only.
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
        """Take one rank's layers of the model of the start.

        Raises:
            UsageError: there are more ranks than layers.
        """
        if world > self.size.layers:
            raise UsageError(f"{self.size.layers} layers cannot be dealt out to {world} ranks")
        self._rank, self._world = rank, world
        start = self._start or Llama(self.size, seed=self._seed)
        self._start = None
        first, past = (self.size.layers * bound // world for bound in (rank, rank + 1))
        self.model.ends = start.ends if rank == 0 else None
        self.model.blocks = nn.ModuleList(list(start.blocks)[first:past])
        self.optimizer.state.clear()
        self.optimizer.param_groups[0]["params"] = list(self.model.parameters())

    def gradients(self, batches: Batches) -> Tensor:
        """Gradients of the mean over all tokens for our layers, and that mean."""
        self._sent.clear()  # what a failure left behind
        self.optimizer.zero_grad()
        loss = torch.zeros(())
        if self.model.ends is not None:
            loss = self._lead(self.model.ends, torch.split(batches(0, 1), self._micro))
        else:
            self._follow()
        self._flush()
        return clip(self.model.parameters(), loss, self._world)

    def _lead(self, ends: Ends, batches: Sequence[Tensor]) -> Tensor:
        """Rank 0: first stage, and behind the last one the loss."""
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
        """Send the gradient to the last stage; where that is ours too, it is at hand."""
        gradient = back.grad
        if self._world > 1 and gradient is not None:
            self._send(gradient, BACKWARD)
            return None
        return gradient

    def _follow(self) -> None:
        """Every other rank: between its two neighbours."""
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
        """Once round the ring."""
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
        """To the next stage, or to the one before; a ring of one has it already. Waits for nobody."""
        if self._world > 1:
            whole = tensor.detach().contiguous()
            peer = (self._rank + (1 if way == FORWARD else -1)) % self._world
            self._sent.append((dist.isend(whole, peer, tag=way), whole))

    def _receive(self, like: Tensor, way: int) -> Tensor:
        """From the stage before, or from the next."""
        if self._world == 1:
            return like.detach()
        got = torch.empty(like.shape)
        dist.recv(got, (self._rank - (1 if way == FORWARD else -1)) % self._world, tag=way)
        return got

    def _flush(self) -> None:
        """All that was sent has gone."""
        for work, _tensor in self._sent:
            if work is not None:
                work.wait()
        self._sent.clear()
