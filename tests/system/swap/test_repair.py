"""Transmitters that are not as the record wants them: one command repairs the rack, and shows first what it will do."""

import os
import signal
import time

import pytest

from lumctl.change import apply
from lumctl.change.plan import Do
from lumctl.change.resumption import ABORT, RESUME, abort, outlook, resume
from lumctl.swap import plan_fabric, plan_rollback, plan_swap

REPLACED = {"s1-gpu0-a", "s1-gpu0-b"}


@pytest.fixture(scope="module")
def rack(rack_of, tmp_path_factory):
    made = rack_of("prototype", tmp_path_factory.mktemp("repair"))
    yield next(made)
    next(made, None)


def switch(rack, lane, *, on):
    """Behind lumctl's back, as an engine that was frozen does when it wakes up."""
    rack.context.devices.transponder(lane).set_transmit(on)


def dark(rack):
    return {lane for lane, on in rack.transmitters().items() if not on}


def later(rack):
    """When the lease of a dead engine has ended."""
    return rack.another_context(now=lambda: time.time() + 60)


def test_fabric_apply_lights_what_a_placed_rank_needs_and_writes_no_cell(rack):
    before = rack.cells()
    switch(rack, "s2-gpu0-a", on=False)
    plan = plan_fabric(rack.context, "prototype")
    assert [(s.data["transponder"], s.data["enabled"]) for s in plan.steps if s.do is Do.TRANSMIT] == [
        ("s2-gpu0-a", True)
    ]
    assert plan.changes == ()
    assert apply(rack.context, plan).verified
    assert dark(rack) == set()
    assert rack.cells() == before
    assert rack.ok_circuits("finetune") == [True] * 6
    assert plan_fabric(rack.context, "prototype").steps == ()


def test_fabric_apply_lights_it_too_where_the_mesh_is_not_certain(rack):
    switch(rack, "s2-gpu0-a", on=False)
    rack.store.runs.doubt("mesh", rack.store.runs.all()[0].id)
    apply(rack.context, plan_fabric(rack.context, "prototype"))
    assert dark(rack) == set()
    assert rack.ok_circuits("finetune") == [True] * 6


def test_fabric_apply_darkens_what_was_replaced(rack):
    swap = apply(rack.context, plan_swap(rack.context, "finetune", ["s1-gpu0"], even_if_healthy=True))
    assert dark(rack) == REPLACED
    switch(rack, "s1-gpu0-a", on=True)
    switch(rack, "s3-gpu0-b", on=False)
    apply(rack.context, plan_fabric(rack.context, "prototype"))
    assert dark(rack) == REPLACED
    assert rack.ok_circuits("finetune") == [True] * 6
    apply(rack.context, plan_rollback(rack.context, rack.store.runs.get(swap.run)))


@pytest.mark.parametrize("act", [ABORT, RESUME])
def test_a_cut_run_is_brought_to_an_end_although_a_transmitter_of_another_rank_is_dark(rack, act):
    """The engine and its guard die once the cells are written; meanwhile something darkens a rank that stays."""
    plan = plan_swap(rack.context, "finetune", ["s1-gpu0"], even_if_healthy=True)
    run = cut(rack, plan)
    switch(rack, "s0-gpu0-a", on=False)
    with later(rack) as context:
        found = outlook(context, context.store("prototype").runs.get(run.id), act)
        assert found.switching.light == ("s0-gpu0-a",)
        do = abort if act == ABORT else resume
        do(context, context.store("prototype").runs.get(run.id))
        assert "s0-gpu0-a" not in dark(rack)
        assert rack.ok_circuits("finetune") == [True] * 6
        entries = context.store("prototype").journal.of_run(run.id)
        assert [e.data["light"] for e in entries if e.kind == "transmitters"] == [["s0-gpu0-a"]]
        placed = context.assignment()["finetune"]
    assert placed[1] == ("s1-gpu0" if act == ABORT else "s3-gpu0")
    assert dark(rack) == (set() if act == ABORT else REPLACED)


def cut(rack, plan):
    """Stop an engine at a write into the journal, when the cells are about to be proved; kill it and its guard."""
    before = rack.cells()
    with rack.engine(plan, before=5, signal=signal.SIGSTOP) as engine:
        rack.await_stop(engine)
        os.kill(rack.guard, signal.SIGKILL)
        engine.kill()
    run = rack.store.runs.all()[0]
    assert run.state == "running"
    assert rack.cells() != before, "it was stopped too early"
    return run
