"""Hugging Face's Accelerate in a job: a recovery continues the script's loop at the interrupted step.

from lumctl.training.torch.accelerate import Accelerator, run

def main():
    accelerator = Accelerator(gradient_accumulation_steps=2)
    model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer, loader, scheduler)
    for epoch in accelerator.epochs(3):     # instead of range(3)
        for inputs, labels in loader:
            ...

run(lambda job: main())
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import accelerate

from lumctl.errors import UsageError
from lumctl.training.torch.accelerate_states import forget_group
from lumctl.training.torch.launch_variables import run_with
from lumctl.training.torch.restart import RestartableJob, current_job

T = TypeVar("T")


def run(main: Callable[[RestartableJob], T], **options: Any) -> T:
    """Call ``main`` again after a failure, as :func:`lumctl.training.torch.run` does; the options are the same."""
    return run_with(forget_group, main, options)


class Accelerator(accelerate.Accelerator):
    """An Accelerator whose prepared loaders begin the job's steps, and continue after the batches that are done.

    The state of the job is what ``save_state`` would write: all that was prepared or registered for checkpointing
    before :meth:`epochs` is called.
    """

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._job = current_job()
        self._progress = _Progress()

    def epochs(self, total: int) -> Iterator[int]:
        """The epochs from the present one up to ``total``.

        Raises:
            UsageError: no optimiser or several were prepared, or the state does not fit.
        """
        progress = self._progress
        self._track()
        progress.resume(self._dataloaders)
        progress.is_training = True
        while progress.epoch < total:
            yield progress.epoch
            progress.next_epoch(self._dataloaders)
        progress.is_training = False

    def prepare_data_loader(self, data_loader: Any, *args: Any, **named: Any) -> Any:
        """A loader whose batches belong to steps of the job, while :meth:`epochs` runs."""
        if isinstance(data_loader, _Batches):
            return data_loader
        loader = super().prepare_data_loader(data_loader, *args, **named)
        return _Batches(self, loader, self._dataloaders.index(loader))

    def backward(self, loss: Any, **named: Any) -> None:
        """Compute gradients, and report the loss as that of the step."""
        super().backward(loss, **named)
        self._job.report(loss)

    def _track(self) -> None:
        if len(self._optimizers) != 1:
            raise UsageError(
                f"{len(self._optimizers)} optimisers were prepared, and a step is done when one has stepped",
                hint="prepare one optimiser before accelerator.epochs()",
            )
        optimizer = self._optimizers[0].optimizer
        parts = {f"model{number or ''}": model for number, model in enumerate(self._models)}
        parts |= {f"scheduler{number}": scheduler for number, scheduler in enumerate(self._schedulers)}
        parts |= {f"registered{number}": each for number, each in enumerate(self._custom_objects)}
        if self.scaler is not None:
            parts["scaler"] = self.scaler
        self._job.track(optimizer=optimizer, progress=self._progress, **parts)
        optimizer.register_step_post_hook(lambda *_: self._progress.stepped())


class _Progress:
    """The present epoch, and the number of its batches that steps have used, by loader."""

    def __init__(self) -> None:
        self.epoch = 0
        self.is_training = False
        self._begun: dict[int, dict[str, Any]] = {}
        """What decides the order of each loader's samples, at the beginning of this epoch."""
        self._used: dict[int, int] = {}
        self._skipped: dict[int, int] = {}
        """The batches that this call of the script's function has yet to skip."""
        self._at = (0, 0)
        """The loader of the newest batch, and the number of the batches of this epoch up to that one."""

    def state_dict(self) -> dict[str, Any]:
        """The position."""
        return {"epoch": self.epoch, "begun": dict(self._begun), "used": dict(self._used)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go to another position."""
        self.epoch, self._begun, self._used = int(state["epoch"]), dict(state["begun"]), dict(state["used"])

    def resume(self, loaders: Sequence[Any]) -> None:
        """Continue where former calls were: skip the batches that steps have used."""
        self._skipped = dict(self._used)
        for number, begun in self._begun.items():
            loaders[number].iteration = begun["passes"]
            if "generator" in begun:
                loaders[number].synchronized_generator.set_state(begun["generator"])
        self._begin(loaders)

    def next_epoch(self, loaders: Sequence[Any]) -> None:
        """Begin the next epoch."""
        self.epoch, self._used, self._skipped = self.epoch + 1, {}, {}
        self._begin(loaders)

    def _begin(self, loaders: Sequence[Any]) -> None:
        for number, loader in enumerate(loaders):
            self._begun[number] = {"passes": loader.iteration}
            if (generator := getattr(loader, "synchronized_generator", None)) is not None:
                self._begun[number]["generator"] = generator.get_state()

    def skipped(self, loader: int, at_most: int | None) -> int:
        """How many batches a loader skips in the pass that begins."""
        left = self._skipped.pop(loader, 0)
        if at_most is not None and left > at_most:
            self._skipped[loader] = left - at_most
            return at_most
        return left

    def passed(self, loader: int) -> int:
        """The number of batches of this epoch that a loader has given for steps that are done."""
        return self._used.get(loader, 0) - self._skipped.get(loader, 0)

    def gave(self, loader: int, batches: int) -> None:
        """A loader gives the batch that is the last of so many in this epoch."""
        self._at = loader, batches

    def stepped(self) -> None:
        """The optimiser has used all batches up to the newest one."""
        loader, batches = self._at
        self._used[loader] = batches


class _Batches:
    """A prepared loader: each of its passes begins after the batches that are done."""

    _is_accelerate_prepared = True

    def __init__(self, accelerator: Accelerator, loader: Any, number: int) -> None:
        self._accelerator, self._loader, self._number = accelerator, loader, number

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> Iterator[Any]:
        progress, job, loader = self._accelerator._progress, self._accelerator._job, self._loader  # noqa: SLF001
        if not progress.is_training:
            yield from loader
            return
        batches = progress.passed(self._number)
        try:
            length = len(loader)
        except TypeError:  # of an iterable dataset
            length = None
        if skipped := progress.skipped(self._number, length):
            loader.set_epoch(loader.iteration)  # the new loader does not reach the sampler
            loader = accelerate.skip_first_batches(loader, skipped)
            batches += skipped
        job.begin_epoch(progress.epoch)
        for batch in loader:
            batches += 1
            progress.gave(self._number, batches)
            job.begin_step()
            yield batch
        if loader is not self._loader:
            self._loader.iteration += 1
