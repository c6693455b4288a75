"""The ranks of a real group: train in each way, answer as served, and leave what they found for the test."""

import os
import sys
from dataclasses import replace
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed import FileStore

from lumctl.training.example.data import Windows
from lumctl.training.example.model import SIZES
from lumctl.training.example.parallelism import WAYS, bytes_of, learner
from lumctl.training.example.served_models import SERVED, served

STEPS = 3
TEXT = bytes(index * index % 251 for index in range(20_000))
SERVED_SIZE = replace(SIZES["tiny"], width=48)
"""Its feed-forward layers have three equal slices."""
QUESTION = torch.arange(2 * 10).reshape(2, 10)


def average(parameters):
    gradients = [parameter.grad for parameter in parameters]
    if dist.is_initialized():
        for gradient in gradients:
            dist.all_reduce(gradient)
            gradient.div_(dist.get_world_size())


def train(way, rank, world):
    """Losses, the first gradients and the weights at the end, all of this rank."""
    size = SIZES["tiny"]
    windows = Windows(TEXT, context=size.context, sequences=size.sequences, seed=1)
    ours = learner(way, size, seed=1, average=average)
    ours.shape(rank, world)
    found = {"losses": []}
    for step in range(STEPS):
        loss = ours.gradients(lambda *share, step=step: windows.batch(step, *share))
        if step == 0:
            found["gradients"] = [parameter.grad.clone() for parameter in ours.model.parameters()]
        ours.optimizer.step()
        found["losses"].append(loss.item())
    return found | {"weights": ours.model.state_dict(), "bytes": bytes_of(ours)}


def answer(way, rank, world):
    """What a rank knows of the answer."""
    ours = served(way, SERVED_SIZE, seed=1)
    ours.shape(rank, world)
    return ours.logits(QUESTION)


def run(rank, world, folder):
    dist.init_process_group("gloo", store=FileStore(str(folder / "store"), world), rank=rank, world_size=world)
    found = {way: train(way, rank, world) for way in WAYS}
    found["answers"] = {way: answer(way, rank, world) for way in SERVED}
    found["again"] = train("sharded", rank, world)
    torch.save(found, folder / f"{rank}.pt")
    dist.destroy_process_group()


def main(world, folder):
    """Fork the ranks from one process that has PyTorch; how many failed."""
    torch.set_num_threads(1)
    learner("data", SIZES["tiny"], seed=1, average=average)  # the first optimiser imports as much again
    ranks = []
    for rank in range(world):
        ranks.append(os.fork())
        if ranks[-1] == 0:
            code = 1
            try:
                run(rank, world, folder)
                code = 0
            except RuntimeError as error:
                sys.stderr.write(f"rank {rank}: {error}\n")
            finally:
                os._exit(code)
    return sum(os.waitpid(rank, 0)[1] != 0 for rank in ranks)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), Path(sys.argv[2])))
