"""Bringing all ranks to one state through the group, before the first step."""

import json

import torch
import torch.distributed as dist

from lumctl.training.torch.states import Snapshot
from lumctl.training.torch.work import Work


def level(work: Work, rank: int, device: torch.device, *, source: int = 0) -> None:
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
    work.load(Snapshot(done, json.loads(bytes(described.tolist())), data).tree(copied=False), done)


def _broadcast(tensor: torch.Tensor, source: int, device: torch.device) -> torch.Tensor:
    there = tensor.to(device)
    if len(there):
        dist.broadcast(there, source)
    return there.cpu()
