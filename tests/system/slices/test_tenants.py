"""Tenants on a simulated torus: placed, proved, joined by light where no box is free, repaired, and released."""

import time
from collections import Counter
from dataclasses import replace

import pytest
from tenants import paths, placed, planned
from waiting import until

from lumctl.change import apply
from lumctl.change.plan import Do, from_document, to_document
from lumctl.change.resumption import abort, resume
from lumctl.cli.fabric_trace_plan import traced
from lumctl.errors import RefusedError
from lumctl.health.states import State
from lumctl.inventory.model import Role
from lumctl.inventory.slice_records import shape_of
from lumctl.runbook import document, lint, yaml_text
from lumctl.runbook.replay import replay_on_simulator
from lumctl.slices.documents import slice_document, slices_document
from lumctl.slices.release import plan_release
from lumctl.swap import commission, plan_rollback, plan_swap


def replays(rack, run):
    stored = rack.store.runs.get(run)
    text = yaml_text.dump(document.make(stored, rack.store, rack.inventory))
    assert lint.lint(text, "runbook.yaml", rack.inventory) == ()
    replayed = replay_on_simulator(
        yaml_text.load(text, "it"), rack.inventory, progress=lambda _line: None, before_step=lambda _step: None
    )
    return replayed.identical, replayed.first_difference


@pytest.mark.timeout(900)  # seven runs replay, each on a simulator of its own
def test_tenants_come_and_go_and_a_scattered_slice_is_repaired_and_replays(rack):
    runs = [placed(rack, shape, job)[1].run for shape, job in (("4x4x1", "a"), ("4x2x1", "b"), ("2x2x2", "c"))]
    runs.append(apply(rack.context, plan_release(rack.context, "a")).run)
    stay = paths(rack)
    plan, result = placed(rack, "4x4x2", "big")
    runs.append(result.run)
    assert not plan.slices.slices[0]["contiguous"]
    assert any("no box of 4x4x2 is free" in reason for reason in plan.why)
    now = paths(rack)
    assert None not in now.values()
    assert {name: now[name] for name in stay} == stay
    assert {c.id: c.segments for c in plan.add} == {name: now[name].segments for name in (c.id for c in plan.add)}
    assert Counter(fibre for c in plan.add for fibre in c.fibres) == Counter(
        fibre for name in (c.id for c in plan.add) for fibre in now[name].fibres
    )
    carried = Counter(fibre for path in now.values() for fibre in path.fibres)
    assert max(carried.values()) == plan.slices.fullest_edge["after"]
    assert all(count <= rack.inventory.fibres[fibre].capacity for fibre, count in carried.items())

    followed = traced(rack.context, plan)
    assert Counter(each["change"] for each in followed) == {"adds": 96, "keeps": 56}
    assert all(each["as_planned"] and each["loss_db"] for each in followed)
    assert {each["id"]: each["fibres"] for each in followed} == {name: list(path.fibres) for name, path in now.items()}

    dies = plan.slices.placement[5]["accelerator"]
    rack.sim.inject(dies, "gpu-lost")
    swap = plan_swap(rack.context, "big", [dies])
    assert all(each["as_planned"] for each in traced(rack.context, swap))
    runs.append(apply(rack.context, swap).run)
    assert all(each["as_planned"] for each in traced(rack.context, swap))
    spare = swap.replacements[0].spare
    assert rack.inventory.accelerators[spare].role is Role.SPARE
    assert rack.context.assignment()["big"][5] == spare
    assert set(rack.ok_circuits("big")) == {True}
    listed = slices_document(rack.context)
    assert {each["job"]: each["moved"] for each in listed["slices"]} == {"b": 0, "c": 0, "big": 1}
    assert listed["racks"] == [{"rack": "torus64", "accelerators": 64, "free": 64 - 8 - 48 - 4, "spares": 3}]
    shown = slice_document(rack.context, "big")
    assert (shown["circuits"], shown["not_programmed"]) == (96, 0)

    for run in runs:
        assert replays(rack, run) == (True, None)


def test_a_slice_is_undone_by_the_run_that_placed_it_and_by_that_which_released_it(rack):
    plan, _ = placed(rack, "4x2x1", "a")
    before = rack.cells()
    release = plan_release(rack.context, "a")
    assert {(each["change"], each["made"]) for each in traced(rack.context, release)} == {("removes", False)}
    lit = replace(release, steps=tuple(step for step in release.steps if step.do is not Do.PROGRAM))
    assert {(each["made"], each["as_planned"]) for each in traced(rack.context, lit)} == {(True, False)}
    released = apply(rack.context, release)
    assert "a" not in rack.context.assignment()
    assert "a" not in rack.context.inventory.jobs
    back = apply(rack.context, plan_rollback(rack.context, rack.store.runs.get(released.run)))
    assert back.outcome == "done"
    assert rack.cells() == before
    assert rack.context.assignment()["a"] == tuple(row["accelerator"] for row in plan.slices.placement)
    assert set(rack.ok_circuits("a")) == {True}
    apply(rack.context, plan_rollback(rack.context, rack.store.runs.get(back.run)))
    assert shape_of("a") not in rack.context.assignment()
    _, again = placed(rack, "4x2x1", "a")
    apply(rack.context, plan_rollback(rack.context, rack.store.runs.get(again.run)))
    assert "a" not in rack.context.assignment()


def test_a_plan_is_refused_once_another_slice_has_its_accelerators_or_its_name(rack):
    first, second, alone = (
        planned(rack, shape, job, hosts=("h08",)) for shape, job in (("2x2x1", "a"), ("2x1x1", "b"), ("1", "c"))
    )
    assert from_document(to_document(first)) == first
    taken = {row["accelerator"] for row in first.slices.placement}
    assert taken & {row["accelerator"] for row in second.slices.placement}
    assert alone.slices.placement[0]["accelerator"] in taken
    apply(rack.context, first)
    advised = (
        (first, "there is a slice a already: lumctl slice show a --target sim"),
        (second, "make a new plan: lumctl slice plan 2x1x1 --job b --target sim"),
        (alone, "make a new plan: lumctl slice plan 1x1x1 --job c --target sim"),
    )
    for late, advice in advised:
        with pytest.raises(RefusedError, match="was already applied by" if late is first else "is stale") as stale:
            apply(rack.context, late)
        assert stale.value.hint == advice
    with pytest.raises(RefusedError, match="there is a slice a already"):
        planned(rack, "2x2x1", "a")
    release = plan_release(rack.context, "a")
    apply(rack.context, release)
    with pytest.raises(RefusedError, match="was already applied by") as released:
        apply(rack.context, release)
    assert released.value.hint == "see the slices: lumctl slice list --target sim"


def test_an_accelerator_or_lane_that_is_not_ok_and_a_mesh_that_is_silent_are_left_out(rack):
    rack.sim.inject("h01-gpu0", "gpu-lost")
    rack.sim.inject("m02", "mesh-down")
    try:
        plan = planned(rack, "4x2x1", "a")
    finally:
        rack.clear()
    hosts = {row["host"] for row in plan.slices.placement}
    assert hosts.isdisjoint({"h01", "h02", "h16", "h04", "h12"})
    assert all("m02" not in circuit.devices for circuit in plan.add)
    until(lambda: rack.context.observe().report.accelerators["h01-gpu0"].state is State.OK)


def test_a_slice_of_one_accelerator_needs_no_light(rack):
    plan, _ = placed(rack, "1", "a")
    assert (plan.add, plan.changes) == ((), ())
    assert [step.do for step in plan.steps] == [Do.CHECK, Do.ASSIGN]
    assert rack.context.assignment()["a"] == (plan.slices.placement[0]["accelerator"],)


def test_a_simulator_that_starts_again_has_no_slices(rack):
    placed(rack, "2x2x2", "a")
    commission(rack.context)
    assert set(rack.context.assignment()) == {"train"}
    assert slices_document(rack.context)["slices"] == []
    assert set(rack.ok_circuits("train")) == {True}


@pytest.mark.parametrize("ends", ["resumed", "aborted"])
def test_a_run_whose_engine_was_killed_is_finished_or_undone_and_touches_no_other_slice(rack, ends):
    placed(rack, "4x4x1", "a")
    before, stay = rack.cells(), paths(rack)
    plan = planned(rack, "2x2x2", "b")
    programs = [step.id for step in plan.steps if step.do is Do.PROGRAM]
    run = rack.kill_engine(plan, rack.await_stop, stands_after=programs[0])
    with rack.another_context(now=lambda: time.time() + 60) as later:
        result = (resume if ends == "resumed" else abort)(later, rack.store.runs.get(run.id))
    assert result.run == run.id
    now = paths(rack)
    assert {name: now[name] for name in stay} == stay
    if ends == "resumed":
        assert rack.context.assignment()["b"] == tuple(row["accelerator"] for row in plan.slices.placement)
        assert set(rack.ok_circuits("b")) == {True}
    else:
        assert "b" not in rack.context.assignment()
        assert rack.cells() == before
