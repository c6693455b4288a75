"""Runs that were cut or left half done, continued with or undone: in memory, from every place where they can stop."""

from dataclasses import replace

import pytest

from lumctl.change.guard_scope import GuardScope
from lumctl.change.plan import Do
from lumctl.change.resumption import ABORT, RESUME, abort, outlook, resume
from lumctl.change.run import RunInProgress
from lumctl.devices.errors import DeviceUnreachableError, OutcomeUnknownError
from lumctl.devices.types import Capability, PucState
from lumctl.errors import HalfDoneError, LumctlError, RefusedError, RolledBackError
from lumctl.store import Record, ways_to_finish
from lumctl.swap import plan_fabric, plan_rollback

RUN = {"kind": "fabric", "target": "sim", "title": "t", "plan_digest": "d", "inventory_digest": "i", "who": "me"}
PLACED = ("s0-gpu0", "s1-gpu0", "s2-gpu0")
SWAPPED = ("s0-gpu0", "s3-gpu0", "s2-gpu0")
UNREACHABLE = DeviceUnreachableError("it does not answer")
UNKNOWN = OutcomeUnknownError("no answer came")


class Killed(BaseException):
    """What ends an engine without a word."""


class Left:
    """A run that its engine has left after some steps, or as something happened; its lease has ended."""

    def __init__(self, rack, plan, *, steps=8, at=(), do=Killed, ago_s=31.0) -> None:
        self.rack, self.plan, self.before = rack, plan, dict(rack.twin.cells)
        lease = rack.store.leases.acquire(plan.rack, "me", term_s=30.0, now=rack.time - ago_s)
        self.run = RunInProgress.begun(rack.context, plan, rack.store, lease, "me", GuardScope())
        if at:
            rack.at(*at, do=Killed() if do is Killed else do)
        try:
            for step in plan.steps[:steps]:
                self.run.perform(step)
        except (Killed, LumctlError):
            pass
        rack.events.clear()

    @property
    def stored(self):
        return self.rack.store.runs.get(self.run.id)

    def resume(self):
        return resume(self.rack.context, self.stored, who="you", arm=self.rack.guard.arm)

    def abort(self):
        return abort(self.rack.context, self.stored, who="you")

    def kinds(self, *kinds):
        return [(e.kind, e.step) for e in self.rack.store.journal.of_run(self.run.id) if e.kind in kinds]


def is_swapped(left) -> None:
    rack = left.rack
    assert left.stored.state == "done"
    assert [rack.twin.cells[change.puc].value for change in left.plan.changes] == [c.after for c in left.plan.changes]
    untouched = set(left.before) - {change.puc for change in left.plan.changes}
    assert {puc: rack.twin.cells[puc] for puc in untouched} == {puc: left.before[puc] for puc in untouched}
    assert rack.context.known_states("mesh") == rack.twin.cells
    assert rack.placed() == SWAPPED
    is_free(rack)


def is_as_it_was(left, state="rolled-back") -> None:
    rack = left.rack
    assert left.stored.state == state
    assert rack.twin.cells == left.before == rack.context.known_states("mesh")
    assert rack.placed() == PLACED
    assert rack.on == {lane: not lane.startswith("s3") for lane in rack.on}
    is_free(rack)


def is_free(rack) -> None:
    assert rack.store.first_break() is None
    rack.store.leases.release(rack.store.leases.acquire("prototype", "the next one", term_s=30.0, now=rack.time))


@pytest.mark.parametrize("steps", range(9))
def test_a_run_that_was_cut_after_a_step_goes_on_with_the_next(rack, steps):
    left = Left(rack, rack.plan(), steps=steps)
    result = left.resume()
    assert (result.run, result.outcome) == (left.run.id, "done")
    before, after = left.plan.steps[:steps], left.plan.steps[steps:]
    proved_anew = [step for step in before if step.do is Do.VERIFY and after]
    assert [phase.title for phase in result.stages] == [step.title for step in (*proved_anew, *after)]
    assert left.kinds("intent") == [("intent", step.id) for step in (*before, *proved_anew, *after)]
    is_swapped(left)


@pytest.mark.parametrize("steps", range(9))
def test_or_is_taken_back(rack, steps):
    left = Left(rack, rack.plan(), steps=steps)
    result = left.abort()
    assert (result.run, result.outcome) == (left.run.id, "rolled-back")
    is_as_it_was(left)


@pytest.mark.parametrize("act", ["transmit", "commit"])
def test_a_step_of_which_nobody_knows_is_done_again(rack, act):
    left = Left(rack, rack.plan(), at=(act,), do=UNKNOWN)
    assert not (rack.on["s1-gpu0-a"] is False and act == "transmit")
    left.resume()
    is_swapped(left)


@pytest.mark.parametrize("step", ["2", "4", "6", "7", "8"])
def test_a_run_that_was_cut_just_after_an_outcome_is_taken_back_whole(rack, step):
    left = Left(rack, rack.plan(), at=("outcome", step), do=Killed)
    (entry,) = left.kinds("outcome")[-1:]
    assert entry == ("outcome", step)
    left.abort()
    is_as_it_was(left)


@pytest.mark.parametrize("step", ["2", "3", "4", "5", "6", "7"])
def test_what_was_done_twice_is_taken_back_to_what_was_found_first(rack, step):
    """The first attempt acts and is cut before it can tell; the second one finds its work; then the proof fails."""
    plan = rack.plan()
    left = Left(rack, plan, steps=int(step) - 1)
    again = plan.steps[int(step) - 1]
    left.run.intend([again])
    left.run._do(again)
    rack.dark.add("s3-gpu0-a")
    with pytest.raises(RolledBackError, match="light was not verified"):
        left.resume()
    rack.dark.clear()
    is_as_it_was(left)


def test_who_goes_on_is_written_down_with_what_is_left(rack):
    left = Left(rack, rack.plan(), steps=6)
    left.resume()
    entry = next(e for e in rack.store.journal.of_run(left.run.id) if e.kind == "resume")
    assert entry.data == {"by": "you", "was": "running", "steps": ["7", "8"]}
    later = [e for e in rack.store.journal.of_run(left.run.id) if e.seq > entry.seq]
    assert {e.data["by"] for e in later} == {"you"}
    assert {e.fence for e in later} == {entry.fence} == {left.stored.fence}
    assert left.stored.who == "me"


def test_its_guard_is_armed_before_anything_is_written(rack):
    left = Left(rack, rack.plan(), steps=5)
    left.resume()
    names = [event[0] for event in rack.events]
    assert names.index("arm") < names.index("intent") < names.index("commit")
    assert rack.guard.heard[-1] == "dismiss"


def test_a_spare_that_has_died_since_is_not_used_and_all_is_taken_back(rack):
    left = Left(rack, rack.plan(), steps=6)
    rack.collected.lose_gpu("s3-gpu0")
    found = outlook(rack.context, left.stored, RESUME)
    assert (found.forward, [step.id for step in found.steps]) == (False, ["6", "5", "4", "3", "2", "1"])
    assert found.why_not.startswith("s3-gpu0 is failed, not ok")
    with pytest.raises(RolledBackError, match="it cannot continue: s3-gpu0 is failed"):
        left.resume()
    assert left.kinds("abort", "resume") == [("abort", "")]
    is_as_it_was(left)


def test_a_cell_that_somebody_else_changed_is_found_where_the_device_can_be_read(rack):
    rack.twin.capabilities = frozenset({Capability.READ_STATES})
    left = Left(rack, rack.plan(), steps=6)
    other = next(p for p in rack.twin.cells if p not in {c.puc for c in left.plan.changes})
    rack.twin.cells[other] = PucState.CROSS if rack.twin.cells[other] is PucState.BAR else PucState.BAR
    found = outlook(rack.context, left.stored, RESUME)
    assert (found.forward, found.why_not[:27]) == (False, "mesh is not in the state th")


def test_what_a_readable_device_has_lost_is_written_again(rack):
    rack.twin.capabilities = frozenset({Capability.READ_STATES})
    left = Left(rack, rack.plan(), steps=7)
    rack.twin.cells.update(left.before)
    left.resume()
    assert [event[0] for event in rack.acts()] == ["commit"]
    is_swapped(left)


def test_what_was_not_confirmed_is_written_proved_and_confirmed_again(rack):
    rack.twin.capabilities = frozenset({Capability.CONFIRM_TIMER})
    left = Left(rack, rack.plan(), steps=7)
    rack.twin.cells.update(left.before)  # its timer ran out
    left.resume()
    assert [event[0] for event in rack.acts()] == ["commit", "confirm"]
    is_swapped(left)


def test_a_device_that_does_not_answer_leaves_the_run_as_it_is(rack):
    left = Left(rack, rack.plan(), steps=6)
    rack.at("identify", do=UNREACHABLE)
    with pytest.raises(DeviceUnreachableError):
        left.resume()
    assert (left.stored.state, rack.acts(), left.kinds("resume", "abort")) == ("running", [], [])
    left.resume()
    is_swapped(left)


def half_done(rack):
    left = Left(rack, rack.plan(), steps=6)
    rack.at("roll_back", do=UNREACHABLE)
    troubles = left.run.undo()
    left.run.end("half-done", {"undo_failed": troubles})
    rack.events.clear()
    return left


def test_a_run_that_is_half_done_is_taken_back_where_that_failed(rack):
    left = half_done(rack)
    assert left.stored.state == "half-done"
    left.abort()
    assert [event[0] for event in rack.acts()] == ["roll_back"]
    is_as_it_was(left)


def test_or_done_once_more_and_can_be_rolled_back_whole(rack):
    left = half_done(rack)
    left.resume()
    is_swapped(left)
    rack.apply(plan_rollback(rack.context, left.stored))
    is_as_it_was(left, state="undone")


def test_what_still_cannot_be_taken_back_stays_half_done(rack):
    left = half_done(rack)
    rack.at("roll_back", do=UNREACHABLE)
    with pytest.raises(HalfDoneError) as error:
        left.abort()
    assert ways_to_finish(left.run.id, "sim") in error.value.hint
    assert left.stored.state == "half-done"
    left.abort()
    is_as_it_was(left)


def test_light_that_was_left_dark_in_mid_blink_is_lit_before_it_is_proved(rack):
    plan = rack.plan()
    rack.verify_by_blink("s0-gpu0-b")
    rack.context.inventory = replace(
        rack.inventory, thresholds=replace(rack.inventory.thresholds, light_deadline_s=0.2)
    )
    left = Left(rack, plan, steps=6)
    (verify,) = [step for step in plan.steps if step.do is Do.VERIFY]
    left.run.intend([verify])
    rack.on["s3-gpu0-a"] = False
    rack.events.clear()
    left.resume()
    assert rack.acts()[0] == ("transmit", "s3-gpu0-a", True)
    is_swapped(left)


def test_a_rollback_that_was_cut_goes_on_and_settles_what_it_takes_back(rack):
    first = rack.apply(rack.plan()).run
    swapped = dict(rack.twin.cells)
    left = Left(rack, plan_rollback(rack.context, rack.store.runs.get(first)), steps=4)
    left.resume()
    assert (left.stored.state, rack.store.runs.get(first).state) == ("done", "undone")
    assert rack.placed() == PLACED
    assert rack.twin.cells != swapped


def test_a_fabric_that_was_written_whole_goes_on_and_is_never_taken_back(rack):
    left = Left(rack, plan_fabric(rack.context, "prototype", forget=True), steps=2)
    with pytest.raises(HalfDoneError, match=r"all cells of .* were written"):
        left.abort()
    left.resume()
    assert left.stored.state == "done"


# -- refused, and nothing touched --------------------------------------------------------------------------------------


def refused(left, match, *, hint=""):
    rack = left.rack
    entries = rack.store.journal.of_run(left.run.id)
    for do in (left.resume, left.abort):
        with pytest.raises(RefusedError, match=match) as error:
            do()
        assert hint in (error.value.hint or "")
    assert rack.acts() == []
    assert rack.store.journal.of_run(left.run.id) == entries


def test_a_run_whose_engine_may_be_at_work_is_let_alone(rack):
    refused(Left(rack, rack.plan(), steps=6, ago_s=29.0), "is being changed by me; its lease ends in 1 s")


def test_a_lease_that_lapses_between_two_looks_is_over(rack, monkeypatch):
    left = Left(rack, rack.plan(), steps=6, ago_s=29.9)
    store = rack.context.store("prototype")
    require_free = store.leases.require_free

    def later(*where, **when):
        rack.time += 0.2
        return require_free(*where, **{**when, "now": rack.time})

    monkeypatch.setattr(store.leases, "require_free", later)
    left.abort()
    is_as_it_was(left)


def test_while_another_run_is_at_work_both_wait(rack):
    left = Left(rack, rack.plan(), steps=6)
    rack.store.leases.acquire("prototype", "somebody", term_s=30.0, now=rack.time)
    rack.events.clear()
    refused(left, "is being changed by somebody")


def test_a_run_that_has_ended_is_not_gone_on_with(rack):
    left = Left(rack, rack.plan())
    left.run.end("done", {})
    refused(left, f"{left.run.id} has nothing to (resume|abort): it ended done")
    with pytest.raises(RefusedError) as error:
        left.abort()
    assert error.value.hint == f"to undo it: lumctl swap rollback {left.run.id} --target sim"


def test_what_a_later_run_has_changed_is_not_touched(rack):
    left = Left(rack, rack.plan(), steps=6)
    lease = rack.store.leases.acquire("prototype", "you", term_s=30.0, now=rack.time)
    later = rack.store.runs.begin(lease, RUN, {"digest": "d"}, now=rack.time)
    rack.store.runs.intend(lease, later, Record(rack.time, "intent", "1", {}), unsure="mesh")
    rack.store.leases.release(lease)
    rack.events.clear()
    refused(left, f"a later run has changed the result of {left.run.id}: mesh was last written by {later}")


def test_a_run_that_was_cut_is_ended_before_another_begins(rack):
    plan = rack.plan()
    left = Left(rack, plan, steps=5)
    before = rack.store.leases.newest("prototype")
    with pytest.raises(RefusedError, match=f"{left.run.id} was interrupted and is still open: finish it") as error:
        rack.apply(plan)
    assert error.value.hint == ways_to_finish(left.run.id, "sim")
    assert rack.store.leases.newest("prototype") == before, "its guard would stand down before a newer lease"
    left.abort()
    assert rack.apply(rack.plan()).outcome == "done"


def test_a_job_that_was_moved_since_is_not_moved_back(rack, monkeypatch):
    left = Left(rack, rack.plan(), steps=5)
    with monkeypatch.context() as earlier:
        # What a version did that let a run begin on top of one that was cut.
        earlier.setattr("lumctl.change.preconditions.require_none_cut", lambda *_: None)
        rack.apply(rack.plan())
    rack.events.clear()
    refused(left, "finetune does not run where it ran then")


def test_another_target_or_text_of_the_inventory_is_another_matter(rack):
    left = Left(rack, rack.plan(), steps=6)
    rack.context.inventory = replace(rack.inventory, digest="another")
    with pytest.raises(RefusedError, match="was planned with a different version") as error:
        left.resume()
    assert f"lumctl swap abort {left.run.id} --target sim" in error.value.hint
    left.abort()
    is_as_it_was(left)
    rack.context.target = "rack"
    rack.events.clear()
    refused(left, f"{left.run.id} ran on target sim", hint="--target sim")


def test_what_would_be_done_is_told_without_doing_it(rack):
    left = Left(rack, rack.plan(), at=("outcome", "6"), do=Killed)
    forward, back = (outlook(rack.context, left.stored, act) for act in (RESUME, ABORT))
    assert [step.id for step in forward.steps] in (["7", "8"], ["6", "7", "8"])
    assert [step.id for step in back.steps] == ["6", "5", "4", "3", "2", "1"]
    assert (rack.acts(), left.stored.state) == ([], "running")
