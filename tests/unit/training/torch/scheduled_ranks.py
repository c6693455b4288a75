"""Real gloo groups of some numbers of ranks that sum tensors up by schedules: ``FOLDER WORLD...``."""

import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed import FileStore

from lumctl.collectives import halving_doubling, ring
from lumctl.training.torch import collectives
from lumctl.training.torch.collective_times import CollectiveTimes
from lumctl.training.torch.collectives import AgreedAllReduce, average
from lumctl.training.torch.scheduled_all_reduce import ScheduledAllReduce, all_reduce_for

SIZES = (1, 3, 1000, 4097)


def tensors(rank):
    """Integers whose sums are exact, and others whose sums depend on the order."""
    drawn = torch.Generator().manual_seed(rank)
    for size in SIZES:
        yield torch.randint(-1000, 1000, (size,), generator=drawn).to(torch.float64)
        yield torch.randn(size, generator=drawn)
    yield torch.randn(7, 33, generator=drawn).to(torch.bfloat16)


def summed(by, rank):
    found = []
    for tensor in tensors(rank):
        by(tensor)
        found.append(tensor)
    return found


LATE = (None, 1, 1, 0, None, 99, 0)
"""What rank 0 knows of a late rank, step by step."""


def averaged(rank, world, dtype):
    """For each step which late rank the all-reduce was for, and the gradient."""
    step, used, found, recorded = 0, [], [], []
    agreed = AgreedAllReduce(lambda: LATE[step])
    collectives.all_reduce_for = lambda late, *group: used.append(late) or all_reduce_for(late, *group)
    agreed.enter(1, rank, world)
    times = CollectiveTimes()
    times.record()
    for step in range(len(LATE)):
        parameter = torch.nn.Parameter(torch.zeros(5, dtype=dtype))
        parameter.grad = torch.full((5,), float(rank + step), dtype=dtype)
        before = len(used)
        average([parameter], agreed, world=world, divide_by=world)
        found.append((used[before:], parameter.grad))
        recorded.append([each[:2] for each in times.take()])
    before = len(used)
    agreed.enter(2, rank, world)  # a new group: nothing is agreed in it
    average([parameter], agreed, world=world, divide_by=world)
    assert recorded == [[["", world]] if used else [] for used, _ in found], recorded
    return [*found, (used[before:], parameter.grad)]


def run(world, rank, folder):
    store = FileStore(str(folder / f"store-{world}"), world)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=world)
    found = {"gloo": summed(dist.all_reduce, rank), "ring": summed(ScheduledAllReduce(ring(world), rank), rank)}
    if world & (world - 1) == 0:
        found["halving-doubling"] = summed(ScheduledAllReduce(halving_doubling(world), rank), rank)
    for straggler in range(world):
        found[straggler] = summed(all_reduce_for(straggler, rank, world), rank)
    found["averaged"] = {dtype: averaged(rank, world, dtype) for dtype in (torch.float32, torch.bfloat16)}
    found["again"] = summed(ScheduledAllReduce(ring(world), rank), rank)
    torch.save(found, folder / f"{world}-{rank}.pt")
    dist.destroy_process_group()


def main(folder, worlds):
    """Fork the ranks of all groups from one process that has PyTorch; how many failed."""
    torch.set_num_threads(1)
    ranks = []
    for world, rank in ((each, rank) for each in worlds for rank in range(each)):
        ranks.append(os.fork())
        if ranks[-1] == 0:
            code = 1
            try:
                run(world, rank, folder)
                code = 0
            except (RuntimeError, AssertionError) as error:
                sys.stderr.write(f"rank {rank} of {world}: {error}\n")
            finally:
                os._exit(code)
    return sum(os.waitpid(rank, 0)[1] != 0 for rank in ranks)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), list(map(int, sys.argv[2:]))))
