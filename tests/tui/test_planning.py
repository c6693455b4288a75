"""A swap from the dashboard: planned, confirmed by a typed yes, applied; and every way in which it is not."""

import queue
import threading
from dataclasses import replace

import pytest
from textual.containers import VerticalScroll
from textual.widgets import Input, Static

from lumctl.errors import HalfDoneError, LumctlError, RefusedError
from lumctl.health.states import State
from lumctl.store import QueuedDemand
from lumctl.tui.actions import PlanView
from lumctl.tui.screens.help import LeavingScreen
from lumctl.tui.screens.main import MainScreen
from lumctl.tui.screens.plan import Phase, PlanScreen
from lumctl.tui.threads.apply import Applying
from lumctl.tui.views.records import Records
from lumctl.tui.views.steps import StepView

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


def test_the_key_is_not_offered_for_an_accelerator_that_no_spare_fits(stage, kit):
    stage.seen = kit.with_states(kit.observation(), {f"r1-h4-g{n}": State.FAILED for n in range(4)})

    def offered(pilot):
        return "p plan swap" in kit.screen_text(pilot.app)

    async def script(pilot):
        await kit.until(pilot, lambda: pilot.app.screen.area.view.chosen == LOST)
        await kit.until(pilot, lambda: not offered(pilot))  # on the picture of the racks
        await pilot.press("2")
        for _ in range(6):  # whichever accelerator is selected
            await kit.until(pilot, lambda: not offered(pilot))
            await pilot.press("down")
        await pilot.press("home", "p")  # it is planned all the same: the plan says why no spare fits
        await kit.until(pilot, lambda: phase(pilot) is Phase.ASKING)

    kit.drive(stage.dashboard(), script)
    assert stage.planned == [("llm", LOST)]


def test_while_a_mesh_that_a_swap_writes_does_not_answer_no_screen_offers_p_and_each_says_why(stage, kit):
    silent = "no swap can be applied while mesh1 does not answer"
    refused = RefusedError(f"{silent} (connection refused)", hint="see what to do: lumctl health explain mesh1")
    stage.sources["check_swaps"] = lambda seen: replace(seen, swap_checks={frozenset({LOST}): refused})

    async def script(pilot):
        await kit.until(pilot, lambda: silent in " ".join(kit.screen_text(pilot.app).split()))
        for way in ((), ("2",), ("2", "enter"), ("5",), ("5", "enter"), ("9", "enter", "right_square_bracket")):
            await pilot.press(*way)
            await kit.until(pilot, lambda: "p plan swap" not in kit.screen_text(pilot.app))
            assert "press p" not in kit.screen_text(pilot.app)
            assert "p: " not in kit.screen_text(pilot.app)
            await pilot.press("p")
            await kit.until(pilot, lambda: "lumctl health explain mesh1" in kit.screen_text(pilot.app))
            await pilot.press("escape")
        await pilot.press("5")
        await kit.until(pilot, lambda: f"{silent} (connection refused)" in kit.screen_text(pilot.app))

    kit.drive(stage.dashboard(), script, size=(120, 36))
    assert stage.planned == []


def test_commands_name_the_inventory_that_the_dashboard_was_started_with(stage, kit):
    stage.sources["aimed"] = lambda text: text.replace("lumctl ", "lumctl -i r.yaml ")
    remedy = RefusedError("no swap can be applied", hint="lumctl health explain mesh1")
    stage.sources["check_swaps"] = lambda seen: replace(seen, swap_checks={frozenset({LOST}): remedy})
    stage.records = Records(waiting=(QueuedDemand("r1", "demand-0001", "llm", (LOST,), "ann", kit.START - 60),))

    async def script(pilot):
        await kit.until(pilot, lambda: LOST in kit.screen_text(pilot.app))
        await pilot.press("2", "p")
        await kit.until(pilot, lambda: "lumctl -i r.yaml health explain mesh1" in kit.screen_text(pilot.app))
        await pilot.press("S")
        await kit.until(pilot, lambda: "waiting for spares" in kit.screen_text(pilot.app))
        assert "lumctl -i r.yaml health explain mesh1" in " ".join(kit.screen_text(pilot.app).split())

    kit.drive(stage.dashboard(), script, size=(120, 36))


def test_the_way_back_of_ranks_on_spares_is_shown_with_its_command(stage, kit):
    seen = kit.observation(failed=None)
    ranks = seen.assignment["llm"]
    moved = {"llm": tuple("r1-h4-g0" if name == LOST else name for name in ranks)}
    stage.seen = replace(seen, assignment=moved)
    stage.sources["aimed"] = lambda text: text.replace("lumctl ", "lumctl -i r.yaml ")
    said, command = f"{LOST} is ok again: return 1 rank of llm", "lumctl -i r.yaml swap plan llm --back --target sim"

    async def script(pilot):
        await kit.until(pilot, lambda: f"{said} (S: how)" in " ".join(kit.screen_text(pilot.app).split()))
        await pilot.press("S")
        await kit.until(pilot, lambda: "ranks on spares" in kit.screen_text(pilot.app))
        assert f"{said}: {command}" in " ".join(kit.screen_text(pilot.app).split())

    kit.drive(stage.dashboard(), script, size=(120, 36))


def test_the_outcome_stays_in_sight_wherever_the_user_scrolls(stage, kit, applying):
    async def script(pilot):
        await applying(pilot)
        stage.may_end.set()
        await kit.until(pilot, lambda: phase(pilot) is Phase.ENDED)
        scroll = pilot.app.screen.query_one(VerticalScroll)
        before = scroll.max_scroll_y
        pilot.app.screen.query_one("#details", Static).update("\n".join(["one more line"] * 40))
        await kit.until(pilot, lambda: scroll.max_scroll_y > before)
        for key in ("home", "end", "pageup"):
            await pilot.press(key)
            await kit.until(pilot, lambda: "run-7: done in 1.51 s" in kit.screen_text(pilot.app))
            assert "u: undo it" not in kit.screen_text(pilot.app)  # it names no run
            assert "esc: back" in kit.screen_text(pilot.app)

    kit.drive(stage.dashboard(), script, size=(80, 16))


def test_what_was_done_is_undone_by_a_key_through_a_plan_that_asks(stage, kit, applying):
    asked = []

    def undo(run):
        asked.append(run)
        return PlanView("undo run-7", "sim", (), plan="the way back")

    stage.acts["undo"] = undo
    done = stage.apply
    stage.apply = lambda plan, progress: replace(done(plan, progress), run="r1/run-7")

    async def script(pilot):
        await applying(pilot)
        await pilot.press("u")
        assert asked == []
        stage.may_end.set()
        await kit.until(pilot, lambda: phase(pilot) is Phase.ENDED)
        assert "u: undo it   b: its runbook   esc: back" in kit.screen_text(pilot.app)
        await pilot.press("u")
        await kit.until(pilot, lambda: phase(pilot) is Phase.ASKING)
        assert "undo run-7" in kit.screen_text(pilot.app)
        await pilot.press("y", "enter")
        await kit.until(pilot, lambda: phase(pilot) is Phase.ENDED)
        await pilot.press("escape")
        assert isinstance(pilot.app.screen, MainScreen)

    kit.drive(stage.dashboard(), script)
    assert asked == ["r1/run-7"]
    assert [view.plan for view in stage.applied] == ["the plan", "the way back"]


def test_the_step_under_way_is_in_sight_in_a_small_terminal(stage, kit):
    titles = [f"write part {number}" for number in range(1, 31)]
    steps = tuple(StepView(str(number), title) for number, title in enumerate(titles, start=1))
    stage.plan = lambda *_: PlanView("llm: replace", "sim", ("the details",) * 20, "p", steps)
    reached = threading.Event()

    def apply(_plan, progress):
        for step in steps[:24]:
            progress(f"{step.id}. {step.title}: 0.01 s")
        reached.set()
        assert stage.may_end.wait(20)
        raise HalfDoneError("run-7 failed", run="run-7")

    stage.apply = apply

    async def script(pilot):
        await pilot.press("2", "p")
        await kit.until(pilot, lambda: phase(pilot) is Phase.ASKING)
        assert "1. write part 1:" in kit.screen_text(pilot.app)
        await pilot.press("y", "enter")
        await kit.until(pilot, lambda: reached.is_set() and "> 25. write part 25" in kit.screen_text(pilot.app))
        stage.may_end.set()
        await kit.until(pilot, lambda: phase(pilot) is Phase.ENDED)
        await kit.until(pilot, lambda: "not done: run-7 failed" in kit.screen_text(pilot.app))

    kit.drive(stage.dashboard(), script, size=(80, 16))


def test_only_a_typed_yes_applies(stage, kit, asked):
    async def script(pilot):
        await asked(pilot)
        for answer in (["enter"], ["n", "enter"], ["y", "e", "enter"]):
            await pilot.press(*answer)
            assert "the answer was not yes; nothing was done" in kit.screen_text(pilot.app)
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


def test_where_there_is_nothing_to_swap_it_says_why(stage, kit):
    stage.seen = kit.observation(failed=None)

    async def script(pilot):
        for keys, answer in (
            (["p"], "r1-h1-g0 and its links are ok"),
            (["2", "j", "p"], "r1-h1-g1 and its links are ok"),
            (["ctrl+end", "p"], "r1-h4-g3 runs no job"),
            (["3", "p"], "there is no fault that a spare repairs: there is nothing to swap"),
            (["enter", "p"], "llm/0-1 is not an accelerator"),
        ):
            await pilot.press(*keys)
            assert answer in kit.screen_text(pilot.app)

    kit.drive(stage.dashboard(), script)
    assert stage.planned == []


def test_why_nothing_was_swapped_is_forgotten_when_ranks_move(stage, kit):
    stage.seen = before = kit.observation(failed=None)

    async def script(pilot):
        await pilot.press("2", "ctrl+end", "p")
        assert "r1-h4-g3 runs no job" in kit.screen_text(pilot.app)
        ranks = (*before.assignment["llm"][:-1], "r1-h4-g3")
        stage.seen = replace(kit.observation(failed=None, at=kit.START + 2), assignment={"llm": ranks})
        await pilot.press("r")
        await kit.until(pilot, lambda: pilot.app.seen.observation.at == stage.seen.at)
        assert "runs no job" not in kit.screen_text(pilot.app)

    kit.drive(stage.dashboard(), script)


@pytest.mark.parametrize("pane", [*"1234567890", "t"])
def test_on_every_pane_p_does_what_the_headline_says_and_three_keys_lead_to_the_outcome(stage, kit, pane):
    stage.may_end.set()
    stage.records = kit.records()

    async def script(pilot):
        await pilot.press(pane, *(["j"] * 3 if pane != "5" else []))  # there the selected incident decides
        assert f"{LOST} fell off the bus; llm rank 5 is down; p: swap in" in kit.screen_text(pilot.app)
        await pilot.press("p")
        await kit.until(pilot, lambda: phase(pilot) is Phase.ASKING)
        await pilot.press("y", "enter")
        await kit.until(pilot, lambda: phase(pilot) is Phase.ENDED)
        assert "4 receivers proved" in kit.screen_text(pilot.app)

    kit.drive(stage.dashboard(), script)
    assert stage.planned == [("llm", LOST)]


def lost(kit, *accelerators):
    """That rack where these accelerators are off their buses, and all light arrives."""
    seen = kit.observation(failed=None)
    gone = kit.observation().report.accelerators[LOST]
    found = {
        name: replace(gone, id=name, findings=tuple(replace(each, component=name) for each in gone.findings))
        for name in accelerators
    }
    return replace(seen, report=replace(seen.report, accelerators={**seen.report.accelerators, **found}))


@pytest.mark.parametrize(
    ("keys", "planned"),
    [
        (["1"], LOST),
        (["t"], LOST),
        (["t", "colon", *"r1-h3", "enter"], "r1-h3-g0"),
        (["2", "j"], "r1-h3-g0"),
        (["5", "j"], "r1-h3-g0"),
    ],
)
def test_of_several_faults_that_of_the_selection_is_planned_and_else_the_first(stage, kit, keys, planned):
    stage.seen = lost(kit, LOST, "r1-h3-g0")

    async def script(pilot):
        assert f"{LOST} fell off the bus; llm rank 5 is down; p: swap in one of 4" in kit.screen_text(pilot.app)
        assert "5 others" in kit.screen_text(pilot.app).splitlines()[-1]
        await pilot.press(*keys, "p")
        await kit.until(pilot, lambda: phase(pilot) is Phase.ASKING)

    kit.drive(stage.dashboard(), script, size=(80, 24))
    assert stage.planned == [("llm", planned)]


def test_where_the_headline_offers_no_swap_it_is_asked_which_is_wanted(stage, kit):
    """What comes first is a run that was cut."""
    stage.seen = replace(lost(kit, LOST), unfinished=("swap-0008",))

    async def script(pilot):
        await pilot.press("t", "colon", *"r1-h1", "enter", "p")
        assert stage.planned == []
        assert f"select what to replace among the accelerators (2), then press p: {LOST}" in kit.screen_text(pilot.app)
        assert "5 others" in kit.screen_text(pilot.app).splitlines()[-1]
        await pilot.press("2", "p")
        await kit.until(pilot, lambda: phase(pilot) is Phase.ASKING)

    kit.drive(stage.dashboard(), script)
    assert stage.planned == [("llm", LOST)]


def test_where_one_cause_is_wrong_no_other_is_offered_and_where_nothing_is_p_says_so(stage, kit):
    stage.seen = kit.observation(failed=None)

    async def script(pilot):
        await pilot.press("t", "p")
        assert "there is no fault that a spare repairs: there is nothing to swap" in kit.screen_text(pilot.app)
        assert "5 incidents" in kit.screen_text(pilot.app).splitlines()[-1]
        stage.seen = lost(kit, LOST)
        await pilot.press("r")
        await kit.until(pilot, lambda: f"{LOST} fell off the bus" in kit.screen_text(pilot.app))
        assert "5 incidents" in kit.screen_text(pilot.app).splitlines()[-1]

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


def test_an_apply_that_ends_by_an_exit_has_an_outcome_and_is_an_error():
    def apply(_plan, _progress):
        raise SystemExit(0)

    ended = queue.Queue()
    applying = Applying(apply)
    applying.begin(PlanView("a swap", "sim", (), None), str, ended.put)
    view = ended.get(timeout=20)
    assert view.outcome.startswith("not done: the apply was interrupted by SystemExit(0)")
    assert not view.done
    assert isinstance(view.error, LumctlError)
    assert applying.outcome() is view


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


def test_what_was_refused_is_planned_again_by_a_key(stage, kit):
    stage.plan_error = RefusedError("no swap can be applied while mesh1 does not answer")

    async def script(pilot):
        await pilot.press("2", "p")
        await kit.until(pilot, lambda: phase(pilot) is Phase.ENDED)
        assert "p: plan again   esc: back" in kit.screen_text(pilot.app)
        stage.plan_error = None
        await pilot.press("p")
        await kit.until(pilot, lambda: phase(pilot) is Phase.ASKING)
        assert "does not answer" not in kit.screen_text(pilot.app)
        await pilot.press("escape")
        assert isinstance(pilot.app.screen, MainScreen)

    kit.drive(stage.dashboard(), script)
