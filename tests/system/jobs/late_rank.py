"""A training script of which one rank is slow: ``late_rank.py RANK SECONDS STEPS``."""

import sys
import time

import torch
from torch import nn

import lumctl.training.torch as recovery

COMPUTES_S = 0.02
"""What each rank does in a step, besides what it exchanges."""


def main(slow: int, slow_s: float, steps: int) -> None:
    torch.set_num_threads(1)
    model = nn.Linear(8, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with recovery.attach(model=model, optimizer=optimizer, seed=1, checkpoint=False) as job:
        for step in job.steps(steps):
            with step:
                loss = model(torch.randn(4, 8)).square().mean()
                loss.backward()
                time.sleep(COMPUTES_S + slow_s * (job.rank == slow))
                job.average(model.parameters())
                optimizer.step()
                step.report(loss)


main(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]))
