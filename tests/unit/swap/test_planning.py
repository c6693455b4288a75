"""What a swap plan asks for before it is made, and what is in it."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from lumctl.change.plan import Do
from lumctl.devices.types import Capability, PucState
from lumctl.errors import RefusedError, UsageError
from lumctl.health.states import ComponentHealth, Finding, State
from lumctl.inventory.wiring import initial_assignment
from lumctl.swap import plan_swap

FAILED, SPARE = "h03-gpu2", "h16-gpu2"


@pytest.fixture
def states(rack64, programmed):
    return dict(programmed(rack64.path))


@pytest.fixture
def context(rack64, states):
    """Just what a plan asks of a context."""
    driver = SimpleNamespace(capabilities=frozenset())
    store = SimpleNamespace(
        fabric=SimpleNamespace(uncertain_since=lambda _device: None, last_written_by=lambda _device: "fabric-0001"),
        health=SimpleNamespace(transitions=lambda **_: ()),
        journal=SimpleNamespace(latest=lambda _count: ()),
        demands=SimpleNamespace(waiting=tuple),
        runs=SimpleNamespace(moves=lambda **_: ()),
    )
    return SimpleNamespace(
        inventory=rack64,
        target="sim",
        assignment=lambda: initial_assignment(rack64),
        known_cells=states.get,
        store=lambda _rack: store,
        devices=SimpleNamespace(changing=lambda _device: driver),
        driver=driver,
    )


def spoil(seen, lane, state):
    finding = Finding(lane, "test", state, "no light leaves it", "clean it", 99.0)
    seen.report.links[lane] = ComponentHealth(lane, "link", state, (finding,), read_at=100.0)


def planned(context, seen, *failed, spares=(), **more):
    return plan_swap(context, "train-a", failed or [FAILED], spares, seen=seen, **more)


def test_no_spare_is_spent_on_an_accelerator_that_is_well(context, rack64, observe):
    with pytest.raises(RefusedError, match=f"{FAILED} was read just now and is ok") as error:
        planned(context, observe(rack64))
    assert "--even-if-healthy" in error.value.hint
    assert planned(context, observe(rack64), even_if_healthy=True).replacements[0].failed == FAILED


def test_each_of_several_must_be_in_trouble(context, rack64, observe):
    seen = observe(rack64, failed={FAILED: State.FAILED})
    with pytest.raises(RefusedError, match="h05-gpu1 was read just now and is ok"):
        planned(context, seen, FAILED, "h05-gpu1")


@pytest.mark.parametrize("state", [State.FAILED, State.DEGRADED, State.UNKNOWN])
def test_an_accelerator_that_is_not_ok_is_replaced(context, rack64, observe, state):
    assert planned(context, observe(rack64, failed={FAILED: state})).replacements[0].spare == SPARE


@pytest.mark.parametrize("lane", ["a", "b"])
def test_so_is_one_with_a_lane_that_is_not(context, rack64, observe, lane):
    seen = observe(rack64)
    spoil(seen, f"{FAILED}-{lane}", State.FAILED)
    assert planned(context, seen).replacements[0].spare == SPARE


@pytest.mark.parametrize("lane", ["a", "b"])
def test_a_spare_with_a_failed_lane_is_refused(context, rack64, observe, lane):
    seen = observe(rack64, failed={FAILED: State.FAILED})
    spoil(seen, f"{SPARE}-{lane}", State.FAILED)
    with pytest.raises(RefusedError, match=f"{SPARE}: its lane {SPARE}-{lane} is failed: no light leaves it"):
        planned(context, seen)


def test_a_spare_s_lane_that_is_dim_or_was_not_read_is_no_reason(context, rack64, observe):
    seen = observe(rack64, failed={FAILED: State.FAILED})
    spoil(seen, f"{SPARE}-a", State.DEGRADED)
    spoil(seen, f"{SPARE}-b", State.UNKNOWN)
    assert planned(context, seen).replacements[0].spare == SPARE


@pytest.mark.parametrize(
    ("failed", "spares", "says"),
    [
        ([FAILED], [SPARE, "h16-gpu1"], "1 accelerator failed, but 2 spares are given"),
        ([FAILED, "h05-gpu1"], [SPARE], "2 accelerators failed, but 1 spare is given"),
        ([FAILED, FAILED], [], "given twice after --failed"),
        (["h09-gpu2"], [], "h09-gpu2 is not used by train-a"),
        (["h03-gpu9"], [], "no accelerator 'h03-gpu9' in the inventory"),
        ([FAILED], ["h16-gpu9"], "no accelerator 'h16-gpu9' in the inventory"),
        ([], [], "no failed accelerator was given"),
    ],
)
def test_names_that_make_no_sense_are_refused(context, rack64, observe, failed, spares, says):
    with pytest.raises(UsageError, match=says):
        plan_swap(context, "train-a", failed, spares, seen=observe(rack64), even_if_healthy=True)


def test_a_job_that_nobody_knows_is_refused(context):
    with pytest.raises(UsageError, match="no job 'train-x' in the inventory"):
        plan_swap(context, "train-x", [FAILED])


def test_spares_that_are_named_are_taken_in_their_order(context, rack64, observe):
    seen = observe(rack64, failed={FAILED: State.FAILED, "h05-gpu1": State.FAILED})
    plan = planned(context, seen, "h05-gpu1", FAILED, spares=["h16-gpu1", SPARE])
    assert [(r.failed, r.spare) for r in plan.replacements] == [("h05-gpu1", "h16-gpu1"), (FAILED, SPARE)]


def test_a_mesh_that_is_not_certain_is_not_planned_on(context, rack64, observe, states):
    states["rail2"] = {}
    with pytest.raises(RefusedError, match="the state of rail2 is unknown"):
        planned(context, observe(rack64), even_if_healthy=True)


def test_one_that_the_job_does_not_use_may_be(context, rack64, observe, states):
    rail = replace(rack64.devices["rail0"], id="rail9")
    context.inventory = replace(rack64, devices={**rack64.devices, "rail9": rail})
    states["rail9"] = {}
    assert planned(context, observe(rack64, failed={FAILED: State.FAILED})).replacements[0].spare == SPARE


def test_a_plan_checks_darkens_lights_programs_verifies_and_writes_down(context, rack64, observe, states):
    seen = observe(rack64, failed={FAILED: State.FAILED})
    plan = planned(context, seen)
    check, *transmits, program, verify, assign = plan.steps
    assert (check.do, check.data["healthy"]) == (Do.CHECK, [SPARE])
    assert (check.data["kept"], check.data["replaced"]) == ([c.id for c in plan.keep], [c.id for c in plan.remove])
    assert [(s.data["transponder"], s.data["enabled"], s.required) for s in transmits] == [
        (f"{FAILED}-a", False, False),
        (f"{FAILED}-b", False, False),
        (f"{SPARE}-a", True, True),
        (f"{SPARE}-b", True, True),
    ]
    assert program.data["changes"] == [[c.puc, c.before, c.after] for c in plan.changes]
    assert (verify.data["circuits"], verify.data["kept"]) == ([c.id for c in plan.add], [c.id for c in plan.keep])
    assert all(step.required for step in (check, program, verify, assign))
    placed = seen.assignment["train-a"]
    assert plan.start.assignment == {"train-a": placed}
    assert assign.data["before"]["train-a"] == list(placed)
    assert assign.data["assignment"]["train-a"] == [SPARE if a == FAILED else a for a in placed]
    crosses = tuple(puc for puc, state in sorted(states["rail2"].items()) if state is PucState.CROSS)
    assert plan.start.crosses == {"rail2": crosses}


def test_a_mesh_with_a_timer_is_confirmed_after_the_proof(context, rack64, observe):
    context.driver.capabilities = frozenset({Capability.CONFIRM_TIMER})
    plan = planned(context, observe(rack64, failed={FAILED: State.FAILED}))
    assert [step.do for step in plan.steps][-4:] == [Do.PROGRAM, Do.VERIFY, Do.CONFIRM, Do.ASSIGN]
    assert plan.steps[-2].data == {"devices": ["rail2"]}
