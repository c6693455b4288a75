"""Eight ranks of a real group: train with three kinds of parallelism, and leave the order of their groups."""

import json
import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed import FileStore

from lumctl.training.example import rails
from lumctl.training.example.data import Windows, own_text

STEPS, WORLD = 3, 8
RUNS = {"replicas": [], "again": ["--pause-ms", "1"], "shards": ["--sharded"]}
EXCHANGES = ("allreduce", "all_gather_single", "reduce_scatter_single", "send", "recv")


def recorded(name, order):
    """Let a method of process groups append the ranks of its group to a list."""
    method = getattr(dist.ProcessGroup, name)

    def call(group, *args, **options):
        order.append(dist.get_process_group_ranks(group))
        return method(group, *args, **options)

    setattr(dist.ProcessGroup, name, call)


def train(name, rank, folder):
    dist.init_process_group("gloo", store=FileStore(str(folder / f"store-{name}"), WORLD), rank=rank, world_size=WORLD)
    sys.argv = ["rails", "--steps", str(STEPS), "--losses", str(folder / name), *RUNS[name]]
    code = rails.main()
    dist.destroy_process_group()
    return code


def run(rank, folder):
    order = []
    for name in EXCHANGES:
        recorded(name, order)
    codes, orders = [], {}
    for name in RUNS:
        order.clear()
        codes.append(train(name, rank, folder))
        orders[name] = list(order)
    (folder / f"order-{rank}").write_text(json.dumps(orders))
    return max(codes)


def main(folder):
    """Fork the ranks from one process that has PyTorch; how many failed."""
    torch.set_num_threads(1)
    size = rails.RAIL_SIZES["tiny"]
    text = own_text()
    rails.warm(size, Windows(text, context=size.context, sequences=size.sequences, seed=1))
    ranks = []
    for rank in range(WORLD):
        ranks.append(os.fork())
        if ranks[-1] == 0:
            code = 1
            try:
                code = run(rank, folder)
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
    return sum(os.waitpid(rank, 0)[1] != 0 for rank in ranks)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
