"""What two ranks do together, by name: given a tensor and which rank one is."""

from collections.abc import Callable

import torch.distributed as dist
from torch import Tensor


def _sent(tensor: Tensor, rank: int) -> None:
    if rank == 1:
        dist.send(tensor, 0)
    else:
        dist.recv(tensor, 1)


OPERATIONS: dict[str, Callable[[Tensor, int], object]] = {
    "send": _sent,
    "broadcast": lambda tensor, _: dist.broadcast(tensor, 1),
    "all_reduce": lambda tensor, _: dist.all_reduce(tensor),
    "all_to_all": lambda tensor, _: dist.all_to_all_single(tensor, tensor.clone()),
}
