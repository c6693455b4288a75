"""What each kind of step does to the rack, what it tells, and how it is undone."""

import pytest

from lumctl.change.light_proof import BlinkError, NotProvedError
from lumctl.change.plan import Do
from lumctl.change.step_actions import ACTIONS, REVERT_AFTER_S
from lumctl.devices.errors import DeviceUnreachableError, OutcomeUnknownError
from lumctl.devices.types import Capability, PucState
from lumctl.errors import RefusedError, RolledBackError
from lumctl.swap import plan_rollback

STANDING = {
    "s1-gpu0-a": "s0-gpu0-b",
    "s0-gpu0-b": "s1-gpu0-a",
    "s2-gpu0-a": "s1-gpu0-b",
    "s1-gpu0-b": "s2-gpu0-a",
    "s0-gpu0-a": "s2-gpu0-b",
    "s2-gpu0-b": "s0-gpu0-a",
}
KEPT = ("s0-gpu0-a", "s2-gpu0-b")
TIMER = frozenset({Capability.CONFIRM_TIMER})


@pytest.fixture
def plan(rack):
    return rack.plan()


@pytest.fixture
def bench(rack, plan):
    return rack.bench(plan)


def step_of(plan, do, number=0):
    return [step for step in plan.steps if step.do is do][number]


def act(bench, step):
    return ACTIONS[step.do].act(bench, step)


def undo(bench, step, evidence):
    return ACTIONS[step.do].undo(bench, step, evidence)


def light(rack, bench, plan):
    """Everything up to the proof."""
    for step in plan.steps:
        if step.do in {Do.CHECK, Do.TRANSMIT, Do.PROGRAM}:
            act(bench, step)
    rack.events.clear()
    return step_of(plan, Do.VERIFY)


# -- check ---------------------------------------------------------------------------------------------------------


def test_a_check_finds_every_receiver_that_hears_whom_it_should(rack, plan, bench):
    assert act(bench, step_of(plan, Do.CHECK)) == {"sound": STANDING}
    assert not rack.acts()


def test_a_check_tells_which_transmitters_were_on(rack, plan, bench):
    bench.switched = ["s1-gpu0-a", "s3-gpu0-a"]
    assert act(bench, step_of(plan, Do.CHECK))["transmitting"] == {"s1-gpu0-a": True, "s3-gpu0-a": False}
    for number in (0, 2):
        act(bench, step_of(plan, Do.TRANSMIT, number))
    before = dict(rack.on)
    for number in (0, 2):
        undo(bench, step_of(plan, Do.TRANSMIT, number), None)  # cut before it could tell
    assert (before["s1-gpu0-a"], before["s3-gpu0-a"]) == (False, True)
    assert (rack.on["s1-gpu0-a"], rack.on["s3-gpu0-a"]) == (True, False)


def test_a_transmitter_is_left_alone_only_if_it_shows_now_that_it_is_as_wanted(rack, plan, bench):
    step = step_of(plan, Do.TRANSMIT, 2)
    bench.lit = {"s3-gpu0-a": True}  # somebody has darkened it since
    assert act(bench, step) == {"was": False, "is": True}
    assert rack.acts() == [("transmit", "s3-gpu0-a", True)]


def test_a_check_leaves_out_who_hears_nobody(rack, plan, bench):
    rack.dark.add("s2-gpu0-b")
    assert act(bench, step_of(plan, Do.CHECK))["sound"] == {r: t for r, t in STANDING.items() if r != "s0-gpu0-a"}


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda collected: collected.lose_gpu("s3-gpu0"), "s3-gpu0 is failed, not ok"),
        (lambda collected: collected.gpu("s3-gpu0", remap_pending=True), "s3-gpu0 is degraded, not ok"),
        (
            lambda collected: collected.host("s3", reachable=False, error="no route to host"),
            "s3-gpu0 is unknown, not ok: its host s3 is failed: no route to host",
        ),
        (lambda collected: collected.gpu("s3-gpu0", taken_at=0.0), "s3-gpu0 is unknown, not ok: last read"),
    ],
)
def test_a_spare_must_be_well_by_a_fresh_reading(rack, plan, bench, spoil, says):
    spoil(rack.collected)
    with pytest.raises(RefusedError, match=says):
        act(bench, step_of(plan, Do.CHECK))


# -- transmit ------------------------------------------------------------------------------------------------------


def test_a_transmitter_is_switched_and_what_it_was_is_told(rack, plan, bench):
    darken, lighten = step_of(plan, Do.TRANSMIT), step_of(plan, Do.TRANSMIT, 2)
    assert act(bench, darken) == {"was": True, "is": False}
    assert act(bench, lighten) == {"was": False, "is": True}
    assert rack.acts() == [("transmit", "s1-gpu0-a", False), ("transmit", "s3-gpu0-a", True)]


@pytest.mark.parametrize("number", [0, 2])
def test_its_undo_puts_back_what_was(rack, plan, bench, number):
    before = dict(rack.on)
    step = step_of(plan, Do.TRANSMIT, number)
    evidence = act(bench, step)
    assert rack.on != before
    assert undo(bench, step, evidence) == {"is": evidence["was"]}
    assert rack.on == before


@pytest.mark.parametrize("number", [0, 2])
def test_a_transmitter_that_is_as_wanted_is_not_touched_and_not_undone(rack, plan, bench, number):
    step = step_of(plan, Do.TRANSMIT, number)
    rack.on[step.data["transponder"]] = step.data["enabled"]
    undo(bench, step, act(bench, step))
    assert not rack.acts()


@pytest.mark.parametrize("number", [0, 2])
def test_one_that_was_cut_before_it_told_is_lit(rack, plan, bench, number):
    step = step_of(plan, Do.TRANSMIT, number)
    lane = step.data["transponder"]
    rack.on[lane] = False
    assert undo(bench, step, None) == {"is": True}
    assert rack.acts() == [("transmit", lane, True)]


# -- program and confirm -------------------------------------------------------------------------------------------


def test_a_mesh_without_a_timer_is_written_without_one(rack, plan, bench):
    evidence = act(bench, step_of(plan, Do.PROGRAM))
    assert rack.acts() == [("commit", "mesh", None)]
    assert (evidence["cells"], evidence["revert_timer"]) == (len(plan.changes), "none")
    assert {rack.twin.cells[change.puc].value == change.after for change in plan.changes} == {True}


def test_a_mesh_with_a_timer_is_armed_for_longer_than_the_proofs_may_take(rack, plan, bench):
    rack.twin.capabilities = TIMER
    evidence = act(bench, step_of(plan, Do.PROGRAM))
    assert rack.acts() == [("commit", "mesh", REVERT_AFTER_S + 2 * rack.inventory.thresholds.light_deadline_s)]
    assert evidence["revert_timer"] == "device"


@pytest.mark.parametrize("capabilities", [frozenset(), TIMER])
def test_written_cells_are_undone_as_the_plan_has_them(rack, plan, bench, capabilities):
    before = dict(rack.twin.cells)
    rack.twin.capabilities = capabilities
    step = step_of(plan, Do.PROGRAM)
    evidence = act(bench, step)
    assert rack.twin.cells != before
    undo(bench, step, evidence)
    assert rack.acts()[-1] == ("roll_back", "mesh", capabilities == TIMER)
    assert rack.twin.cells == before


def test_cells_whose_writing_was_cut_are_undone_without_a_receipt(rack, plan, bench):
    before = dict(rack.twin.cells)
    rack.twin.cells |= {change.puc: PucState(change.after) for change in plan.changes[:3]}
    undo(bench, step_of(plan, Do.PROGRAM), None)
    assert rack.twin.cells == before


def test_a_mesh_with_a_timer_is_certain_only_when_it_was_told_to_keep_the_change(rack):
    rack.twin.capabilities = TIMER
    plan = rack.plan()
    known = []
    rack.at("confirm", do=lambda: known.append(rack.context.known_states("mesh")))
    result = rack.apply(plan)
    assert rack.acts()[-2:] == [("commit", "mesh", 60.0), ("confirm", "mesh")]
    assert [phase.name for phase in result.stages][-4:] == ["program", "verify", "confirm", "assign"]
    assert known == [{}]
    assert rack.context.known_states("mesh") == rack.twin.cells


@pytest.mark.parametrize("error", [DeviceUnreachableError("gone"), OutcomeUnknownError("no answer")])
def test_a_mesh_that_could_not_be_told_so_is_put_back(rack, error):
    rack.twin.capabilities = TIMER
    plan = rack.plan()
    before = dict(rack.twin.cells)
    rack.at("confirm", do=error)
    with pytest.raises(RolledBackError):
        rack.apply(plan)
    assert ("roll_back", "mesh", True) in rack.acts()
    assert rack.twin.cells == before == rack.context.known_states("mesh")


def test_a_mesh_without_a_receipt_is_not_confirmed(rack):
    rack.twin.capabilities = TIMER
    plan = rack.plan()
    assert act(rack.bench(plan), step_of(plan, Do.CONFIRM)) == {"devices": ["mesh"]}
    assert not rack.acts()


# -- verify --------------------------------------------------------------------------------------------------------


def test_new_circuits_are_proved_and_kept_ones_again(rack, plan, bench):
    evidence = act(bench, light(rack, bench, plan))
    assert {(p["receiver"], p["transmitter"], p["evidence"]) for p in evidence["proofs"]} == {
        ("s3-gpu0-a", "s0-gpu0-b", "lldp"),
        ("s0-gpu0-b", "s3-gpu0-a", "lldp"),
        ("s2-gpu0-a", "s3-gpu0-b", "lldp"),
        ("s3-gpu0-b", "s2-gpu0-a", "lldp"),
    }
    assert evidence["kept"] == 2


def test_a_new_circuit_that_is_dark_is_not_proved(rack, plan, bench):
    rack.dark.add("s3-gpu0-b")
    step = light(rack, bench, plan)
    with pytest.raises(NotProvedError, match="s2-gpu0-a hears s1-gpu0-b instead of s3-gpu0-b"):
        act(bench, step)


@pytest.mark.parametrize("lane", ["s2-gpu0-b", "s0-gpu0-a"])
def test_a_kept_circuit_that_went_dark_is_missed(rack, plan, bench, lane):
    step = light(rack, bench, plan)
    rack.dark.add(lane)
    with pytest.raises(NotProvedError, match=f"no new announcement from {lane}"):
        act(bench, step)


def test_a_kept_circuit_that_was_not_sound_is_not_asked_for(rack, plan, bench):
    rack.dark.add("s2-gpu0-b")
    assert act(bench, light(rack, bench, plan))["kept"] == 1


def test_a_kept_receiver_that_cannot_say_whom_it_hears_must_keep_its_power(rack, plan, bench):
    rack.verify_by_blink(*KEPT)
    step = light(rack, bench, plan)
    assert act(bench, step)["kept"] == 0
    assert not rack.acts()  # it carries a running job: nothing of it is blinked
    rack.dark.add("s2-gpu0-b")
    with pytest.raises(NotProvedError, match=r"s0-gpu0-a receives no light, -5\.0 dBm before the change"):
        act(bench, step)


def test_a_new_receiver_that_cannot_say_whom_it_hears_is_proved_by_blinking(rack, plan, bench):
    rack.verify_by_blink("s3-gpu0-a")
    step = light(rack, bench, plan)
    assert "blink" in {proof["evidence"] for proof in act(bench, step)["proofs"]}
    assert rack.acts() == [("transmit", "s0-gpu0-b", on) for on in (True, False, True)]
    rack.dark.add("s0-gpu0-b")
    with pytest.raises(BlinkError, match="s3-gpu0-a from s0-gpu0-b is dark"):
        act(bench, step)


# -- assign --------------------------------------------------------------------------------------------------------


def test_a_placement_is_written_down_with_its_step_and_taken_back_with_it(rack, plan):
    placed = []
    rack.at("end", do=lambda: placed.append(rack.placed()))
    run = rack.apply(plan).run
    assert placed == [("s0-gpu0", "s3-gpu0", "s2-gpu0")]
    rack.apply(plan_rollback(rack.context, rack.store.runs.get(run)))
    assert rack.placed() == ("s0-gpu0", "s1-gpu0", "s2-gpu0")
