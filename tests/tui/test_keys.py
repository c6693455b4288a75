"""Every screen's keys are in the one table of screens, from which the help and the lines at the foot are made."""

import importlib
import pkgutil

import pytest
from textual.screen import Screen

import lumctl.tui.screens
from lumctl.tui.keys import SCREENS, bindings


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

    kit.drive(stage.dashboard(), script, size=(120, 160))
