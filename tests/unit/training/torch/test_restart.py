"""A script's function that is called again: it continues where it was, and no bit of the result is another."""

from collections.abc import Callable

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.utils.data import DataLoader, Dataset, IterableDataset

import lumctl.training.torch as recovery
from lumctl.errors import UsageError
from lumctl.training.torch import restart
from lumctl.training.torch.checkpoints import Persistence
from lumctl.training.torch.life import SingleProcess
from lumctl.training.torch.parts import load_part, local_state

EPOCHS, SAMPLES, BATCH = 3, 20, 4
STEPS = EPOCHS * SAMPLES // BATCH


class GroupBrokeError(RuntimeError):
    """What a collective raises if a peer has died."""


class Life(SingleProcess):
    """A process whose group may break: it is in a new one at once."""

    parked = 0

    def is_of_group(self, error: Exception) -> bool:
        return isinstance(error, GroupBrokeError)

    def park(self) -> None:
        self._state.undo()
        self.parked += 1
        self.has_orders = False


class Samples(Dataset):
    """Each sample has a random part that the process draws, as augmentation does."""

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, at: int) -> tuple[int, torch.Tensor]:
        return at, torch.full((6,), float(at)) + torch.rand(6)


@pytest.fixture
def lives(monkeypatch) -> list[Life]:
    """The lives of the runs in this test."""
    made: list[Life] = []

    def life_of(state, _checkpoint, every, device):
        made.append(Life(state, Persistence(state, None, every), device))
        return made[-1]

    monkeypatch.setattr(restart, "life_of", life_of)
    return made


class Script:
    """Trains a small network with everything that a repeated step could spoil; keeps which samples it saw."""

    def __init__(self, fails: Callable[[recovery.RestartableJob, int], None] = lambda _job, _place: None) -> None:
        self.fails = fails
        self.seen: list[list[int]] = []
        self.calls = 0

    def __call__(self, job: recovery.RestartableJob) -> dict[str, torch.Tensor]:
        self.calls += 1
        torch.manual_seed(7)
        model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Dropout(0.3), nn.Linear(8, 1))
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.9)
        loader = DataLoader(Samples(), BATCH, shuffle=True)
        job.track(model=model, optimizer=optimizer, scheduler=scheduler)
        for _ in job.epochs(EPOCHS):
            for numbers, inputs in job.batches(loader):
                optimizer.zero_grad()
                loss = model(inputs).square().mean()
                self.fails(job, 0)
                loss.backward()
                self.fails(job, 1)
                optimizer.step()
                scheduler.step()
                self.fails(job, 2)
                self.seen.append(numbers.tolist())
                job.report(loss)
        return {**model.state_dict(), "rate": torch.tensor(scheduler.get_last_lr())}


def equal(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def once(step: int, place: int) -> Callable[[recovery.RestartableJob, int], None]:
    """Fail once, at a place of a step."""
    left = [None]

    def fails(job: recovery.RestartableJob, at: int) -> None:
        # At the last place, the step counts already.
        if left and (job.done - (at == 2), at) == (step, place):
            left.pop()
            raise GroupBrokeError("Connection closed by peer")

    return fails


@pytest.mark.parametrize("place", [0, 1], ids=["after-forward", "after-backward"])
@pytest.mark.parametrize("step", [0, 1, 4, 5, 7, STEPS - 1])
def test_a_failure_changes_no_bit(lives, step, place) -> None:
    unfailed, failed = Script(), Script(once(step, place))
    assert equal(recovery.run(unfailed, checkpoint=False), recovery.run(failed, checkpoint=False))
    assert (failed.calls, lives[1].parked) == (2, 1)
    assert failed.seen == unfailed.seen


@pytest.mark.usefixtures("lives")
def test_a_step_whose_optimiser_has_stepped_is_not_done_again() -> None:
    unfailed, failed = Script(), Script(once(6, 2))
    assert equal(recovery.run(unfailed, checkpoint=False), recovery.run(failed, checkpoint=False))
    assert failed.seen == [batch for at, batch in enumerate(unfailed.seen) if at != 6]


def test_an_order_between_two_steps_ends_the_call_and_not_the_job(lives) -> None:
    unfailed = Script()

    def ordered(job, place) -> None:
        if (job.done, place, lives[-1].parked) == (6, 2, 0):
            lives[-1].has_orders = True

    paused = Script(ordered)
    assert equal(recovery.run(unfailed, checkpoint=False), recovery.run(paused, checkpoint=False))
    assert (paused.calls, paused.seen) == (2, unfailed.seen)


def test_another_error_ends_the_run(lives) -> None:
    def fails(_job, _place) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        recovery.run(Script(fails), checkpoint=False)
    assert lives[0].parked == 0


@pytest.mark.parametrize("step", [1, 4, 5, 7])
def test_a_process_that_died_continues_from_its_checkpoint(tmp_path, step) -> None:
    unfailed, later = Script(), Script()
    dies = Script(once(step, 1))
    wanted = recovery.run(unfailed, checkpoint=False)
    with pytest.raises(GroupBrokeError):
        recovery.run(dies, checkpoint=tmp_path, every=1)
    assert equal(recovery.run(later, checkpoint=tmp_path, every=1), wanted)
    assert dies.seen + later.seen == unfailed.seen


def test_a_checkpoint_of_another_model_is_an_error(tmp_path) -> None:
    def main(job, width: int) -> None:
        job.track(model=nn.Linear(width, 1))
        assert [*job.steps(2)]

    recovery.run(lambda job: main(job, 2), checkpoint=tmp_path, every=1)
    with pytest.raises(UsageError, match=r"the state after 2 steps does not fit these parts: .*size mismatch"):
        recovery.run(lambda job: main(job, 3), checkpoint=tmp_path, every=1)


@pytest.mark.usefixtures("lives")
def test_gradients_of_several_batches_make_one_step() -> None:
    def script(fails):
        counts = []

        def main(job):
            torch.manual_seed(1)
            model = nn.Linear(6, 1)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
            job.track(model=model, optimizer=optimizer)
            for _ in job.epochs(2):
                for _, inputs in job.batches(DataLoader(Samples(), BATCH, shuffle=True), accumulate=2):
                    model(inputs).sum().backward()
                    fails(job, 0)
                    if job.is_end_of_step:
                        optimizer.step()
                        optimizer.zero_grad()
                counts.append(job.done)
            return model.state_dict()

        return recovery.run(main, checkpoint=False), counts

    (unfailed, counts), (failed, _) = script(lambda *_: None), script(once(4, 0))
    assert equal(unfailed, failed)
    assert counts[0] == 3


@pytest.mark.usefixtures("lives")
def test_gradients_that_no_step_has_used_are_an_error() -> None:
    def main(job):
        model = nn.Linear(6, 1)
        job.track(model=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.01))
        for _, inputs in job.batches(DataLoader(Samples(), BATCH)):
            model(inputs).sum().backward()

    with pytest.raises(UsageError, match="gradients that the optimiser has not used") as caught:
        recovery.run(main, checkpoint=False)
    assert "accumulate=N" in caught.value.hint


@pytest.mark.usefixtures("lives")
def test_a_step_that_a_gradient_scaler_leaves_out_is_done() -> None:
    def main(job):
        model = nn.Linear(6, 1)
        optimizer, scaler = torch.optim.SGD(model.parameters(), lr=0.01), torch.amp.GradScaler("cpu")
        job.track(model=model, optimizer=optimizer, scaler=scaler)
        before = model.weight.detach().clone()
        for number in job.steps(3):
            optimizer.zero_grad()
            scaler.scale(model(torch.full((1, 6), torch.inf if number < 2 else 1.0)).sum()).backward()
            scaler.step(optimizer)
            scaler.update()
            assert torch.equal(model.weight, before) == (number < 2)
        return job.done

    assert recovery.run(main, checkpoint=False) == 3


@pytest.mark.usefixtures("lives")
def test_steps_count_where_a_script_has_no_batches() -> None:
    seen = []

    def main(job):
        model = nn.Linear(1, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        job.track(model=model, optimizer=optimizer)
        for number in job.steps(6):
            seen.append(number)
            model(torch.rand(1, 1)).sum().backward()
            if seen == [0, 1, 2]:
                raise GroupBrokeError
            optimizer.step()
            optimizer.zero_grad()
        return job.done

    assert recovery.run(main, checkpoint=False) == 6
    assert seen == [0, 1, 2, 2, 3, 4, 5]


@pytest.mark.usefixtures("lives")
def test_a_break_leaves_no_step_open() -> None:
    def main(job):
        job.track(counter=restart.Position())
        for number in job.steps(100):
            if number == 3:
                break
        return job

    assert recovery.run(main, checkpoint=False).done == 4


def test_batches_of_an_iterable_are_dropped_and_those_of_a_sampler_not_loaded() -> None:
    class Numbers(IterableDataset):
        def __iter__(self):
            return iter(range(10))

    loaded = []

    class Recorded(Dataset):
        def __len__(self):
            return 10

        def __getitem__(self, at):
            loaded.append(at)
            return at

    assert [each.tolist() for each in restart.after_batches(DataLoader(Numbers(), 2), 3)] == [[6, 7], [8, 9]]
    loader = DataLoader(Recorded(), 2)
    assert [each.tolist() for each in restart.after_batches(loader, 3)] == [[6, 7], [8, 9]]
    assert loaded == [6, 7, 8, 9]
    assert len(list(loader)) == 5
    assert list(restart.after_batches([1, 2, 3], 1)) == [2, 3]


@pytest.mark.parametrize(
    ("main", "says"),
    [
        (lambda job: [*job.steps(1)], "a step begins before the parts of the state are known"),
        (lambda job: [job.track(), job.track()], "track was called twice"),
    ],
)
@pytest.mark.usefixtures("lives")
def test_what_a_script_must_not_do(main, says) -> None:
    with pytest.raises(UsageError, match=says):
        recovery.run(main, checkpoint=False)


@pytest.fixture
def alone():
    """A process group of one rank."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield init_device_mesh("cpu", (1,))
    dist.destroy_process_group()


def test_shards_in_a_job_whose_ranks_hold_the_same_are_refused(alone) -> None:
    def main(job):
        job.track(model=fully_shard(nn.Linear(2, 2), mesh=alone))

    with pytest.raises(UsageError, match="each rank has a part of weight") as caught:
        recovery.run(main, checkpoint=False, device="cpu")
    assert caught.value.hint == "pass layout='unique'"


def test_the_state_of_shards_is_that_of_their_local_tensors(alone) -> None:
    def trained(seed):
        torch.manual_seed(seed)
        model = fully_shard(nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2)), mesh=alone)
        optimizer = torch.optim.AdamW(model.parameters())
        model(torch.ones(1, 4)).sum().backward()
        optimizer.step()
        return model, optimizer

    (model, optimizer), (other, others) = trained(1), trained(2)
    states = [local_state(model), local_state(optimizer)]
    assert type(states[0]["0.weight"]) is torch.Tensor
    assert type(states[1]["state"][0]["exp_avg"]) is torch.Tensor
    load_part(other, states[0])
    load_part(others, states[1])
    assert equal(local_state(other), states[0])
    assert equal(local_state(others)["state"][1], states[1]["state"][1])
    assert type(others.state_dict()["state"][0]["exp_avg"]).__name__ == "DTensor"
    other(torch.ones(1, 4)).sum().backward()
    others.step()
