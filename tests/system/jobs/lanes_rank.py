"""One rank of a group that runs over lanes: sums up, says each sum, and continues until the group breaks.

    python lanes_rank.py ORDER

ORDER (JSON): ``rank``, ``placement``, ``store`` (port of the group's store, which rank 0 serves), ``lanes`` (socket).
"""

import json
import sys
from datetime import timedelta

import torch
import torch.distributed as dist

from lumctl.training.torch.stores import LaneStore


def say(**what: object) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def main(order: dict) -> None:
    torch.set_num_threads(1)
    rank, placement = order["rank"], order["placement"]
    served = dist.TCPStore("127.0.0.1", order["store"], is_master=rank == 0, wait_for_workers=False)
    store = LaneStore(served, rank=rank, placement=placement, lanes=order["lanes"])
    say(starts=True)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=len(placement), timeout=timedelta(seconds=60))
    store.require_joined()
    part = dist.new_group([0, len(placement) - 1])
    store.close()
    mine = torch.arange(100_000, dtype=torch.float64) + rank
    dist.all_reduce(mine)
    say(sum=mine.sum().item())
    if rank in (0, len(placement) - 1):
        one = torch.tensor([rank])
        dist.all_reduce(one, group=part)
        say(part=one.item())
    try:
        while True:
            dist.all_reduce(mine)
    except RuntimeError as error:
        say(broke=str(error))


main(json.loads(sys.argv[1]))
