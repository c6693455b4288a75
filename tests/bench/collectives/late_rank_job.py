"""A training script for ``late_rank.py``: averages gradients as the job has decided, and by gloo, in a drawn order.

    python late_rank_job.py FILE SIZE STEPS LATE_S

SIZE is the bytes of the gradients. The last rank begins each average LATE_S late. Rank 0 writes a JSON list to FILE:
for each step its way (``gloo``, ``advised``, or ``scheduled`` if the job uses a schedule), and the seconds from the
begin of the others to the end of the last rank.
"""

import json
import sys
import time
from pathlib import Path
from random import Random

import torch
import torch.distributed as dist
from torch import nn

import lumctl.training.torch as recovery
from lumctl.training.torch.collectives import AgreedAllReduce, average

COMPUTES_S = 0.005


def main(file: Path, size: int, steps: int, late_s: float) -> None:
    torch.set_num_threads(1)
    model = nn.Linear(1, size // 8)  # weights and biases
    plain, order, found = AgreedAllReduce(), Random(1), []
    with recovery.attach(model=model, seed=1, checkpoint=False) as job:
        for step in job.steps(steps):
            with step:
                advised = order.random() < 0.5
                for parameter in model.parameters():
                    parameter.grad = torch.ones_like(parameter)
                dist.barrier()
                began = time.perf_counter()
                time.sleep(COMPUTES_S + late_s * (job.rank == job.world - 1))
                if advised:
                    job.average(model.parameters())
                else:
                    average(model.parameters(), plain, world=job.world, divide_by=job.world)
                took = torch.tensor([time.perf_counter() - began - COMPUTES_S])
                dist.all_reduce(took, dist.ReduceOp.MAX)  # also the other size that the advice needs
                scheduled = job._agreed.late is not None
                way = "gloo" if not advised else "scheduled" if scheduled else "advised"
                found.append([way, took.item()])
        if job.rank == 0:
            file.write_text(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
