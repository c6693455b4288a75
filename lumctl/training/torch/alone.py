"""A process that no agent has started: one rank of torchrun's, or all there is. Failures are not made good here."""

import os

import torch
import torch.distributed as dist

from lumctl.training.torch.levelling import level
from lumctl.training.torch.saving import Saving
from lumctl.training.torch.seat import Seat
from lumctl.training.torch.work import REPLICATED, Work


class Alone:
    """Goes on from the newest checkpoint on disk, and writes one every so many steps."""

    given_up = False

    def __init__(self, work: Work, saving: Saving, device: torch.device) -> None:
        self.seat = _seat()
        self._work, self._saving, self._device = work, saving, device
        self._own_group = False

    def begin(self) -> None:
        """Join the group, if there is one, and read the checkpoint."""
        seat = self.seat
        if _by_torchrun() and not dist.is_initialized():
            dist.init_process_group("nccl" if self._device.type == "cuda" else "gloo")
            self._own_group = True
        self._work.shape(seat.rank, seat.world)
        if self._work.layout == REPLICATED:
            if seat.rank == 0:
                self._saving.go_on()
            if seat.world > 1:
                level(self._work, seat.rank, self._device)
        else:
            self._saving.agree(seat.rank, seat.world, self._device)

    def between(self) -> None:
        """Nothing is asked for."""

    def after(self, _loss: float | None) -> None:
        """Write a checkpoint when it is time."""
        if self._saving.due(self.seat.rank):
            self._saving.save(self.seat.rank)

    def recovers(self, _error: Exception) -> bool:
        """It does not: whoever started the process starts it again."""
        return False

    def finish(self) -> None:
        """Write the state that is reached."""
        if self._saving.due_at_end(self.seat.rank):
            self._saving.save(self.seat.rank)
        self.seat.stopped = True

    def failed(self, error: BaseException) -> None:
        """Nobody is there to be told."""

    def close(self) -> None:
        """Leave the group."""
        if self._own_group and dist.is_initialized():
            dist.destroy_process_group()


def _by_torchrun() -> bool:
    return {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"} <= set(os.environ)


def _seat() -> Seat:
    if dist.is_initialized():  # by the script
        return Seat(dist.get_rank(), dist.get_world_size())
    return Seat(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])) if _by_torchrun() else Seat()
