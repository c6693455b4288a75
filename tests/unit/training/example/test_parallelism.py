"""Three ranks over gloo: 16 sequences, 4 layers and most vectors do not fall into three equal parts."""

import copy
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from lumctl.errors import UsageError
from lumctl.training.example.model import SIZES, Llama
from lumctl.training.example.parallelism import WAYS, learner
from lumctl.training.example.served_models import SERVED, served

WORLD = 3
SCRIPT = Path(__file__).with_name("rank.py")
RANK = runpy.run_path(str(SCRIPT), run_name="rank")
NAMES = ("QUESTION", "SERVED_SIZE", "STEPS", "average", "train")
QUESTION, SERVED_SIZE, STEPS, average, train = (RANK[name] for name in NAMES)


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What each rank found, by rank."""
    folder = tmp_path_factory.mktemp("ranks")
    subprocess.run(
        [sys.executable, SCRIPT, str(WORLD), folder], env={**os.environ, "OMP_NUM_THREADS": "1"}, check=True, timeout=55
    )
    return [torch.load(folder / f"{rank}.pt") for rank in range(WORLD)]


@pytest.fixture(scope="module")
def alone():
    """The same by one process that holds everything and averages with nobody."""
    torch.set_num_threads(1)
    return train("data", 0, 1)


def close(one, other):
    return all(torch.allclose(a, b, rtol=1e-4, atol=1e-7) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("way", WAYS)
def test_every_rank_learns_the_loss_of_one_that_does_it_all(found, alone, way):
    assert all(rank[way]["losses"] == found[0][way]["losses"] for rank in found)
    assert found[0][way]["losses"] == pytest.approx(alone["losses"], rel=1e-5)
    assert alone["losses"][-1] < alone["losses"][0] - 0.05


def test_data_parallel_ranks_hold_the_same_to_the_last_bit(found):
    first, *others = (rank["data"]["weights"] for rank in found)
    assert all(torch.equal(first[name], other[name]) for other in others for name in first)


def test_data_parallel_gradients_are_those_of_one(found, alone):
    assert close(found[0]["data"]["gradients"], alone["gradients"])


def test_shards_put_together_are_the_gradients_of_one(found, alone):
    units = [torch.cat(parts) for parts in zip(*(rank["sharded"]["gradients"] for rank in found), strict=True)]
    whole = torch.cat([gradient.flatten() for gradient in alone["gradients"]])
    at = 0
    for unit, count in zip(units, unit_sizes(), strict=True):
        assert len(unit) % WORLD == 0
        assert close([unit[:count]], [whole[at : at + count]])
        assert not unit[count:].any()
        at += count
    assert at == len(whole)


def unit_sizes():
    model = Llama(SIZES["tiny"], seed=1)
    return [sum(p.numel() for p in unit.parameters()) for unit in (model.ends, *model.blocks)]


def test_stages_in_their_order_are_the_gradients_of_one(found, alone):
    assert close([gradient for rank in found for gradient in rank["pipeline"]["gradients"]], alone["gradients"])
    assert [len(rank["pipeline"]["gradients"]) for rank in found] == [2 + 9, 9, 2 * 9]


def test_a_shard_is_a_part_of_the_state(found, alone):
    for rank in found:
        assert rank["sharded"]["bytes"] < alone["bytes"] / WORLD * 1.01
        assert rank["data"]["bytes"] == alone["bytes"]
    assert sum(rank["pipeline"]["bytes"] for rank in found) == alone["bytes"]


def test_the_same_again_is_the_same_to_the_last_bit(found):
    for rank in found:
        assert rank["again"]["losses"] == rank["sharded"]["losses"]
        assert len(rank["again"]["losses"]) == STEPS


@pytest.mark.parametrize("way", SERVED)
def test_ranks_answer_together_what_one_would(found, way):
    whole = Llama(SERVED_SIZE, seed=1)(QUESTION)  # two sequences: one of three ranks has none
    assert torch.allclose(found[0]["answers"][way], whole, atol=1e-5)
    assert [rank["answers"][way] is None for rank in found] == [False, True, True]


def test_layers_that_have_no_equal_slices_are_refused():
    ours = served("tensor", SIZES["tiny"], seed=1)
    with pytest.raises(UsageError, match="256 cannot be cut into 3 equal slices"):
        ours.shape(0, 3)


@pytest.mark.parametrize("way", ["sharded", "pipeline"])
def test_a_rank_alone_does_it_all(alone, way):
    assert train(way, 0, 1)["losses"] == pytest.approx(alone["losses"], rel=1e-5)


@pytest.mark.parametrize("way", ["sharded", "pipeline"])
def test_a_worker_takes_over_the_state_of_any_rank(way):
    dead, spare = (learner(way, SIZES["tiny"], seed=1, average=average) for _ in range(2))
    dead.shape(0, 1)
    for parameter in dead.model.parameters():
        parameter.grad = torch.full_like(parameter, 0.5)
    dead.optimizer.step()
    spare.shape(1, 2)  # another rank first: nothing of it may stay
    spare.shape(0, 1)
    spare.model.load_state_dict(dead.model.state_dict())
    spare.optimizer.load_state_dict(copy.deepcopy(dead.optimizer.state_dict()))
    for parameter in (*dead.model.parameters(), *spare.model.parameters()):
        parameter.grad = torch.full_like(parameter, 0.25)
    dead.optimizer.step()
    spare.optimizer.step()
    pairs = zip(dead.model.parameters(), spare.model.parameters(), strict=True)
    assert all(torch.equal(one, other) for one, other in pairs)


def test_a_pipeline_has_no_more_stages_than_layers():
    with pytest.raises(UsageError, match="4 layers cannot be divided among 5 ranks"):
        learner("pipeline", SIZES["tiny"], seed=1, average=average).shape(4, 5)
