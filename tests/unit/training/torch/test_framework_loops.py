"""What an adapter uses of a job whose framework owns the loop: steps, positions, and the job itself."""

import pytest
import torch
from torch import nn

from lumctl.errors import UsageError
from lumctl.training.torch import run
from lumctl.training.torch.restart import current_job
from lumctl.training.torch.states import StateSnapshot
from lumctl.training.torch.training_state import TrainingState


def parts() -> tuple[nn.Module, torch.optim.Optimizer]:
    model = nn.Linear(2, 1)
    return model, torch.optim.SGD(model.parameters(), lr=0.1)


def backward(model: nn.Module) -> None:
    model(torch.ones(1, 2)).sum().backward()


def test_the_job_is_known_while_its_function_runs() -> None:
    def main(job) -> None:
        assert current_job() is job
        job.track(model=nn.Linear(1, 1))

    run(main)
    with pytest.raises(UsageError, match="no job runs here"):
        current_job()


def test_a_step_with_accumulated_gradients_goes_on_and_one_without_any_begins_again() -> None:
    def main(job) -> list[int]:
        model, optimizer = parts()
        job.track(model=model, optimizer=optimizer)
        done = []
        for batch in range(6):
            job.begin_step()
            done.append(job.done)
            if batch == 0:
                continue  # as an evaluation does
            backward(model)
            if batch % 2 == 0:
                optimizer.step()
                optimizer.zero_grad()
        optimizer.step()
        return [*done, job.done]

    assert run(main) == [0, 0, 0, 1, 1, 2, 3]


def test_an_ended_step_counts_even_if_the_optimiser_has_left_it_out() -> None:
    def main(job) -> int:
        model, optimizer = parts()
        job.track(model=model, optimizer=optimizer)
        for _ in range(3):
            job.end_step()
            job.begin_step()
        return job.done

    assert run(main) == 2


def test_the_same_numbers_are_drawn_in_each_call_epoch_and_step() -> None:
    def main(job) -> list[float]:
        drawn = [float(torch.rand(()))]
        model, optimizer = parts()
        job.track(model=model, optimizer=optimizer)
        job.begin_epoch(0)
        drawn.append(float(torch.rand(())))
        job.begin_step()
        return [*drawn, float(torch.rand(()))]

    first = run(main)
    torch.rand(7)
    assert run(main) == first
    assert len(set(first)) == 3


def test_a_loop_knows_the_step_of_its_checkpoint_before_it_makes_its_parts(tmp_path) -> None:
    begun = []

    def main(job, steps: int) -> float:
        begun.append(job.done)
        model, optimizer = parts()
        job.track(model=model, optimizer=optimizer)
        for _ in range(job.done, steps):
            job.begin_step()
            backward(model)
            optimizer.step()
            optimizer.zero_grad()
        return float(model.bias.detach())

    unbroken = run(lambda job: main(job, 4), checkpoint=tmp_path / "unbroken", every=1)
    begun.clear()
    run(lambda job: main(job, 2), checkpoint=tmp_path / "broken", every=1)
    assert run(lambda job: main(job, 4), checkpoint=tmp_path / "broken", every=1) == unbroken
    assert begun == [0, 2]


def test_a_generator_loads_a_state_that_is_a_view_of_a_snapshot() -> None:
    class Drawing:
        def __init__(self) -> None:
            self.generator = torch.Generator()

        def state_dict(self) -> dict:
            return {"generator": self.generator.get_state()}

        def load_state_dict(self, state: dict) -> None:
            self.generator.set_state(state["generator"])

    before, after = Drawing(), Drawing()
    before.generator.manual_seed(7)
    states = [
        TrainingState({"m": nn.Linear(1, 1), "d": each}, layout="replicated", seed=None) for each in (before, after)
    ]
    states[1].load(StateSnapshot.take(states[0].tree(), 1).tree(copied=False), 1)
    assert after.generator.get_state().equal(before.generator.get_state())
