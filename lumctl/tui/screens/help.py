"""The screens beside the data: help, and the question before leaving in the middle of an apply."""

from collections.abc import Sequence
from typing import Any

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import Static

from lumctl.health.states import State
from lumctl.tui.keys import CHANGES, SCREENS, ScreenKeys
from lumctl.tui.look.marks import HEADING_STYLE, STALE_STYLE, STATE_STYLES, Marks
from lumctl.tui.screens.shortcuts import KeyedScreen
from lumctl.tui.widgets.bars import KeyBar, TopBar

_MEANINGS = {
    State.OK: "read, and nothing is wrong",
    State.DEGRADED: "works, but something needs care",
    State.FAILED: "does not do its work",
    State.UNKNOWN: "not read, or not shown by any evidence",
    State.DISABLED: "taken out of service",
}


class HelpScreen(KeyedScreen[None], keys="help"):
    """Every key by screen, those of the screen from which it was opened first, and what the marks mean."""

    def __init__(self, beneath: Sequence[Screen[Any]], target: str, marks: Marks, forbidden: str = "") -> None:
        super().__init__()
        self._here = next((each.KEYS for each in reversed(beneath) if isinstance(each, KeyedScreen)), SCREENS[0])
        self._target = target
        self._marks = marks
        self._forbidden = forbidden

    def compose(self) -> ComposeResult:
        """A scrolling text between the bars."""
        yield TopBar("help", self._target)
        with VerticalScroll():
            yield Static(self._text())
        yield KeyBar(self.KEYS.actions)

    def on_mount(self) -> None:
        """Let the arrow keys scroll."""
        self.query_one(VerticalScroll).focus()

    def _text(self) -> Text:
        text = Text(style=HEADING_STYLE)
        if self._forbidden:
            text.append(f"{self._forbidden}\n\n", style=STALE_STYLE)
        self._keys(text, self._here, f"keys {self._here.where}".strip())
        for screen in SCREENS:
            if screen is not self._here:
                self._keys(text, screen, f"\n{screen.where or 'on the main screen'}")
        text.append("\nstates\n")
        for state, meaning in _MEANINGS.items():
            text.append(f"  {self._marks.state(state):<12}", style=STATE_STYLES[state])
            text.append(f" {meaning}\n", style="not bold")
        text.append("\nages\n")
        text.append("  An age with ! is that of a reading too old to rely on.\n", style="not bold")
        return text

    def _keys(self, text: Text, screen: ScreenKeys, heading: str) -> None:
        text.append(f"{heading}\n")
        for action in screen.actions:
            if action.help and not (self._forbidden and action.action in CHANGES):
                text.append(f"  {action.shown:<12} {action.help}\n", style="not bold")


class LeavingScreen(KeyedScreen[bool], keys="leaving"):
    """Whether to leave as soon as the apply under way has ended; at once is not offered: it would be left half way."""

    def __init__(self, target: str) -> None:
        super().__init__()
        self._target = target

    def compose(self) -> ComposeResult:
        """The question."""
        yield TopBar("quit", self._target)
        yield Static(f"\n A plan is being applied to TARGET {self._target}. It is never cut off half way.\n")
        yield Static(" Quit as soon as it has ended?", id="question")
        yield KeyBar(self.KEYS.actions)

    def action_answer(self, leave: bool) -> None:
        """Hand the answer on."""
        self.dismiss(leave)
