"""One rank under torchrun: data parallel; rank 0 writes a checkpoint after each step, all read it when they start."""

import itertools
import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from steps import Voice

from lumctl.training.example.data import Windows, own_text
from lumctl.training.example.model import SIZES
from lumctl.training.example.parallelism import Replicated


def average(parameters):
    """One all-reduce of one flat bucket, as cheap as it gets."""
    gradients = [parameter.grad for parameter in parameters]
    flat = torch.cat([gradient.flatten() for gradient in gradients])
    dist.all_reduce(flat)
    flat /= dist.get_world_size()
    at = 0
    for gradient in gradients:
        gradient.copy_(flat[at : at + gradient.numel()].view_as(gradient))
        at += gradient.numel()


def main(ear: str, checkpoint: Path) -> None:
    torch.set_num_threads(1)
    size = SIZES["tiny"]
    ours = Replicated(size, seed=1, average=average)
    windows = Windows(own_text(), context=size.context, sequences=size.sequences, seed=1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    ours.shape(rank, world)
    first = 0
    if checkpoint.exists():
        saved = torch.load(checkpoint)
        ours.model.load_state_dict(saved["model"])
        ours.optimizer.load_state_dict(saved["optimizer"])
        first = saved["done"]
    voice = Voice(ear)
    for step in itertools.count(first):
        ours.gradients(lambda *share, step=step: windows.batch(step, *share))
        ours.optimizer.step()
        voice.done(rank=rank, world=world, step=step)
        if rank == 0:
            saved = {"model": ours.model.state_dict(), "optimizer": ours.optimizer.state_dict(), "done": step + 1}
            new = checkpoint.with_suffix(f".{os.getpid()}")
            torch.save(saved, new)
            new.replace(checkpoint)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
