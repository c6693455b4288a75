"""Collective operations on a job's parameters and state: average gradients, and bring all ranks to one state."""

import json
from collections.abc import Iterable

import torch
import torch.distributed as dist
from torch import Tensor, nn

from lumctl.training.torch.states import StateSnapshot
from lumctl.training.torch.training_state import TrainingState


def average(parameters: Iterable[nn.Parameter], *, world: int, divide_by: float) -> None:
    """Replace gradients by their sum over the ranks divided by ``divide_by``.

    A rank without a gradient for a parameter counts as zero there; where none has one, none gets one.

    Raises:
        RuntimeError: the process group broke; gradients may be partly replaced.
    """
    kinds: dict[tuple[torch.dtype, torch.device], list[nn.Parameter]] = {}
    for parameter in parameters:
        if parameter.requires_grad:
            kinds.setdefault((parameter.dtype, parameter.device), []).append(parameter)
    for (dtype, device), alike in kinds.items():
        _average(alike, torch.zeros(0, dtype=dtype, device=device), world, divide_by)


def _average(alike: list[nn.Parameter], kind: Tensor, world: int, divide_by: float) -> None:
    has = kind.new_tensor([parameter.grad is not None for parameter in alike])
    shares = [parameter.grad if parameter.grad is not None else torch.zeros_like(parameter) for parameter in alike]
    bucket = torch.cat([has, *(share.detach().reshape(-1) for share in shares)])
    if world > 1:
        dist.all_reduce(bucket)
    anywhere = bucket[: len(alike)].tolist()
    bucket = bucket[len(alike) :].div_(divide_by)
    at = 0
    for parameter, somebody in zip(alike, anywhere, strict=True):
        mean = bucket[at : at + parameter.numel()].view_as(parameter)
        at += parameter.numel()
        if somebody:
            _put(parameter, mean)


def _put(parameter: nn.Parameter, mean: Tensor) -> None:
    if parameter.grad is None:
        parameter.grad = mean.clone()
    else:
        parameter.grad.copy_(mean)


def level(work: TrainingState, rank: int, device: torch.device, *, source: int = 0) -> None:
    """Give all ranks the state of one and its count of steps.

    Raises:
        RuntimeError: the group broke; the state is what it was.
    """
    if rank == source:
        ours = work.snapshot()
        meta = torch.frombuffer(bytearray(json.dumps(ours.meta).encode()), dtype=torch.uint8)
        _broadcast(torch.tensor([ours.done, len(meta), len(ours.data)]), source, device)
        _broadcast(meta, source, device)
        _broadcast(ours.data, source, device)
        return
    sizes = _broadcast(torch.zeros(3, dtype=torch.int64), source, device)
    done, meta_size, size = (int(each) for each in sizes.tolist())
    described = _broadcast(torch.empty(meta_size, dtype=torch.uint8), source, device)
    data = _broadcast(torch.empty(size, dtype=torch.uint8), source, device)
    work.load(StateSnapshot(done, json.loads(bytes(described.tolist())), data).tree(copied=False), done)


def _broadcast(tensor: torch.Tensor, source: int, device: torch.device) -> torch.Tensor:
    there = tensor.to(device)
    if len(there):
        dist.broadcast(there, source)
    return there.cpu()
