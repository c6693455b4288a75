"""A training script whose ranks fail in the rounds of a schedule: ``scheduled_job.py FOLDER STEPS RANK:ROUND:WHAT...``.

The failures happen one after another, each in a group that uses a schedule: a rank is killed, stopped, or waits.
"""

import os
import signal
import sys
import time
from pathlib import Path

import torch
from torch import nn

import lumctl.training.torch as recovery
from lumctl.training.torch import scheduled_all_reduce

LATE_S = 0.3
"""Ten times as long as a step takes."""
STEP_S = 0.01


def main(folder: Path, steps: int, failures: list[list[str]]) -> None:
    torch.set_num_threads(1)
    happened = folder / "happened"
    exchange, rounds = scheduled_all_reduce._exchange, [0]

    def fail_in(own, chunks):
        count = len(happened.read_text().split()) if happened.exists() else 0
        if count < len(failures) and [str(job.rank), str(rounds[0])] == failures[count][:2]:
            with happened.open("a") as file:
                file.write(":".join(failures[count]) + "\n")
            match failures[count][2]:
                case "kill":
                    os.kill(os.getpid(), signal.SIGKILL)
                case "stop":
                    os.kill(os.getpid(), signal.SIGSTOP)
                case _:
                    time.sleep(LATE_S)
        rounds[0] += 1
        exchange(own, chunks)

    scheduled_all_reduce._exchange = fail_in
    model = nn.Linear(64, 64).double()
    with torch.no_grad():
        model.weight.copy_(torch.eye(64))
        model.bias.zero_()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    with recovery.attach(model=model, optimizer=optimizer, seed=1, checkpoint=False) as job:
        for step in job.steps(steps):
            with step:
                time.sleep(STEP_S)
                optimizer.zero_grad()
                inputs = torch.full((2, 64), 1.0 + job.rank, dtype=torch.float64)
                loss = model(inputs).square().mean()
                loss.backward()
                rounds[0] = 0
                job.average(model.parameters())
                optimizer.step()
                step.report(loss)
        torch.save(model.state_dict(), folder / f"{job.rank}.pt")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), [each.split(":") for each in sys.argv[3:]])
