"""The order of a table by its columns, and what becomes of names and texts that do not fit."""

import re
from dataclasses import replace

import pytest

from lumctl.cli.output import GLYPHS
from lumctl.health.states import State
from lumctl.tui.look.marks import Marks
from lumctl.tui.panes import PANES
from lumctl.tui.panes.accelerators import ACCELERATORS
from lumctl.tui.panes.circuits import CIRCUITS, circuit_rows
from lumctl.tui.panes.incidents import FINDINGS
from lumctl.tui.panes.racks import RACKS, rack_rows
from lumctl.tui.panes.rows import AGE, Cell, Row
from lumctl.tui.views.records import RecordedLook
from lumctl.tui.views.table_layout import TableLayout, without_middle, wrapped
from lumctl.tui.views.table_rows import SortOrder, after_click, begin, sorted_rows
from lumctl.tui.widgets.bars import Tab, tabs_line
from lumctl.tui.widgets.table import PaneTable

MARKS = Marks(GLYPHS)


def of(pane, key, *texts, at=None):
    """Rows whose cell in one column has these texts."""
    columns = [column.key for column in pane.columns if column.key != AGE]
    rows = []
    for number, text in enumerate(texts):
        cells = [Cell("")] * len(columns)
        if key != AGE:
            cells[columns.index(key)] = Cell(text)
        rows.append(Row(str(number), str(number), State.OK, tuple(cells), at[number] if at else None))
    return rows


@pytest.mark.parametrize(
    ("pane", "key", "texts", "ascending"),
    [
        (ACCELERATORS, "id", ("h10-gpu1", "h2-gpu1", "h2-gpu10", "h2-gpu2"), (1, 3, 2, 0)),
        (ACCELERATORS, "id", ("a2²", "a1²", "a²"), (1, 0, 2)),
        (ACCELERATORS, "temperature", ("93C", "-", "7C", "58C"), (2, 3, 0, 1)),
        (ACCELERATORS, "memory", ("71/80G", "8/80G", "0/80G"), (2, 1, 0)),
        (CIRCUITS, "power", (" -4.2 /  -4.0", " dark /  -4.2", "-12.5 /  -3.0", "    - /     -"), (1, 2, 0, 3)),
        (CIRCUITS, "loss", ("4.2", "10.0", "-"), (0, 1, 2)),
    ],
)
def test_numbers_count_as_numbers_and_what_has_no_value_comes_last(pane, key, texts, ascending):
    rows = of(pane, key, *texts)
    assert [int(row.key) for row in sorted_rows(pane, rows, SortOrder(key, descending=False))] == list(ascending)
    without = [number for number in ascending if set(texts[number]) <= set(" -/")]
    turned = [number for number in reversed(ascending) if number not in without] + without
    assert [int(row.key) for row in sorted_rows(pane, rows, SortOrder(key, descending=True))] == turned


def test_ages_and_states_are_sorted_by_what_they_are():
    rows = of(ACCELERATORS, AGE, "", "", "", at=(100.0, None, 300.0))
    assert [row.at for row in sorted_rows(ACCELERATORS, rows, SortOrder(AGE, descending=False))] == [300.0, 100.0, None]
    states = [
        replace(row, state=state) for row, state in zip(rows, (State.OK, State.FAILED, State.UNKNOWN), strict=True)
    ]
    by_state = sorted_rows(ACCELERATORS, states, begin(ACCELERATORS.columns[0]))
    assert [row.state for row in by_state] == [State.FAILED, State.UNKNOWN, State.OK]


def test_three_clicks_on_a_heading_lead_back_to_the_usual_order():
    temperature = next(column for column in ACCELERATORS.columns if column.key == "temperature")
    first = after_click(None, temperature)
    assert first == SortOrder("temperature", descending=True)
    second = after_click(first, temperature)
    assert second == SortOrder("temperature", descending=False)
    assert after_click(second, temperature) is None
    assert after_click(second, ACCELERATORS.columns[1]) == SortOrder("id", descending=False)


def test_what_is_beneath_a_rack_stays_beneath_it(kit):
    rows = rack_rows(RecordedLook(kit.observation()), MARKS)
    other = [replace(row, key=f"2{row.key}", beneath=row.beneath and f"2{row.beneath}") for row in rows]
    ordered = sorted_rows(RACKS, [*rows, *other], SortOrder("name", descending=True))
    assert [row.beneath for row in ordered] == [row.beneath for row in [*rows, *other]]
    assert [row.component for row in ordered[:3]] == ["r1", "r1-h4", "r1-h3"]


def test_each_column_of_each_pane_can_be_sorted_by(kit):
    seen = RecordedLook(kit.observation(), kit.records())
    for pane in PANES:
        rows = pane.rows(seen, MARKS)
        for column in pane.columns:
            ordered = sorted_rows(pane, rows, begin(column))
            assert sorted(row.key for row in ordered) == sorted(row.key for row in rows), (pane.id, column.key)


def headings(app, kit):
    return kit.screen_text(app).splitlines()[4]


def test_keys_choose_the_column_and_turn_the_order_round(stage, kit):
    async def script(pilot):
        await pilot.press("2", "greater_than_sign", "greater_than_sign")
        assert "ID▲" in headings(pilot.app, kit)
        await pilot.press("R")
        assert "ID▼" in headings(pilot.app, kit)
        assert kit.screen_text(pilot.app).splitlines()[5].split()[2] == "r1-h4-g3"
        await pilot.press("R", "less_than_sign", "less_than_sign")
        assert "▲" not in headings(pilot.app, kit)
        assert "▼" not in headings(pilot.app, kit)
        # The order stays when new readings come, and a failure that it hides is counted.
        await pilot.press("greater_than_sign", "greater_than_sign", "R")
        stage.seen = kit.observation(at=kit.START + 2)
        await pilot.press("r")
        await kit.until(pilot, lambda: pilot.app.seen.observation.at == stage.seen.at)
        assert kit.screen_text(pilot.app).splitlines()[5].split()[2] == "r1-h4-g3"
        assert "1 failed below" in headings(pilot.app, kit)

    kit.drive(stage.dashboard(), script, size=(110, 14))


def test_a_click_on_a_heading_sorts_by_it(stage, kit):
    async def script(pilot):
        await pilot.press("2")
        table = pilot.app.screen.query_one("#accelerators", PaneTable)
        x = headings(pilot.app, kit).index("TEMP")
        await pilot.click(table, offset=(x, 0))
        assert "TEMP▼" in headings(pilot.app, kit)
        assert kit.screen_text(pilot.app).splitlines()[5].split()[2] == "r1-h1-g3"
        await pilot.click(table, offset=(x, 0))
        assert "TEMP▲" in headings(pilot.app, kit)

    kit.drive(stage.dashboard(), script)


def test_in_ascii_the_direction_is_a_letter(stage, kit):
    async def script(pilot):
        await pilot.press("2", "greater_than_sign")
        assert "STATEv" in headings(pilot.app, kit)
        assert kit.screen_text(pilot.app).isascii()

    kit.drive(stage.dashboard(ascii_only=True), script)


def test_names_lose_their_middle_before_other_columns_are_pushed_out_of_sight():
    assert without_middle("rack-b-host-017-gpu-6", 12, "…") == "rack-…-gpu-6"
    layout = TableLayout(ACCELERATORS)
    for at, column in enumerate(ACCELERATORS.columns):
        layout.widen(at, 40 if column.key == "id" else column.width)
    layout.fit(200)
    assert layout.width_of(1) == 40
    layout.fit(90)
    assert layout.columns_width == 90
    text = layout.cell(1, Cell("datacenter-west-4-rack-b-host-017-gpu-6"))
    assert len(text) == layout.width_of(1) + 2
    assert text.startswith(" datacenter-we")
    assert text.rstrip().endswith("gpu-6")
    layout.fit(10)
    assert layout.width_of(1) == ACCELERATORS.columns[1].width


def test_powers_of_both_ends_are_aligned_by_their_points(kit):
    seen = kit.observation()
    texts = [row.cells[2].text for row in circuit_rows(RecordedLook(seen), MARKS)]
    assert texts[0] == " dark /  dark"
    assert texts[2] == " -4.2 /  -4.2"
    assert len({text.index("/") for text in texts}) == 1


def test_a_text_that_does_not_fit_goes_on_below_and_its_advice_keeps_a_line():
    text = "no light arrives at either receiver of this circuit since an hour\nclean both ends, then measure"
    assert wrapped(text, 80, 100, 2, "…") == (
        "no light arrives at either receiver of this circuit since an hour",
        "clean both ends, then measure",
    )
    assert wrapped(text, 30, 100, 3, "…") == (
        "no light arrives at either",
        "receiver of this circuit since an hour",
        "clean both ends, then measure",
    )
    # Where the lines do not suffice, what is left out is the rest of the evidence, and that is seen.
    assert wrapped(text, 30, 20, 3, "…") == ("no light arrives at either …", "clean both ends,", "then measure")
    assert wrapped(text, 30, 12, 3, "..") == ("no light arrives at either ..", "clean both", "ends, ..")


def test_advice_is_read_to_its_end_at_eighty_columns(stage, kit):
    async def script(pilot):
        await pilot.press("4")
        text = kit.screen_text(pilot.app)
        advice = pilot.app.seen.observation.report.findings()[0].advice
        assert advice in text
        assert pilot.app.screen.query_one("#findings", PaneTable).max_scroll_x == 0

    kit.drive(stage.dashboard(), script, size=(80, 24))


@pytest.mark.parametrize("width", [44, 60, 80, 110, 160])
def test_narrow_tabs_name_the_current_pane_and_as_many_others_as_fit(width):
    trouble = {"circuits": Cell("✖2", "bold red"), "racks": Cell("○14", "")}
    tabs = [Tab(pane.id, pane.title, pane.short or pane.title, trouble.get(pane.id, Cell(""))) for pane in PANES]
    line = tabs_line(tabs, "policies", width).plain
    assert len(line) <= width
    named = dict(re.findall(r" (\d)(?: ([A-Z][a-z]+))?", line))
    assert list(named) == [str(number % 10) for number in range(1, 11)]
    for pane, name in zip(PANES, named.values(), strict=True):
        assert name in {pane.title, pane.short, ""}
    assert named["8"] == "Policies"
    assert "✖2" in line
    assert "○14" in line
    if width >= 80:
        assert sum(map(bool, named.values())) >= 9
    if width >= 110:
        assert list(named.values()) == [pane.title for pane in PANES]


def test_a_pane_of_one_line_keeps_its_height():
    layout = TableLayout(ACCELERATORS)
    layout.fit(40)
    assert not layout.fit_lines(["x" * 500])
    tall = TableLayout(FINDINGS)
    tall.fit(80)
    assert tall.fit_lines(["x" * 500])
    assert (layout.lines, tall.lines) == (1, 3)
