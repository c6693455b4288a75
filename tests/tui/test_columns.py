"""The columns of a table: chosen on a screen of their own, and remembered."""

import json
import stat

import pytest

from lumctl.tui.panes import PANES
from lumctl.tui.preferences import SCHEMA, Preferences
from lumctl.tui.screens.columns import ColumnsScreen
from lumctl.tui.screens.main import MainScreen


def headings(app, kit):
    return kit.screen_text(app).splitlines()[4].split()


async def chosen(pilot, kit):
    await kit.until(pilot, lambda: isinstance(pilot.app.screen, ColumnsScreen))


def test_columns_are_hidden_and_shown_again(stage, kit):
    async def script(pilot):
        await pilot.press("2")
        assert "HOST" in headings(pilot.app, kit)
        await pilot.press("c")
        await chosen(pilot, kit)
        assert "> [x] HOST" in kit.screen_text(pilot.app)
        assert "STATE" not in kit.screen_text(pilot.app)
        await pilot.press("space", "j", "j", "space")
        assert "[ ] HOST" in kit.screen_text(pilot.app)
        await pilot.press("escape")
        assert isinstance(pilot.app.screen, MainScreen)
        assert headings(pilot.app, kit) == ["STATE", "ID", "JOB/RANK", "UTIL", "MEM", "ECC", "AGE"]
        assert "r1-h1-g0" in kit.screen_text(pilot.app)
        await pilot.press("c")
        await chosen(pilot, kit)
        await pilot.press("a", "escape")
        assert "HOST" in headings(pilot.app, kit)

    kit.drive(stage.dashboard(), script)


def test_the_choice_is_remembered_in_a_file_of_the_user(stage, kit, tmp_path):
    path = tmp_path / "state" / "lumctl" / "top.json"
    stage.preferences = Preferences(path)

    async def choose(pilot):
        await pilot.press("2", "c")
        await chosen(pilot, kit)
        await pilot.press("space", "escape")

    kit.drive(stage.dashboard(), choose)
    remembered = {"schema": SCHEMA, "theme": None, "hidden_columns": {"accelerators": ["host"]}, "bell": False}
    assert json.loads(path.read_text()) == remembered
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    stage.preferences = Preferences(path)

    async def shown(pilot):
        await pilot.press("2")
        assert "HOST" not in headings(pilot.app, kit)

    kit.drive(stage.dashboard(), shown)


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"hidden_columns": 5}', '{"hidden_columns": {"accelerators": "host", "x": [1, null]}}']
)
def test_a_file_that_cannot_be_understood_hides_nothing(tmp_path, content):
    path = tmp_path / "top.json"
    path.write_text(content)
    assert Preferences(path).hidden("accelerators") == frozenset()


def test_a_folder_that_cannot_be_written_is_a_line(stage, kit, tmp_path):
    (tmp_path / "file").write_text("")
    stage.preferences = Preferences(tmp_path / "file" / "top.json")

    async def script(pilot):
        await pilot.press("2", "c")
        await chosen(pilot, kit)
        await pilot.press("space", "escape")
        assert "the choice is not saved" in kit.screen_text(pilot.app)
        assert "HOST" not in headings(pilot.app, kit)

    kit.drive(stage.dashboard(), script)


def test_what_names_a_row_cannot_be_hidden():
    for pane in PANES:
        kept = {column.key for column in pane.columns} - {column.key for column in pane.optional_columns}
        assert {column.key for column in pane.columns[:2]} <= kept
        assert pane.lines == 1 or pane.columns[-1].key in kept
