"""Scripts with a framework that owns the loop continue from a checkpoint of any step as if they had never stopped."""

from pathlib import Path

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from lumctl.training.torch.restart import current_job


class StopError(Exception):
    """The script ends here."""


class Numbers(Dataset):
    """Sixteen samples, in the form that each framework takes."""

    def __len__(self) -> int:
        return 16

    def __getitem__(self, at: int) -> dict[str, torch.Tensor]:
        return {"x": torch.tensor([float(at), 1.0]), "labels": torch.tensor(at)}


class Model(nn.Module):
    """A model that notes the samples of each step, and stops when so many steps are done."""

    def __init__(self, seen: list, stop: int | None) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.linear = nn.Linear(2, 1)
        self.seen, self.stop = seen, stop

    def forward(self, x, labels):
        done = current_job().done
        if done == self.stop:
            raise StopError
        self.seen.append((done, labels.tolist()))
        return {"loss": (nn.functional.dropout(self.linear(x), 0.5) ** 2).mean()}

    def values(self) -> list[float]:
        return [*self.linear.weight.detach().flatten().tolist(), *self.linear.bias.detach().tolist()]


def with_trainer(folder: Path, seen: list, stop: int | None):
    transformers = pytest.importorskip("transformers")
    from lumctl.training.torch.transformers import run, train

    def main():
        model = Model(seen, stop)
        counts = {"per_device_train_batch_size": 2, "gradient_accumulation_steps": 2, "num_train_epochs": 3}
        quiet = {"report_to": "none", "save_strategy": "no", "disable_tqdm": True, "remove_unused_columns": False}
        arguments = transformers.TrainingArguments(
            str(folder), use_cpu=True, learning_rate=0.01, logging_steps=3, **counts, **quiet
        )
        trainer = transformers.Trainer(model=model, args=arguments, train_dataset=Numbers())
        trainer.remove_callback(transformers.PrinterCallback)
        train(trainer)
        return model.values(), [each["loss"] for each in trainer.state.log_history if "loss" in each]

    return run(lambda _: main(), checkpoint=folder, every=1)


def with_accelerate(folder: Path, seen: list, stop: int | None):
    pytest.importorskip("accelerate")
    from lumctl.training.torch.accelerate import Accelerator, run

    def main():
        accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
        model = Model(seen, stop)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        model, optimizer, loader, checked = accelerator.prepare(
            model, optimizer, DataLoader(Numbers(), 2, shuffle=True), DataLoader(Numbers(), 4)
        )
        assert len(loader) == 8
        for _ in accelerator.epochs(3):
            for batch in loader:
                with accelerator.accumulate(model):
                    accelerator.backward(model(**batch)["loss"])
                    optimizer.step()
                    optimizer.zero_grad()
            assert sum(len(batch["labels"]) for batch in checked) == 16
        return model.values()

    return run(lambda _: main(), checkpoint=folder, every=1)


def with_lightning(folder: Path, seen: list, stop: int | None):
    lightning = pytest.importorskip("lightning")
    from lumctl.training.torch.lightning import fit, run

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.inner = Model(seen, stop)

        def training_step(self, batch, _number):
            return self.inner(**batch)["loss"]

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters(), lr=0.01)

    def main():
        quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
        trainer = lightning.Trainer(
            accelerator="cpu", max_epochs=3, accumulate_grad_batches=2, enable_model_summary=False, **quiet
        )
        model = Module()
        fit(trainer, model, DataLoader(Numbers(), 2, shuffle=True))
        return model.inner.values()

    return run(lambda _: main(), checkpoint=folder, every=1)


@pytest.mark.parametrize("script", [with_trainer, with_accelerate, with_lightning])
@pytest.mark.filterwarnings("ignore")
def test_a_script_continues_at_any_step(tmp_path, script) -> None:
    whole: list = []
    unbroken = script(tmp_path / "unbroken", whole, None)
    assert [done for done, _ in whole] == [step for step in range(12) for _ in range(2)]
    for stop in (1, 3, 4, 6, 8, 11):
        with pytest.raises(StopError):
            script(tmp_path / str(stop), [], stop)
        again: list = []
        assert script(tmp_path / str(stop), again, None) == unbroken, stop
        first = next(done for done, _ in again)
        assert again == [each for each in whole if each[0] >= first]
        assert stop - 1 <= first <= stop
