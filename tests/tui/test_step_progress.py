"""The steps of a plan while it is applied: where each stands by what the engine tells."""

from dataclasses import replace

import pytest
import swap_journal

from lumctl.cli.output import GLYPHS
from lumctl.devices.errors import DeviceUnreachableError
from lumctl.errors import HalfDoneError, RefusedError, RolledBackError
from lumctl.health.states import State
from lumctl.tui.actions import ApplyView, PlanView
from lumctl.tui.look.marks import STATE_STYLES, Marks
from lumctl.tui.screens.plan import Phase
from lumctl.tui.views.light import Receiver, heard_by, light_text, planned_receivers
from lumctl.tui.views.plans import StepProgress, head_text, whole_text
from lumctl.tui.views.records import RecordedLook
from lumctl.tui.views.steps import planned_steps, steps_text

MARKS = Marks(GLYPHS)


def stands(following):
    return [str(step.stand) for step in following.steps]


def step_lines(text):
    """The lines of the screen that name a step, by their number."""
    found = {at: line.strip(" ●>") for at, line in enumerate(text.splitlines())}
    return {at: line for at, line in found.items() if line[:3] in {"1. ", "2. ", "3. "}}


@pytest.fixture
def following():
    """Three steps, begun."""
    found = StepProgress(planned_steps(swap_journal.PLAN))
    found.begin(100.0)
    return found


def test_what_is_behind_a_step_that_is_done_is_under_way(following):
    assert stands(following) == ["under way", "waiting", "waiting"]
    following.told("1. check that r1-h4-g0 is healthy: 0.31 s", 101.0)
    assert stands(following) == ["done", "under way", "waiting"]
    following.told("2. program 14 cells of mesh1: skipped (no session)", 102.0)
    assert stands(following) == ["done", "passed over", "under way"]
    following.told("a guard watches", 102.0)
    assert following.lines == ["a guard watches"]
    text = steps_text(following.steps, MARKS, 107.0).plain
    assert "● 1. check that r1-h4-g0 is healthy: done in 0.31 s" in text
    assert "2. program 14 cells of mesh1: passed over: no session" in text
    assert "> 3. show that each receiver hears its transmitter: under way for 5 s" in text


def test_steps_of_one_stage_are_under_way_together():
    steps = [replace(step, stage=1 if step.id in "12" else 0) for step in planned_steps(swap_journal.PLAN)]
    following = StepProgress(steps)
    following.begin(100.0)
    assert stands(following) == ["under way", "under way", "waiting"]
    following.told("2. program 14 cells of mesh1: 0.10 s", 101.0)
    assert stands(following) == ["under way", "done", "waiting"]
    following.told("failed: no session; undoing", 102.0)
    assert stands(following) == ["failed", "done", "waiting"]


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (RolledBackError("rolled back", run="swap-0007"), ["undone", "undone", "not done"]),
        (HalfDoneError("half done", run="swap-0007"), ["done", "failed", "not done"]),
    ],
)
def test_a_step_that_failed_and_what_became_of_those_before_it(following, error, expected):
    following.told("1. check that r1-h4-g0 is healthy: 0.31 s", 101.0)
    following.told("failed: mesh1 refused; undoing", 102.0)
    assert stands(following) == ["done", "failed", "waiting"]
    following.end(ApplyView("not done", done=False, error=error))
    assert stands(following) == expected


def test_what_was_refused_has_not_begun(following):
    following.end(ApplyView("not done", done=False, error=RefusedError("stale")))
    assert stands(following) == ["not done"] * 3


def test_the_light_of_a_plan_is_told_for_each_receiver(kit):
    receivers = planned_receivers(swap_journal.PLAN)
    assert receivers == (
        Receiver("llm/4-5", "r1-h4-g0-l0", "r1-h2-g0-l1"),
        Receiver("llm/4-5", "r1-h2-g0-l1", "r1-h4-g0-l0"),
    )
    assert planned_receivers({}) == ()
    seen = RecordedLook(kit.observation(failed=None))
    other = Receiver("llm/4-5", "r1-h2-g0-l1", "r1-h2-g1-l0")
    wrong = Receiver("llm/4-5", "r1-h2-g0-l1", "r1-h4-g0-l0")
    before = {"r1-h2-g0-l1": float("-inf")}
    text = light_text([other, wrong], before, seen, MARKS, kit.START + 2, settled_at=kit.START).plain
    assert "light: power before -> now, read 2 s ago" in text
    assert "r1-h2-g0-l1    dark -> -4.2 dBm" in text
    assert "● hears r1-h2-g1-l0\n" in text
    assert "✖ hears r1-h2-g1-l0, not r1-h4-g0-l0" in text
    # A look from before the end of the change does not tell against it.
    for settled_at in (None, kit.START + 1):
        text = light_text([wrong], before, seen, MARKS, kit.START + 2, settled_at=settled_at).plain
        assert "hears r1-h2-g1-l0 so far" in text
    assert light_text([], {}, seen, MARKS, kit.START, settled_at=None).plain == ""
    assert " - -> -" in light_text([other], {}, None, MARKS, kit.START, settled_at=None).plain


def test_after_a_change_that_was_refused_or_undone_only_what_is_not_as_before_is_marked(kit):
    seen, receiver = RecordedLook(kit.observation(failed=None)), Receiver("llm/4-5", "r1-h2-g0-l1", "r1-h4-g0-l0")

    def told(before):
        return light_text([receiver], {}, seen, MARKS, kit.START + 2, settled_at=kit.START, unchanged=before).plain

    assert heard_by(seen, [receiver]) == {"r1-h2-g0-l1": "r1-h2-g1-l0"}
    assert "unchanged: hears r1-h2-g1-l0" in told(heard_by(seen, [receiver]))
    assert "✖" not in told(heard_by(seen, [receiver]))
    assert "✖ hears r1-h2-g1-l0, but heard r1-h1-g0-l0 before" in told({"r1-h2-g0-l1": "r1-h1-g0-l0"})
    assert "unchanged\n" in told({})
    for error in (RefusedError("stale"), RolledBackError("no light", run="swap-0001"), DeviceUnreachableError("down")):
        assert ApplyView("not done", done=False, error=error).is_unchanged
    assert not ApplyView("half done", done=False, error=HalfDoneError("no", run="swap-0001")).is_unchanged
    assert not ApplyView("done", done=True).is_unchanged


def test_what_the_proof_showed_is_told_until_there_are_newer_readings(kit):
    receiver = Receiver("llm/4-5", "r1-h2-g0-l1", "r1-h4-g0-l0")
    proved = {"r1-h2-g0-l1": "proved by lldp in 0.02 s"}

    def told(seen, ended_at):
        now = kit.START + 9
        return light_text([receiver], {}, RecordedLook(seen), MARKS, now, settled_at=ended_at, proved=proved).plain

    text = told(kit.observation(), kit.START + 5)
    assert "light: power before -> now, as proved; not read since" in text
    assert "-> -           ● hears r1-h4-g0-l0 (proved by lldp in 0.02 s)" in text
    # The first reading after the change decides again: another transmitter, or nothing that shows one.
    text = told(kit.observation(failed=None), kit.START - 1)
    assert "✖ hears r1-h2-g1-l0, not r1-h4-g0-l0" in text
    text = told(kit.observation(), kit.START - 1)
    assert "○ heard r1-h4-g0-l0 (proved by lldp in 0.02 s); not shown since" in text


def test_a_plan_is_warnings_summary_steps_and_details_in_that_order():
    steps = (replace(planned_steps(swap_journal.PLAN)[0], expected=0.31), *planned_steps(swap_journal.PLAN)[1:])
    view = PlanView(
        "llm: replace",
        "sim",
        ("the details",),
        "p",
        steps,
        warnings=("job llm has no hook: stop it first",),
        summary=("expected time about 1.50 s",),
    )
    lines = whole_text(view, MARKS, 0.0).plain.splitlines()
    assert lines == [
        "llm: replace",
        "! job llm has no hook: stop it first",
        "expected time about 1.50 s",
        "",
        "steps",
        "  1. check that r1-h4-g0 is healthy: about 0.31 s",
        "  2. program 14 cells of mesh1: waiting",
        "  3. show that each receiver hears its transmitter: waiting",
        "",
        "the details",
    ]
    warning = next(span for span in head_text(view).spans if span.start == len("llm: replace\n"))
    assert warning.style == STATE_STYLES[State.DEGRADED]


def test_the_screen_of_a_plan_shows_steps_and_light_while_it_is_applied(stage, kit):
    view = PlanView(
        "llm: replace",
        "sim",
        ("the plan",),
        "p",
        planned_steps(swap_journal.PLAN),
        planned_receivers(swap_journal.PLAN),
    )
    stage.plan = lambda *_: view

    async def script(pilot):
        await pilot.press("2", "p")
        await kit.until(pilot, lambda: getattr(pilot.app.screen, "phase", None) is Phase.ASKING)
        before = step_lines(kit.screen_text(pilot.app))
        assert [line.split()[0] for line in before.values()] == ["1.", "2.", "3."]
        await pilot.press("y", "enter")
        await kit.until(pilot, lambda: "2. program 14 cells of mesh1: done in 0.08 s" in kit.screen_text(pilot.app))
        stage.now += 3
        pilot.app.screen._show_progress()
        await pilot.pause()
        text = kit.screen_text(pilot.app)
        assert "> 3. show that each receiver hears its transmitter: under way for 3 s" in text
        assert "r1-h2-g0-l1" in text.partition("light")[2]
        stage.may_end.set()
        await kit.until(pilot, lambda: pilot.app.screen.phase is Phase.ENDED)
        assert "transmitter: done in 1.12 s" in kit.screen_text(pilot.app)
        # The list that was read before the yes is the one that was ticked: every step stands once, where it stood.
        assert step_lines(kit.screen_text(pilot.app)).keys() == before.keys()

    kit.drive(stage.dashboard(), script)


def test_a_warning_that_was_confirmed_is_none_while_the_plan_is_applied():
    view = PlanView("train: replace a by b", "rack", (), "the plan", warnings=("job train has no hook: pause it",))
    assert head_text(view).plain.splitlines()[1] == "! job train has no hook: pause it"
    assert head_text(view, confirmed=True).plain.splitlines()[1] == "confirmed: job train has no hook: pause it"
