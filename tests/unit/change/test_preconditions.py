"""What a plan must find before it may touch anything; each that does not hold is refused, under the lease."""

from dataclasses import replace

import pytest

from lumctl.change import to_document
from lumctl.change.plan import Start, receivers
from lumctl.devices.errors import DeviceUnreachableError
from lumctl.devices.types import Capability, PucState
from lumctl.errors import RefusedError
from lumctl.store import Record, store_at, ways_to_finish
from lumctl.swap import plan_fabric, plan_rollback

ELSEWHERE = ("s0-gpu0", "s3-gpu0", "s2-gpu0")


def refused(rack, plan, says, error=RefusedError):
    """The plan is refused before a run of it begins, and the lease is given back, if one was taken."""
    with pytest.raises(error, match=says) as raised:
        rack.apply(plan)
    assert not rack.acts()
    assert not rack.seen("begin", "intent")
    assert not rack.events or (rack.events[0], rack.events[-1]) == (("acquire",), ("release",))
    return raised.value


def cut(rack, plan):
    """A run of a plan that was killed while it wrote the mesh; what stood before had been found sound."""
    values = {"kind": plan.kind, "title": plan.title, "target": plan.target, "who": "me"}
    digests = {"plan_digest": plan.digest, "inventory_digest": plan.inventory_digest}
    lease = rack.store.leases.acquire(plan.rack, "me", term_s=30.0, now=rack.time)
    run = rack.store.runs.begin(lease, values | digests, to_document(plan), now=rack.time)
    program = next(step for step in plan.steps if step.do == "program")
    sound = dict(pair for circuit in (*plan.remove, *plan.keep) for pair in receivers(circuit))
    rack.store.runs.conclude(lease, run, Record(rack.time, "outcome", "1", {"done": True, "sound": sound}))
    rack.store.runs.intend(lease, run, Record(rack.time, "intent", program.id, {}), unsure="mesh")
    rack.store.leases.release(lease)
    rack.events.clear()
    return run


def flip(rack):
    cells = rack.twin.cells
    cells[7] = PucState.BAR if cells[7] is PucState.CROSS else PucState.CROSS


def test_a_plan_for_another_target_is_refused(rack):
    error = refused(rack, replace(rack.plan(), target="rack"), "made for target rack, but this command uses target sim")
    assert "--target rack" in error.hint


def test_a_plan_from_another_text_of_the_inventory_is_refused(rack):
    refused(rack, replace(rack.plan(), inventory_digest="0" * 64), "made from a different version of")
    elsewhere = replace(rack.plan(), inventory_digest="0" * 64, rack="rack7")
    assert "rack rack7: name the inventory" in refused(rack, elsewhere, "made from a different version of").hint


def test_a_plan_whose_job_runs_elsewhere_by_now_is_stale(rack):
    plan = rack.plan()
    moved = Start({"finetune": ELSEWHERE}, plan.start.crosses)
    refused(rack, replace(plan, start=moved), "is stale: finetune does not run where it ran when it was made")
    refused(rack, replace(plan, start=replace(moved, assignment={"gone": ELSEWHERE})), "is stale: gone")


@pytest.mark.parametrize("change", [lambda crosses: crosses[1:], lambda crosses: (*crosses, 81)])
def test_a_plan_whose_mesh_was_programmed_since_is_stale(rack, change):
    plan = rack.plan()
    start = replace(plan.start, crosses={"mesh": change(plan.start.crosses["mesh"])})
    refused(rack, replace(plan, start=start), "is stale: mesh is not in the state that it had when it was made")


def test_a_plan_is_applied_once(rack):
    plan = rack.plan()
    rack.apply(plan)
    with pytest.raises(RefusedError, match="was already applied by"):
        rack.apply(plan)


def test_nothing_is_written_on_top_of_what_is_not_certain(rack):
    plan = rack.plan()
    run = cut(rack, plan)
    error = refused(rack, plan, f"the state of mesh is uncertain since {run} was interrupted")
    assert error.hint == ways_to_finish(run, "sim")


def test_a_run_that_cannot_be_taken_back_is_not_named_as_the_way_out(rack):
    plan = rack.plan()
    run = cut(rack, plan_fabric(rack.context, "prototype", forget=True))
    error = refused(rack, plan, f"uncertain since {run}")
    assert "lumctl fabric apply" in error.hint


def test_only_the_rollback_of_the_run_that_was_cut_may_write_what_is_not_certain(rack):
    before = dict(rack.twin.cells)
    plan = rack.plan()
    run = cut(rack, plan)
    back = plan_rollback(rack.context, rack.store.runs.get(run))
    refused(rack, replace(back, undoes="swap-0099"), "is uncertain")
    rack.events.clear()
    rack.apply(back)
    assert rack.seen("commit")
    assert rack.twin.cells == before == rack.context.known_states("mesh")


def test_a_mesh_that_was_never_programmed_from_this_store_is_not_built_on(rack):
    plan = rack.plan()
    empty = store_at(str(rack.folder / "empty"))
    rack.context._stores["prototype"] = empty
    with pytest.raises(RefusedError, match="never programmed from this store"):
        rack.apply(plan)
    assert not rack.acts()
    assert empty.runs.all() == ()
    rack.store.close()


def test_a_mesh_that_says_it_holds_something_else_is_not_built_on(rack):
    plan = rack.plan()
    rack.twin.capabilities = frozenset({Capability.READ_STATES})
    flip(rack)
    error = refused(rack, plan, "differs from what was last written to it in 1 cells; the first is mesh/puc/7")
    assert "--rewrite" in error.hint


def test_a_mesh_that_says_what_the_record_says_is_built_on(rack):
    plan = rack.plan()
    rack.twin.capabilities = frozenset({Capability.READ_STATES})
    assert rack.apply(plan).outcome == "done"


def test_what_is_asked_is_asked_under_the_lease(rack):
    plan = rack.plan()
    rack.twin.capabilities = frozenset({Capability.READ_STATES})
    rack.at("acquire", do=lambda: flip(rack))  # the last moment at which somebody else could have
    refused(rack, plan, "1 cells;")


def test_a_plan_that_writes_some_cells_must_say_what_the_others_hold(rack):
    plan = rack.plan()
    start = replace(plan.start, crosses={})
    refused(
        rack, replace(plan, start=start), "would write some cells of mesh, but does not give the states of the others"
    )


def test_a_plan_that_writes_every_cell_needs_no_record(rack):
    cut(rack, rack.plan())
    plan = plan_fabric(rack.context, "prototype")
    assert "mesh" not in plan.start.crosses
    assert rack.apply(plan).outcome == "done"
    assert rack.context.known_states("mesh") == rack.twin.cells


def test_a_mesh_that_does_not_answer_is_found_out_before_anything_is_done(rack):
    plan = rack.plan()
    rack.at("identify", do=DeviceUnreachableError("mesh does not answer"))
    refused(rack, plan, "does not answer", DeviceUnreachableError)


def with_step(plan, do, **data):
    """A plan whose steps of one kind were edited, as those of a runbook may be."""
    return replace(plan, steps=tuple(replace(s, data={**s.data, **data}) if s.do == do else s for s in plan.steps))


def test_a_plan_whose_cells_would_move_a_kept_circuit_is_refused(rack):
    plan = rack.plan()
    kept = next(circuit for circuit in plan.keep if circuit.pucs)
    _, puc = kept.pucs[0]
    state = rack.twin.cells[puc]
    other = PucState.BAR if state is PucState.CROSS else PucState.CROSS
    (program,) = [step for step in plan.steps if step.do == "program"]
    more = [*program.data["changes"], [puc, state.value, other.value]]
    refused(rack, with_step(plan, "program", changes=more), "would change circuit .* but replaces nothing in that job")


def test_a_plan_that_does_not_verify_what_it_keeps_is_refused(rack):
    plan = with_step(rack.plan(), "verify", kept=[])
    refused(
        rack, plan, r"cannot be applied: it would write mesh without a proof that circuit finetune/2-0:\w+ still works"
    )


def test_a_plan_that_writes_another_rack_s_device_is_refused(rack):
    devices = {name: replace(device, rack="elsewhere") for name, device in rack.inventory.devices.items()}
    plan = rack.plan()
    rack.context.inventory = replace(rack.inventory, devices=devices)
    refused(rack, plan, "would write mesh, which is in rack elsewhere")


def test_a_change_that_would_go_back_unconfirmed_is_refused(rack):
    plan = rack.plan()
    rack.twin.capabilities = frozenset({Capability.CONFIRM_TIMER})  # since the plan was made
    refused(rack, plan, "reverts by itself unless confirmed, and has no later confirm step for it")


def test_a_run_is_taken_back_once_though_the_rack_has_come_to_the_same_state_again(rack):
    run = rack.store.runs.get(rack.apply(rack.plan()).run)
    early = plan_rollback(rack.context, run)
    late = replace(early, created_at=rack.time + 1).sealed()
    rack.apply(early)
    again = rack.apply(rack.plan()).run
    with pytest.raises(RefusedError, match=f"{run.id} is no longer in force: it was rolled back by") as applying:
        rack.apply(late)
    with pytest.raises(RefusedError) as planning:
        plan_rollback(rack.context, rack.store.runs.get(run.id))
    assert (planning.value.message, planning.value.hint) == (applying.value.message, applying.value.hint)
    assert rack.store.runs.get(again).state == "done"
