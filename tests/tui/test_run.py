"""The screen of a run: its steps by the journal, its light, and the way back."""

import pytest
import swap_journal

from lumctl.errors import RefusedError
from lumctl.store import StoreError
from lumctl.tui.actions import PlanView
from lumctl.tui.screens.plan import Phase
from lumctl.tui.screens.run import RunScreen
from lumctl.tui.views.runs import no_way_back, what_to_do
from lumctl.tui.views.steps import Stand


@pytest.fixture
def showing(stage, kit):
    """A dashboard whose store holds a run; what it holds is set and read under ``view``."""
    stage.records = kit.records()
    held = {"view": swap_journal.view(kit), "reads": 0}

    def read(key):
        assert key == "r1/swap-0007"
        held["reads"] += 1
        if isinstance(held["view"], Exception):
            raise held["view"]
        return held["view"]

    stage.sources["run"] = read
    return held


async def opened(pilot, kit):
    await pilot.press("6", "enter")
    await kit.until(pilot, lambda: isinstance(pilot.app.screen, RunScreen) and pilot.app.screen._view)


def test_the_journal_tells_where_each_step_stands(kit):
    done = swap_journal.view(kit).steps
    assert [(step.stand, round(step.seconds, 1)) for step in done] == [
        (Stand.DONE, 0.3),
        (Stand.DONE, 0.1),
        (Stand.DONE, 1.1),
    ]
    at_work = swap_journal.view(kit, "running", swap_journal.begun)
    assert at_work.live
    assert [step.stand for step in at_work.steps] == [Stand.DONE, Stand.UNDER_WAY, Stand.WAITING]
    cut = swap_journal.view(kit, "running", swap_journal.begun, cut=True)
    assert not cut.live
    assert [step.stand for step in cut.steps] == [Stand.DONE, Stand.NOT_KNOWN, Stand.NOT_DONE]
    back = swap_journal.view(kit, "half-done", swap_journal.rolled_back)
    assert [step.stand for step in back.steps] == [Stand.UNDONE, Stand.FAILED, Stand.NOT_DONE]
    assert back.steps[1].why == "it could not be undone: no session to mesh1"


def test_a_run_that_did_not_come_to_its_end_says_what_brings_it_there(kit):
    assert what_to_do(swap_journal.view(kit)) is None
    assert what_to_do(swap_journal.view(kit, "running", swap_journal.begun)) is None
    for view in (
        swap_journal.view(kit, "half-done", swap_journal.rolled_back),
        swap_journal.view(kit, "running", cut=True),
    ):
        assert "lumctl swap resume swap-0007 --target sim" in what_to_do(view)
        assert "lumctl swap abort swap-0007 --target sim" in what_to_do(view)
        assert no_way_back(view) == what_to_do(view)
    assert no_way_back(swap_journal.view(kit)) is None
    assert "is in progress" in no_way_back(swap_journal.view(kit, "running", swap_journal.begun))
    assert "there is nothing to undo" in no_way_back(swap_journal.view(kit, "undone"))


def test_title_outcome_steps_and_light_stand_on_its_screen(stage, kit, showing):
    async def script(pilot):
        await opened(pilot, kit)
        await kit.until(pilot, lambda: "light" in kit.screen_text(pilot.app))
        text = kit.screen_text(pilot.app)
        assert "llm: replace r1-h2-g1 by r1-h4-g0" in text
        assert "● done  by ops@bastion at" in text
        assert "took 1.50 s, 2 receivers proved" in text
        assert "● 2. program 14 cells of mesh1: done in 0.10 s" in text
        # What arrived before by the journal, and now by the newest look; whom it hears is not as the run left it.
        assert "r1-h2-g0-l1    -5.5 -> -4.2 dBm" in text
        assert "heard r1-h4-g0-l0 (proved by lldp in 0.02 s); not shown since" in text
        reads = showing["reads"]
        pilot.app.screen._turn()
        assert showing["reads"] == reads  # it has come to its end

    kit.drive(stage.dashboard(), script)


def test_what_is_heard_now_is_not_held_against_a_run_that_was_undone(stage, kit, showing):
    showing["view"] = swap_journal.view(kit, "undone")

    async def script(pilot):
        await opened(pilot, kit)
        await kit.until(pilot, lambda: "transmitter: done in 1.10 s" in kit.screen_text(pilot.app))
        assert "r1-h2-g0-l1" not in kit.screen_text(pilot.app)
        assert "undo" not in kit.screen_text(pilot.app).splitlines()[-1]

    kit.drive(stage.dashboard(), script)


def test_a_run_that_somebody_else_is_at_work_on_is_read_again_until_it_has_ended(stage, kit, showing):
    showing["view"] = swap_journal.view(kit, "running", swap_journal.begun)

    async def script(pilot):
        await opened(pilot, kit)
        await kit.until(pilot, lambda: "2. program 14 cells of mesh1: under way for" in kit.screen_text(pilot.app))
        assert "3. show that each receiver hears its transmitter: waiting" in kit.screen_text(pilot.app)
        showing["view"] = swap_journal.view(kit)
        pilot.app.screen._turn()
        await kit.until(pilot, lambda: "transmitter: done in 1.10 s" in kit.screen_text(pilot.app))

    kit.drive(stage.dashboard(), script)


def test_its_runbook_is_a_key_away_once_it_has_ended(stage, kit, showing):
    showing["view"] = swap_journal.view(kit, "running", swap_journal.begun)
    asked = []

    def runbook(key):
        asked.append(key)
        raise StoreError("the store is locked")

    stage.sources["runbook"] = runbook

    async def script(pilot):
        await opened(pilot, kit)
        await pilot.press("b")
        await kit.until(pilot, lambda: "its runbook is written when it has ended" in kit.screen_text(pilot.app))
        showing["view"] = swap_journal.view(kit)
        pilot.app.screen._turn()
        await kit.until(pilot, lambda: "transmitter: done in 1.10 s" in kit.screen_text(pilot.app))
        await pilot.press("b")
        await kit.until(pilot, lambda: asked == ["r1/swap-0007"])

    kit.drive(stage.dashboard(), script)


def test_half_done_says_what_to_do(stage, kit, showing):
    showing["view"] = swap_journal.view(kit, "half-done", swap_journal.rolled_back)

    async def script(pilot):
        await opened(pilot, kit)
        await kit.until(pilot, lambda: "swap resume" in kit.screen_text(pilot.app))
        text = kit.screen_text(pilot.app)
        assert "it failed: mesh1 refused cell 17" in text
        assert "2. program 14 cells of mesh1: failed: it could not be undone: no session to mesh1" in text

    kit.drive(stage.dashboard(), script, size=(140, 30))


def test_a_store_that_cannot_be_read_is_a_line_and_what_was_read_stands(stage, kit, showing):
    kept, showing["view"] = showing["view"], StoreError("the store of r1 cannot be read")

    async def script(pilot):
        await pilot.press("6", "enter")
        await kit.until(pilot, lambda: "the store of r1 cannot be read" in kit.screen_text(pilot.app))
        await pilot.press("u")
        showing["view"] = kept
        pilot.app.screen._turn()
        await kit.until(pilot, lambda: "done in 0.10 s" in kit.screen_text(pilot.app))
        showing["view"] = StoreError("it is gone")
        pilot.app.screen._read()
        await kit.until(pilot, lambda: "it is gone" in kit.screen_text(pilot.app))
        assert "done in 0.10 s" in kit.screen_text(pilot.app)

    kit.drive(stage.dashboard(), script)


def test_a_run_is_taken_back_through_a_plan_that_asks(stage, kit, showing):
    asked = []

    def undo(run):
        asked.append(run)
        return PlanView("take back swap-0007", "sim", ("the way back",), plan="the way back")

    stage.acts["undo"] = undo
    stage.may_end.set()

    async def script(pilot):
        await opened(pilot, kit)
        assert "u undo" in kit.screen_text(pilot.app).splitlines()[-1]
        await pilot.press("u")
        await kit.until(pilot, lambda: getattr(pilot.app.screen, "phase", None) is Phase.ASKING)
        assert "take back swap-0007" in kit.screen_text(pilot.app)
        reads = showing["reads"]
        await pilot.press("y", "enter")
        await kit.until(pilot, lambda: pilot.app.screen.phase is Phase.ENDED)
        await pilot.press("escape")
        await kit.until(pilot, lambda: showing["reads"] > reads)

    kit.drive(stage.dashboard(), script)
    assert asked == ["r1/swap-0007"]
    assert [view.plan for view in stage.applied] == ["the way back"]


@pytest.mark.parametrize(("forbidden", "line"), [("read-only", "read-only"), ("", "there is nothing to undo")])
def test_what_may_not_be_taken_back_says_why(stage, kit, showing, forbidden, line):
    stage.forbidden = forbidden
    showing["view"] = swap_journal.view(kit, "undone")

    def refuse(run):
        raise RefusedError(f"{run} was asked for")

    stage.acts["undo"] = refuse

    async def script(pilot):
        await opened(pilot, kit)
        await pilot.press("u")
        await kit.until(pilot, lambda: line in kit.screen_text(pilot.app))
        assert isinstance(pilot.app.screen, RunScreen)

    kit.drive(stage.dashboard(), script)
