"""Schedules executed by gloo ranks: sums are exact where they can be, and the same bits on all ranks and each time."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

SCRIPT = Path(__file__).with_name("scheduled_ranks.py")
WORLDS = (2, 3, 4, 6)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What each rank of each group found, in files."""
    made, environment = tmp_path_factory.mktemp("ranks"), {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, SCRIPT, made, *map(str, WORLDS)], env=environment, check=True, timeout=55)
    return made


@pytest.fixture(scope="module", params=WORLDS)
def found(request, folder):
    """What each rank of a group found, by rank."""
    return [torch.load(folder / f"{request.param}-{rank}.pt") for rank in range(request.param)]


def ways(found):
    return [way for way in found[0] if way not in {"gloo", "averaged"}]


def test_sums_are_those_of_gloo(found):
    for way in ways(found):
        for ours, gloo in zip(found[0][way], found[0]["gloo"], strict=True):
            if ours.dtype == torch.float64:  # integers: exact in any order
                assert torch.equal(ours, gloo), way
            else:
                assert torch.allclose(ours.float(), gloo.float(), rtol=2e-2, atol=1e-1), way


def test_all_ranks_have_the_same_bits_and_so_has_a_second_run(found):
    for way in ways(found):
        for rank in found[1:]:
            assert all(map(torch.equal, rank[way], found[0][way])), way
    assert all(map(torch.equal, found[0]["ring"], found[0]["again"]))


def test_a_late_rank_of_which_rank_0_knows_is_taken_into_account_by_all_from_the_next_step_on(found):
    """Rank 99 is none of the group."""
    world = len(found)
    for rank in found:
        for steps in rank["averaged"].values():
            assert [used for used, _ in steps] == [[], [], [1], [1], [0], [], [], []]
            assert [gradient[0].item() for _, gradient in steps[:-1]] == pytest.approx(
                [(world - 1) / 2 + step for step in range(7)], rel=0.01
            )
