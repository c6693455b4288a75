"""Several processes queue, serve, cancel and return at random on one store: all goes on, and no spare is used twice."""

import os
import subprocess
import sys
import time
from ast import literal_eval
from collections import Counter

import pytest
import queue_user
from queue_user import ABOUT, JOBS, RACK

from lumctl.store import CANCELLED, NEEDLESS, SERVED, WAITING, Record, store_at

USERS = 3
ARRIVALS = 5_001 if os.environ.get("LUMCTL_CAMPAIGN") else 45
"""Arrivals at each kind of database; with both, the campaign has 10,000."""


@pytest.fixture(params=["sqlite", "postgres"])
def place(request, tmp_path):
    return f"sqlite:///{tmp_path / 'lumctl.db'}" if request.param == "sqlite" else request.getfixturevalue("fresh")


@pytest.fixture
def fresh(postgres):
    return postgres.fresh()


@pytest.mark.timeout(3600 if os.environ.get("LUMCTL_CAMPAIGN") else 120)
def test_several_processes_share_the_spares(place, tmp_path):
    store = store_at(place, files=tmp_path, rack=RACK)
    held = store.leases.acquire(RACK, "test", term_s=60.0, now=time.time())
    run = store.runs.begin(held, ABOUT, {"digest": "d"}, now=time.time())
    store.runs.end(held, run, Record(time.time(), "end", "", {"state": "done"}), "done", placed=JOBS)
    store.leases.release(held)

    command = [sys.executable, queue_user.__file__, place, str(tmp_path)]
    users = [
        subprocess.Popen([*command, str(seed), str(ARRIVALS // USERS)], stdout=subprocess.PIPE, text=True)
        for seed in range(USERS)
    ]
    done = Counter()
    for user in users:
        out, _ = user.communicate()
        assert user.returncode == 0
        done.update(literal_eval(out))
    ends = Counter(each.state for each in store.demands.all())
    assert ends.total() == done["arrived"] == ARRIVALS // USERS * USERS
    assert ends[CANCELLED] == done["cancelled"]
    # Who cancels while a run is on its way to serve the demand cancels the demand, not the run.
    assert 0 <= done["served"] - ends[SERVED] <= ends[CANCELLED]
    assert ends[WAITING] == ends.total() - ends[SERVED] - ends[CANCELLED] - ends[NEEDLESS]
    assert min(done[each] for each in ("served", "cancelled", "returned")) > 0
    assert store.first_break() is None
    store.close()
