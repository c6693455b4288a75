"""A training script's side of a job: attach once, and do each step in a ``with`` block."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

import torch
from torch import Tensor, nn

from lumctl.errors import UsageError
from lumctl.training.torch.collectives import AgreedAllReduce, average
from lumctl.training.torch.life import Life, known_layout, life_of, watch
from lumctl.training.torch.parts import StatefulPart
from lumctl.training.torch.training_state import TrainingState


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

    def __init__(self, state: TrainingState, device: torch.device, life: Life) -> None:
        self.device = device
        self._state, self._life = state, life
        self._agreed = AgreedAllReduce(lambda: life.late_rank)

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

        Ends the process after the last step of a job that was stopped, and that of a spare without a rank.

        Raises:
            UsageError: a step was taken from the iterator but not done, or a checkpoint does not fit.
        """
        self._life.begin()
        while self._goes_on():
            if total is not None and self._state.done >= total:
                self._recovering(self._life.finish)
                continue
            step = TrainingStep(self, self._state.done)
            yield step
            if not step.entered:
                raise UsageError(
                    f"step {step.number} was taken from job.steps() but not done",
                    hint="write `for step in job.steps(N):` and inside it `with step:`",
                )
        if self._life.membership.cut_short:
            # The lines after the loop are for ranks that have done all steps. A spare that never had a rank takes
            # itself for rank 0, and could save its untrained model over the trained one.
            raise SystemExit(0)

    def _goes_on(self) -> bool:
        """Follow orders between two steps; return whether another step follows."""
        if self._life.has_orders and not self._life.membership.stopped:
            self._life.park()
        return not self._life.membership.stopped

    def average(self, parameters: Iterable[nn.Parameter], *, divide_by: float | None = None) -> None:
        """Replace gradients by their mean over all ranks, or by their sum divided by ``divide_by``.

        Raises:
            RuntimeError: the process group failed, which the step's ``with`` block handles.
        """
        if self.world > 1 or divide_by not in {None, 1}:
            self._agreed.enter(self.generation, self.rank, self.world)
            divisor = self.world if divide_by is None else divide_by
            average(parameters, self._agreed, world=self.world, divide_by=divisor)
            self._life.scheduled_for = self._agreed.late

    def _ended(self, error: BaseException | None, loss: float | None) -> bool:
        if error is None:
            self._state.end()
            self._recovering(lambda: self._life.after(loss))
            return True
        return isinstance(error, Exception) and self._recovers(error)

    def _recovering(self, do: Callable[[], None]) -> None:
        """Do something in the group; if the group breaks, recover."""
        try:
            do()
        except RuntimeError as error:
            if not self._recovers(error):
                raise

    def _recovers(self, error: Exception) -> bool:
        """Return whether an error came from the group; if so, first join a new group."""
        if not self._life.is_of_group(error):
            return False
        self._life.park()
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if error is not None and kind is not SystemExit:
            self._life.failed(error)
        self._life.close()


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
    named: dict[str, StatefulPart | None] = {"model": model, "optimizer": optimizer}
    parts = {name: part for name, part in named.items() if part is not None}
    parts |= {f"state.{name}": part for name, part in (state or {}).items()}
    training_state = TrainingState(parts, layout=known_layout(layout), seed=seed, shape=shape)
    where = _device(model, device)
    life = life_of(training_state, checkpoint, every, where)
    if optimizer is not None:
        watch(optimizer, training_state, life, where)
    return TrainingJob(training_state, where, life)


def _device(model: StatefulPart | None, device: torch.device | str | None) -> torch.device:
    if device is not None:
        return torch.device(device)
    first = next(model.parameters(), None) if isinstance(model, nn.Module) else None
    return torch.device("cpu") if first is None else first.device
