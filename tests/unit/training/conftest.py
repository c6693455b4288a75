"""Recoveries to be told of and drawn, and a fake cluster."""

import pytest
from fake_cluster import FakeCluster, at_work

from lumctl.training.timeline import KnownBy, Timeline

T0 = 1_800_000_000.0
TIMES = {
    "detected": 0.002,
    "held": 0.009,
    "state": 0.02,
    "health": 0.04,
    "planned": 0.06,
    "circuits": 0.08,
    "verified": 0.13,
    "joined": 0.16,
    "step": 0.19,
}


@pytest.fixture
def recovered():
    """A recovery; ``times`` are seconds since the failure, a moment that is ``None`` did not come."""

    def make(slower=1.0, known_by=KnownBy.KILL, about=None, **times):
        found = {name: at for name, at in {**TIMES, **times}.items() if at is not None}
        told = {"job": "train", "cause": "killed", "failed": ("h2-gpu0",), "replaced_by": ("h5-gpu0",), "run": "r1"}
        since = {name: T0 + at * slower for name, at in found.items()}
        return Timeline.since(T0, known_by, since, **(told if about is None else about))

    return make


@pytest.fixture
def cluster(tmp_path):
    """A job of which one step is done."""
    return at_work(FakeCluster(tmp_path))
