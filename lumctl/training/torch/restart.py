"""A script's main function, called again in a new process group after a failure.

In each call, the function makes new objects of all kinds that belong to a group: a wrapped model, a device mesh, a
loader's iterator. The training state is kept, and loaded into the new objects.
"""

import copy
import gc
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal, TypeVar

import torch
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, IterableDataset

from lumctl.errors import UsageError
from lumctl.training.torch.life import Life, known_layout, life_of, require_valid, watch
from lumctl.training.torch.parts import StatefulPart
from lumctl.training.torch.training_state import TrainingState

T = TypeVar("T")
_running: list["RestartableJob"] = []
"""The job whose function runs, if there is one."""


class ParkedError(BaseException):
    """The group is left between two steps. It ends the script's function, which must not catch it."""


class Position:
    """Where the job is in its epochs: the present one, and the number of steps done at its beginning."""

    def __init__(self) -> None:
        self.epoch = 0
        self.done_before = 0

    def state_dict(self) -> dict[str, Any]:
        """The position."""
        return {"epoch": self.epoch, "done_before": self.done_before}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go to another position."""
        self.epoch, self.done_before = int(state["epoch"]), int(state["done_before"])


class RestartableJob:
    """A script's part in a job, as :func:`run` passes it to the script's function."""

    def __init__(self, state: TrainingState, device: torch.device, life: Life) -> None:
        self.device = device
        """The device for collectives."""
        self.is_end_of_step = True
        """Whether the present batch is the last of its step: the optimiser steps after it."""
        self._state, self._life = state, life
        self._position = Position()
        self._optimizer: torch.optim.Optimizer | None = None
        self._loaders: tuple[Any, ...] = ()
        self._loss: Tensor | float | None = None
        self._is_tracked = self._in_step = self._skips_steps = False

    @property
    def rank(self) -> int:
        """The rank of this process."""
        return self._life.membership.rank

    @property
    def world(self) -> int:
        """The number of ranks."""
        return self._life.membership.world

    @property
    def generation(self) -> int:
        """The number of the process group: each new group has a greater one."""
        return self._life.membership.generation

    @property
    def done(self) -> int:
        """The number of steps done."""
        return self._state.done

    def track(
        self,
        *,
        model: StatefulPart | None = None,
        optimizer: torch.optim.Optimizer | None = None,
        **state: StatefulPart,
    ) -> None:
        """Hand over the parts that steps change, once in each call of the function: their state is loaded here.

        Call it after the model is wrapped (DistributedDataParallel, fully_shard) and before the first step. All other
        arguments are further parts by name: a scheduler, a gradient scaler, a stateful loader.

        Raises:
            UsageError: the state does not fit these parts.
            RuntimeError: the process group failed, which :func:`run` handles.
        """
        if self._is_tracked:
            raise UsageError("track was called twice in one call of the function", hint="pass all parts in one call")
        self._is_tracked = True
        self._position = Position()
        named = {"model": model, "optimizer": optimizer, **{f"state.{name}": part for name, part in state.items()}}
        parts = {name: part for name, part in named.items() if part is not None}
        self._state.build({**parts, "position": self._position})
        self._optimizer = optimizer
        self._loaders = tuple(part for part in state.values() if isinstance(part, Iterable))
        if optimizer is not None:
            watch(optimizer, self._state, self._life, self.device)
        for part in parts.values():
            if isinstance(part, DistributedDataParallel):
                self._life.watch(part)
        # A gradient scaler leaves out the steps of an optimiser whose gradients are infinite.
        self._skips_steps = any(isinstance(part, torch.amp.GradScaler) for part in state.values())
        self._life.synchronise()

    def epochs(self, total: int) -> Iterator[int]:
        """The epochs from the present one up to ``total``."""
        while self._position.epoch < total:
            yield self._position.epoch
            self._position.epoch, self._position.done_before = self._position.epoch + 1, self._state.done

    def batches(self, loader: Iterable[T], *, accumulate: int = 1) -> Iterator[T]:
        """The batches of an epoch from the present one on; ``accumulate`` batches are one training step.

        At the end of an epoch a step may have fewer: ask :attr:`is_end_of_step`.

        A loader that was handed over to :meth:`track` continues by itself, for example torchdata's StatefulDataLoader.
        For a `DataLoader` with a sampler, the batches done are not loaded again; of any other iterable they are read
        and dropped.

        Raises:
            UsageError: the step before did not use its gradients.
        """
        self.begin_epoch(self._position.epoch)
        skipped = (self._state.done - self._position.done_before) * accumulate
        iterator = iter(loader) if any(each is loader for each in self._loaders) else after_batches(loader, skipped)
        while True:
            self._begin()
            batches = list(islice(iterator, accumulate))
            if not batches:
                self._state.cancel()
                self._in_step = False
                return
            for number, batch in enumerate(batches, 1):
                self.is_end_of_step = number == len(batches)
                yield batch
            self._end()

    def steps(self, total: int) -> Iterator[int]:
        """The numbers of the steps from the present one up to ``total``; the first has the number 0."""
        while self._state.done < total:
            self._begin()
            yield self._state.done
            self._end()

    def report(self, loss: Tensor | float) -> None:
        """Report the loss of this step, as `lumctl job status` shows it."""
        self._loss = loss.detach() if isinstance(loss, Tensor) else loss

    # -- for a framework that owns the loop

    def begin_epoch(self, epoch: int) -> None:
        """Seed the random numbers for an epoch; call it before the iterator of its batches is made."""
        self._state.seed_random(f"epoch {epoch}/{self.rank}")

    def begin_step(self) -> None:
        """Begin a step when its first batch is there, and end the step before.

        Inside a step that has only accumulated gradients, nothing happens. A step that has done nothing begins again.

        Raises:
            ParkedError: the group is left; pass it on.
        """
        if self._in_step and not self._state.counted and self._holds_gradients():
            return
        if self._state.counted:
            self._end()
        self._begin()

    def end_step(self) -> None:
        """End the step, if one is open. It counts, even if the optimiser has left it out."""
        if self._in_step:
            self._end()

    @property
    def is_counted(self) -> bool:
        """Whether the optimiser has made the present step."""
        return self._state.counted

    def require_group(self) -> None:
        """Raise an error if gradients may be invalid, because the group fails. An optimiser's step begins with this.

        A framework that computes the gradients inside that step calls it again when they are there.

        Raises:
            RuntimeError: the process group failed, which :func:`run` handles.
        """
        require_valid(self._life, self.device)

    def _begin(self) -> None:
        if not self._is_tracked:
            raise UsageError(
                "a step begins before the parts of the state are known",
                hint="call job.track(model=..., optimizer=...) before the first step",
            )
        if self._life.has_orders:
            raise ParkedError
        self._state.begin(self.rank)
        self._in_step = True

    def _end(self) -> None:
        if not (self._state.counted or self._skips_steps) and self._holds_gradients():
            raise UsageError(
                f"step {self._state.done} ended with gradients that the optimiser has not used",
                hint="to accumulate: job.batches(loader, accumulate=N), and optimizer.step() if job.is_end_of_step",
            )
        self._state.end()
        self._in_step = False
        loss = None if self._loss is None else float(self._loss)
        self._loss = None
        self._life.after(loss)

    def _holds_gradients(self) -> bool:
        groups = self._optimizer.param_groups if self._optimizer is not None else ()
        return any(parameter.grad is not None for group in groups for parameter in group["params"])

    def _called(self) -> None:
        """Begin a call: store the state of the parts of a former one, and seed the random numbers, on all ranks alike.

        Frameworks draw the seeds of samplers from them.
        """
        self._state.undo()
        self._state.seed_random("call")

    def _returned(self) -> None:
        """End the job's steps; called when the function has returned. A `break` leaves the last step open."""
        if self._in_step:
            self._end()
        self._life.finish()

    def _left(self) -> None:
        """Forget what belongs to a former group."""
        self._optimizer, self._loaders, self._loss = None, (), None
        self._is_tracked = self._in_step = False


def run(
    main: Callable[[RestartableJob], T],
    *,
    layout: Literal["replicated", "unique"] = "replicated",
    seed: int | None = 0,
    checkpoint: Path | str | Literal[False] | None = None,
    every: int = 50,
    device: torch.device | str | None = None,
) -> T:
    """Call ``main`` in a process group; after a failure, call it again in a new group. Return its result.

    ``main`` makes the model, wraps it, calls :meth:`RestartableJob.track`, and trains. A step is done when the
    optimiser has stepped. When the group fails, or the job is paused, an error ends ``main``.

    Args:
        main: the script's function.
        layout: ``replicated`` if all ranks hold the same state, ``unique`` if each holds its own: shards, or stages of
            a pipeline.
        seed: the random numbers of `torch` and `random` are seeded in each step and at the beginning of each epoch, by
            this number and the rank, so that a repeated step draws the same; before each call of ``main``, by this
            number alone; ``None``: they are not seeded.
        checkpoint: as in :func:`~lumctl.training.torch.attach`.
        every: the number of steps between checkpoints; 0: none.
        device: the device for collectives, by NCCL on CUDA and gloo otherwise; by default CUDA if there is any.

    Raises:
        UsageError: the environment or an argument is invalid.
    """
    where = torch.device(device) if device is not None else _usual_device()
    state = TrainingState(None, layout=known_layout(layout), seed=seed)
    life = life_of(state, checkpoint, every, where)
    job = RestartableJob(state, where, life)
    try:
        life.begin()
        _running.append(job)
        returned = _until_done(main, job, life)
    except BaseException as error:
        if not isinstance(error, SystemExit):
            life.failed(error)
        life.close()
        raise
    finally:
        _running.clear()
    life.close()
    if life.membership.cut_short:
        raise SystemExit(0)  # the rest of the script is only for a job that has done all steps
    return returned[0]


def _usual_device() -> torch.device:
    return torch.device("cuda", torch.cuda.current_device()) if torch.cuda.is_available() else torch.device("cpu")


def current_job() -> RestartableJob:
    """The job whose function runs, for the adapters of frameworks.

    Raises:
        UsageError: there is none.
    """
    if not _running:
        raise UsageError("no job runs here", hint="call the function that trains by run(...)")
    return _running[0]


def _until_done(main: Callable[[RestartableJob], T], job: RestartableJob, life: Life) -> list[T]:
    """Call ``main`` until it has returned on all ranks, or the job was stopped; its result, if there is one."""
    returned: list[T] = []
    while not life.membership.stopped:
        job._called()  # noqa: SLF001 - a job is a part of this module
        try:
            returned = [main(job)]
            job._returned()  # noqa: SLF001 - as above
        except ParkedError as left:
            _release(left, job.device)
        except Exception as error:
            if not life.is_of_group(error):
                raise
            _release(error, job.device)
        if not life.membership.stopped:
            job._left()  # noqa: SLF001 - as above
            life.park()
    return returned


def _release(error: BaseException, device: torch.device) -> None:
    """Release what the frames of an error hold: the model of the former group, which may fill a GPU's memory."""
    held: BaseException | None = error
    while held is not None:
        traceback.clear_frames(held.__traceback__)
        held.__traceback__ = None
        held = held.__cause__ or held.__context__
    if device.type == "cuda":
        gc.collect()  # wrapped models refer to themselves


class _Rest:
    """The batches of a sampler after those that were done."""

    def __init__(self, sampler: Iterable[Any], skipped: int) -> None:
        self._sampler, self._skipped = sampler, skipped

    def __iter__(self) -> Iterator[Any]:
        rest = islice(iter(self._sampler), self._skipped, None)
        # A sampler draws its order when the first batch is taken: now, with the random numbers of the epoch.
        return chain(list(islice(rest, 1)), rest)


def after_batches(loader: Iterable[T], skipped: int) -> Iterator[T]:
    """The batches of a loader after those that were done."""
    if (
        not isinstance(loader, DataLoader)
        or loader.batch_sampler is None
        or isinstance(loader.dataset, IterableDataset)
    ):
        return islice(iter(loader), skipped, None)
    if loader.num_workers and not skipped:
        return iter(loader)  # it draws its order at once; a copy would not keep its persistent workers
    rest = copy.copy(loader)
    rest.__dict__["batch_sampler"] = _Rest(loader.batch_sampler, skipped)  # the class forbids it once it is made
    return iter(rest)
