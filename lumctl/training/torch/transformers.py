"""Hugging Face's Trainer in a job: a recovery continues its loop at the interrupted step.

    from lumctl.training.torch.transformers import run, train

    def main():
        trainer = Trainer(...)
        train(trainer)              # instead of trainer.train()

    run(lambda job: main())

The state is in memory: :func:`train` writes no checkpoint. The Trainer's own ``save_strategy`` works as before.
"""

import dataclasses
import json
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from transformers import Trainer, TrainerCallback, TrainerControl, TrainerState, TrainingArguments
from transformers.trainer_callback import ExportableState

from lumctl.training.torch.accelerate_states import forget_group
from lumctl.training.torch.launch_variables import run_with
from lumctl.training.torch.restart import RestartableJob, current_job

T = TypeVar("T")

_INTERVALS = ("logging_steps", "eval_steps", "save_steps")
# What a new Trainer finds out by itself, what differs from rank to rank, and what is kept as text.
_NOT_KEPT = {
    *("max_steps", "num_train_epochs", "train_batch_size", "log_history", *_INTERVALS),
    *("is_local_process_zero", "is_world_process_zero", "trial_name", "trial_params", "stateful_callbacks"),
}
_COUNTS = ("_total_loss_scalar", "_globalstep_last_logged", "_initial_global_step", "current_flos")
"""What the Trainer itself counts for its logs."""


def run(main: Callable[[RestartableJob], T], **options: Any) -> T:
    """Call ``main`` again after a failure, as :func:`lumctl.training.torch.run` does; the options are the same."""
    return run_with(forget_group, main, options)


def train(trainer: Trainer) -> Any:
    """Call ``trainer.train()`` from the job's present step on; return its result.

    An evaluation that a failure interrupts is not repeated.
    """
    job = current_job()
    done = job.done
    trainer.add_callback(_Steps(trainer, job))
    if not done:
        return trainer.train()
    # The Trainer reads its position from a file, and the weights beside it; these are loaded when the model is wrapped.
    trainer._load_from_checkpoint = lambda *_, **__: None  # noqa: SLF001 - there is no public way
    args = trainer.args
    position = {name: getattr(args, name) for name in (*_INTERVALS, "train_batch_size")}
    position["global_step"] = done if done < args.max_steps or args.max_steps <= 0 else sys.maxsize
    with tempfile.TemporaryDirectory(prefix="lumctl-trainer-") as folder:
        (Path(folder) / "trainer_state.json").write_text(json.dumps(position))
        return trainer.train(resume_from_checkpoint=folder)


class _Steps(TrainerCallback):
    """Begins and ends the steps of the job, in which the Trainer's events happen."""

    def __init__(self, trainer: Trainer, job: RestartableJob) -> None:
        self._trainer, self._job = trainer, job

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **of: Any) -> None:
        """Hand over all parts; their state is loaded."""
        del control
        state.compute_steps(args, state.max_steps)
        scaler = getattr(self._trainer.accelerator, "scaler", None)
        self._job.track(
            model=of["model"],
            optimizer=of["optimizer"].optimizer,
            scheduler=of["lr_scheduler"],
            trainer=_TrainerPart(self._trainer),
            **({} if scaler is None else {"scaler": scaler}),
        )

    def on_epoch_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Seed what the loader draws."""
        del args, control
        self._job.end_step()
        self._job.begin_epoch(int(state.epoch or 0))

    def on_step_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """End the step before: its log and its evaluation belong to it."""
        del args, state, control
        self._job.end_step()
        self._job.begin_step()

    def on_log(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **of: Any) -> None:
        """Report a loss."""
        del args, state, control
        if "loss" in (of.get("logs") or {}):
            self._job.report(float(of["logs"]["loss"]))


class _TrainerPart:
    """What a Trainer and its callbacks count, besides the model, the optimiser and the scheduler."""

    def __init__(self, trainer: Trainer) -> None:
        self._trainer = trainer
        self._history = (0, "[]")
        """The number of entries in the log, and these as text: it is copied in each step, and may be long."""

    def _callbacks(self) -> list[Any]:
        return [each for each in self._trainer.callback_handler.callbacks if isinstance(each, ExportableState)]

    def state_dict(self) -> dict[str, Any]:
        """Its state: texts, and the sum of the losses since the last log."""
        state, trainer = self._trainer.state, self._trainer
        if self._history[0] != len(state.log_history):
            self._history = (len(state.log_history), json.dumps(state.log_history))
        names = sorted({field.name for field in dataclasses.fields(state)} - _NOT_KEPT)
        counts = {
            "state": {name: getattr(state, name) for name in names},
            "trainer": {name: getattr(trainer, name) for name in _COUNTS},
            "callbacks": [each.state()["attributes"] for each in self._callbacks()],
        }
        return {"counts": json.dumps(counts), "history": self._history[1], "loss": trainer._tr_loss}  # noqa: SLF001

    def load_state_dict(self, kept: Mapping[str, Any]) -> None:
        """Continue from another state."""
        trainer, counts = self._trainer, json.loads(kept["counts"])
        callbacks = zip(self._callbacks(), counts["callbacks"], strict=True)
        for part, values in [(trainer.state, counts["state"]), (trainer, counts["trainer"]), *callbacks]:
            for name, value in values.items():
                setattr(part, name, value)
        trainer.state.log_history = json.loads(kept["history"])
        trainer._tr_loss.copy_(kept["loss"])  # noqa: SLF001 - the log has no public sum
