"""The command palette and the mouse."""

from textual.command import CommandInput, CommandList

from lumctl.tui.look.themes import THEMES
from lumctl.tui.palette import Palette
from lumctl.tui.screens.component import DetailScreen
from lumctl.tui.screens.main import MainScreen
from lumctl.tui.screens.plan import PlanScreen


async def ask(pilot, kit, words):
    """Open the palette and type; gives what is offered."""
    await pilot.press("ctrl+p")
    await kit.until(pilot, lambda: isinstance(pilot.app.screen, Palette))
    pilot.app.screen.query_one(CommandInput).insert_text_at_cursor(words)
    found = pilot.app.screen.query_one(CommandList)
    await kit.until(pilot, lambda: found.option_count and not found.get_option_at_index(0).disabled)
    await kit.until(pilot, lambda: pilot.app.screen.query_one(CommandInput).value == words)
    return found


def offered(found):
    return [str(found.get_option_at_index(n).prompt) for n in range(found.option_count)]


def test_a_name_is_gone_to(stage, kit):
    async def script(pilot):
        await ask(pilot, kit, "r1-h4-g3")
        await kit.until(pilot, lambda: "r1-h4-g3" in offered(pilot.app.screen.query_one(CommandList))[0])
        await pilot.press("enter")
        await kit.until(pilot, lambda: isinstance(pilot.app.screen, MainScreen))
        await kit.until(pilot, lambda: pilot.app.screen.area.table.selected.component == "r1-h4-g3")

    kit.drive(stage.dashboard(), script)


def test_an_action_is_told_in_the_words_of_the_help_and_done(stage, kit):
    async def script(pilot):
        await pilot.press("2")
        await ask(pilot, kit, "plan swap")
        await kit.until(pilot, lambda: "Plan spares for the selection" in kit.screen_text(pilot.app))
        await pilot.press("enter")
        await kit.until(pilot, lambda: isinstance(pilot.app.screen, PlanScreen))

    kit.drive(stage.dashboard(), script)


def test_before_anything_is_typed_the_actions_of_the_open_screen_are_offered(stage, kit):
    async def script(pilot):
        await pilot.press("2", "enter")
        await kit.until(pilot, lambda: isinstance(pilot.app.screen, DetailScreen))
        await pilot.press("ctrl+p")
        await kit.until(pilot, lambda: "Plan to replace this" in kit.screen_text(pilot.app))
        assert "Read everything again" not in kit.screen_text(pilot.app)

    kit.drive(stage.dashboard(), script)


def test_what_is_forbidden_is_not_offered(stage, kit):
    stage.forbidden = "read-only"

    async def script(pilot):
        await pilot.press("ctrl+p")
        await kit.until(pilot, lambda: "details" in kit.screen_text(pilot.app))
        assert "Plan to replace it by a spare" not in kit.screen_text(pilot.app)

    kit.drive(stage.dashboard(), script, size=(110, 60))


def test_another_theme_is_shown_at_once(stage, kit):
    async def script(pilot):
        await ask(pilot, kit, "theme light")
        await kit.until(pilot, lambda: "theme light" in offered(pilot.app.screen.query_one(CommandList))[0])
        await pilot.press("enter")
        await kit.until(pilot, lambda: pilot.app.theme == THEMES["light"].name)

    kit.drive(stage.dashboard(), script)


def test_it_is_ascii_where_the_terminal_is(stage, kit):
    async def script(pilot):
        await pilot.press("ctrl+p")
        await kit.until(pilot, lambda: "details" in kit.screen_text(pilot.app))
        assert kit.screen_text(pilot.app).isascii(), kit.screen_text(pilot.app)

    kit.drive(stage.dashboard(ascii_only=True), script)


def test_it_tells_each_action_what_it_does_and_its_key(shows, stage, kit):
    async def wait(pilot):
        await kit.until(pilot, lambda: "details" in kit.screen_text(pilot.app))

    shown = shows(stage, "2", "ctrl+p", size=(80, 24), then=wait)
    said = " ".join(shown.split())
    assert "> an action or a name" in shown
    assert "plan swap Plan spares for the selection if it failed, else for the headline's." in said
    assert "details\nAll details of the selected component. Key: enter.\n" in shown
    assert "Circuits: what each receiver hears, and with how much light." in shown
    assert shown.splitlines()[-1].startswith("p plan swap enter details m mark")


def test_a_tab_a_row_and_a_key_can_be_clicked(stage, kit):
    async def script(pilot):
        app = pilot.app
        tabs = kit.screen_text(app).splitlines()[1]
        await pilot.click("#tabs", offset=(tabs.index("2 Accelerators"), 0))
        await kit.until(pilot, lambda: app.screen.area.pane.id == "accelerators")
        await pilot.click(app.screen.area.table, offset=(5, 3))
        await kit.until(pilot, lambda: app.screen.area.table.cursor_row == 2)
        foot = kit.screen_text(app).splitlines()[-1]
        await pilot.click("KeyBar", offset=(foot.index("enter"), 0))
        await kit.until(pilot, lambda: isinstance(app.screen, DetailScreen))

    kit.drive(stage.dashboard(), script)
