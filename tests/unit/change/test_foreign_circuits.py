"""Runs that were cut, and over whose work later runs have written: refused, or closed with that left alone."""

from dataclasses import replace

import pytest

from lumctl.change.guard_scope import GuardScope
from lumctl.change.plan import Do, Plan, Start, Step, plan_digest
from lumctl.change.resumption import ABORT, abort, outlook, resume
from lumctl.change.run import RunInProgress
from lumctl.devices.types import Capability
from lumctl.errors import HalfDoneError, RefusedError
from lumctl.inventory.wiring import circuits_of
from lumctl.swap import plan_fabric, plan_rollback

LANE = "s0-gpu0-a"


def cut(rack, plan, steps):
    """A run that its engine has left after some steps; its lease has ended."""
    lease = rack.store.leases.acquire(plan.rack, "me", term_s=30.0, now=rack.time - 31.0)
    run = RunInProgress.begun(rack.context, plan, rack.store, lease, "me", GuardScope())
    for step in plan.steps[:steps]:
        run.perform(step)
    rack.events.clear()
    return rack.store.runs.get(run.id)


def settings(rack, *lanes, value):
    """What `device set` makes of it: a transmitter is switched, and no circuit is the plan's own."""
    steps = [
        Step(str(n), Do.SET, lane, {"component": lane, "setting": "transmit", "before": not value, "after": value,
                                    "disturbs": [c.id for c in circuits(rack)]})
        for n, lane in enumerate(lanes, 1)
    ]  # fmt: skip
    return Plan(
        "set", "t", "prototype", "sim", rack.time, rack.inventory.digest, Start({}), steps=tuple(steps)
    ).sealed()


def circuits(rack):
    return circuits_of(rack.inventory, rack.context.assignment())


def later(rack, plan):
    return rack.apply(plan).run


@pytest.fixture
def rack(rack, monkeypatch):
    """Runs begin on top of one that was cut where that set single things only, as after another of its kind."""
    monkeypatch.setattr("lumctl.change.preconditions.require_none_cut", lambda *_: None)
    return rack


def test_a_setting_that_was_set_again_since_is_not_set_back(rack):
    run = cut(rack, settings(rack, LANE, value=False), 1)
    other = later(rack, settings(rack, LANE, value=True))
    assert rack.on[LANE] is True
    for do in (resume, abort):
        with pytest.raises(RefusedError, match=f"a later run .* {run.id}: {LANE} transmit was last set by {other}"):
            do(rack.context, run, who="you")
    assert rack.store.runs.get(run.id).state == "running"


def test_one_that_was_set_and_set_back_since_is(rack):
    run = cut(rack, settings(rack, LANE, value=False), 1)
    other = later(rack, settings(rack, LANE, value=True))
    rack.apply(plan_rollback(rack.context, rack.store.runs.get(other)))
    assert rack.on[LANE] is False
    assert abort(rack.context, run, who="you").outcome == "rolled-back"
    assert rack.on[LANE] is True


def test_one_that_another_run_has_set_before_is(rack):
    later(rack, settings(rack, LANE, value=False))
    later(rack, settings(rack, LANE, value=True))
    run = cut(rack, settings(rack, LANE, value=False), 1)
    later(rack, settings(rack, "s0-gpu0-b", value=False))
    assert abort(rack.context, run, who="you").outcome == "rolled-back"
    assert (rack.on[LANE], rack.on["s0-gpu0-b"]) == (True, False)


def test_what_nobody_has_set_since_is_set_back_and_the_rest_left_alone(rack):
    run = cut(rack, settings(rack, LANE, "s0-gpu0-b", value=False), 2)
    other = later(rack, settings(rack, LANE, value=True))
    result = abort(rack.context, run, who="you", leave_later=True)
    assert result.seconds == rack.store.runs.get(result.run).seconds
    assert (result.outcome, rack.store.runs.get(run.id).state) == ("superseded", "superseded")
    assert rack.acts()[-1] == ("transmit", "s0-gpu0-b", True)
    assert rack.on[LANE] is True
    (said,) = [e.data for e in rack.store.journal.of_run(run.id) if e.kind == "abort"]
    assert said["left_alone"] == {"steps": ["1"], "why": [f"{LANE} transmit was last set by {other}"]}
    assert not [odd for odd in rack.store.verify(plan_digest) if run.id in odd.reason]


def test_a_cut_run_may_move_light_until_the_revert_timer_of_its_device_has_expired(rack):
    limits = replace(rack.inventory.thresholds, light_deadline_s=60.0)
    rack.inventory = rack.context.inventory = replace(rack.inventory, thresholds=limits)
    rack.twin.capabilities = frozenset({Capability.CONFIRM_TIMER})
    rack.at("commit", do=lambda: timers.append(rack.events[-1][2]))
    timers: list[float] = []
    run = cut(rack, rack.plan(), 6)
    (timer_s,) = timers
    assert timer_s == 180.0

    def may_move(after_s):
        return [moved.id for moved in rack.store.runs.moves(since=rack.time + after_s, now=rack.time + after_s)]

    assert may_move(timer_s) == [run.id]
    assert may_move(2 * timer_s) == []


def test_a_transmitter_that_was_switched_by_hand_since_is_not_switched_by_an_abort(rack):
    plan = rack.plan()
    run = cut(rack, plan, 3)
    dark = next(step.data["transponder"] for step in plan.steps if step.do is Do.TRANSMIT)
    other = later(rack, settings(rack, dark, value=not rack.on[dark]))
    with pytest.raises(RefusedError, match=f"{dark} transmit was last set by {other}"):
        abort(rack.context, run, who="you")


def test_a_transmitter_that_was_switched_since_does_not_let_cells_be_undone_whose_lane_has_moved(rack):
    run = cut(rack, rack.plan(), 6)
    later(rack, settings(rack, "s1-gpu0-a", value=True))
    lanes, before = rack.inventory.transponders, dict(rack.twin.cells)
    lanes[LANE] = replace(lanes[LANE], lane=replace(lanes[LANE].lane, tx=25, rx=25))
    with pytest.raises(RefusedError, match=f"can neither continue nor be undone: {LANE} is no longer on mesh port"):
        abort(rack.context, run, who="you", leave_later=True)
    assert rack.twin.cells == before


def fabric_was_applied(rack):
    """A swap that was cut after its cells were written, and a fabric that was written whole since."""
    run = cut(rack, rack.plan(), 6)
    made = plan_fabric(rack.context, "prototype", forget=True)
    # As a version wrote it that did not light what the swap has put out: that is dark still.
    unlit = replace(made, steps=tuple(step for step in made.steps if step.do is not Do.TRANSMIT)).sealed()
    with pytest.raises(HalfDoneError, match="s0-gpu0-b received no new announcement from s1-gpu0-a"):
        later(rack, unlit)
    rack.events.clear()
    return rack.store.runs.get(run.id), rack.store.runs.all()[0].id


def test_a_fabric_that_is_written_anew_lights_what_a_cut_swap_has_put_out(rack):
    cut(rack, rack.plan(), 6)
    assert {name for name, on in rack.on.items() if not on} == {"s1-gpu0-a", "s1-gpu0-b"}
    later(rack, plan_fabric(rack.context, "prototype", rewrite=True))
    assert all(rack.on.values())


def test_after_a_fabric_was_written_anew_the_way_out_is_named(rack):
    run, other = fabric_was_applied(rack)
    for do in (resume, abort):
        with pytest.raises(RefusedError, match=f"mesh was last written by {other}") as error:
            do(rack.context, run, who="you")
        assert error.value.hint.endswith(f"lumctl swap abort {run.id} --leave-later")


def test_and_closes_the_run_without_touching_cells_or_placement(rack):
    run, other = fabric_was_applied(rack)
    before, dark = dict(rack.twin.cells), [name for name, on in rack.on.items() if not on]
    found = outlook(rack.context, run, ABORT, leave_later=True)
    assert found.left_alone.why == (f"mesh was last written by {other}",)
    lit = [("transmit", step.data["transponder"], True) for step in found.steps]
    assert {lane for _, lane, _ in lit} == set(dark) == {"s1-gpu0-a", "s1-gpu0-b"}
    assert abort(rack.context, run, who="you", leave_later=True).outcome == "superseded"
    assert (rack.acts(), rack.twin.cells) == (lit, before)
    assert rack.placed() == ("s0-gpu0", "s1-gpu0", "s2-gpu0")
    assert rack.context.known_states("mesh") == before


def test_after_that_the_rack_can_be_changed_again(rack):
    run, _ = fabric_was_applied(rack)
    abort(rack.context, run, who="you", leave_later=True)
    with pytest.raises(RefusedError, match="it ended superseded"):
        plan_rollback(rack.context, rack.store.runs.get(run.id))
    later(rack, plan_fabric(rack.context, "prototype", forget=True))
    assert rack.context.known_states("mesh") == rack.twin.cells
    assert rack.apply(rack.plan()).outcome == "done"
    assert not [odd for odd in rack.store.verify(plan_digest) if run.id in odd.reason]
