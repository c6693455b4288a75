"""A swap from the dashboard: planned, confirmed by a typed yes, applied; and every way in which it is not."""

import pytest
from textual.containers import VerticalScroll
from textual.widgets import Input, Static

from lumctl.errors import HalfDoneError, RefusedError
from lumctl.tui.screens.help import LeavingScreen
from lumctl.tui.screens.main import MainScreen
from lumctl.tui.screens.plan import Phase, PlanScreen

LOST = "r1-h2-g1"


@pytest.fixture
def asked(kit):
    """Plan a swap of the lost accelerator, until the yes is asked for."""

    async def plan(pilot):
        await pilot.press("2", "p")
        await kit.until(pilot, lambda: phase(pilot) is Phase.ASKING)

    return plan


@pytest.fixture
def applying(kit, asked):
    """Plan it, say yes, and wait until the apply has begun."""

    async def apply(pilot):
        await asked(pilot)
        await pilot.press("y", "enter")
        await kit.until(pilot, lambda: "2. program 14 cells" in kit.screen_text(pilot.app))

    return apply


def phase(pilot):
    screen = pilot.app.screen
    return screen.phase if isinstance(screen, PlanScreen) else None


def test_four_keys_from_the_failure_to_the_outcome(stage, kit):
    stage.may_end.set()

    async def script(pilot):
        await pilot.press("2", "p")
        await kit.until(pilot, lambda: phase(pilot) is Phase.ASKING)
        text = kit.screen_text(pilot.app)
        assert "llm: replace r1-h2-g1 by r1-h4-g0" in text
        assert "Apply this plan to TARGET sim?" in text
        await pilot.press("y", "enter")
        await kit.until(pilot, lambda: phase(pilot) is Phase.ENDED)
        text = kit.screen_text(pilot.app)
        assert "3. show that each receiver hears its transmitter" in text
        assert "run-7: done in 1.51 s" in text
        assert "runbooks/run-7.yaml" in text
        await pilot.press("escape")
        assert isinstance(pilot.app.screen, MainScreen)
        # What it made of the rack is looked at, without waiting for the next turn.
        await kit.until(pilot, lambda: stage.looks >= 2)

    kit.drive(stage.dashboard(), script)
    assert stage.planned == [("llm", LOST)]
    assert [view.plan for view in stage.applied] == ["the plan"]


def test_the_outcome_stays_in_sight_when_lines_are_added_above_it(stage, kit, applying):
    async def script(pilot):
        await applying(pilot)
        stage.may_end.set()
        await kit.until(pilot, lambda: phase(pilot) is Phase.ENDED)
        scroll = pilot.app.screen.query_one(VerticalScroll)
        await kit.until(pilot, lambda: scroll.is_anchored and scroll.is_vertical_scroll_end)
        before = scroll.max_scroll_y
        pilot.app.screen.query_one("#plan", Static).update("\n".join(["one more line of light"] * 40))
        await kit.until(pilot, lambda: scroll.max_scroll_y > before)
        assert scroll.is_vertical_scroll_end
        assert "run-7: done in 1.51 s" in kit.screen_text(pilot.app)
        await pilot.press("pageup")
        await kit.until(pilot, lambda: not scroll.is_vertical_scroll_end)
        pilot.app.screen.query_one("#plan", Static).update("\n".join(["one more line of light"] * 50))
        await kit.until(pilot, lambda: scroll.max_scroll_y > before + 10)
        assert not scroll.is_vertical_scroll_end

    kit.drive(stage.dashboard(), script, size=(80, 16))


def test_only_a_typed_yes_applies(stage, kit, asked):
    async def script(pilot):
        await asked(pilot)
        for answer in (["enter"], ["n", "enter"], ["y", "e", "enter"]):
            await pilot.press(*answer)
            assert "that was not a yes; nothing was done" in kit.screen_text(pilot.app)
            assert pilot.app.screen.query_one(Input).value == ""
        await pilot.press("y")
        assert phase(pilot) is Phase.ASKING
        await pilot.press("escape")
        assert phase(pilot) is None

    kit.drive(stage.dashboard(), script)
    assert stage.applied == []


def test_progress_stands_while_it_is_applied_and_the_screen_cannot_be_left(stage, kit, applying):
    async def script(pilot):
        await applying(pilot)
        await pilot.press("escape")
        assert phase(pilot) is Phase.APPLYING
        assert "wait for the outcome" in kit.screen_text(pilot.app)
        stage.may_end.set()
        await kit.until(pilot, lambda: phase(pilot) is Phase.ENDED)

    kit.drive(stage.dashboard(), script)


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (
            HalfDoneError("run-7 failed", run="run-7", hint="lumctl swap rollback run-7"),
            "run-7 failed (hint: lumctl swap rollback",
        ),
        (KeyError("puc"), "not done: unexpected KeyError: 'puc'; this is a bug"),
    ],
)
def test_an_apply_that_fails_says_so(stage, kit, applying, error, line):
    stage.apply_error = error

    async def script(pilot):
        await applying(pilot)
        stage.may_end.set()
        await kit.until(pilot, lambda: phase(pilot) is Phase.ENDED)
        assert line in kit.screen_text(pilot.app)
        assert "2. program 14 cells" in kit.screen_text(pilot.app)
        await pilot.press("escape")
        assert isinstance(pilot.app.screen, MainScreen)

    kit.drive(stage.dashboard(), script)


def test_no_plan_is_a_line_and_nothing_is_asked(stage, kit):
    stage.plan_error = RefusedError("no spare is usable", hint="lumctl status")

    async def script(pilot):
        await pilot.press("2", "p")
        await kit.until(pilot, lambda: phase(pilot) is Phase.ENDED)
        assert "no plan: no spare is usable (hint: lumctl status)" in kit.screen_text(pilot.app)
        await pilot.press("y", "enter", "escape")
        assert isinstance(pilot.app.screen, MainScreen)

    kit.drive(stage.dashboard(), script)
    assert stage.applied == []


def test_where_there_is_nothing_to_swap_it_says_what_to_do(stage, kit):
    async def script(pilot):
        for keys, answer in (
            (["p"], "select the failed accelerator among the accelerators (2)"),
            (["2", "j", "p"], "r1-h1-g0 and its links are ok"),
            (["ctrl+end", "p"], "r1-h4-g3 runs no job"),
            (["4", "j", "enter", "p"], "llm/4-5 is not an accelerator"),
        ):
            await pilot.press(*keys)
            assert answer in kit.screen_text(pilot.app)

    kit.drive(stage.dashboard(), script)
    assert stage.planned == []


def test_a_plan_from_the_details_that_a_finding_leads_to(stage, kit):
    async def script(pilot):
        await pilot.press("4", "enter", "p")
        await kit.until(pilot, lambda: phase(pilot) is Phase.ASKING)

    kit.drive(stage.dashboard(), script)
    assert stage.planned == [("llm", LOST)]


def test_quitting_in_the_middle_of_an_apply_asks_and_waits_for_its_end(stage, kit, applying):
    dashboard = stage.dashboard()

    async def script(pilot):
        await applying(pilot)
        await pilot.press("q")
        assert isinstance(pilot.app.screen, LeavingScreen)
        await pilot.press("escape")
        assert phase(pilot) is Phase.APPLYING
        await pilot.press("q", "y")
        assert dashboard.is_running
        stage.may_end.set()
        await kit.until(pilot, lambda: not dashboard.is_running)

    kit.drive(dashboard, script)
    assert dashboard.applying.outcome().outcome == "run-7: done in 1.51 s, 4 receivers proved"


def test_the_outcome_of_an_apply_that_failed_is_kept_for_whoever_closes_the_screen(stage, kit, applying):
    stage.apply_error = HalfDoneError("run-7 failed", run="run-7")
    dashboard = stage.dashboard()

    async def script(pilot):
        await applying(pilot)
        await pilot.press("q", "y")
        stage.may_end.set()
        await kit.until(pilot, lambda: not dashboard.is_running)

    kit.drive(dashboard, script)
    assert dashboard.applying.outcome().error is stage.apply_error


def test_stopped_in_the_middle_of_an_apply_it_closes_and_the_apply_goes_on(stage, kit, applying):
    dashboard = stage.dashboard()

    async def script(pilot):
        await applying(pilot)
        dashboard.stop()
        await kit.until(pilot, lambda: not dashboard.is_running)

    kit.drive(dashboard, script)
    assert dashboard.applying.under_way
    assert not dashboard.interrupted
    stage.may_end.set()
    assert dashboard.applying.outcome().done
    dashboard.stop()  # nothing is left to be closed


def test_stopped_without_an_apply_it_was_interrupted(stage, kit):
    dashboard = stage.dashboard()

    async def script(pilot):
        dashboard.stop()
        await kit.until(pilot, lambda: not dashboard.is_running)

    kit.drive(dashboard, script)
    assert dashboard.interrupted
    assert dashboard.applying.outcome() is None


def test_an_apply_that_ends_while_it_is_asked_whether_to_quit(stage, kit, applying):
    dashboard = stage.dashboard()

    async def script(pilot):
        await applying(pilot)
        await pilot.press("q")
        stage.may_end.set()
        # The question has lost its sense and goes away; behind it stands the outcome, in sight.
        await kit.until(pilot, lambda: phase(pilot) is Phase.ENDED)
        await kit.until(pilot, lambda: "run-7: done in 1.51 s" in kit.screen_text(pilot.app))
        assert "runbooks/run-7.yaml" in kit.screen_text(pilot.app)
        assert dashboard.is_running

    kit.drive(dashboard, script, size=(80, 12))
