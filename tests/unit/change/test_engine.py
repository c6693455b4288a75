"""The engine: what it does in which order, and in what state every way of failing leaves the rack and its store."""

import signal
from dataclasses import replace

import pytest

from lumctl.change.guard_scope import GuardScope
from lumctl.change.run import RunInProgress
from lumctl.devices.errors import DeviceRefusedError, DeviceUnreachableError, OutcomeUnknownError
from lumctl.errors import HalfDoneError, LumctlError, RefusedError, RolledBackError
from lumctl.store import StoreError, store_at, ways_to_finish
from lumctl.swap import plan_fabric, plan_rollback

UNREACHABLE = DeviceUnreachableError("it does not answer")
UNKNOWN = OutcomeUnknownError("no answer came")
PLACED = ("s0-gpu0", "s1-gpu0", "s2-gpu0")
RELIT = [("transmit", "s1-gpu0-b", True), ("transmit", "s1-gpu0-a", True)]
DARKENED = [("transmit", "s3-gpu0-b", False), ("transmit", "s3-gpu0-a", False)]
BACK = [("roll_back", "mesh", False), *DARKENED, *RELIT]


def surroundings(acts, *steps, kind=""):
    """What a stage does, between the intents and the outcomes of its steps."""
    return [*((f"{kind}intent", step) for step in steps), *acts, *((f"{kind}outcome", step) for step in steps)]


SWITCHED = [
    ("transmit", "s1-gpu0-a", False),
    ("transmit", "s1-gpu0-b", False),
    ("transmit", "s3-gpu0-a", True),
    ("transmit", "s3-gpu0-b", True),
]
FORWARD = [
    *surroundings([], "1"),
    *surroundings(SWITCHED, "2", "3", "4", "5"),
    *surroundings([("commit", "mesh", None)], "6"),
    *surroundings([], "7"),
]


def fails(rack, plan, error, match=None):
    before = dict(rack.twin.cells)
    with pytest.raises(error, match=match) as raised:
        rack.apply(plan)
    assert rack.events[-1] == ("release",)
    assert rack.store.first_break() is None
    return raised.value, before


def is_as_it_was(rack, before):
    assert rack.twin.cells == before == rack.context.known_states("mesh")
    assert rack.placed() == PLACED
    assert rack.on == {lane: not lane.startswith("s3") for lane in rack.on}


def test_a_swap_goes_step_by_step_under_its_lease_with_every_intent_before_its_act(rack):
    rack.apply(rack.plan())
    start = [("acquire",), ("identify", "mesh"), ("arm", 60.0), ("begin",)]
    assert rack.events == [*start, *FORWARD, *surroundings([], "8"), ("end", "done"), ("release",)]


def test_a_finished_swap_is_told_and_written_down(rack):
    plan = rack.plan()
    result = rack.apply(plan)
    assert (result.outcome, [phase.name for phase in result.stages]) == ("done", [s.do.value for s in plan.steps])
    assert {(proof.receiver, proof.transmitter) for proof in result.verified} == {
        ("s3-gpu0-a", "s0-gpu0-b"),
        ("s0-gpu0-b", "s3-gpu0-a"),
        ("s2-gpu0-a", "s3-gpu0-b"),
        ("s3-gpu0-b", "s2-gpu0-a"),
    }
    run = rack.store.runs.all()[0]
    assert (run.id, run.state, run.plan_digest, run.who) == (result.run, "done", plan.digest, "me")
    assert rack.placed() == ("s0-gpu0", "s3-gpu0", "s2-gpu0") == rack.store.fabric.assignment()["finetune"]
    assert rack.context.known_states("mesh") == rack.twin.cells
    assert [rack.twin.cells[change.puc].value for change in plan.changes] == [change.after for change in plan.changes]


def test_an_intent_is_on_disk_for_others_to_see_while_its_step_acts(rack):
    plan = rack.plan()
    seen = []

    def look():
        other = store_at(str(rack.folder))
        run = other.runs.all()[0]
        entry = other.journal.of_run(run.id)[-1]
        seen.append((run.state, entry.kind, entry.step, other.fabric.uncertain_since("mesh") == run.id))
        other.close()

    rack.at("commit", do=look)
    rack.apply(plan)
    assert seen == [("running", "intent", "6", True)]


def test_a_swap_that_is_not_proved_is_taken_back_in_reverse(rack):
    plan = rack.plan()
    rack.dark.add("s3-gpu0-a")
    error, before = fails(rack, plan, RolledBackError, "s0-gpu0-b hears s1-gpu0-a instead of s3-gpu0-a")
    undone = [
        *surroundings([], "7", kind="undo-"),
        *surroundings([BACK[0]], "6", kind="undo-"),
        *surroundings([BACK[1]], "5", kind="undo-"),
        *surroundings([BACK[2]], "4", kind="undo-"),
        *surroundings([BACK[3]], "3", kind="undo-"),
        *surroundings([BACK[4]], "2", kind="undo-"),
        *surroundings([], "1", kind="undo-"),
    ]
    assert rack.events[4:] == [*FORWARD, *undone, ("end", "rolled-back"), ("release",)]
    run = rack.store.runs.all()[0]
    assert (run.id, run.state) == (error.run, "rolled-back")
    is_as_it_was(rack, before)


def test_an_error_that_nobody_expected_is_undone_as_any_other(rack):
    plan = rack.plan()
    rack.at("commit", do=ValueError("a bug"))
    _, before = fails(rack, plan, RolledBackError, "unexpected ValueError: a bug")
    assert rack.acts()[5:] == BACK
    is_as_it_was(rack, before)


def test_nor_is_it_mistaken_for_a_refusal(rack):
    plan = rack.plan()
    rack.at("intent", "1", do=ValueError("a bug"))
    fails(rack, plan, RolledBackError, "unexpected ValueError: a bug")
    assert rack.store.runs.all()[0].state == "rolled-back"


def test_a_placement_that_was_written_down_is_taken_back_too(rack):
    plan, before = rack.plan(), dict(rack.twin.cells)
    lease = rack.store.leases.acquire(plan.rack, "me", term_s=30.0, now=rack.time)
    run = RunInProgress.begun(rack.context, plan, rack.store, lease, "me", GuardScope())
    for step in plan.steps:
        run.perform(step)
    assert rack.placed() != PLACED
    assert run.undo() == []
    is_as_it_was(rack, before)


def test_an_interrupt_after_the_last_step_comes_too_late(rack):
    plan = rack.plan()
    rack.at("outcome", "8", do=lambda: signal.raise_signal(signal.SIGINT))
    assert rack.apply(plan).outcome == "done"


def test_an_interrupt_between_an_intent_and_its_act_takes_the_step_back_too(rack):
    plan = rack.plan()
    rack.at("intent", "6", do=KeyboardInterrupt())
    _, before = fails(rack, plan, RolledBackError, "it was interrupted")
    assert rack.acts()[4:] == BACK
    is_as_it_was(rack, before)


def test_circuits_that_were_sound_and_are_not_after_the_undo_leave_it_half_done(rack):
    plan = rack.plan()
    rack.at("commit", do=lambda: rack.dark.add("s0-gpu0-b"))  # it carried a replaced circuit
    error, before = fails(rack, plan, HalfDoneError, "the cells were restored, but: light was not verified")
    assert rack.acts()[5:] == BACK
    assert rack.store.runs.get(error.run).state == "half-done"
    is_as_it_was(rack, before)


def test_what_was_dark_before_the_run_is_not_asked_for_after_the_undo(rack):
    rack.dark.update({"s1-gpu0-a", "s3-gpu0-a"})
    fails(rack, rack.plan(), RolledBackError)


def test_a_run_whose_light_could_not_be_proved_ends_before_it_stops_the_job(rack):
    plan = rack.plan()
    rack.collected.host("s0", reachable=False, error="no route to host")
    error, before = fails(rack, plan, RefusedError, "s0 does not answer: the light of the new circuits could not be")
    assert error.hint == "see what to do: lumctl health explain s0 --target sim"
    assert rack.acts() == []
    is_as_it_was(rack, before)


def test_a_kept_circuit_that_the_change_darkens_fails_the_run(rack):
    plan = rack.plan()
    rack.at("commit", do=lambda: rack.dark.add("s2-gpu0-b"))
    rack.at("roll_back", do=rack.dark.clear)
    _, before = fails(rack, plan, RolledBackError, "s0-gpu0-a received no new announcement from s2-gpu0-b")
    is_as_it_was(rack, before)


def test_a_kept_circuit_that_was_dark_all_along_does_not(rack):
    rack.dark.add("s2-gpu0-b")
    assert rack.apply(rack.plan()).outcome == "done"


def test_a_required_step_whose_outcome_is_unknown_ends_the_run_and_is_undone(rack):
    plan = rack.plan()
    rack.at("transmit", "s3-gpu0-a", do=UNKNOWN)
    _, before = fails(rack, plan, RolledBackError, "no answer came")
    assert rack.acts()[3:] == [SWITCHED[3], *DARKENED, *RELIT]  # the step beside it was done
    is_as_it_was(rack, before)


@pytest.mark.parametrize("error", [UNREACHABLE, DeviceRefusedError("no")])
def test_a_required_step_that_surely_did_nothing_ends_the_run_and_needs_no_undo(rack, error):
    plan = rack.plan()
    rack.at("transmit", "s3-gpu0-a", do=error)
    _, before = fails(rack, plan, RolledBackError, error.message)
    assert rack.acts()[3:] == [SWITCHED[3], DARKENED[0], *RELIT]
    is_as_it_was(rack, before)


@pytest.mark.parametrize(("error", "undone"), [(UNREACHABLE, RELIT[:1]), (UNKNOWN, RELIT)])
def test_a_step_that_is_not_required_is_passed_over_and_undone_only_if_it_may_have_acted(rack, error, undone):
    plan = rack.plan()
    rack.at("transmit", "s1-gpu0-a", do=error)
    rack.at("commit", do=ValueError())
    fails(rack, plan, RolledBackError, "ValueError")
    assert rack.acts()[-len(undone) - 1 :] == [DARKENED[-1], *undone]


@pytest.mark.parametrize("error", [UNREACHABLE, UNKNOWN])
def test_a_run_with_a_step_passed_over_is_done_and_says_so(rack, error):
    plan = rack.plan()
    rack.at("transmit", "s1-gpu0-a", do=error)
    said = []
    result = rack.apply(plan, progress=said.append)
    assert (
        said[0]
        == "mesh and 4 other parts have no revert timer: lumctl undoes the run if this command is silent for 60 s"
    )
    assert said[2] == f"2. turn off the transmitter of s1-gpu0-a: skipped ({error.message})"
    (outcome,) = [e for e in rack.store.journal.of_run(result.run) if (e.kind, e.step) == ("outcome", "2")]
    sent = {} if error is UNKNOWN else {"nothing_sent": True}
    assert outcome.data == {"failed": error.message, "seconds": outcome.seconds, **sent}
    assert result.outcome == "done"


@pytest.mark.parametrize("trouble", [UNREACHABLE, ValueError("a bug")])
def test_an_undo_that_fails_goes_on_with_the_other_steps(rack, trouble):
    plan = rack.plan()
    rack.dark.add("s3-gpu0-a")
    rack.at("roll_back", do=trouble)
    error, _ = fails(rack, plan, HalfDoneError, r"is left half done: program \d+ PUCs of mesh: .*(a bug|not answer)")
    assert rack.acts()[5:] == BACK
    assert rack.store.runs.get(error.run).state == "half-done"
    assert rack.store.fabric.uncertain_since("mesh") == error.run
    assert rack.store.runs.unfinished(now=rack.time) == (error.run,)
    assert ways_to_finish(error.run, "sim") in error.hint


def test_an_undo_of_what_was_not_required_is_no_trouble_if_it_fails(rack):
    rack.dark.update({"s1-gpu0-b", "s3-gpu0-a"})
    plan = rack.plan()
    rack.at(*RELIT[0], do=UNREACHABLE)
    fails(rack, plan, RolledBackError)
    assert rack.acts()[5:] == BACK
    undone = {e.step: e.data["undone"] for e in rack.store.journal.of_run("swap-0001") if e.kind == "undo-outcome"}
    assert [step for step, well in undone.items() if not well] == ["3"]


def test_a_run_that_touched_nothing_is_refused_and_not_undone(rack):
    plan = rack.plan()
    rack.collected.lose_gpu("s3-gpu0")
    error, before = fails(rack, plan, RefusedError, "s3-gpu0 is failed, not ok")
    assert not isinstance(error, RolledBackError)
    assert rack.events[4:] == [*FORWARD[:2], ("end", "refused"), ("release",)]
    assert rack.store.runs.all()[0].state == "refused"
    is_as_it_was(rack, before)


def test_a_mesh_that_was_sent_nothing_is_as_certain_as_before(rack):
    plan = plan_fabric(rack.context, "prototype", rewrite=True)
    rack.at("commit", do=UNREACHABLE)
    _, before = fails(rack, plan, DeviceUnreachableError)
    assert rack.store.runs.all()[0].state == "refused"
    is_as_it_was(rack, before)


def test_a_mesh_that_was_written_whole_keeps_what_was_written_if_its_light_is_not_proved(rack):
    plan = plan_fabric(rack.context, "prototype", forget=True)
    rack.dark.add("s0-gpu0-b")
    error, _ = fails(
        rack, plan, HalfDoneError, "all cells of mesh were written, because their earlier states were unknown"
    )
    assert rack.acts() == [("commit", "mesh", None)]
    assert rack.context.known_states("mesh") == rack.twin.cells
    assert f"lumctl swap resume {error.run} --target sim" in error.hint


def test_a_run_that_is_no_longer_wanted_when_the_store_shows_it_is_refused_before_its_first_step(rack):
    plan, before = rack.plan(), dict(rack.twin.cells)
    seen = []

    def stopped():
        seen.append(rack.store.runs.all()[0].state)
        raise RefusedError("the autopilot was stopped")

    with pytest.raises(RefusedError, match="the autopilot was stopped"):
        rack.apply(plan, require_wanted=stopped)
    assert seen == ["running"]
    assert rack.acts() == []
    assert rack.store.runs.all()[0].state == "refused"
    is_as_it_was(rack, before)


def test_a_run_can_be_stopped_before_a_step_and_is_then_undone(rack):
    plan = rack.plan()

    def stop(step):
        if step.id == "6":
            raise LumctlError("that is enough")

    with pytest.raises(RolledBackError, match="that is enough"):
        rack.apply(plan, before_step=stop)
    assert rack.acts()[4:] == BACK[1:]


def test_a_listener_that_fails_stops_nothing(rack):
    def gone(_line):
        raise BrokenPipeError

    assert rack.apply(rack.plan(), progress=gone).outcome == "done"


def test_a_run_that_lost_its_lease_acts_no_more(rack):
    plan = rack.plan()
    rack.at("commit", do=lambda: rack.store.leases.acquire("prototype", "you", term_s=30.0, now=rack.time + 60))
    fails(rack, plan, HalfDoneError, r"is left half done: the lease [^;]* was lost to a newer holder, [^;]+$")
    assert rack.acts()[-1] == ("commit", "mesh", None)
    assert rack.store.runs.all()[0].state == "running"


def test_an_undo_goes_on_where_its_intent_cannot_be_written(rack):
    plan = rack.plan()
    rack.dark.add("s3-gpu0-a")
    rack.at("undo-intent", "6", do=StoreError("the disk is full"))
    _, before = fails(rack, plan, RolledBackError)
    is_as_it_was(rack, before)


def test_a_rack_that_somebody_else_changes_is_left_alone(rack):
    plan = rack.plan()
    rack.store.leases.acquire("prototype", "you", term_s=30.0, now=rack.time)
    with pytest.raises(RefusedError, match="being changed by you"):
        rack.apply(plan)
    assert rack.events == [("acquire",)]


def test_a_rollback_marks_the_run_that_it_took_back(rack):
    before = dict(rack.twin.cells)
    run = rack.apply(rack.plan()).run
    back = rack.apply(plan_rollback(rack.context, rack.store.runs.get(run)))
    assert (rack.store.runs.get(run).state, rack.store.runs.get(run).undone_by) == ("undone", back.run)
    is_as_it_was(rack, before)


class Killed(BaseException):
    """What ends an engine without a word."""


def die() -> None:
    raise Killed


def test_a_swap_that_was_cut_while_it_wrote_is_taken_back_though_its_old_circuits_were_dark(rack):
    rack.dark.update({"s1-gpu0-a", "s1-gpu0-b"})
    plan = rack.plan()
    lease = rack.store.leases.acquire(plan.rack, "me", term_s=30.0, now=rack.time)
    run = RunInProgress.begun(rack.context, plan, rack.store, lease, "me", GuardScope())
    rack.at("commit", do=die)

    def perform_all():
        for step in plan.steps:
            run.perform(step)

    with pytest.raises(Killed):
        perform_all()
    rack.store.leases.release(lease)
    back = plan_rollback(rack.context, rack.store.runs.get(run.id))
    assert "did not work before" in back.warnings[0]
    rack.apply(back)
    assert rack.store.runs.get(run.id).state == "undone"


def test_what_was_put_back_is_not_taken_for_sound_because_a_host_has_lost_its_power(rack):
    plan, off, read = rack.plan(), set(), rack.collect

    def collect(hosts=None, probes=None):
        seen = read(hosts, probes)
        dead = {name: replace(seen.hosts[name], reachable=False, neighbours={}) for name in off & seen.hosts.keys()}
        return replace(seen, hosts={**seen.hosts, **dead})

    rack.collect = collect
    rack.at("commit", do=lambda: off.add("s1"))
    rack.dark.add("s3-gpu0-a")
    rack.twin.roll_back = lambda _receipt: rack.happens("roll_back", "mesh")  # it says so, and does nothing
    with pytest.raises(HalfDoneError, match="the cells were restored, but: light was not verified"):
        rack.apply(plan)
