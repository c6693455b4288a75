"""A job whose light changes between the phases of each step: a simulated rack, its gateway, and real ranks of gloo."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest
from waiting import until

from tests.bench.rails import demo

STEPS, CHANGE_MS = 60, 5
WITHIN_S = 90.0


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """The losses under torchrun, all ranks connected all the time."""
    folder = tmp_path_factory.mktemp("connected")
    demo.connected(folder, STEPS)
    return demo.losses(folder / "connected")


@contextmanager
def running(environment):
    """``lumctl job run`` in a process of its own."""
    command = [sys.executable, "-m", "lumctl", "job", "run", "train", "--yes"]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def status(environment):
    return json.loads(demo.lumctl(environment, "job", "status", "train", "-o", "json"))


def profile_of(environment, plan):
    shown = demo.lumctl(environment, "job", "phases", "train", "--profile", plan, "-o", "json")
    return json.loads(shown)["profile"]


def steps_done(folder):
    path = folder / "light"
    return len(path.read_text().splitlines()) if path.exists() else 0


@pytest.fixture
def folder():
    """A folder whose path is short enough for sockets."""
    with tempfile.TemporaryDirectory(prefix="lumctl-") as made:
        yield Path(made)


def test_a_rank_and_lumctl_are_killed_in_a_step_and_no_loss_differs(folder, reference):
    with demo.rack(folder, STEPS, CHANGE_MS) as environment:
        with running(environment) as first:
            until(lambda: steps_done(folder), within_s=WITHIN_S)
            os.kill(status(environment)["ranks"][5]["pid"], signal.SIGKILL)
            done = steps_done(folder)
            until(lambda: steps_done(folder) > done + 2, within_s=WITHIN_S)
            first.kill()
            first.wait()
        with running(environment) as second:
            assert second.wait(WITHIN_S) == 0, second.stderr.read()
        ended = status(environment)
        assert "the ranks pass through the phases" in demo.lumctl(environment, "job", "phases", "train", "--check")
        profile = profile_of(environment, ended["light"]["plan"])
    assert demo.losses(folder / "light") == reference
    assert (ended["state"], ended["done"]) == ("ended", STEPS)
    assert ended["generation"] == 3
    assert {(row["left"], row["rank"]) for row in profile["boundaries"]} >= {
        (phase, rank) for phase in ("pipeline", "gradients") for rank in range(demo.RANKS)
    }
    for row in profile["boundaries"]:
        assert row["change_s"]["median"] >= 0, row
        assert row["window_s"] is None or row["window_s"]["median"] < profile["model"]["measured_s"], row
    modes = profile["model"]["modes"]
    assert all(0 <= each["stall_s"] <= modes["on-demand"]["stall_s"] for each in modes.values())
    assert modes["on-demand"]["stall_s"] > 0
    assert 0 < modes["on-demand"]["utilisation"] < 1
    light = ended["light"]
    assert light["lit"] == {}
    assert light["failed_changes"] == 0
    titles = json.loads(demo.lumctl(environment, "swap", "list", "-o", "json"))["runs"]
    assert [run["title"] for run in titles][:1] == ["train: end the changes between its phases"]
