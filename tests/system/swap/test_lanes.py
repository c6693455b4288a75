"""A circuit leaves a dying lane for another one of its accelerator; and makes room for another job's, if it may."""

import os
import signal
import time
from dataclasses import replace

import pytest

from lumctl.change import apply
from lumctl.change.engine import at_once
from lumctl.change.resumption import abort, resume
from lumctl.errors import RefusedError
from lumctl.inventory.wiring import circuits_of
from lumctl.runbook.document import make, parse
from lumctl.runbook.replay import replay_on_simulator
from lumctl.swap import plan_fabric, plan_reroute, plan_return, plan_rollback, plan_swap

LAST = 6
"""The transaction that ends such a run."""
HEAD = """
lumctl: 1
racks: {prototype: {}}
defaults: {ssh: {user: lumctl}, transponder: {verify: [lldp]}}
"""
THREE_LANES = f"""{HEAD}
hosts:
  - {{name: "s[0-2]", accelerators: [{{id: "{{host}}-gpu0", model: M, memory_gib: 48, pci: "0000:41:00.0"}}]}}
devices:
  - {{id: mesh, kind: mesh, driver: smartlight, address: "m:1", geometry: {{columns: 7, rows: 3}}, settle_ms: 5}}
transponders:
  - {{id: "s[0-2]-a", accelerator: "s[0-2]-gpu0", interface: eth0, device: mesh, port: [4, 7, 10]}}
  - {{id: "s[0-2]-b", accelerator: "s[0-2]-gpu0", interface: eth1, device: mesh, port: [5, 8, 11]}}
  - {{id: "s[0-2]-c", accelerator: "s[0-2]-gpu0", interface: eth2, device: mesh, port: [6, 9, 12]}}
jobs:
  - {{name: train, ranks: "s[0-2]-gpu0", links: [{{kind: ring}}]}}
"""
CROWDED = f"""{HEAD}
hosts:
  - {{name: "h[0-7]", accelerators: [{{id: "g-{{host}}", model: M, memory_gib: 48, pci: "0000:41:00.0"}}]}}
  - {{name: h8, accelerators: [{{id: "g-{{host}}", model: M, memory_gib: 48, role: spare, pci: "0000:41:00.0"}}]}}
devices:
  - {{id: mesh, kind: mesh, driver: smartlight, address: "m:1", geometry: {{columns: 4, rows: 3}}, settle_ms: 5}}
transponders:
  - {{id: "t[0-8]", accelerator: "g-h[0-8]", interface: eth0, device: mesh, port: [8, 7, 0, 19, 14, 5, 22, 3, 23]}}
jobs:
  - {{name: own, ranks: "g-h[0-1]", links: [{{kind: pairs, pairs: [[0, 1]]}}]}}
  - {{name: other, ranks: "g-h[2-7]", links: [{{kind: pairs, pairs: [[0, 1], [2, 3], [4, 5]]}}]}}
"""


@pytest.fixture
def lanes(rack_of, tmp_path):
    yield from rack_of("prototype", tmp_path, edited=lambda _: THREE_LANES)


@pytest.fixture
def crowded(rack_of, tmp_path):
    yield from rack_of("prototype", tmp_path, edited=lambda _: CROWDED)


def ends_of(rack, name):
    circuits = {c.id: c for c in circuits_of(rack.inventory, rack.context.assignment())}
    return {circuits[name].a.transponder, circuits[name].b.transponder}


def test_a_dying_lane_is_left_for_a_free_one_and_taken_again(lanes):
    rack, context = lanes, lanes.context
    before, placed = rack.cells(), context.assignment()
    rack.sim.inject("s1-b", "dim")
    plan = plan_reroute(context, None, ["s1-b"])
    assert plan.replacements == ()
    assert [step.title for step in plan.steps if step.do == "transmit"] == [
        "turn off the transmitter of s1-b",
        "turn on the transmitter of s1-c",
    ]
    assert "train/1-2 leaves s1-b for s1-c, which is free on s1-gpu0" in plan.why
    done = apply(context, plan)
    assert ends_of(rack, "train/1-2") == {"s1-c", "s2-a"}
    assert {proof.circuit for proof in done.verified} == {"train/1-2"}
    assert all(rack.ok_circuits("train"))
    assert not rack.transmitters()["s1-b"]

    with pytest.raises(RefusedError, match=f"was already applied by {done.run}"):
        apply(context, plan)
    with pytest.raises(RefusedError, match="the lanes of s1-gpu0 do not lead where they led"):
        apply(context, replace(plan, why=()).sealed())
    with pytest.raises(RefusedError, match="s1-gpu0 has no lane to spare: s1-a carries train/0-1"):
        plan_reroute(context, None, ["s1-b", "s1-c"])
    told = parse(make(rack.store.runs.get(done.run), rack.store, rack.inventory), "told")
    assert replay_on_simulator(told, rack.inventory, progress=lambda _line: None, before_step=at_once).identical

    apply(context, plan_rollback(context, rack.store.runs.get(done.run)))
    assert (rack.cells(), context.assignment()) == (before, placed)
    assert rack.transmitters()["s1-b"]

    # Another run, and back by a plan of its own once the lane is well.
    apply(context, plan_reroute(context, "train", ["mesh/port/8"]))
    rack.clear()
    apply(context, plan_return(context, "train"))
    assert ends_of(rack, "train/1-2") == {"s1-b", "s2-a"}
    with pytest.raises(RefusedError, match="nothing to move back"):
        plan_return(context, "train")

    # And by placing all as the inventory has it: the darkened transmitter is lit for it.
    apply(context, plan_reroute(context, None, ["s1-b"]))
    apply(context, plan_fabric(context, "prototype", placement=placed))
    assert context.assignment() == placed
    assert all(rack.ok_circuits("train"))


def test_a_move_that_was_killed_with_its_guard_is_taken_back_or_brought_to_its_end(lanes):
    rack, before = lanes, lanes.cells()
    plan = plan_reroute(rack.context, None, ["s1-b"])
    for bring, order in ((abort, ()), (resume, ("s1-a", "s1-c", "s1-b"))):
        # Who leads where is about to be written, and nobody knows whether it was.
        with rack.engine(plan, signal=signal.SIGSTOP, before=LAST) as engine:
            rack.await_stop(engine)
            os.kill(rack.guard, signal.SIGKILL)
            engine.kill()
        run = max(rack.store.runs.all(), key=lambda run: run.fence)
        with rack.another_context(now=lambda: time.time() + 60) as later:
            done = bring(later, run)
        assert rack.context.assignment().get("lanes of s1-gpu0", ()) == order
        assert (rack.cells() == before) is (bring is abort)
        assert rack.transmitters()["s1-b"] is (bring is abort)
    assert {proof.circuit for proof in done.verified} == {"train/1-2"}


def test_a_circuit_of_another_job_makes_room_only_where_it_may(crowded):
    rack, context = crowded, crowded.context
    before = rack.cells()
    with pytest.raises(RefusedError, match="no spare can replace g-h1") as refused:
        plan_swap(context, None, ["g-h1"], even_if_healthy=True)
    assert str(refused.value.hint).endswith("lumctl swap plan --failed g-h1 --may-move 1 --even-if-healthy")
    plan = plan_swap(context, None, ["g-h1"], even_if_healthy=True, may_move=1)
    assert {c.id for c in plan.add} == {"own/0-1", "other/2-3"}
    assert "circuit other/2-3 of other is rerouted to make room: it is dark meanwhile" in plan.warnings
    assert set(plan.start.assignment) == {"own", "other"}
    done = apply(context, plan)
    assert {proof.circuit for proof in done.verified} == {"own/0-1", "other/2-3"}
    assert all([*rack.ok_circuits("own"), *rack.ok_circuits("other")])
    apply(context, plan_rollback(context, rack.store.runs.get(done.run)))
    assert rack.cells() == before
    assert all([*rack.ok_circuits("own"), *rack.ok_circuits("other")])
