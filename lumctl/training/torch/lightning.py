"""Lightning's Trainer in a job: a recovery continues its loops at the interrupted step.

    from lumctl.training.torch.lightning import fit, run

    def main():
        trainer = lightning.Trainer(...)
        fit(trainer, model, loader)     # instead of trainer.fit(model, loader)

    run(lambda job: main())

The state is in memory: :func:`fit` writes no checkpoint. Lightning's own checkpoints work as before.
"""

import copy
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import torch
from lightning.fabric.utilities.data import _set_sampler_epoch
from lightning.pytorch import Callback, LightningModule, Trainer

from lumctl.errors import UsageError
from lumctl.training.torch.launch_variables import run_with
from lumctl.training.torch.restart import RestartableJob, after_batches, current_job

T = TypeVar("T")


def run(main: Callable[[RestartableJob], T], **options: Any) -> T:
    """Call ``main`` again after a failure, as :func:`lumctl.training.torch.run` does; the options are the same."""
    return run_with(_found_by_lightning, main, options)


def fit(trainer: Trainer, model: LightningModule, *loaders: Any, **named: Any) -> None:
    """Call ``trainer.fit()`` from the job's present step on.

    A validation that a failure interrupts is not repeated. Means that Lightning logs for an epoch are those of the
    batches since the last recovery.
    """
    trainer.callbacks.insert(0, _Steps(current_job()))
    trainer.fit(model, *loaders, **named)


def _found_by_lightning(_job: RestartableJob) -> None:
    """Make Lightning take rank and number of ranks from the variables."""
    if "RANK" in os.environ:
        os.environ.setdefault("TORCHELASTIC_RUN_ID", "lumctl")


class _Steps(Callback):
    """Begins and ends the steps of the job, in which Lightning's events happen."""

    def __init__(self, job: RestartableJob) -> None:
        self._job = job
        self._loops = _Loops()

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Hand over all parts; their state is loaded."""
        if len(trainer.optimizers) != 1:
            raise UsageError(
                f"the model has {len(trainer.optimizers)} optimisers, and a step is done when one has stepped",
                hint="let configure_optimizers return one",
            )
        optimizer = getattr(trainer.optimizers[0], "optimizer", trainer.optimizers[0])
        schedulers = {f"scheduler{n}": each.scheduler for n, each in enumerate(trainer.lr_scheduler_configs)}
        others = [each for each in trainer.callbacks if each is not self]
        parts = {f"callback {each.state_key}": each for each in others if each.state_dict()}
        if trainer.precision_plugin.state_dict():
            parts["precision"] = trainer.precision_plugin
        self._job.track(model=pl_module, optimizer=optimizer, loops=self._loops, **schedulers, **parts)
        if self._loops.kept:
            trainer.fit_loop.load_state_dict(copy.deepcopy(self._loops.kept))

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Begin the present epoch after the batches that are done: Lightning skips them for stateful loaders only."""
        del pl_module
        loop = trainer.fit_loop
        done = loop.epoch_loop.batch_progress.current.ready if self._loops.kept and loop.restarting else 0
        self._wrap(trainer, done if done < trainer.num_training_batches else 0)
        for each in loop._combined_loader.flattened:  # noqa: SLF001 - the loop has no public loader
            _set_sampler_epoch(each, trainer.current_epoch)
        iter(loop._data_fetcher)  # noqa: SLF001 - as above

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """End the epoch before: its validation belongs to its last step."""
        del pl_module
        self._job.end_step()
        self._wrap(trainer, 0)

    def _wrap(self, trainer: Trainer, done: int) -> None:
        combined = trainer.fit_loop._combined_loader  # noqa: SLF001 - as above
        combined.flattened = [
            each if isinstance(each, _Batches) else _Batches(self._job, trainer, each, done)
            for each in combined.flattened
        ]

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int) -> None:
        """End the step before: its validation belongs to it."""
        del trainer, pl_module, batch, batch_idx
        self._job.begin_step()

    def on_before_optimizer_step(self, trainer: Trainer, pl_module: LightningModule, optimizer: Any) -> None:
        """Prevent a step whose gradients are invalid: Lightning computes them inside the optimiser's step."""
        del trainer, pl_module, optimizer
        self._job.require_group()

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Note the position of the loops after a step."""
        del pl_module, batch, batch_idx
        if self._job.is_counted:
            self._loops.kept = copy.deepcopy(trainer.fit_loop.state_dict())
        loss = outputs.get("loss") if isinstance(outputs, Mapping) else outputs
        if isinstance(loss, torch.Tensor):
            self._job.report(loss)


class _Loops:
    """The progress of Lightning's loops after the last step, as its checkpoints contain it."""

    def __init__(self) -> None:
        self.kept: dict[str, Any] = {}

    def state_dict(self) -> dict[str, Any]:
        """The progress; empty before the first step."""
        return self.kept

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from another progress."""
        self.kept = dict(state)


class _Batches:
    """A loader whose order depends on the epoch, and whose first pass leaves out the batches that are done."""

    def __init__(self, job: RestartableJob, trainer: Trainer, loader: Any, done: int) -> None:
        self._job, self._trainer, self._loader, self._done = job, trainer, loader, done

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> Iterator[Any]:
        done, self._done = self._done, 0
        self._job.begin_epoch(self._trainer.current_epoch)
        if hasattr(self._loader, "load_state_dict"):
            return iter(self._loader)
        return after_batches(self._loader, done)
