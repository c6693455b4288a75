"""Train a small network on made-up digits, as a script written from lumctl-job(7) alone: nothing here knows the tests.

DistributedDataParallel, a DataLoader with worker processes, bfloat16, clipped gradients, a schedule of the learning
rate, and at the end a model in a file. Options give it the bugs and the long pauses that scripts have.
"""

import argparse
import ctypes
import sys
import time
from pathlib import Path

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

import lumctl.training.torch as recovery

BATCH, SIDE, CLASSES = 8, 8, 10


class Digits(Dataset):
    """The samples of one rank."""

    def __init__(self, rank: int, first: int, steps: int) -> None:
        self.rank, self.first, self.count = rank, first * BATCH, steps * BATCH

    def __len__(self) -> int:
        return self.count - self.first

    def __getitem__(self, at: int) -> tuple[torch.Tensor, int]:
        drawn = torch.Generator().manual_seed(1_000_003 * self.rank + self.first + at)
        label = int(torch.randint(CLASSES, (), generator=drawn))
        return torch.randn(SIDE * SIDE, generator=drawn) + label, label


def options_given() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--loader", choices=("fork", "forkserver", "spawn"), default="fork")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--every", type=int, default=10)
    parser.add_argument("--pace", type=float, default=0.0, help="seconds that each step takes longer")
    parser.add_argument("--bug-at", type=int, help="the step with a bad sample")
    parser.add_argument("--bug-rank", type=int, help="the only rank that meets it")
    parser.add_argument("--bug-after", action="store_true", help="the file at the end cannot be written")
    parser.add_argument("--gil-at", type=int, help="the step in which rank 1 holds the interpreter")
    parser.add_argument("--gil-seconds", type=int, default=4)
    parser.add_argument("--last", type=float, default=0.0, help="seconds that the end of the script takes")
    return parser.parse_args()


def main() -> None:
    options = options_given()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(SIDE * SIDE, 32), nn.ReLU(), nn.Linear(32, CLASSES))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=options.steps)
    with recovery.attach(
        model=model,
        optimizer=optimizer,
        state={"scheduler": scheduler},
        seed=1,
        checkpoint=options.out / "checkpoints",
        every=options.every,
    ) as job:
        group, ahead = None, -1
        for step in job.steps(options.steps):
            with step:
                if job.generation != group or step.number != ahead:  # a new group, or a step that is done again
                    parallel = DistributedDataParallel(model)
                    samples = Digits(job.rank, step.number, options.steps)
                    context = options.loader if options.workers else None
                    loader = DataLoader(samples, BATCH, num_workers=options.workers, multiprocessing_context=context)
                    batches = iter(loader)
                    group, ahead = job.generation, step.number
                inputs, labels = next(batches)
                ahead += 1
                mine = options.bug_rank is None or options.bug_rank == job.rank
                if options.bug_at == step.number and mine:
                    raise ValueError(f"bad sample {step.number}")
                if options.gil_at == step.number and job.rank == 1:
                    ctypes.PyDLL(None).sleep(options.gil_seconds)  # as a long regular expression does
                optimizer.zero_grad()
                with torch.autocast("cpu", dtype=torch.bfloat16):
                    loss = nn.functional.cross_entropy(parallel(inputs), labels)
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                scheduler.step()
                step.report(loss)
                time.sleep(options.pace)
    time.sleep(options.last)
    if options.bug_after and job.rank == 0:
        raise OSError(28, "No space left on device")
    if job.rank == 0:
        torch.save(model.state_dict(), options.out / "model.pt")
    (options.out / f"last-line-of-rank-{job.rank}").write_text("done\n")


if __name__ == "__main__":
    sys.exit(main())
