"""How a process takes part in a job: as a worker of lumctl, as a rank of torchrun, or alone."""

import os
from pathlib import Path
from typing import Any, Literal

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from lumctl.errors import UsageError
from lumctl.training.protocol import REPLICATED, UNIQUE
from lumctl.training.torch.agent_link import Environment, Membership
from lumctl.training.torch.checkpoints import STOPS, Persistence
from lumctl.training.torch.collectives import level
from lumctl.training.torch.member import Member
from lumctl.training.torch.stores import GivenUpError
from lumctl.training.torch.training_state import TrainingState


class SingleProcess:
    """A process that no agent started: a rank of torchrun, or a single process. It does not recover from failures.

    It resumes from the newest checkpoint on disk, and writes checkpoints periodically.
    """

    given_up = has_orders = False
    late_rank: int | None = None
    scheduled_for: int | None = None

    def __init__(self, state: TrainingState, persistence: Persistence, device: torch.device) -> None:
        self.membership = _membership()
        self._state, self._persistence, self._device = state, persistence, device
        self._own_group = False

    def begin(self) -> None:
        """Join the group, if there is one, and load the checkpoint."""
        membership = self.membership
        if _by_torchrun() and not dist.is_initialized():
            dist.init_process_group("nccl" if self._device.type == "cuda" else "gloo")
            self._own_group = True
        self._state.shape(membership.rank, membership.world)
        if self._state.layout == UNIQUE:
            self._persistence.agree(membership.rank, membership.world, self._device)
            return
        if membership.rank == 0:
            self._persistence.resume()
        if membership.world > 1:
            level(self._state, membership.rank, self._device)

    def synchronise(self) -> None:
        """Bring all ranks to one state when the script has made its parts."""
        if self._state.done == 0 and self._state.layout == REPLICATED and self.membership.world > 1:
            level(self._state, self.membership.rank, self._device)

    def watch(self, _model: DistributedDataParallel) -> None:
        """Do nothing: there is nobody to report to."""

    def park(self) -> None:
        """Do nothing: there are no orders."""

    def after(self, _loss: float | None) -> None:
        """Write a checkpoint if one is due."""
        if self._persistence.due(self.membership.rank):
            self._persistence.save(self.membership.rank)

    def is_of_group(self, _error: Exception) -> bool:
        """Return false: torchrun or the user has to start the process again."""
        return False

    def finish(self) -> None:
        """Write a last checkpoint."""
        if self._persistence.due_at_end(self.membership.rank):
            self._persistence.save(self.membership.rank)
        self.membership.stopped = True

    def failed(self, error: BaseException) -> None:
        """Do nothing: there is no agent to report to."""

    def close(self) -> None:
        """Leave the group."""
        if self._own_group and dist.is_initialized():
            dist.destroy_process_group()


def _by_torchrun() -> bool:
    return {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"} <= set(os.environ)


def _membership() -> Membership:
    if dist.is_initialized():  # the script formed this group
        return Membership(dist.get_rank(), dist.get_world_size())
    return Membership(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])) if _by_torchrun() else Membership()


Life = Member | SingleProcess


def life_of(
    state: TrainingState, checkpoint: Path | str | Literal[False] | None, every: int, device: torch.device
) -> Life:
    """Take part in the job of this process's environment.

    Raises:
        UsageError: the environment is invalid.
    """
    folder = Path(checkpoint) if checkpoint is not None and checkpoint is not False else None
    persistence = Persistence(state, folder, every)
    environment = Environment.read()
    if environment is None:
        return SingleProcess(state, persistence, device)
    if checkpoint is None:
        persistence.keep_stops_in(environment.folder / STOPS)
    return Member(environment, state, persistence, device)


def known_layout(layout: str) -> str:
    """The layout.

    Raises:
        UsageError: it is unknown.
    """
    if layout not in {REPLICATED, UNIQUE}:
        raise UsageError(f"{layout!r} is not a known layout", hint=f"use {REPLICATED!r} or {UNIQUE!r}")
    return layout


def require_valid(life: Life, device: torch.device) -> None:
    """Raise ``GivenUpError`` if the results of collectives may be invalid."""
    # Collectives on CUDA may still run: whether they were aborted is known only afterwards.
    if device.type == "cuda":
        torch.cuda.current_stream(device).synchronize()
    if life.given_up:  # after the communicator was aborted, the gradients are invalid
        raise GivenUpError("the group is abandoned")


def watch(optimizer: torch.optim.Optimizer, state: TrainingState, life: Life, device: torch.device) -> None:
    """Count the steps of an optimiser; prevent one whose gradients are invalid."""

    def before(*_: Any) -> None:
        require_valid(life, device)

    def after(*_: Any) -> None:
        state.stepped()

    optimizer.register_step_pre_hook(before)
    optimizer.register_step_post_hook(after)
