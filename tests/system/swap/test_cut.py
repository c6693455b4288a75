"""Runs that are killed, interrupted or left alone by a device: each ends in a state that can be undone."""

import signal
import time

import pytest

from lumctl.change import apply
from lumctl.errors import HalfDoneError, RefusedError, RolledBackError
from lumctl.swap import plan_rollback, plan_swap


@pytest.mark.parametrize("step", ["1", "3", "6", "7"])
def test_a_run_that_is_killed_after_a_step_is_taken_back_by_its_journal(slow_rack, step: str) -> None:
    plan = slow_rack.lost()
    before = slow_rack.cells()
    run = slow_rack.kill_engine(plan, slow_rack.await_stop, stands_after=step)
    slow_rack.take_back(run, before)


def test_a_run_that_is_killed_while_it_writes_leaves_the_mesh_uncertain_until_it_is_taken_back(
    slow_rack,
) -> None:
    plan = slow_rack.lost()
    before = slow_rack.cells()

    def writes(_engine: object) -> None:
        deadline = time.monotonic() + 20
        while slow_rack.store.fabric.uncertain_since("mesh") is None:
            assert time.monotonic() < deadline

    run = slow_rack.kill_engine(plan, writes)
    with pytest.raises(RefusedError, match=f"is uncertain: {run.id} is changing it, or was interrupted within"):
        plan_swap(slow_rack.context, "finetune", ["s1-gpu0"])
    slow_rack.take_back(run, before)


def test_a_mesh_that_dies_between_writing_and_undoing_is_left_half_done_and_says_so(rack) -> None:
    plan = rack.lost()
    rack.spoil(plan)

    def die_before_verify(line: str) -> None:
        if line.startswith("6. "):
            rack.sim.inject("mesh", "mesh-down")

    with pytest.raises(HalfDoneError, match=r"is left half done: program 9 PUCs of mesh: .* refused") as error:
        apply(rack.context, plan, progress=die_before_verify)
    run = rack.store.runs.all()[0]
    assert f"lumctl swap resume {run.id} --target sim or lumctl swap abort {run.id}" in str(error.value.hint)
    assert run.state == "half-done"
    assert rack.context.known_states("mesh") == {}
    rack.clear()
    apply(rack.context, plan_rollback(rack.context, run))
    assert all(rack.ok_circuits("finetune"))


def test_a_mesh_with_a_timer_is_certain_only_when_it_is_confirmed(timed_rack) -> None:
    rack = timed_rack
    plan = rack.lost()
    before = rack.cells()
    run = rack.kill_engine(plan, rack.await_stop, stands_after="6")
    assert rack.context.known_states("mesh") == {}
    rack.take_back(run, before)
    result = apply(rack.context, plan_swap(rack.context, "finetune", ["s1-gpu0"]))
    assert rack.context.known_states("mesh") == rack.cells()["mesh"]
    assert [phase.name for phase in result.stages][-2:] == ["confirm", "assign"]


def test_a_run_whose_listener_is_gone_is_undone_all_the_same(rack) -> None:
    plan = rack.lost()
    before = rack.cells()
    rack.sim.inject("mesh", "mesh-lying")

    def deaf(_line: str) -> None:
        raise BrokenPipeError

    with pytest.raises(RolledBackError):
        apply(rack.context, plan, progress=deaf)
    assert rack.cells() == before
    rack.clear()
    assert apply(rack.context, plan, progress=deaf).outcome == "done"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_run_that_is_told_to_stop_is_undone_first(slow_rack, number: signal.Signals) -> None:
    rack = slow_rack
    plan = rack.lost()
    before = rack.cells()
    with rack.engine(plan) as engine:
        next(line for line in engine.stdout or () if line.startswith("6. "))
        engine.send_signal(number)
    assert rack.store.runs.all()[0].state == "rolled-back"
    assert rack.cells() == before
    assert rack.context.known_states("mesh") == before["mesh"]


def test_a_swap_of_a_dead_host_that_was_cut_can_be_taken_back(slow_rack) -> None:
    slow_rack.sim.inject("s1", "unreachable")
    before = slow_rack.cells()
    plan = plan_swap(slow_rack.context, "finetune", ["s1-gpu0"])
    run = slow_rack.kill_engine(plan, slow_rack.await_stop, stands_after="6")
    slow_rack.take_back(run, before)


def test_a_rollback_that_was_cut_is_named_and_can_be_taken_back(slow_rack) -> None:
    rack = slow_rack
    result = apply(rack.context, rack.lost())
    swapped = rack.cells()
    back = plan_rollback(rack.context, rack.store.runs.get(result.run))
    run = rack.kill_engine(back, rack.await_stop, stands_after="4")
    with rack.another_context(now=lambda: time.time() + 60) as later:
        with pytest.raises(RefusedError, match="cannot be rolled back: mesh is not in the state that it had"):
            apply(later, plan_rollback(later, rack.store.runs.get(result.run)))
        apply(later, plan_rollback(later, rack.store.runs.get(run.id)))
    assert rack.cells() == swapped
    assert rack.store.runs.get(result.run).state == "done"


def test_a_run_that_waits_for_a_hand_is_named_by_the_next_look(slow_rack) -> None:
    plan = slow_rack.lost()
    run = slow_rack.kill_engine(plan, slow_rack.await_stop, stands_after="3")
    assert slow_rack.context.observe().unfinished == ()  # its lease has not ended: it may still be at work
    with slow_rack.another_context(now=lambda: time.time() + 60) as later:
        assert later.observe().unfinished == (run.id,)
        apply(later, plan_rollback(later, run))
        assert later.observe().unfinished == ()
