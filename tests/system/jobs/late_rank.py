"""A training script of which one rank is slow: ``late_rank.py RANK SECONDS STEPS [wrapped]``."""

import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import lumctl.training.torch as recovery

COMPUTES_S = 0.02
"""What each rank does in a step, besides what it exchanges."""


def averaged(slow: int, slow_s: float, steps: int) -> None:
    model = nn.Linear(8, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with recovery.attach(model=model, optimizer=optimizer, seed=1, checkpoint=False) as job:
        for step in job.steps(steps):
            with step:
                loss = model(torch.randn(4, 8)).square().mean()
                loss.backward()
                time.sleep(COMPUTES_S + slow_s * (job.rank == slow))
                job.average(model.parameters())
                mean = loss.detach() / job.world
                dist.all_reduce(mean)  # of another size than the gradients
                optimizer.step()
                step.report(mean)


def wrapped(slow: int, slow_s: float, steps: int) -> None:
    def train(job) -> None:
        model = DistributedDataParallel(nn.Linear(8, 8))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        job.track(model=model, optimizer=optimizer)
        for _ in job.steps(steps):
            optimizer.zero_grad()
            loss = model(torch.randn(4, 8)).square().mean()
            time.sleep(COMPUTES_S + slow_s * (job.rank == slow))
            loss.backward()
            optimizer.step()
            job.report(loss)

    recovery.run(train, checkpoint=False)


torch.set_num_threads(1)
(wrapped if "wrapped" in sys.argv else averaged)(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]))
