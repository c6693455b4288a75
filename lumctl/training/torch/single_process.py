"""A process that no agent started: a rank of torchrun, or a single process. It does not recover from failures."""

import os

import torch
import torch.distributed as dist

from lumctl.training.torch.collectives import level
from lumctl.training.torch.environment import Membership
from lumctl.training.torch.persistence import Persistence
from lumctl.training.torch.training_state import REPLICATED, TrainingState


class SingleProcess:
    """Resumes from the newest checkpoint on disk, and writes one every so many steps."""

    given_up = False

    def __init__(self, work: TrainingState, persistence: Persistence, device: torch.device) -> None:
        self.membership = _membership()
        self._work, self._persistence, self._device = work, persistence, device
        self._own_group = False

    def begin(self) -> None:
        """Join the group, if there is one, and read the checkpoint."""
        membership = self.membership
        if _by_torchrun() and not dist.is_initialized():
            dist.init_process_group("nccl" if self._device.type == "cuda" else "gloo")
            self._own_group = True
        self._work.shape(membership.rank, membership.world)
        if self._work.layout == REPLICATED:
            if membership.rank == 0:
                self._persistence.go_on()
            if membership.world > 1:
                level(self._work, membership.rank, self._device)
        else:
            self._persistence.agree(membership.rank, membership.world, self._device)

    def between(self) -> None:
        """Nothing is asked for."""

    def after(self, _loss: float | None) -> None:
        """Write a checkpoint when it is time."""
        if self._persistence.due(self.membership.rank):
            self._persistence.save(self.membership.rank)

    def recovers(self, _error: Exception) -> bool:
        """False: whatever started the process has to start it again."""
        return False

    def finish(self) -> None:
        """Write the state that is reached."""
        if self._persistence.due_at_end(self.membership.rank):
            self._persistence.save(self.membership.rank)
        self.membership.stopped = True

    def failed(self, error: BaseException) -> None:
        """There is no agent to report to."""

    def close(self) -> None:
        """Leave the group."""
        if self._own_group and dist.is_initialized():
            dist.destroy_process_group()


def _by_torchrun() -> bool:
    return {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"} <= set(os.environ)


def _membership() -> Membership:
    if dist.is_initialized():  # by the script
        return Membership(dist.get_rank(), dist.get_world_size())
    return Membership(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])) if _by_torchrun() else Membership()
