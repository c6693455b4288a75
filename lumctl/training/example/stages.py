"""The part of a Llama that one rank trains: the layers of its pipeline stage, and its slice of each of them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, autograd, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.pipelining import PipelineStage

from lumctl.errors import UsageError
from lumctl.training.example.model import Block, Ends, Llama, Size

DATA, PIPELINE, TENSOR = "data", "pipeline", "tensor"
"""The dimensions of the device mesh, from the outermost to the innermost."""
MICRO_BATCHES = 2
"""Each is one transfer forward and one backward between two stages in every training step."""


@dataclass(frozen=True)
class RankGrid:
    """The number of ranks along each dimension.

    Ranks that share a layer have consecutive numbers; the stages of one replica follow each other.
    """

    data: int
    stages: int
    tensor: int

    @property
    def world(self) -> int:
        """The number of ranks."""
        return self.data * self.stages * self.tensor

    def require_ranks(self, world: int) -> None:
        """Raise ``UsageError`` if there are more or fewer ranks."""
        if world != self.world:
            raise UsageError(
                f"--data {self.data} --stages {self.stages} --tensor {self.tensor} are {self.world} ranks, not {world}",
                hint="change these options, or the number of ranks of the job",
            )

    def require_divisible(self, size: Size) -> None:
        """Raise ``UsageError`` if a model cannot be divided among these ranks."""
        parts = self.data * MICRO_BATCHES
        if size.sequences % parts:
            raise UsageError(f"{size.sequences} sequences of a step cannot be cut into {parts} equal micro-batches")
        if self.stages > size.layers:
            raise UsageError(f"{size.layers} layers cannot be divided among {self.stages} stages")
        if size.key_heads % self.tensor:
            raise UsageError(f"{size.key_heads} heads of keys and values cannot be cut into {self.tensor} equal slices")


class ModelStage(nn.Module):
    """Some layers; in the first stage also the embedding, in the last also the output layer.

    These two do not share a matrix as in :class:`~lumctl.training.example.model.Llama`: their ranks would have to add
    its gradients. They start from the same numbers.
    """

    embedding: nn.Embedding | None
    ends: Ends | None

    def __init__(self, size: Size, stage: int, stages: int, *, seed: int) -> None:
        super().__init__()
        whole = Llama(size, seed=seed)
        first, past = (size.layers * bound // stages for bound in (stage, stage + 1))
        numbers = whole.ends.embedding.detach().clone()
        self.embedding = nn.Embedding(size.vocabulary, size.width, _weight=numbers) if stage == 0 else None
        self.blocks = nn.ModuleList(list(whole.blocks)[first:past])
        self.ends = whole.ends if stage == stages - 1 else None

    def forward(self, x: Tensor) -> Tensor:
        """From tokens in the first stage to logits in the last; in between (sequences, positions, width)."""
        if self.embedding is not None:
            x = self.embedding(x)
        for block in self.blocks:
            x = block(x)
        return x if self.ends is None else self.ends.logits(x)

    def slice(self, group: dist.ProcessGroup) -> None:
        """Keep this rank's slice of each layer, as by Megatron; the ranks of the group then compute layers together."""
        for block in self.blocks:
            if isinstance(block, Block):
                _slice(block, group)

    def shard(self, mesh: DeviceMesh) -> None:
        """Divide the parameters among the ranks of a mesh (FSDP2); they stay gathered during a step."""
        for module in (*self.blocks, self):
            sharded = fully_shard(module, mesh=mesh, reshard_after_forward=False)
            # The sum of gradients, not their mean.
            sharded.set_gradient_divide_factor(1.0)
            sharded.set_force_sum_reduction_for_comms(True)

    def gather(self) -> None:
        """Gather sharded parameters now, so that the forward pass need not."""
        for module in self.modules():
            if isinstance(module, FSDPModule):
                module.unshard()


class ComputingStage(PipelineStage):
    """A pipeline stage that computes something before the first transfer of a step, and again after the last.

    It exchanges parameters and gradients of a sharded stage at no other time.
    """

    def __init__(self, stage: ModelStage, mesh: DeviceMesh, size: Size, *, compute: Callable[[], None]) -> None:
        number, stages = mesh.get_local_rank(), mesh.size()
        micro = (size.sequences, size.context)
        between = torch.empty(*micro, size.width, requires_grad=True)
        super().__init__(
            stage,
            number,
            stages,
            torch.device("cpu"),
            # Without examples, each new schedule would run the model once to find the shapes.
            input_args=torch.zeros(micro, dtype=torch.long) if number == 0 else between,
            output_args=torch.empty(*micro, size.vocabulary, requires_grad=True) if number == stages - 1 else between,
            group=mesh.get_group(),
        )
        self._part, self._compute = stage, compute

    def get_fwd_recv_ops(self, fwd_chunk_id: int) -> list[dist.P2POp]:
        """The transfers that a micro-batch waits for; the first of a step wait until the parameters are gathered."""
        if fwd_chunk_id == 0:
            # Not before the schedule begins: its preparation in the first step frees gathered parameters.
            self._part.gather()
            self._compute()
        return super().get_fwd_recv_ops(fwd_chunk_id)

    def perform_reduce_grad(self, grad_scale_factor: int) -> None:
        """Compute, then reduce the gradients of a sharded stage."""
        self._compute()
        super().perform_reduce_grad(grad_scale_factor)


class _Enter(autograd.Function):
    """Pass a tensor to all slices of a layer: its gradient is the sum of theirs."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: dist.ProcessGroup) -> Tensor:
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return _sum(gradient, ctx.group), None


class _Leave(autograd.Function):
    """Add what the slices of a layer make: each gets the whole gradient."""

    @staticmethod
    def forward(_ctx: Any, x: Tensor, group: dist.ProcessGroup) -> Tensor:
        return _sum(x, group)

    @staticmethod
    def backward(_ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient, None


def _sum(x: Tensor, group: dist.ProcessGroup) -> Tensor:
    total = x.detach().clone(memory_format=torch.contiguous_format)
    dist.all_reduce(total, group=group)
    return total


def _slice(block: Block, group: dist.ProcessGroup) -> None:
    attention, feed = block.attention, block.feed
    for linear in (attention.query, attention.key, attention.value, feed.gate, feed.up):
        _keep(linear, 0, group)
    for linear in (attention.out, feed.down):
        _keep(linear, 1, group)
    attention.heads //= group.size()
    attention.key_heads //= group.size()
    for layer in (attention, feed):
        layer.register_forward_pre_hook(lambda _layer, inputs: _Enter.apply(inputs[0], group))  # type: ignore[no-untyped-call]
        layer.register_forward_hook(lambda _layer, _inputs, output: _Leave.apply(output, group))  # type: ignore[no-untyped-call]


def _keep(linear: nn.Linear, dimension: int, group: dist.ProcessGroup) -> None:
    own = linear.weight.detach().chunk(group.size(), dimension)[group.rank()]
    linear.weight = nn.Parameter(own.clone())
