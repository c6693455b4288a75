"""Marked rows: swapped together, acknowledged, put in maintenance, drained."""

import pytest

from lumctl.errors import RefusedError
from lumctl.tui.actions import PlanView
from lumctl.tui.screens.plan import Phase
from lumctl.tui.widgets.prompt import Question
from lumctl.tui.widgets.table import PaneTable

LOST = "r1-h2-g1"


@pytest.fixture
def done(stage):
    """What was done, as it was asked of the program."""
    calls = []

    def acknowledge(components, comment):
        calls.append(("acknowledge", components, comment))
        return f"{len(components)} acknowledged (ack-0001)"

    def maintain(components, for_s, comment):
        calls.append(("maintain", components, for_s, comment))
        return f"{len(components)} in maintenance (maintain-0002)"

    def drain(job, *accelerators):
        calls.append(("drain", job, *accelerators))
        return PlanView("drain", "sim", (), "the plan")

    stage.acts |= {"acknowledge": acknowledge, "maintain": maintain, "drain": drain}
    return calls


def shown(pilot, kit):
    return kit.screen_text(pilot.app).splitlines()[3]


def marked(pilot, pane):
    return list(pilot.app.screen.query_one(f"#{pane}", PaneTable).marked)


async def asks(pilot, kit):
    await kit.until(pilot, lambda: pilot.app.screen.query_one(Question).opened)


async def answer(pilot, text):
    pilot.app.focused.insert_text_at_cursor(text)
    await pilot.press("enter")


def test_marks_are_seen_counted_and_taken_away(stage, kit):
    async def script(pilot):
        await pilot.press("2", "m", "m", "j", "m")
        assert marked(pilot, "accelerators") == [LOST, "r1-h1-g0", "r1-h1-g2"]
        assert shown(pilot, kit).strip().startswith("3 accelerators marked: h history, p swap, a acknowledge,")
        assert kit.screen_text(pilot.app).splitlines()[5].startswith("▌✖ failed")
        await pilot.press("k", "m")
        assert marked(pilot, "accelerators") == [LOST, "r1-h1-g0"]
        await pilot.press("escape")
        assert marked(pilot, "accelerators") == []
        assert "16 accelerators" in shown(pilot, kit)

    kit.drive(stage.dashboard(), script)


def test_a_mark_stays_on_its_row_when_the_table_changes(stage, kit):
    async def script(pilot):
        await pilot.press("2", "j", "m")
        stage.seen = kit.observation(at=kit.START + 2, failed="r1-h3-g3")
        await pilot.press("r")
        await kit.until(pilot, lambda: pilot.app.seen.observation.at == stage.seen.at)
        assert marked(pilot, "accelerators") == ["r1-h1-g0"]
        lines = [line for line in kit.screen_text(pilot.app).splitlines() if line.startswith("▌")]
        assert [line.split()[2] for line in lines] == ["r1-h1-g0"]

    kit.drive(stage.dashboard(), script)


def test_marked_findings_are_acknowledged_with_one_reason(stage, kit, done):
    async def script(pilot):
        await pilot.press("4", "m", "m", "a")
        await asks(pilot, kit)
        assert "Acknowledge the findings of" in kit.screen_text(pilot.app)
        await pilot.press("enter")
        assert "a reason is needed" in kit.screen_text(pilot.app)
        await answer(pilot, "ticket 17")
        await kit.until(pilot, lambda: "acknowledged (ack-0001)" in kit.screen_text(pilot.app))
        assert marked(pilot, "findings") == []
        await kit.until(pilot, lambda: stage.looks >= 2)

    kit.drive(stage.dashboard(), script)
    (call,) = done
    assert (call[0], call[2]) == ("acknowledge", "ticket 17")
    assert LOST in call[1]


def test_the_selected_row_is_meant_where_none_is_marked(stage, kit, done):
    async def script(pilot):
        await pilot.press("5", "a")
        await asks(pilot, kit)
        await answer(pilot, "known")
        await kit.until(pilot, lambda: done)

    kit.drive(stage.dashboard(), script)
    assert done[0][0] == "acknowledge"


def test_maintenance_needs_a_duration_and_a_reason(stage, kit, done):
    async def script(pilot):
        await pilot.press("colon", *"r1-h3", "enter", "w")
        await asks(pilot, kit)
        await answer(pilot, "new fans")
        assert "'new' is not a valid duration" in kit.screen_text(pilot.app)
        assert done == []
        pilot.app.focused.value = ""
        await answer(pilot, "2h new fans")
        await kit.until(pilot, lambda: "1 in maintenance (maintain-0002)" in kit.screen_text(pilot.app))

    kit.drive(stage.dashboard(), script)
    assert done == [("maintain", ("r1-h3",), 7200.0, "new fans")]


def test_what_runs_on_marked_rows_is_drained_through_a_plan_that_asks(stage, kit, done):
    async def script(pilot):
        await pilot.press("colon", *"r1-h3", "enter", "d")
        await kit.until(pilot, lambda: getattr(pilot.app.screen, "phase", None) is Phase.ASKING)
        await pilot.press("escape", "2", "ctrl+end", "d")
        await kit.until(pilot, lambda: "no rank runs on r1-h4-g3" in kit.screen_text(pilot.app))

    kit.drive(stage.dashboard(), script)
    assert done == [("drain", "llm", *(f"r1-h3-g{n}" for n in range(4)))]


def test_p_swaps_what_is_at_fault_among_the_marked(stage, kit):
    async def script(pilot):
        await pilot.press("2", "j", "m", "p")
        assert "r1-h1-g0 has no fault that a spare repairs" in kit.screen_text(pilot.app)
        await pilot.press("home", "m", "p")
        await kit.until(pilot, lambda: getattr(pilot.app.screen, "phase", None) is Phase.ASKING)
        left_out = "! r1-h1-g0 was marked but is not replaced: r1-h1-g0 and its links are ok"
        assert left_out in kit.screen_text(pilot.app)

    kit.drive(stage.dashboard(), script)
    assert stage.planned == [("llm", LOST)]


def test_a_marked_row_that_runs_no_rank_is_named_by_the_plan_of_a_drain(stage, kit, done):
    async def script(pilot):
        await pilot.press("2", "j", "m", "ctrl+end", "m", "d")
        await kit.until(pilot, lambda: getattr(pilot.app.screen, "phase", None) is Phase.ASKING)
        assert "! r1-h4-g3 was marked but is not drained: no rank runs on it" in kit.screen_text(pilot.app)

    kit.drive(stage.dashboard(), script)
    assert done == [("drain", "llm", "r1-h1-g0")]


def test_a_refusal_is_a_line_and_the_marks_stay(stage, kit):
    def refuse(*_):
        raise RefusedError("r1-h1-g0 has no more findings")

    stage.acts["acknowledge"] = refuse

    async def script(pilot):
        await pilot.press("2", "j", "m", "a")
        await asks(pilot, kit)
        await answer(pilot, "known")
        await kit.until(pilot, lambda: "nothing was done: r1-h1-g0 has no more findings" in kit.screen_text(pilot.app))
        assert marked(pilot, "accelerators") == ["r1-h1-g0"]

    kit.drive(stage.dashboard(), script)


def test_escape_leaves_the_question_and_nothing_is_done(stage, kit, done):
    async def script(pilot):
        await pilot.press("2", "m", "a")
        await asks(pilot, kit)
        await pilot.press("escape")
        assert "nothing was done" in kit.screen_text(pilot.app)
        assert not pilot.app.screen.query_one(Question).opened
        assert pilot.app.focused is pilot.app.screen.query_one("#accelerators", PaneTable)
        assert marked(pilot, "accelerators") == [LOST]

    kit.drive(stage.dashboard(), script)
    assert done == []


@pytest.mark.parametrize("key", ["a", "w", "d"])
def test_what_is_no_component_says_so_and_read_only_refuses(stage, kit, done, key):
    stage.records = kit.records()

    async def script(pilot):
        await pilot.press("6", key)
        assert "runs are not components" in kit.screen_text(pilot.app)

    kit.drive(stage.dashboard(), script)
    stage.forbidden = "read-only, as requested"

    async def refused(pilot):
        await pilot.press("2", key)
        assert "read-only, as requested" in kit.screen_text(pilot.app)

    kit.drive(stage.dashboard(), refused)
    assert done == []
