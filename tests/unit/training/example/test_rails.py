"""Two replicas of two stages of two slices over gloo, beside one process that holds the whole model."""

import copy
import json
import os
import runpy
import subprocess
import sys
from itertools import groupby
from pathlib import Path

import pytest
import torch

from lumctl.training.example import rails
from lumctl.training.example.data import Windows, own_text, read_losses
from lumctl.training.example.model import Llama
from lumctl.training.example.parallelism import adamw, set_rate, share_of_loss

SCRIPT = Path(__file__).with_name("rails_rank.py")
SETTINGS = runpy.run_path(str(SCRIPT), run_name="rails_rank")
RUNS, STEPS, WORLD = (SETTINGS[name] for name in ("RUNS", "STEPS", "WORLD"))


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """The folder that the ranks filled."""
    folder = tmp_path_factory.mktemp("ranks")
    subprocess.run([sys.executable, SCRIPT, folder], env={**os.environ, "OMP_NUM_THREADS": "1"}, check=True)
    return folder


@pytest.fixture(scope="module")
def alone():
    """The losses of one process. Its model, too, has two matrices for embedding and output."""
    size = rails.RAIL_SIZES["tiny"]
    model = Llama(size, seed=1)
    output = copy.deepcopy(model.ends)
    optimizer = adamw([model.ends.embedding, *model.blocks.parameters(), *output.parameters()])
    windows = Windows(own_text(), context=size.context, sequences=size.sequences, seed=1)
    losses = []
    for step in range(STEPS):
        tokens = windows.batch(step)
        set_rate(optimizer, step, STEPS)
        optimizer.zero_grad()
        loss = share_of_loss(output.loss(model.hidden(tokens[:, :-1]), tokens[:, 1:]), size)
        torch.autograd.backward(loss)
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("run", RUNS)
def test_the_losses_are_those_of_one_process(found, alone, run):
    assert list(read_losses(found / run).values()) == pytest.approx(alone, rel=1e-6)
    assert alone[-1] < alone[0] - 0.05


def test_another_run_has_the_same_losses_to_the_last_bit(found):
    assert (found / "again").read_bytes() == (found / "replicas").read_bytes()


def phases(found, run, rank):
    """The phases of a rank in their order: tensor-parallel ranks share a host, and the group of all needs none."""
    names = {2: "pipeline", 4: "gradients"}
    groups = json.loads((found / f"order-{rank}").read_text())[run]
    far = [names[group[1] - group[0]] for group in groups if len(group) < WORLD and group[1] - group[0] > 1]
    return [name for name, _ in groupby(far)]


@pytest.mark.parametrize("rank", range(WORLD))
def test_gradients_follow_when_all_transfers_of_the_pipeline_are_done(found, rank):
    assert phases(found, "replicas", rank) == ["pipeline", "gradients"] * STEPS
    # The first step connects the stages; in each, sharded parameters are gathered before the transfers.
    assert phases(found, "shards", rank) == ["pipeline", "gradients"] * (1 + STEPS)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "--data 2 --stages 2 --tensor 2 are 8 ranks, not 1"),
        (["--data", "3"], "16 sequences of a step cannot be cut into 6 equal micro-batches"),
        (["--stages", "3"], "2 layers cannot be divided among 3 stages"),
        (["--tensor", "4"], "2 heads of keys and values cannot be cut into 4 equal slices"),
        (["--data", "1", "--stages", "1", "--tensor", "1"], "a rank alone has no process group"),
    ],
)
def test_ranks_that_do_not_fit_are_a_line_of_error(monkeypatch, capsys, options, message):
    monkeypatch.setattr("sys.argv", ["rails", *options])
    assert rails.main() == 2
    assert capsys.readouterr().err.splitlines()[0] == f"error: {message}"
