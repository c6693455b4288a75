"""A rack whose lanes meet an optical switch: swapped, spoiled and undone over the switch's own protocol."""

import time
from contextlib import closing

import pytest

from lumctl.change import apply
from lumctl.change.plan import Do
from lumctl.change.resumption import resume
from lumctl.devices import transaction
from lumctl.devices.protocols import DriverContext
from lumctl.errors import RefusedError, RolledBackError, RunError
from lumctl.inventory.wiring import FREE
from lumctl.runbook import document, yaml_text
from lumctl.runbook.replay import replay_on_simulator
from lumctl.sim.switches.driver import SimSwitch
from lumctl.swap import plan_fabric, plan_rollback, plan_swap

FOREIGN = {8: 30, 15: 24}
"""Joins between ports that no lane of the inventory meets: somebody else's."""


@pytest.fixture(scope="module")
def rack(rack_of, tmp_path_factory):
    """A commissioned rack on whose switch somebody else has joins, too."""
    made = rack_of("switched", tmp_path_factory.mktemp("switched"))
    rack = next(made)
    with closing(seen(rack)) as switch:
        switch.commit(switch.stage(FOREIGN))
    yield rack
    next(made, None)


@pytest.fixture(autouse=True)
def well(rack):
    yield
    rack.clear()


def seen(rack):
    """The switch past its own protocol and driver."""
    address = f"unix:{rack.sim.control}"
    return SimSwitch(DriverContext("ocs", address, port_count=32, input_count=16))


def joins(rack):
    with closing(seen(rack)) as switch:
        return switch.read_circuits()


def planned(rack, failed="h2-gpu0"):
    return plan_swap(rack.context, "finetune", [failed], even_if_healthy=True)


def test_a_spare_is_joined_in_and_taken_out_again(rack):
    before = joins(rack)
    plan = planned(rack)
    assert {change.device for change in plan.changes} == {"ocs"}
    result = apply(rack.context, plan)
    assert result.outcome == "done"
    assert len(result.verified) == 4
    after = joins(rack)
    assert after.items() >= FOREIGN.items()
    assert {ingress: int(to) for ingress, to in rack.context.known_cells("ocs").items() if to != FREE} == {
        ingress: egress for ingress, egress in after.items() if ingress not in FOREIGN
    }
    assert rack.ok_circuits("finetune") == [True] * 6
    apply(rack.context, plan_rollback(rack.context, rack.store.runs.get(result.run)))
    assert joins(rack) == before
    assert rack.ok_circuits("finetune") == [True] * 6


@pytest.mark.parametrize(
    ("fault", "ends"),
    [
        ("device-refuse", "rolled-back"),
        ("device-lying", "rolled-back"),
        ("device-half", "half-done"),
        ("device-cut", "rolled-back"),
    ],
)
def test_a_switch_that_misbehaves_leaves_what_the_run_says(rack, fault, ends):
    """Put back, or not certain and said so; then nothing is planned on it before somebody has taken the run back."""
    before = joins(rack)
    plan = planned(rack)

    def spoil(step):
        if step.do is Do.PROGRAM:
            rack.sim.inject("ocs", fault)

    with pytest.raises(RunError):
        apply(rack.context, plan, before_step=spoil)
    rack.clear()
    run = rack.store.runs.all()[0]
    assert run.state == ends
    assert joins(rack).items() >= FOREIGN.items()
    if ends == "half-done":
        assert rack.context.known_cells("ocs") == {}
        with pytest.raises(RefusedError, match="is uncertain since"):
            planned(rack)
        apply(rack.context, plan_rollback(rack.context, run))
    assert joins(rack) == before
    assert rack.ok_circuits("finetune") == [True] * 6


def test_an_egress_that_somebody_else_has_taken_is_not_taken_from_him(rack):
    """The spare's port is joined by another hand after the plan was made."""
    plan = planned(rack)
    egress = next(int(change.after) for change in plan.changes if change.after not in {FREE, "17", "18", "20", "21"})
    with closing(seen(rack)) as switch:
        taken = switch.commit(switch.stage({9: egress}))
        with pytest.raises((RefusedError, RolledBackError)):
            apply(rack.context, plan)
        assert switch.read_circuits()[9] == egress
        switch.roll_back(taken)
    assert rack.ok_circuits("finetune") == [True] * 6


def test_a_record_that_the_switch_contradicts_is_not_built_on(rack):
    plan = planned(rack)
    with closing(seen(rack)) as switch:
        moved = switch.commit(switch.stage({1: None}))
        with pytest.raises(RefusedError, match="differs from what was last written"):
            apply(rack.context, plan)
        switch.roll_back(moved)


def test_what_is_not_certain_is_written_whole_and_nothing_else(rack):
    """Our ports only: those of others are no part of the record."""
    before = joins(rack)
    apply(rack.context, plan_fabric(rack.context, "switched", rewrite=True))
    assert joins(rack) == before
    with closing(seen(rack)) as switch:
        assert transaction.read_cells(switch, (8, 15)) == {8: "30", 15: "24"}


def test_its_runbook_is_replayed_on_a_switch_of_its_own(rack):
    result = apply(rack.context, planned(rack))
    run = rack.store.runs.get(result.run)
    book = yaml_text.load(yaml_text.dump(document.make(run, rack.store, rack.inventory)), "x")
    replayed = replay_on_simulator(book, rack.inventory, progress=print, before_step=lambda _step: None)
    assert replayed.identical, replayed.first_difference
    apply(rack.context, plan_rollback(rack.context, run))


@pytest.mark.parametrize("again", [True, False], ids=["done-again", "resumed"])
def test_a_rollback_that_fails_half_way_is_done_again_or_gone_on_with(rack, again):
    """Twice the switch does things by half; when it is well, both runs are settled."""
    before = joins(rack)

    def spoil(step):
        if step.do is Do.PROGRAM:
            rack.sim.inject("ocs", "device-half")

    with pytest.raises(RunError):
        apply(rack.context, planned(rack), before_step=spoil)
    swap = rack.store.runs.all()[0]
    with pytest.raises(RunError) as failed:
        apply(rack.context, plan_rollback(rack.context, swap))
    attempt = rack.store.runs.all()[0]
    assert f"lumctl swap resume {attempt.id} --target sim or lumctl swap abort {attempt.id}" in failed.value.hint
    assert (swap.state, attempt.state) == ("half-done", "half-done")
    rack.clear()
    with pytest.raises(RefusedError, match="has not ended") as refused:
        plan_rollback(rack.context, attempt)
    assert refused.value.hint == f"lumctl swap resume {attempt.id} --target sim"
    with pytest.raises(RefusedError, match="is uncertain since") as uncertain:
        planned(rack)
    assert (
        uncertain.value.hint
        == f"lumctl swap resume {attempt.id} --target sim or lumctl swap abort {attempt.id} --target sim"
    )
    if again:
        last = apply(rack.context, plan_rollback(rack.context, rack.store.runs.get(swap.id))).run
        assert {rack.store.runs.get(run.id).undone_by for run in (swap, attempt)} == {last}
    else:
        assert resume(rack.context, attempt).run == attempt.id == rack.store.runs.get(swap.id).undone_by
        assert rack.store.runs.get(attempt.id).state == "done"
    assert joins(rack) == before
    assert rack.store.runs.unfinished(now=time.time()) == ()
    assert rack.ok_circuits("finetune") == [True] * 6
