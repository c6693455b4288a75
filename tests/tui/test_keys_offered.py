"""The keys that a screen shows work in the state in which it shows them; and tab loses no input line."""

import threading

import pytest
import swap_journal
from fake_torus import FakeRack

from lumctl.inventory.load import example, load_inventory
from lumctl.tui.actions import PlanView
from lumctl.tui.screens.component import AcceleratorScreen
from lumctl.tui.screens.help import HelpScreen, LeavingScreen
from lumctl.tui.screens.incident import IncidentScreen
from lumctl.tui.screens.main import MainScreen
from lumctl.tui.screens.plan import Phase, PlanScreen
from lumctl.tui.screens.run import RunScreen
from lumctl.tui.screens.torus import TorusScreen
from lumctl.tui.widgets.bars import KeyBar
from lumctl.tui.widgets.prompt import Question

SIZES = ((80, 24), (120, 36))


def phase(pilot):
    screen = pilot.app.screen
    return screen.phase if isinstance(screen, PlanScreen) else None


def keys_shown(pilot):
    bar = pilot.app.screen.query_one(KeyBar)
    return str(bar.content) if bar.display else ""


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_while_a_plan_is_applied_its_screen_shows_the_keys_that_work_then(stage, kit, size):
    async def script(pilot):
        await pilot.press("2", "p")
        await kit.until(pilot, lambda: phase(pilot) is Phase.ASKING)
        assert keys_shown(pilot) == "y enter apply  v view  esc leave  ? help"
        await pilot.press("y", "enter")
        await kit.until(pilot, lambda: phase(pilot) is Phase.APPLYING)
        text = kit.screen_text(pilot.app)
        assert "applying to TARGET sim; it goes on to its end, even if this terminal closes" in text
        assert text.splitlines()[-1].strip() == "down scroll  ? help  q quit when it has ended"
        await pilot.press("down", "question_mark")
        await kit.until(pilot, lambda: isinstance(pilot.app.screen, HelpScreen))
        await pilot.press("escape", "q")
        await kit.until(pilot, lambda: isinstance(pilot.app.screen, LeavingScreen))
        await pilot.press("escape", "escape")
        assert "wait for the outcome" in kit.screen_text(pilot.app)
        stage.may_end.set()
        await kit.until(pilot, lambda: phase(pilot) is Phase.ENDED)
        assert keys_shown(pilot) == "", "the line above names the keys of the outcome"
        assert "esc: back" in kit.screen_text(pilot.app)

    kit.drive(stage.dashboard(), script, size=size)


def test_while_a_plan_is_made_its_screen_can_be_left_by_the_key_that_it_shows(stage, kit):
    may_end = threading.Event()

    def plan(*_):
        may_end.wait(30)
        return PlanView("it", "sim", (), "the plan")

    stage.acts["drain"] = plan

    async def script(pilot):
        await pilot.press("2", "d")
        await kit.until(pilot, lambda: phase(pilot) is Phase.PLANNING)
        assert kit.screen_text(pilot.app).splitlines()[-1].strip() == "esc leave  ? help  q quit"
        await pilot.press("escape")
        await kit.until(pilot, lambda: isinstance(pilot.app.screen, MainScreen))
        may_end.set()

    kit.drive(stage.dashboard(), script)


def test_a_run_in_progress_offers_neither_runbook_nor_undo(stage, kit):
    views = [swap_journal.view(kit, "running", swap_journal.begun)]
    stage.records, stage.sources["run"] = kit.records(), lambda _: views[-1]

    async def script(pilot):
        await pilot.press("6", "enter")
        await kit.until(pilot, lambda: isinstance(pilot.app.screen, RunScreen) and pilot.app.screen._view)
        assert keys_shown(pilot) == "esc back  ? help  q quit"
        views.append(swap_journal.view(kit))
        pilot.app.screen._turn()
        await kit.until(pilot, lambda: keys_shown(pilot) == "esc back  b runbook  u undo  ? help  q quit")

    kit.drive(stage.dashboard(), script)


@pytest.mark.parametrize("key", ["tab", "shift+tab"])
def test_tab_does_not_take_the_focus_from_the_question_for_a_slice(stage, kit, key):
    asked = []
    rack = FakeRack(load_inventory(example("torus64")))
    stage.seen, stage.racks = rack.observe(), ("torus64",)
    stage.acts = {"place_slice": lambda *words: asked.append(words) or PlanView("it", "sim", (), "the plan")}

    async def script(pilot):
        await pilot.press("z")
        await kit.until(pilot, lambda: isinstance(pilot.app.screen, TorusScreen))
        await pilot.press("n", *"4x4x2", "space", key, "a", key, "enter")
        await kit.until(pilot, lambda: asked == [("4x4x2", "a")])

    kit.drive(stage.dashboard(), script)


@pytest.mark.parametrize("key", ["tab", "shift+tab"])
def test_tab_takes_the_focus_neither_from_the_yes_to_a_plan_nor_from_a_question_about_a_row(stage, kit, key):
    acknowledged = []
    stage.acts["acknowledge"] = lambda _, comment: acknowledged.append(comment) or "1 acknowledged"

    async def script(pilot):
        await pilot.press("2", "a")
        await kit.until(pilot, lambda: pilot.app.screen.query_one(Question).opened)
        await pilot.press(key, "x", "enter")
        await kit.until(pilot, lambda: acknowledged == ["x"])
        assert pilot.app.screen.area.pane.id == "accelerators"
        await pilot.press("p")
        await kit.until(pilot, lambda: phase(pilot) is Phase.ASKING)
        await pilot.press(key, "y", key, "enter")
        await kit.until(pilot, lambda: phase(pilot) is Phase.APPLYING)
        stage.may_end.set()
        await kit.until(pilot, lambda: phase(pilot) is Phase.ENDED)

    kit.drive(stage.dashboard(), script)


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize(
    ("state", "first"),
    [
        ("lost-gpu", "p plan swap  enter details"),
        ("dead-host", "5 incidents  p plan swap"),
        ("dark-rack", "5 incidents  enter details"),
        ("swap-under-way", "6 swaps  enter details"),  # what the run replaces needs no other plan
    ],
)
def test_the_key_that_the_headline_names_comes_first_on_the_main_screen(rack64, kit, state, first, size):
    async def script(pilot):
        await kit.until(pilot, lambda: keys_shown(pilot).startswith(first))
        if state != "lost-gpu":
            await pilot.press(first[0])
            await kit.until(pilot, lambda: not keys_shown(pilot).startswith(first[0]))

    kit.drive(rack64(state).dashboard(), script, size=size)


def test_while_a_run_replaces_the_only_accelerator_at_fault_p_is_not_offered(rack64, kit):
    async def script(pilot):
        await kit.until(pilot, lambda: keys_shown(pilot).startswith("6 swaps  enter"))
        await pilot.press("down")
        await kit.until(pilot, lambda: pilot.app.screen.area.view.chosen != "h03-gpu2")
        assert keys_shown(pilot).startswith("6 swaps  enter")

    kit.drive(rack64("swap-under-way").dashboard(), script, size=(120, 36))


@pytest.mark.parametrize(
    ("way", "opened"), [(("2", "enter"), AcceleratorScreen), (("5", "enter"), IncidentScreen)], ids=["gpu", "incident"]
)
def test_while_a_run_replaces_an_accelerator_its_screens_do_not_offer_p_and_say_why(rack64, kit, way, opened):
    stage = rack64("swap-under-way")

    async def script(pilot):
        await kit.until(pilot, lambda: keys_shown(pilot).startswith("6 swaps"))
        await pilot.press(*way)
        await kit.until(pilot, lambda: isinstance(pilot.app.screen, opened) and "esc back" in keys_shown(pilot))
        await kit.until(pilot, lambda: "plan swap" not in keys_shown(pilot))
        assert "press p" not in kit.screen_text(pilot.app)
        await pilot.press("p")
        await kit.until(pilot, lambda: "swap-0008 replaces h03-gpu2 now" in kit.screen_text(pilot.app))
        assert isinstance(pilot.app.screen, opened)

    kit.drive(stage.dashboard(), script, size=(120, 36))
    assert stage.planned == []
