"""Every screen's keys are in the one table of screens, from which the help and the lines at the foot are made."""

import importlib
import pkgutil

import pytest
import top_told as told
from textual.screen import Screen

import lumctl.tui.screens
from lumctl.tui.keys import CHANGES, KEYS, SCREENS, bindings
from lumctl.tui.screens.help import HelpScreen
from lumctl.tui.widgets.bars import foot_of
from lumctl.tui.widgets.prompt import Prompt


def screens():
    """Every screen class of the dashboard that a person can stand on: not those that others only build on."""
    for found in pkgutil.iter_modules(lumctl.tui.screens.__path__, "lumctl.tui.screens."):
        importlib.import_module(found.name)
    known, waiting = set(), [Screen]
    while waiting:
        for each in waiting.pop().__subclasses__():
            waiting.append(each)
            if each.__module__.startswith("lumctl.tui.screens.") and not each.__subclasses__():
                known.add(each)
    return sorted(known, key=lambda each: each.__name__)


def bound(actions):
    return {(each.key, each.action) for each in actions}


@pytest.mark.parametrize("screen", screens(), ids=lambda screen: screen.__name__)
def test_the_keys_of_each_screen_stand_in_the_table_of_screens(screen):
    known = [bound(bindings(each.actions)) for each in SCREENS]
    assert bound(screen.BINDINGS) in known, f"{screen.__name__}: add its keys to SCREENS in lumctl/tui/keys.py"


@pytest.mark.parametrize("each", SCREENS, ids=lambda each: each.where or "the main screen")
def test_no_key_has_two_meanings_on_a_screen_and_each_is_explained(each):
    keys = [key for action in each.actions for key in action.keys.split(",") if key]
    assert len(keys) == len(set(keys))
    for action in each.actions:
        assert bool(action.help) == bool(action.shown)
        assert action.shown or not action.label


def test_the_help_lists_every_screen_with_every_key(stage, kit):
    async def script(pilot):
        await pilot.press("question_mark")
        text = kit.screen_text(pilot.app)
        for each in SCREENS:
            assert each.where in text
            for action in each.actions:
                assert action.help in text, (each.where, action.shown)

    kit.drive(stage.dashboard(), script, size=(120, 340))


WAYS = {
    "main": ("2",),
    "columns": ("2", "c"),
    "accelerator": ("2", "enter"),
    "transponder": ("colon", *"r1-h1-g1-l0", "enter"),
    "facts": ("colon", *"r1-h1", "enter", "enter"),
    "plot": ("2", "enter", "h"),
    "plan": ("2", "p"),
    "incident": ("5", "enter"),
    "run": ("6", "enter"),
    "job": ("9", "enter"),
    "rack": ("space",),
    "host-output": ("l",),
    "spares": ("S",),
    "torus": ("z",),
    "matrix": ("x",),
    "losses": ("b",),
    "timeline": ("5", "enter", "t"),
    "mesh": ("colon", *"mesh1", "enter"),
    "runbook": ("7", "enter"),
    "comparison": ("7", "enter", "c", "escape", "j", "enter", "c"),
    "policy": ("8", "enter"),
    "approval": ("8", "j", "j", "enter"),
}
"""How each screen is come to; the help and the question before leaving are no places to ask from."""


@pytest.fixture
def filled(stage, kit):
    """A rack of which there is a screen of every kind."""
    stage.records = kit.Records(runs=(kit.run(7), kit.run(6)), autopilots=(told.autopilot(),))
    return stage


def test_there_is_a_way_to_every_screen():
    assert set(WAYS) == set(KEYS) - {"help", "leaving"}


async def come_to(pilot, kit, name):
    for key in WAYS[name]:
        await pilot.press(key)
        await pilot.pause()
    await kit.until(pilot, lambda: getattr(pilot.app.screen, "KEYS", None) is KEYS[name])


@pytest.mark.parametrize("name", ["accelerator", "facts", "incident", "job", "rack"])
def test_the_spares_are_a_key_away_from_what_may_need_one(filled, kit, name):
    async def script(pilot):
        await come_to(pilot, kit, name)
        await pilot.press("S")
        await kit.until(pilot, lambda: getattr(pilot.app.screen, "KEYS", None) is KEYS["spares"])
        await pilot.press("escape")
        await kit.until(pilot, lambda: getattr(pilot.app.screen, "KEYS", None) is KEYS[name])

    kit.drive(filled.dashboard(), script)


@pytest.mark.parametrize("name", WAYS)
def test_help_is_a_key_away_on_every_screen_and_tells_its_own_keys_first(filled, kit, name):
    async def script(pilot):
        await come_to(pilot, kit, name)
        foot = kit.screen_text(pilot.app).splitlines()[-1]
        assert "? help" in foot or "? all keys" in foot
        await pilot.press("question_mark")
        await kit.until(pilot, lambda: isinstance(pilot.app.screen, HelpScreen))
        lines = kit.screen_text(pilot.app).splitlines()
        assert lines[1].split()[1] == "ok", "the signs of states come before"
        assert lines[2].strip() == f"keys {KEYS[name].where}".strip()
        first = next(action for action in KEYS[name].actions if action.help)
        assert lines[3].split(maxsplit=len(first.shown.split()))[-1] == first.help
        others = [each.where or "on the main screen" for each in SCREENS if each is not KEYS[name]]
        assert [line.strip() for line in lines if line.strip() in others] == others
        await pilot.press("question_mark")
        await kit.until(pilot, lambda: getattr(pilot.app.screen, "KEYS", None) is KEYS[name])

    kit.drive(filled.dashboard(), script, size=(110, 340))


def test_a_question_mark_in_a_line_is_text(filled, kit):
    async def script(pilot):
        await pilot.press("slash", "question_mark")
        await pilot.pause()
        assert pilot.app.screen.query_one(Prompt)._line.value == "?"

    kit.drive(filled.dashboard(), script)


@pytest.mark.parametrize("each", SCREENS, ids=lambda each: each.name)
def test_the_foot_fits_eighty_columns_and_ends_with_help_and_quit(each):
    labelled = [action for action in each.actions if action.label]
    shown = foot_of(labelled, 78)
    assert len("  ".join(f"{action.shown} {action.label}" for action in shown)) <= 78
    assert foot_of(labelled, 160) == labelled
    always = {"app.help", "app.quit"}
    assert [a.action for a in shown if a.action in always] == [a.action for a in labelled if a.action in always]
    others = [a for a in labelled if a.action not in always]
    assert [a for a in shown if a.action not in always] == others[: len(shown) - len(labelled) + len(others)]
    word = "help" if len(shown) == len(labelled) else "all keys"
    assert {a.label for a in shown if a.action == "app.help"} <= {word}


def test_the_foot_of_the_main_screen_leads_to_the_rest_at_eighty_columns():
    shown = foot_of([action for action in KEYS["main"].actions if action.label], 78)
    assert [action.shown for action in shown] == ["p", "enter", "m", "5", "?", "q"]


def test_what_changes_something_is_known_by_an_action_that_there_is():
    assert {action.action for each in SCREENS for action in each.actions} >= CHANGES
