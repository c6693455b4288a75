"""Two engines that place slices on the same accelerators at the same time, with their store in PostgreSQL."""

import json
import os
import subprocess
import sys

import pytest
from racks import ENGINE, rack_of
from tenants import planned
from waiting import until

from lumctl.change import apply, to_document
from lumctl.slices.release import plan_release

ROUNDS = 100 if "LUMCTL_CAMPAIGN" in os.environ else 3


@pytest.fixture(scope="module")
def rack(tmp_path_factory, postgres):
    yield from rack_of("torus64", tmp_path_factory.mktemp("contended"), place=postgres.fresh(), light_deadline_s=30.0)


def engine(rack, plan):
    order = {"inventory": str(rack.inventory.path), "folder": str(rack.folder), "plan": plan.id, "place": rack.place}
    return subprocess.Popen([sys.executable, ENGINE, json.dumps(order)], stdout=subprocess.PIPE, text=True)


@pytest.mark.timeout(3600)
def test_of_two_that_want_the_same_accelerators_one_gets_them(rack):
    winners = set()
    for turn in range(ROUNDS):
        # The same accelerators under two names, or two slices that share some of them.
        shapes = ("2x1x1", "2x1x1") if turn % 2 else ("2x2x1", "1")
        plans = [planned(rack, shape, job, hosts=("h08",)) for shape, job in zip(shapes, ("a", "b"), strict=True)]
        taken = [{row["accelerator"] for row in plan.slices.placement} for plan in plans]
        assert taken[0] & taken[1]
        for plan in plans:
            rack.store.runs.save_plan(to_document(plan))
        engines = [engine(rack, plan) for plan in plans]
        said = [each.communicate(timeout=120)[0] for each in engines]
        codes = [each.returncode for each in engines]
        assert codes.count(0) == 1, said
        lost = said[1 - codes.index(0)].splitlines()[-1]
        assert "is stale" in lost or "is busy" in lost or "lease" in lost, lost
        job = "ab"[codes.index(0)]
        winners.add(job)
        placed = rack.context.assignment()
        assert placed[job] == tuple(row["accelerator"] for row in plans[codes.index(0)].slices.placement)
        assert "ba"[codes.index(0)] not in placed
        until(lambda job=job: set(rack.ok_circuits(job)) <= {True})
        apply(rack.context, plan_release(rack.context, job))
    assert ROUNDS < 10 or winners == {"a", "b"}
