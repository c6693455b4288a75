"""What a guard does with a run that its engine has left: in memory, with every way to leave it."""

from dataclasses import replace

import pytest

from lumctl.change.guard_action import ATTEMPTS, take_over
from lumctl.change.guard_scope import GuardScope
from lumctl.change.plan import Do
from lumctl.change.run import RunInProgress
from lumctl.context import Context
from lumctl.devices.errors import DeviceUnreachableError, OutcomeUnknownError
from lumctl.errors import LumctlError
from lumctl.store import StoreError, store_at
from lumctl.swap import plan_fabric, plan_rollback

PLACED = ("s0-gpu0", "s1-gpu0", "s2-gpu0")
SWAPPED = ("s0-gpu0", "s3-gpu0", "s2-gpu0")
UNREACHABLE = DeviceUnreachableError("it does not answer")
UNKNOWN = OutcomeUnknownError("no answer came")


class Killed(BaseException):
    """What ends an engine without a word."""


class Left:
    """A run that its engine has left, and what a guard then says."""

    def __init__(self, rack, plan, *, steps=8, at=(), do=Killed) -> None:
        self.rack, self.said, self.pauses = rack, [], []
        self.lease = rack.store.leases.acquire(plan.rack, "me", term_s=30.0, now=rack.time)
        self.run = RunInProgress.begun(rack.context, plan, rack.store, self.lease, "me", GuardScope())
        if at:
            rack.at(*at, do=Killed() if do is Killed else do)
        try:
            for step in plan.steps[:steps]:
                self.run.perform(step)
        except (Killed, LumctlError):
            pass
        rack.events.clear()

    def guard(self):
        take_over(self.rack.context, self.lease, "it is gone", say=self.said.append, pause=self.pauses.append)
        return self.rack.store.runs.get(self.run.id)


def is_as_it_was(rack, before) -> None:
    assert rack.twin.cells == before == rack.context.known_states("mesh")
    assert rack.placed() == PLACED
    assert rack.on == {lane: not lane.startswith("s3") for lane in rack.on}
    assert rack.store.first_break() is None
    rack.store.leases.acquire("prototype", "the next one", term_s=30.0, now=rack.time)


@pytest.mark.parametrize("steps", range(8))
def test_a_run_that_was_left_after_a_step_is_taken_back(rack, steps):
    before, left = dict(rack.twin.cells), Left(rack, rack.plan(), steps=steps)
    assert left.guard().state == "rolled-back"
    assert left.said == [
        f"{left.run.id}: it is gone",
        f"{left.run.id} failed and was rolled back: it is gone",
    ]
    is_as_it_was(rack, before)


@pytest.mark.parametrize(
    "at", [("intent", "6"), ("commit",), ("outcome", "6"), ("transmit", "s1-gpu0-a"), ("outcome", "2"), ("intent", "7")]
)
def test_so_is_one_that_was_left_in_a_step(rack, at):
    before, left = dict(rack.twin.cells), Left(rack, rack.plan(), at=at)
    assert left.guard().state == "rolled-back"
    is_as_it_was(rack, before)


def test_what_a_guard_writes_is_signed_and_under_a_number_of_its_own(rack):
    left = Left(rack, rack.plan(), steps=6)
    run = left.guard()
    entries = rack.store.journal.of_run(run.id)
    mine = [entry for entry in entries if entry.fence != left.lease.fence]
    assert [e.kind for e in mine] == [*["undo-intent", "undo-outcome"] * 6, "end"]
    assert {entry.fence for entry in mine} == {left.lease.fence + 1} == {run.fence}
    assert {entry.data["by"] for entry in mine} == {f"revert guard of {run.id}"}
    assert not any("by" in entry.data for entry in entries if entry not in mine)
    assert mine[-1].data == {"state": "rolled-back", "failed": "it is gone", "by": f"revert guard of {run.id}"}


def test_a_step_that_was_sent_nothing_is_not_undone(rack):
    left = Left(rack, rack.plan(), at=("transmit", "s3-gpu0-b"), do=UNREACHABLE)
    assert left.guard().state == "rolled-back"
    assert rack.acts() == [
        ("transmit", "s3-gpu0-a", False),
        ("transmit", "s1-gpu0-b", True),
        ("transmit", "s1-gpu0-a", True),
    ]


def test_a_step_of_which_nobody_knows_is_undone(rack):
    left = Left(rack, rack.plan(), at=("transmit", "s3-gpu0-b"), do=UNKNOWN)
    left.guard()
    assert rack.acts()[0] == ("transmit", "s3-gpu0-b", False)  # as it was before the run


def test_what_the_engine_itself_had_undone_is_left_and_its_light_is_proved(rack):
    left = Left(rack, rack.plan(), steps=6)
    rack.at("undo-outcome", "5", do=Killed())
    with pytest.raises(Killed):
        left.run.undo()
    rack.events.clear()
    rack.dark.add("s0-gpu0-b")
    assert left.guard().state == "half-done"
    assert [event[1] for event in rack.seen("undo-intent")] == ["4", "3", "2", "1"]
    assert "the cells were restored, but: light was not verified" in left.said[-1]


def test_a_transmitter_that_was_left_dark_in_mid_blink_is_lit(rack):
    plan = rack.plan()
    rack.verify_by_blink("s0-gpu0-b")
    rack.context.inventory = replace(
        rack.inventory, thresholds=replace(rack.inventory.thresholds, light_deadline_s=0.2)
    )
    before = dict(rack.twin.cells)
    left = Left(rack, plan, steps=6)
    (verify,) = [step for step in plan.steps if step.do is Do.VERIFY]
    rack.store.runs.intend(left.lease, left.run.id, left.run.journal.record("intent", verify, {}))
    rack.on["s3-gpu0-a"] = False
    rack.events.clear()
    left.guard()
    assert rack.acts()[0] == ("transmit", "s3-gpu0-a", True)
    is_as_it_was(rack, before)


def test_power_that_a_receiver_had_is_asked_for_again(rack):
    rack.verify_by_blink("s2-gpu0-a")
    left = Left(rack, rack.plan(), steps=6)
    rack.dark.add("s1-gpu0-b")
    assert left.guard().state == "half-done"
    assert "s2-gpu0-a receives no light, -5.0 dBm before the change" in left.said[-1]


def test_a_run_whose_every_step_is_done_is_closed_as_done(rack):
    left = Left(rack, rack.plan())
    rack.time += 3.0
    run = left.guard()
    assert (run.state, run.ended_at - run.started_at) == ("done", 3.0)
    assert rack.acts() == []
    assert rack.placed() == SWAPPED
    assert left.said[-1] == f"{run.id}: every step was done and proved, so the run is closed as done"


def test_so_is_one_with_a_step_passed_over_but_not_one_whose_last_step_failed(rack):
    left = Left(rack, rack.plan(), at=("transmit", "s1-gpu0-a"), do=UNREACHABLE)
    assert left.guard().state == "done"


def test_a_run_whose_undo_had_begun_is_never_done(rack):
    left = Left(rack, rack.plan())
    rack.at("undo-intent", "8", do=Killed())
    with pytest.raises(Killed):
        left.run.undo()
    assert left.guard().state == "rolled-back"


def test_a_rollback_that_is_closed_marks_the_run_that_it_took_back(rack):
    first = rack.apply(rack.plan()).run
    left = Left(rack, plan_rollback(rack.context, rack.store.runs.get(first)))
    run = left.guard()
    assert (run.state, rack.store.runs.get(first).state, rack.store.runs.get(first).undone_by) == (
        "done",
        "undone",
        run.id,
    )


def test_what_was_written_whole_stays_and_is_told(rack):
    left = Left(rack, plan_fabric(rack.context, "prototype", forget=True), steps=2)
    assert left.guard().state == "half-done"
    assert "all cells of mesh were written, because their earlier states were unknown" in left.said[-1]


def test_a_device_that_does_not_answer_leaves_it_half_done(rack):
    left = Left(rack, rack.plan(), steps=6)
    rack.at("roll_back", do=UNREACHABLE)
    run = left.guard()
    assert run.state == "half-done"
    assert rack.store.fabric.uncertain_since("mesh") == run.id
    assert rack.store.journal.of_run(run.id)[-1].data["by"] == f"revert guard of {run.id}"


# -- when there is nothing to do -------------------------------------------------------------------------------------


def test_a_run_that_has_ended_is_left_alone_and_its_lease_given_back(rack):
    left = Left(rack, rack.plan())
    left.run.end("done", {})
    entries = rack.store.journal.of_run(left.run.id)
    rack.events.clear()
    left.guard()
    assert rack.events == [("release",)]
    assert rack.store.journal.of_run(left.run.id) == entries
    assert left.said == []
    rack.store.leases.acquire("prototype", "you", term_s=30.0, now=rack.time)


def test_a_lease_under_which_no_run_began_is_given_back(rack):
    lease = rack.store.leases.acquire("prototype", "me", term_s=30.0, now=rack.time)
    take_over(rack.context, lease, "it is gone", say=pytest.fail)
    rack.store.leases.acquire("prototype", "you", term_s=30.0, now=rack.time)


def test_whoever_took_a_newer_lease_is_not_disturbed(rack):
    left = Left(rack, rack.plan(), steps=6)
    newer = rack.store.leases.acquire("prototype", "you", term_s=30.0, now=rack.time + 60)
    rack.events.clear()
    assert left.guard().state == "running"
    assert (rack.acts(), left.said) == ([], [])
    rack.store.leases.renew(newer, term_s=30.0, now=rack.time + 60)  # it is still theirs


def test_a_store_that_is_held_is_waited_for(rack, monkeypatch):
    left = Left(rack, rack.plan(), steps=6)
    real, troubles = rack.store.runs.seize, iter([StoreError("it is locked"), StoreError("it is locked")])

    def seize(*words, **more):
        for trouble in troubles:
            raise trouble
        return real(*words, **more)

    monkeypatch.setattr(rack.store.runs, "seize", seize)
    assert left.guard().state == "rolled-back"
    assert left.pauses == [1.0, 1.0]


def test_a_store_that_stays_as_it_is_ends_the_guard_and_nothing_is_touched(rack, monkeypatch):
    left = Left(rack, rack.plan(), steps=6)

    def seize(*_words, **_more):
        raise StoreError("the disk is full")

    monkeypatch.setattr(rack.store.runs, "seize", seize)
    with pytest.raises(StoreError):
        left.guard()
    assert (rack.acts(), len(left.pauses)) == ([], ATTEMPTS)


def elsewhere(rack, folder):
    """What a guard's own process works with: it opens the store again."""
    context = Context(rack.inventory, "sim", store=lambda name: store_at(str(folder), rack=name, make=False))
    context.fleet = context.devices = rack
    return context


def test_a_store_whose_folder_is_gone_is_waited_for_and_none_is_made_in_its_place(rack):
    left = Left(rack, rack.plan(), steps=6)
    away = rack.folder.with_name("elsewhere")
    rack.folder.rename(away)
    pauses = []

    def back(seconds):
        pauses.append(seconds)
        assert not rack.folder.exists()
        if len(pauses) == 3:
            away.rename(rack.folder)

    with elsewhere(rack, rack.folder) as context:
        take_over(context, left.lease, "it is gone", say=left.said.append, pause=back)
        assert context.store("prototype").runs.get(left.run.id).state == "rolled-back"


def test_one_that_stays_away_ends_the_guard(rack):
    left = Left(rack, rack.plan(), steps=6)
    away = rack.folder.with_name("elsewhere")
    rack.folder.rename(away)
    with elsewhere(rack, rack.folder) as context, pytest.raises(StoreError, match=r"there is no longer a store at .*"):
        take_over(context, left.lease, "it is gone", say=left.said.append, pause=lambda _seconds: None)
    assert not rack.folder.exists()
    away.rename(rack.folder)
    assert rack.acts() == []


def test_nor_is_an_empty_folder_or_file_taken_for_it(tmp_path):
    (tmp_path / "lumctl.db").touch()
    for folder, why in ((tmp_path, "is empty, so it was damaged"), (tmp_path / "none", "there is no longer a store")):
        with pytest.raises(StoreError, match=why):
            store_at(str(folder), make=False)
    assert not (tmp_path / "none").exists()
