"""Steps as a script writes them: what counts, what is undone, and what is said of mistakes."""

import pytest
import torch
import torch.distributed as dist

import lumctl.training.torch as recovery
from lumctl.errors import UsageError
from lumctl.training.torch.agent_link import Environment
from lumctl.training.torch.collectives import AgreedAllReduce, average
from lumctl.training.torch.member import in_short, of_group
from lumctl.training.torch.training_state import TrainingState


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    for name in ("LUMCTL_JOB_SOCKET", "RANK", "WORLD_SIZE", "MASTER_ADDR"):
        monkeypatch.delenv(name, raising=False)


def test_without_an_optimiser_a_step_counts_when_its_body_ends():
    with recovery.attach(model=torch.nn.Linear(1, 1)) as job:
        for step in job.steps(3):
            with step:
                step.report(torch.tensor(1.0))
        assert (step.number, job.rank, job.world, job.device.type) == (2, 0, 1, "cpu")


def test_a_step_that_is_taken_must_be_done():
    with recovery.attach() as job:
        steps = job.steps(2)
        next(steps)
        with pytest.raises(UsageError, match="step 0 was taken"):
            next(steps)


def test_the_optimiser_may_step_once_in_a_step():
    parameter = torch.nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([parameter], lr=0.1)
    with recovery.attach(optimizer=optimizer) as job, next(job.steps(2)):
        optimizer.step()
        with pytest.raises(UsageError, match="stepped twice in step 0"):
            optimizer.step()


def test_a_layout_that_is_not_known_is_refused():
    with pytest.raises(UsageError, match="'sharded' is not a known layout"):
        recovery.attach(layout="sharded")


def test_a_part_that_is_interrupted_is_what_it_was_before():
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4))
    sampler = torch.optim.lr_scheduler.StepLR(torch.optim.SGD(model.parameters(), lr=1.0), 2)
    work = TrainingState({"model": model, "state.sampler": sampler}, layout="replicated", seed=1, shape=None)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    work.begin(0)
    drawn = torch.randn(8, 4)
    model(drawn).sum().backward()
    sampler.last_epoch += 1
    model[1].running_mean = torch.zeros(4)  # another tensor in its place
    work.undo()
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert sampler.last_epoch == 0
    assert all(parameter.grad is None for parameter in model.parameters())
    work.begin(0)
    assert torch.equal(torch.randn(8, 4), drawn)
    work.end()
    work.begin(0)
    assert not torch.equal(torch.randn(8, 4), drawn)


def test_a_state_of_another_script_is_refused_before_anything_is_replaced():
    model = torch.nn.Linear(1, 1)
    work = TrainingState({"model": model}, layout="replicated", seed=None, shape=None)
    with pytest.raises(UsageError, match="does not fit a script that has model"):
        work.load({"model": {}, "optimizer": {}}, 3)
    assert work.done == 0


def test_gradients_are_divided_and_none_is_made_where_none_is():
    has, lacks = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(2))
    has.grad = torch.tensor([2.0, 4.0])
    average([has, lacks], AgreedAllReduce(), world=1, divide_by=2)
    assert has.grad.tolist() == [1.0, 2.0]
    assert lacks.grad is None


GLOO = "[/__w/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:538] Connection closed by peer"


@pytest.mark.parametrize(
    ("error", "is_broken", "is_group"),
    [
        (RuntimeError(GLOO), True, True),
        (RuntimeError("gloo says it in other words"), True, True),
        (RuntimeError("Connection reset by peer"), False, False),  # of the script's own data source, say
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied (3x4 and 5x6)"), False, False),
        (dist.DistBackendError("NCCL error"), False, True),
        (dist.DistNetworkError("gone"), False, True),
        (ValueError("Connection closed"), True, False),
        (torch.OutOfMemoryError("CUDA out of memory"), True, False),
    ],
)
def test_whether_an_error_is_the_groups_is_told_by_its_type_and_by_who_failed_first(error, is_broken, is_group):
    assert of_group(error, is_broken=is_broken) is is_group


def test_an_error_is_told_without_a_path_of_somebody_elses_machine():
    assert in_short(RuntimeError(GLOO)) == "[pair.cc:538] Connection closed by peer"


def test_an_environment_that_lacks_a_part_is_said_without_the_token():
    given = {"LUMCTL_JOB_SOCKET": "/x", "LUMCTL_JOB": "j", "LUMCTL_JOB_WORKER": "a#1", "LUMCTL_JOB_TOKEN": "secret"}
    with pytest.raises(UsageError, match="LUMCTL_JOB_FOLDER"):
        Environment.read(given)
    assert "secret" not in repr(Environment.read({**given, "LUMCTL_JOB_FOLDER": "/y"}))
    assert Environment.read({}) is None
