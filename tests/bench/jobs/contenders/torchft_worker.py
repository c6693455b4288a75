"""One replica under torchft: data parallel, gradients averaged by its manager, state from a peer where it is behind."""

import os
import sys
from datetime import timedelta

import torch
from steps import Voice
from torch.distributed import TCPStore
from torchft import Manager, ProcessGroupGloo
from torchft.manager import WorldSizeMode

from lumctl.training.example.data import Windows, own_text
from lumctl.training.example.model import SIZES
from lumctl.training.example.parallelism import Replicated

COLLECTIVE = timedelta(milliseconds=float(os.environ.get("TORCHFT_COLLECTIVE_MS", "1000")))
"""A rank that is not the dead one's neighbour waits it out; what is too short, ranks that share a busy core overrun."""
LIMIT = timedelta(seconds=5)
"""Of whatever else a step waits for, such as the state from a peer."""


def main(ear: str, lighthouse: str, kind: str, ranks: int, number: int) -> None:
    torch.set_num_threads(1)
    size = SIZES["tiny"]

    def average(parameters):
        """One managed all-reduce of one flat bucket."""
        gradients = [parameter.grad for parameter in parameters]
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        manager.allreduce(flat).wait()
        at = 0
        for gradient in gradients:
            gradient.copy_(flat[at : at + gradient.numel()].view_as(gradient))
            at += gradient.numel()

    def load(state):
        ours.model.load_state_dict(state["model"])
        ours.optimizer.load_state_dict(state["optimizer"])

    ours = Replicated(size, seed=1, average=average)
    windows = Windows(own_text(), context=size.context, sequences=size.sequences, seed=1)
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    manager = Manager(
        pg=ProcessGroupGloo(timeout=COLLECTIVE),
        load_state_dict=load,
        state_dict=lambda: {"model": ours.model.state_dict(), "optimizer": ours.optimizer.state_dict()},
        min_replica_size=ranks if kind == "spare" else ranks - 1,
        use_async_quorum=False,  # the share of the data follows from the rank
        timeout=LIMIT,
        quorum_timeout=timedelta(seconds=60),
        rank=0,
        world_size=1,
        world_size_mode=WorldSizeMode.FIXED_WITH_SPARES if kind == "spare" else WorldSizeMode.DYNAMIC,
        store_addr="127.0.0.1",
        store_port=store.port,
        lighthouse_addr=lighthouse,
        replica_id=f"replica{number}",
        hostname="127.0.0.1",
        heartbeat_interval=timedelta(milliseconds=50),
        init_sync=False,  # the seed made the same weights everywhere
    )
    voice = Voice(ear)
    while True:
        manager.start_quorum()
        rank, world, step = manager.participating_rank(), manager.num_participants(), manager.current_step()
        ours.shape(rank or 0, world)  # what a spare adds is set to zero by its manager
        ours.gradients(lambda *share, step=step: windows.batch(step, *share))
        if manager.should_commit():
            ours.optimizer.step()
            if rank is not None:
                voice.done(rank=rank, world=world, step=step)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
