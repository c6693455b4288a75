"""A training script's side of a job: attach once, and do each step in a ``with`` block."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import torch
import torch.distributed as dist
from torch import Tensor, nn

from lumctl.errors import UsageError
from lumctl.training.protocol import REPLICATED, UNIQUE
from lumctl.training.torch.agent_link import Environment, Membership
from lumctl.training.torch.checkpoints import STOPS, Persistence
from lumctl.training.torch.collectives import average, level
from lumctl.training.torch.member import Member
from lumctl.training.torch.states import StatefulPart, TrainingState
from lumctl.training.torch.stores import GivenUpError


class SingleProcess:
    """A process that no agent started: a rank of torchrun, or a single process. It does not recover from failures.

    It resumes from the newest checkpoint on disk, and writes checkpoints periodically.
    """

    given_up = False

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
        if self._state.layout == REPLICATED:
            if membership.rank == 0:
                self._persistence.resume()
            if membership.world > 1:
                level(self._state, membership.rank, self._device)
        else:
            self._persistence.agree(membership.rank, membership.world, self._device)

    def between(self) -> None:
        """Do nothing: there are no orders."""

    def after(self, _loss: float | None) -> None:
        """Write a checkpoint if one is due."""
        if self._persistence.due(self.membership.rank):
            self._persistence.save(self.membership.rank)

    def recovers(self, _error: Exception) -> bool:
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


class TrainingStep:
    """One training step. A failure of the process group ends its body; `steps` then continues."""

    def __init__(self, job: "TrainingJob", number: int) -> None:
        self.number = number
        """The number of steps done before this one; 0 for the first."""
        self._job = job
        self._loss: Tensor | float | None = None
        self.entered = False
        """Whether its ``with`` block was entered."""

    def report(self, loss: Tensor | float) -> None:
        """Report the loss of this step, as `lumctl job status` shows it."""
        self._loss = loss.detach() if isinstance(loss, Tensor) else loss

    def __enter__(self) -> Self:
        self.entered = True
        self._job._state.begin(self._job.rank)  # noqa: SLF001 - a step is a part of its job
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> bool:
        loss = None if self._loss is None or error is not None else float(self._loss)
        return self._job._ended(error, loss)  # noqa: SLF001 - a step is a part of its job


class TrainingJob:
    """A script's part in a job; made by :func:`attach`."""

    def __init__(self, state: TrainingState, device: torch.device, life: Member | SingleProcess) -> None:
        self.device = device
        self._state, self._life = state, life

    @property
    def rank(self) -> int:
        """The rank of this process; it may change with a failure."""
        return self._life.membership.rank

    @property
    def world(self) -> int:
        """The number of ranks."""
        return self._life.membership.world

    @property
    def generation(self) -> int:
        """The number of the process group: each new group has a greater one. Objects of an older group are unusable."""
        return self._life.membership.generation

    def steps(self, total: int | None = None) -> Iterator[TrainingStep]:
        """The steps from the current one up to ``total``; without it, until the job is stopped.

        A step number occurs again if the step was interrupted or the job went back to a checkpoint. Use the results of
        a step inside its ``with`` block: after an interruption they may not exist.

        Raises:
            UsageError: a step was taken from the iterator but not done, or a checkpoint does not fit.
        """
        self._life.begin()
        while self._goes_on():
            if total is not None and self._state.done >= total:
                self._life.finish()
                continue
            step = TrainingStep(self, self._state.done)
            yield step
            if not step.entered:
                raise UsageError(
                    f"step {step.number} was taken from job.steps() but not done",
                    hint="write `for step in job.steps(N):` and inside it `with step:`",
                )

    def _goes_on(self) -> bool:
        """Follow orders between two steps; return whether another step follows."""
        if not self._life.membership.stopped:
            self._life.between()
        return not self._life.membership.stopped

    def average(self, parameters: Iterable[nn.Parameter], *, divide_by: float | None = None) -> None:
        """Replace gradients by their mean over all ranks, or by their sum divided by ``divide_by``.

        Raises:
            RuntimeError: the process group failed, which the step's ``with`` block handles.
        """
        if self.world > 1 or divide_by not in {None, 1}:
            average(parameters, world=self.world, divide_by=self.world if divide_by is None else divide_by)

    def _ended(self, error: BaseException | None, loss: float | None) -> bool:
        if error is None:
            self._state.end()
            self._life.after(loss)
            return True
        return isinstance(error, Exception) and self._life.recovers(error)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if error is not None and kind is not SystemExit:
            self._life.failed(error)
        self._life.close()
        if error is None and self._life.membership.cut_short:
            raise SystemExit(0)  # the rest of the script is only for a job that has done all steps


def attach(  # noqa: PLR0913 - all are keywords
    *,
    model: StatefulPart | None = None,
    optimizer: torch.optim.Optimizer | None = None,
    state: Mapping[str, StatefulPart] | None = None,
    layout: Literal["replicated", "unique"] = "replicated",
    shape: Callable[[int, int], None] | None = None,
    seed: int | None = None,
    checkpoint: Path | str | Literal[False] | None = None,
    every: int = 50,
    device: torch.device | str | None = None,
) -> TrainingJob:
    """Make this script a part of a job. Use it in a ``with`` statement.

    A step is done when the optimiser has stepped; without an optimiser, when its ``with`` block ends. Further changes
    of the state, such as a scheduler's step, must come before the next collective.

    SIGTERM ends the process after the current step, with a checkpoint.

    Args:
        model: the model that is trained or served.
        optimizer: steps once in each step of the job.
        state: further parts of the state, by name. Parts that are not modules are copied before each step: keep
            them small.
        layout: ``replicated`` if all ranks hold the same state, ``unique`` if each holds its own.
        shape: called with rank and world before a state for them is loaded, if the parts depend on these.
        seed: makes a repeated step draw the same random numbers of `torch` and `random`.
        checkpoint: a folder for checkpoints; the newest one in it is loaded at the start. Without a folder, under
            ``lumctl job run``, a stop writes checkpoints into the job's own folder on the host, and the next run loads
            them, until all steps are done. With ``False`` nothing is written or read.
        every: the number of steps between checkpoints; 0: none.
        device: the device for collectives, by NCCL on CUDA and gloo otherwise; by default the device of the model's
            first parameter.

    Raises:
        UsageError: the environment or an argument is invalid.
    """
    if layout not in {REPLICATED, UNIQUE}:
        raise UsageError(f"{layout!r} is not a known layout", hint=f"use {REPLICATED!r} or {UNIQUE!r}")
    named: dict[str, StatefulPart | None] = {"model": model, "optimizer": optimizer}
    parts = {name: part for name, part in named.items() if part is not None}
    parts |= {f"state.{name}": part for name, part in (state or {}).items()}
    training_state = TrainingState(parts, layout=layout, seed=seed, shape=shape)
    where = _device(model, device)
    persistence = Persistence(
        training_state, Path(checkpoint) if checkpoint is not None and checkpoint is not False else None, every
    )
    environment = Environment.read()
    if environment is not None and checkpoint is None:
        persistence.keep_stops_in(environment.folder / STOPS)
    life = (
        SingleProcess(training_state, persistence, where)
        if environment is None
        else Member(environment, training_state, persistence, where)
    )
    if optimizer is not None:
        _watch(optimizer, training_state, life, where)
    return TrainingJob(training_state, where, life)


def _watch(
    optimizer: torch.optim.Optimizer, state: TrainingState, life: Member | SingleProcess, device: torch.device
) -> None:
    def before(*_: Any) -> None:
        # Collectives on CUDA may still run: whether they were aborted is known only afterwards.
        if device.type == "cuda":
            torch.cuda.current_stream(device).synchronize()
        if life.given_up:  # after the communicator was aborted, the gradients are invalid
            raise GivenUpError("the group is abandoned")

    def after(*_: Any) -> None:
        state.stepped()

    optimizer.register_step_pre_hook(before)
    optimizer.register_step_post_hook(after)


def _device(model: StatefulPart | None, device: torch.device | str | None) -> torch.device:
    if device is not None:
        return torch.device(device)
    first = next(model.parameters(), None) if isinstance(model, nn.Module) else None
    return torch.device("cpu") if first is None else first.device
