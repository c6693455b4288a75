"""Every table of the dashboard: a row in trouble is in sight, or the heading counts it, and a key goes to it."""

import asyncio
import re
from dataclasses import replace

import pytest
from textual.app import App

from lumctl.health.states import State
from lumctl.tui.look.themes import DEFAULT, THEMES, rich_theme
from lumctl.tui.panes import PANES
from lumctl.tui.panes.incidents import members_pane
from lumctl.tui.panes.jobs import ranks_pane
from lumctl.tui.panes.rows import AGE, Cell, Row
from lumctl.tui.views.mesh_drawing import LED
from lumctl.tui.widgets.table import PaneTable

TABLES = (*PANES, members_pane("host:r1-h1"), ranks_pane("llm"), LED)
ROWS = 60


class OneTable(App):
    """Nothing but one table."""

    CSS = "PaneTable { height: 1fr; }"

    def __init__(self, pane):
        super().__init__()
        self.console.push_theme(rich_theme(THEMES[DEFAULT]))
        self._pane = pane

    def compose(self):
        yield PaneTable(self._pane)


def row(pane, number, state=State.OK):
    cells = tuple(Cell(f"{column.key}-{number}") for column in pane.columns if column.key != AGE)
    return Row(f"row-{number}", f"component-{number}", state, cells, 0.0)


def rows_of(pane, **states):
    """Rows by number, those in trouble first, as the panes sort them."""
    rows = [row(pane, number, states.get(f"r{number}", State.OK)) for number in range(ROWS)]
    return sorted(rows, key=lambda each: each.state is State.OK)


def use(pane, script, size=(120, 20)):
    app = OneTable(pane)

    async def run():
        async with app.run_test(size=size) as pilot:
            await script(pilot, app.query_one(PaneTable))

    asyncio.run(run())


def lines(app):
    return [strip.text for strip in app.screen._compositor.render_strips()]


@pytest.fixture(params=TABLES, ids=lambda pane: pane.id)
def pane(request):
    return request.param


def test_until_the_user_moves_the_first_line_is_in_sight_whatever_comes_there(pane):
    async def script(pilot, table):
        table.show(rows_of(pane), 1.0, 60.0)
        await pilot.pause()
        assert table.selected.key == "row-0"
        table.show(rows_of(pane, r40=State.FAILED, r50=State.FAILED), 2.0, 60.0)
        await pilot.pause()
        assert (table.selected.key, table.scroll_offset.y) == ("row-40", 0)
        assert "-40 " in lines(pilot.app)[1]

    use(pane, script)


def test_once_the_user_has_moved_the_cursor_stays_on_its_row_and_the_heading_counts_what_is_above(pane):
    async def script(pilot, table):
        table.show(rows_of(pane), 1.0, 60.0)
        await pilot.press("end")
        table.show(rows_of(pane, r40=State.FAILED, r50=State.FAILED), 2.0, 60.0)
        await pilot.pause()
        assert table.selected.key == f"row-{ROWS - 1}"
        assert ("2 failed above" in lines(pilot.app)[0]) is (State.FAILED in pane.counts)
        await pilot.press("home")
        assert "above" not in lines(pilot.app)[0]
        # Back at the top, the first line is followed again.
        table.show(rows_of(pane, r7=State.FAILED), 3.0, 60.0)
        assert table.selected.key == "row-7"

    use(pane, script)


def test_trouble_below_is_counted_too_in_the_state_that_is_worst(pane):
    async def script(pilot, table):
        rows = rows_of(pane)
        rows[-1], rows[-2] = replace(rows[-1], state=State.FAILED), replace(rows[-2], state=State.UNKNOWN)
        table.show(rows, 1.0, 60.0)
        await pilot.pause()
        assert ("1 failed below" in lines(pilot.app)[0]) is (State.FAILED in pane.counts)
        # The same rows with other states: the heading is drawn again though nothing has moved.
        table.show([replace(each, state=State.OK) for each in rows], 2.0, 60.0)
        await pilot.pause()
        assert "below" not in lines(pilot.app)[0]

    use(pane, script)


def test_brackets_go_to_the_rows_in_trouble_around_the_ends(pane):
    async def script(pilot, table):
        rows = [row(pane, number, State.FAILED if number in {20, 40} else State.OK) for number in range(ROWS)]
        table.show(rows, 1.0, 60.0)
        table.focus()
        gone = []
        for key in ("]", "]", "]", "[", "["):
            await pilot.press(key)
            gone.append(table.selected.key)
        assert gone == ["row-20", "row-40", "row-20", "row-40", "row-20"]
        await pilot.pause()
        assert any("-20 " in line for line in lines(pilot.app))

    use(pane, script)


def test_without_trouble_brackets_leave_the_cursor_alone(pane):
    async def script(pilot, table):
        table.show(rows_of(pane), 1.0, 60.0)
        table.focus()
        await pilot.press("j", "]")
        assert table.selected.key == "row-0"
        assert not table.to_problem(1)

    use(pane, script)


def test_the_second_line_of_a_row_that_is_half_under_the_heading_is_drawn_again(kit):
    pane = next(pane for pane in PANES if pane.lines > 1)

    def rows(words):
        return [
            replace(each, cells=(*each.cells[:-1], Cell(f"{'-' * 30}\n{words} {number}")))
            for number, each in enumerate(rows_of(pane))
        ]

    async def script(pilot, table):
        table.show(rows("before"), 1.0, 60.0)
        await pilot.pause()
        table.scroll_to(y=1, animate=False)
        await kit.until(pilot, lambda: lines(pilot.app)[1].startswith("   before 0"))
        table.show(rows("after "), 1.0, 60.0)
        await kit.until(pilot, lambda: lines(pilot.app)[3].startswith("   after  1"))
        assert lines(pilot.app)[1].startswith("   after  0")

    use(pane, script)


def test_rows_get_another_line_in_the_update_that_widens_a_column():
    pane = next(pane for pane in PANES if pane.lines > 1)

    def rows(first, last):
        return [replace(each, cells=(Cell(first), *each.cells[1:-1], Cell(last))) for each in rows_of(pane)]

    async def script(_pilot, table):
        table.show(rows("", ""), 1.0, 60.0)
        text = "x" * table.cells.width_of(len(pane.columns) - 1)  # it just fits
        table.show(rows("", text), 1.0, 60.0)
        assert table.cells.lines == pane.lines
        table.show(rows("a" * 20, text), 1.0, 60.0)
        assert table.cells.lines == pane.lines + 1

    use(pane, script)


@pytest.mark.parametrize("pane_id", ["accelerators", "circuits", "findings", "incidents", "swaps", "runbooks", "log"])
def test_a_failure_that_comes_while_another_pane_is_open_is_in_sight_on_return(stage, kit, pane_id):
    """Seen twice: the tab said failed while every visible row was ok, because the viewport had stayed below."""
    stage.seen, stage.records = kit.observation(failed=None), kit.records()

    async def script(pilot):
        app = pilot.app
        await pilot.press("2", "1")
        stage.seen = kit.with_states(
            kit.observation(at=kit.START + 2), {"r1-h3-g2": State.FAILED, "r1-h4-g3": State.FAILED}
        )
        await pilot.press("r")
        await kit.until(pilot, lambda: app.seen.observation.at == stage.seen.at)
        app.screen.action_show_pane(pane_id)
        await pilot.pause()
        table = app.screen.query_one(f"#{pane_id}", PaneTable)
        assert (table.cursor_row, table.scroll_offset.y) == (0, 0)
        if pane_id == "accelerators":
            text = kit.screen_text(app)
            assert text.count("✖ failed") + int("failed below" in text) >= 3

    kit.drive(stage.dashboard(), script, size=(80, 10))


def test_what_a_filter_hides_is_counted(stage, kit):
    async def script(pilot):
        await pilot.press("2", "slash", *"h1", "enter")
        assert "4 of 16 accelerators match 'h1', 1 failed hidden (esc: all)" in kit.screen_text(pilot.app)

    kit.drive(stage.dashboard(), script)


def test_a_fold_that_hides_a_failure_says_so(stage, kit):
    silent = kit.unreachable(kit.observation())
    hosts = {
        name: replace(health, state=State.FAILED if name == "r1-h2" else health.state)
        for name, health in silent.report.hosts.items()
    }
    stage.seen = replace(silent, report=replace(silent.report, hosts=hosts))

    async def script(pilot):
        await pilot.press("1", "t", "space")
        assert re.search(r"5 of them folded away, 1 failed.* hidden", kit.screen_text(pilot.app))

    kit.drive(stage.dashboard(), script)
