"""One rank of ``late_rank.py``: times all-reduces in which the last rank begins late.

    python late_rank_ranks.py ORDER

ORDER (JSON): ``rank``, ``placement``, ``store`` (port), ``lanes`` (socket), ``rounds``, ``sizes`` (bytes), ``delays``
(in times of the reduce-scatter) and ``seconds_per_byte`` of a lane. Rank 0 prints a JSON list.
"""

import json
import sys
import time
from datetime import timedelta
from itertools import product
from random import Random
from typing import Any

import torch
import torch.distributed as dist

from lumctl.collectives import halving_doubling, ring
from lumctl.training.torch.scheduled_all_reduce import ScheduledAllReduce, all_reduce_for
from lumctl.training.torch.stores import LaneStore

PATIENCE = timedelta(seconds=300)


def main(order: dict[str, Any]) -> None:
    torch.set_num_threads(1)
    rank, world = order["rank"], len(order["placement"])
    served = dist.TCPStore("127.0.0.1", order["store"], is_master=rank == 0, wait_for_workers=False)
    store = LaneStore(dist.PrefixStore("ranks", served), rank=rank, placement=order["placement"], lanes=order["lanes"])
    dist.init_process_group("gloo", store=store, rank=rank, world_size=world, timeout=PATIENCE)
    store.require_joined()
    late = world - 1
    ways = {
        "gloo": dist.all_reduce,
        "ring": ScheduledAllReduce(ring(world), rank),
        "stragglar": all_reduce_for(late, rank, world),
    }
    if world & (world - 1) == 0:
        ways["halving-doubling"] = ScheduledAllReduce(halving_doubling(world), rank)
    found = []
    for size, turn in product(order["sizes"], range(1 + order["rounds"])):
        tensor = torch.empty(size // 4)
        scatter_s = (world - 2) / (world - 1) * size * order["seconds_per_byte"]
        tries = list(product(ways, order["delays"]))
        Random(turn).shuffle(tries)
        for way, times in tries:
            tensor.fill_(rank)
            dist.barrier()
            began = time.perf_counter()
            if rank == late:
                time.sleep(times * scatter_s)
            ways[way](tensor)
            took = torch.tensor([time.perf_counter() - began])
            assert tensor.min() == tensor.max() == world * (world - 1) / 2
            dist.all_reduce(took, dist.ReduceOp.MAX)
            if turn:  # the first round makes the connections
                found.append({"size": size, "way": way, "delay": times, "round": turn, "seconds": took.item()})
    dist.barrier()
    if rank == 0:
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
