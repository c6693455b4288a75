"""An engine that stood still until its guard took its run over: what it says, and what it knows not to be certain."""

import pytest

from lumctl.change.resumption import abort
from lumctl.change.run import RunInProgress
from lumctl.devices.errors import DeviceUnreachableError
from lumctl.errors import HalfDoneError, RolledBackError

UNREACHABLE = DeviceUnreachableError("it does not answer")


def overtakes(rack):
    """The guard takes over at this moment, and has done its work when the engine asks."""

    def seize():
        rack.seized = rack.store.runs.seize(rack.guard.lease, holder="revert guard of", term_s=30.0, now=rack.time)

    def work():
        stored, lease = rack.seized
        again = RunInProgress.resumed(rack.context, rack.store, lease, stored, "revert guard")
        rack.troubles = again.undo()
        again.end("half-done" if rack.troubles else "rolled-back", {})
        rack.store.leases.release(lease)

    rack.guard.takes_over = work
    return seize


@pytest.mark.parametrize("step", ["7", "8"])
def test_an_engine_that_was_overtaken_where_nothing_is_touched_says_so(rack, step):
    plan, before = rack.plan(), dict(rack.twin.cells)
    rack.at("intent", step, do=overtakes(rack))
    with pytest.raises(
        RolledBackError, match=r"wrote nothing to the journal for so long that .* it is rolled-back$"
    ) as error:
        rack.apply(plan)
    assert rack.guard.heard[-2:] == ["finish", "dismiss"]
    assert rack.store.runs.get(error.value.run).state == "rolled-back"
    assert rack.twin.cells == before == rack.context.known_states("mesh")


@pytest.mark.parametrize(
    ("at", "named"),
    [
        (("intent", "6"), r"'program \d+ PUCs of mesh'"),
        (("outcome", "5"), r"'program \d+ PUCs of mesh'"),
        (("intent", "4"), "'turn off the transmitter of s1-gpu0-a' and 'turn off the [^;]*-b' and 2 more"),
    ],
    ids=str,
)
def test_one_that_was_overtaken_in_a_stage_tells_what_may_have_acted_since(rack, at, named):
    plan = rack.plan()
    rack.at(*at, do=overtakes(rack))
    with pytest.raises(
        HalfDoneError, match=f"it is rolled-back; the silent step {named} may have changed something after that"
    ) as error:
        rack.apply(plan)
    doubted = rack.store.fabric.uncertain_since("mesh")
    assert doubted == (None if at[1] == "4" else error.value.run)


def test_one_that_was_overtaken_while_it_undid_says_so(rack):
    plan, before = rack.plan(), dict(rack.twin.cells)
    rack.dark.add("s3-gpu0-a")
    rack.at("roll_back", do=overtakes(rack))
    with pytest.raises(RolledBackError, match=r"it is rolled-back$"):
        rack.apply(plan)
    assert rack.twin.cells == before == rack.context.known_states("mesh")


def test_one_whose_guard_could_not_put_all_back_is_half_done(rack):
    plan = rack.plan()
    rack.at("intent", "7", do=overtakes(rack))
    rack.at("roll_back", do=UNREACHABLE)
    with pytest.raises(HalfDoneError, match="it is half-done"):
        rack.apply(plan)


def test_one_that_was_overtaken_at_its_very_end_is_done_if_its_guard_says_so(rack):
    plan = rack.plan()

    def close():
        stored, lease = rack.seized
        again = RunInProgress.resumed(rack.context, rack.store, lease, stored, "g")
        again.perform(plan.steps[-1])
        again.end("done", {})

    rack.at("intent", "8", do=overtakes(rack))
    rack.guard.takes_over = close
    assert rack.apply(plan).outcome == "done"
    assert rack.placed() == ("s0-gpu0", "s3-gpu0", "s2-gpu0")


def test_one_that_wakes_up_after_a_person_has_taken_it_back_says_who_did(rack):
    plan, before = rack.plan(), dict(rack.twin.cells)

    def aborts():
        rack.time += 31.0
        (run,) = [run for run in rack.store.runs.all() if run.state == "running"]
        abort(rack.context, run, who="bob@console")

    rack.at("intent", "7", do=aborts)
    with pytest.raises(
        RolledBackError, match=r"that bob@console took over the run with swap abort: it is rolled-back$"
    ):
        rack.apply(plan)
    assert "finish" not in rack.guard.heard
    assert rack.twin.cells == before == rack.context.known_states("mesh")


def test_one_whose_lease_went_to_another_run_says_whose_it_is(rack):
    plan = rack.plan()

    def takes():
        rack.time += 31.0
        rack.store.leases.acquire("prototype", "bob@console", term_s=30.0, now=rack.time)

    rack.at("intent", "6", do=takes)
    with pytest.raises(HalfDoneError, match="was lost to a newer holder, bob@console"):
        rack.apply(plan)
