"""A simulator that ends under a job is noticed, however it ends."""

import json
import subprocess
import sys
import threading

import pytest
from fake_cluster import FakeCluster, at_work

from lumctl.devices.endpoints import RUNTIME_FILE
from lumctl.training.coordinator.state import JobStage
from lumctl.training.job_run import GONE, SimulatorWatch

WITHIN_S = 20.0


@pytest.fixture
def simulator(tmp_path):
    """A process that passes for one, and its socket."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    lanes = tmp_path / "lanes.sock"
    lanes.touch()
    (tmp_path / RUNTIME_FILE).write_text(json.dumps({"pid": process.pid}))
    yield process, lanes
    process.kill()
    process.wait()
    process.stdin.close()


@pytest.mark.parametrize("how", ["killed", "in order"])
def test_its_end_is_told_once(simulator, how):
    process, lanes = simulator
    gone = threading.Event()
    watch = SimulatorWatch(lanes, gone.set)
    assert not gone.is_set()
    if how == "killed":
        process.kill()
    else:
        lanes.unlink()
    assert gone.wait(WITHIN_S)
    watch.close()


def test_one_that_lives_on_when_the_job_ends_is_not_told_of(simulator):
    gone = threading.Event()
    SimulatorWatch(simulator[1], gone.set).close()
    assert not gone.is_set()


@pytest.mark.parametrize("text", [None, "", "{}", '{"pid": "x"}'])
def test_one_of_which_nothing_is_known_is_not_watched(tmp_path, text):
    if text is not None:
        (tmp_path / RUNTIME_FILE).write_text(text)
    SimulatorWatch(tmp_path / "lanes.sock", pytest.fail).close()


def test_what_fails_without_a_simulator_has_it_for_its_reason(tmp_path):
    cluster = at_work(FakeCluster(tmp_path, restarts=1))
    object.__setattr__(cluster.effects, "lost", lambda: GONE)
    for number in (1, 2):
        cluster.kill(f"h0-a#{number}")
        cluster.settle()
    assert cluster.state.phase is JobStage.STOPPED
    assert cluster.state.why_ended == GONE
    assert f"the job stops: {GONE}" in cluster.said
