"""Steps of one stage: done side by side, recorded together, and all undone when one of them fails."""

import threading
from concurrent.futures import wait
from dataclasses import replace

import pytest

from lumctl.change import concurrency
from lumctl.change.concurrency import Concurrent, all_of
from lumctl.change.guard_action import take_over
from lumctl.change.guard_scope import GuardScope
from lumctl.change.plan import Do, Step, from_document, plan_digest, stages, to_document
from lumctl.change.run import RunInProgress
from lumctl.devices.errors import DeviceUnreachableError, OutcomeUnknownError
from lumctl.errors import HalfDoneError, RefusedError, RolledBackError
from lumctl.store import StoreError

ON = {lane: not lane.startswith("s3") for lane in (f"s{n}-gpu0-{end}" for n in range(4) for end in "ab")}
LANES = ("s1-gpu0-a", "s1-gpu0-b", "s3-gpu0-a", "s3-gpu0-b")
PATIENCE_S = 20.0


@pytest.fixture
def abreast(rack, monkeypatch):
    """The rack, whose transmitters are switched in threads; ``sizes`` tells how much is written at once."""
    monkeypatch.setattr("lumctl.change.run.MOST_AT_A_HOST", 8)
    rack.sizes = []
    real = rack.store.runs.advance

    def advance(lease, run, entries, **more):
        real(lease, run, entries, **more)
        rack.sizes.append([f"{entry.kind} {entry.step}" for entry in entries])

    monkeypatch.setattr(rack.store.runs, "advance", advance)
    return rack


def is_as_it_was(rack, before) -> None:
    assert rack.twin.cells == before == rack.context.known_states("mesh")
    assert rack.on == ON
    assert rack.store.first_break() is None


def test_the_steps_of_a_stage_act_at_the_same_time(abreast):
    plan, met = abreast.plan(), threading.Barrier(4, timeout=PATIENCE_S)
    for lane in LANES:
        abreast.at("transmit", lane, do=met.wait)  # each waits for the three others
    assert abreast.apply(plan).outcome == "done"


def test_intents_go_to_disk_with_the_outcomes_before_them_and_the_last_with_the_end(abreast):
    abreast.apply(abreast.plan())
    steps = "2345"
    assert abreast.sizes == [
        ["intent 1", "outcome 1", *(f"intent {step}" for step in steps)],  # the first only reads
        [*(f"outcome {step}" for step in steps), "intent 6"],
        ["outcome 6", "intent 7"],
        ["outcome 7", "intent 8"],
    ]
    kinds = [(entry.kind, entry.step) for entry in abreast.store.journal.of_run("swap-0001")]
    assert kinds[-3:] == [("intent", "8"), ("outcome", "8"), ("end", "")]


def test_every_intent_of_a_stage_is_on_disk_before_any_of_its_steps_acts(abreast):
    plan, seen = abreast.plan(), []
    for lane in LANES:
        abreast.at(
            "transmit", lane, do=lambda: seen.append({e.step for e in abreast.store.journal.of_run("swap-0001")})
        )
    abreast.apply(plan)
    assert [steps >= set("2345") for steps in seen] == [True] * 4


def test_no_step_acts_whose_intent_could_not_be_written(abreast, monkeypatch):
    plan, before, real = abreast.plan(), dict(abreast.twin.cells), abreast.store.runs.advance

    def full(lease, run, entries, **more):
        if any(entry.kind == "intent" and entry.step == "3" for entry in entries):
            raise StoreError("the disk is full")
        real(lease, run, entries, **more)

    monkeypatch.setattr(abreast.store.runs, "advance", full)
    with pytest.raises(StoreError, match="disk is full"):
        abreast.apply(plan)
    assert abreast.acts() == []
    assert abreast.store.runs.all()[0].state == "refused"
    is_as_it_was(abreast, before)


def test_what_a_full_disk_did_not_take_is_written_in_its_order_when_there_is_room(abreast, monkeypatch):
    plan, before, real, full = abreast.plan(), dict(abreast.twin.cells), abreast.store.runs.advance, []

    def advance(lease, run, entries, **more):
        said = {(entry.kind, entry.step) for entry in entries}
        if ("intent", "7") in said or (full and ("undo-intent", "5") not in said):
            full.append(said)
            raise StoreError("the disk is full")
        full.clear()
        real(lease, run, entries, **more)

    monkeypatch.setattr(abreast.store.runs, "advance", advance)
    with pytest.raises(RolledBackError, match="disk is full"):
        abreast.apply(plan)
    kinds = [(entry.kind, entry.step) for entry in abreast.store.journal.of_run("swap-0001")]
    programmed = kinds.index(("outcome", "6"))
    assert kinds[programmed : programmed + 4] == [
        ("outcome", "6"),
        ("undo-intent", "6"),
        ("undo-outcome", "6"),
        ("undo-intent", "5"),
    ]
    is_as_it_was(abreast, before)


def test_a_step_that_fails_beside_a_slow_one_waits_for_it_and_takes_it_back_too(abreast):
    plan, before = abreast.plan(), dict(abreast.twin.cells)
    failed = threading.Event()

    def fail():
        failed.set()
        raise OutcomeUnknownError("no answer came")

    abreast.at("transmit", "s3-gpu0-a", do=fail)
    abreast.at("transmit", "s3-gpu0-b", do=lambda: failed.wait(PATIENCE_S) or pytest.fail("it did not fail"))
    with pytest.raises(RolledBackError, match="no answer came"):
        abreast.apply(plan)
    said = {(e.kind, e.step): e.data for e in abreast.store.journal.of_run("swap-0001")}
    assert said["outcome", "4"] == {"failed": "no answer came", "seconds": said["outcome", "4"]["seconds"]}
    assert said["outcome", "5"]["done"]
    assert [s for kind, s in said if kind == "undo-outcome"] == ["5", "4", "3", "2", "1"]
    is_as_it_was(abreast, before)


def test_a_bug_in_one_step_keeps_what_the_others_did(abreast):
    plan, before = abreast.plan(), dict(abreast.twin.cells)
    abreast.at("transmit", "s3-gpu0-a", do=ValueError("a bug"))
    with pytest.raises(RolledBackError, match="unexpected ValueError: a bug"):
        abreast.apply(plan)
    assert {e.step for e in abreast.store.journal.of_run("swap-0001") if e.kind == "outcome"} == set("1235")
    is_as_it_was(abreast, before)


def test_a_step_of_a_stage_that_is_not_required_may_fail(abreast):
    plan, said = abreast.plan(), []
    abreast.at("transmit", "s1-gpu0-a", do=DeviceUnreachableError("it does not answer"))
    assert abreast.apply(plan, progress=said.append).outcome == "done"
    assert "2. turn off the transmitter of s1-gpu0-a: skipped (it does not answer)" in said


def test_an_interrupt_in_a_stage_lets_those_that_act_end_and_takes_all_back(abreast, monkeypatch):
    plan, before = abreast.plan(), dict(abreast.twin.cells)
    acting, interrupted = threading.Event(), threading.Event()

    def slow():
        acting.set()
        assert interrupted.wait(PATIENCE_S)

    def interrupt(_begun):
        assert acting.wait(PATIENCE_S)
        interrupted.set()
        monkeypatch.setattr("lumctl.change.concurrency.wait", wait)
        raise KeyboardInterrupt

    abreast.at("transmit", "s3-gpu0-a", do=slow)
    abreast.at("intent", "2", do=lambda: monkeypatch.setattr("lumctl.change.concurrency.wait", interrupt))
    with pytest.raises(RolledBackError, match="it was interrupted"):
        abreast.apply(plan)
    acts = abreast.acts()
    assert acts.index(("transmit", "s3-gpu0-a", True)) < acts.index(("transmit", "s3-gpu0-a", False))
    is_as_it_was(abreast, before)


def test_a_lease_that_is_lost_in_a_stage_leaves_it_to_the_newer_holder(abreast):
    plan = abreast.plan()
    abreast.at(
        "transmit",
        "s3-gpu0-a",
        do=lambda: abreast.store.leases.acquire("prototype", "you", term_s=30.0, now=abreast.time + 60),
    )
    with pytest.raises(HalfDoneError, match="was lost to a newer holder"):
        abreast.apply(plan)
    assert len(abreast.acts()) == len(LANES)
    assert abreast.store.runs.all()[0].state == "running"


@pytest.mark.parametrize("acted", range(5))
def test_a_run_that_was_cut_in_the_middle_of_a_stage_is_taken_back_to_what_it_was(rack, acted):
    plan, before = rack.plan(), dict(rack.twin.cells)
    lease = rack.store.leases.acquire(plan.rack, "me", term_s=30.0, now=rack.time)
    run = RunInProgress.begun(rack.context, plan, rack.store, lease, "me", GuardScope())
    check, stage, *_ = stages(plan.steps)
    run.perform(*check)
    run.intend(stage)
    for step in stage[:acted]:  # and then it was killed
        rack.on[step.data["transponder"]] = step.data["enabled"]
    take_over(rack.context, lease, "it is gone", say=[].append)
    assert rack.store.runs.get(run.id).state == "rolled-back"
    is_as_it_was(rack, before)


def test_whoever_is_asked_before_each_step_is_asked_about_that_step_alone(abreast):
    plan, asked = abreast.plan(), []
    abreast.apply(plan, before_step=lambda step: asked.append((step.id, len(abreast.acts()))))
    assert asked == [("1", 0), ("2", 0), ("3", 1), ("4", 2), ("5", 3), ("6", 4), ("7", 5), ("8", 5)]
    assert ["outcome 2"] in abreast.sizes  # on disk while somebody thinks


# -- plans --------------------------------------------------------------------------------------------------------


def test_a_swap_switches_its_transmitters_in_one_stage(rack):
    plan = rack.plan()
    assert [[step.id for step in stage] for stage in stages(plan.steps)] == [["1"], [*"2345"], ["6"], ["7"], ["8"]]
    assert from_document(to_document(plan)) == plan
    assert plan.expected_seconds == round(sum(s.expected_seconds for s in plan.steps if s.id not in {"3", "4", "5"}), 3)


def test_a_plan_from_before_there_were_stages_is_read_and_goes_one_after_the_other(rack):
    document = to_document(rack.plan())
    for step in document["steps"]:
        step.pop("stage", None)
    document["digest"] = plan_digest(document)
    document["id"] = f"plan-{document['digest'][:8]}"
    plan = from_document(document)
    assert [len(stage) for stage in stages(plan.steps)] == [1] * 8
    assert to_document(plan)["steps"] == document["steps"]  # as the journal holds it, with the same digest
    assert rack.apply(plan).outcome == "done"


def test_steps_of_one_stage_that_do_not_stand_side_by_side_go_apart():
    steps = [Step(str(n), Do.TRANSMIT, "t", {}, stage=stage) for n, stage in enumerate((1, 1, 0, 0, 1, 2, 2))]
    assert [[step.id for step in stage] for stage in stages(steps)] == [["0", "1"], ["2"], ["3"], ["4"], ["5", "6"]]


@pytest.mark.parametrize(
    ("numbers", "says"),
    [
        ({"6": 1}, "steps 2, 3, 4, 5, 6, one of which may depend on the result of another"),
        ({"6": 9, "7": 9}, "steps 6, 7, one of which may depend"),
    ],
)
def test_steps_that_may_need_each_other_are_not_done_side_by_side(rack, numbers, says):
    plan = rack.plan()
    steps = tuple(replace(step, stage=numbers.get(step.id, step.stage)) for step in plan.steps)
    with pytest.raises(RefusedError, match=says):
        rack.apply(replace(plan, steps=steps).sealed())
    assert rack.acts() == []


def test_nor_are_two_that_touch_the_same(rack):
    plan = rack.plan()
    same = tuple(
        replace(step, data={**step.data, "transponder": "s1-gpu0-a"}) if step.id == "3" else step for step in plan.steps
    )
    with pytest.raises(RefusedError, match="two steps that change the same"):
        rack.apply(replace(plan, steps=same).sealed())
    assert rack.acts() == []


def test_calls_that_were_left_are_waited_for_and_those_that_had_not_begun_never_do():
    gate, begun, made = threading.Event(), threading.Event(), []
    abreast = Concurrent()

    def first():
        begun.set()
        gate.wait(PATIENCE_S)
        return 1

    def interrupt(_turns):
        begun.wait(PATIENCE_S)
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lumctl.change.concurrency.wait", interrupt)
        with pytest.raises(KeyboardInterrupt):
            abreast.run([first, lambda: made.append(2)], most=1)
    threading.Timer(0.05, gate.set).start()  # while it is waited for
    assert abreast.rest() == [1]
    assert made == []
    assert abreast.rest() == []


def test_one_that_was_started_as_the_interrupt_came_is_waited_for_too(monkeypatch):
    gate, begun = threading.Event(), threading.Event()
    abreast = Concurrent()
    start = concurrency._WORKERS.submit

    def interrupted(turn):
        start(turn)
        begun.wait(PATIENCE_S)
        raise KeyboardInterrupt  # before anybody could note that it was started

    def first():
        begun.set()
        gate.wait(PATIENCE_S)
        return 1

    monkeypatch.setattr(concurrency._WORKERS, "submit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        abreast.run([first, lambda: 2], most=1)
    threading.Timer(0.05, gate.set).start()  # while it is waited for
    assert abreast.rest() == [1]


def test_readings_that_are_interrupted_are_waited_for_and_those_that_had_not_begun_never_do():
    gate, begun, made = threading.Event(), threading.Event(), []

    def slow():
        begun.set()
        assert gate.wait(PATIENCE_S)
        made.append("slow")

    def interrupt(_given):
        assert begun.wait(PATIENCE_S)
        patch.setattr("lumctl.change.concurrency.wait", open_and_wait)
        raise KeyboardInterrupt

    def open_and_wait(given):
        gate.set()
        return wait(given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lumctl.change.concurrency.wait", interrupt)
        with pytest.raises(KeyboardInterrupt):
            all_of([slow, lambda: made.append("next")], most=1)
        assert made == ["slow"]


def test_an_interrupt_is_not_lost_behind_a_reading_that_fails():
    begun = threading.Event()

    def fails():
        begun.set()
        raise DeviceUnreachableError("it does not answer")

    def interrupt(_given):
        assert begun.wait(PATIENCE_S)
        patch.setattr("lumctl.change.concurrency.wait", wait)
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lumctl.change.concurrency.wait", interrupt)
        with pytest.raises(KeyboardInterrupt):
            all_of([fails, lambda: None], most=1)
