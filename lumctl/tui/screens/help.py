"""The help screen, and the question before quitting while a plan is being applied."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import Static

from lumctl.tui.keys import CHANGES, SCREENS, ScreenKeys
from lumctl.tui.look.marks import HEADING_STYLE, STALE_STYLE, Marks
from lumctl.tui.look.signs import other_signs, state_signs
from lumctl.tui.screens.shortcuts import KeyedScreen
from lumctl.tui.widgets.bars import KeyBar, TopBar

_WORD_WIDTH = 14


class HelpScreen(KeyedScreen[None], keys="help"):
    """Lists the keys of the screen below, the meaning of every sign, and the keys of the other screens."""

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
            yield Static(self._help())
        yield KeyBar(self.KEYS.actions)

    def on_mount(self) -> None:
        """Focus the text, so that the arrow keys scroll it."""
        self.query_one(VerticalScroll).focus()

    def _help(self) -> Group:
        parts: list[RenderableType] = [Text(self._forbidden, STALE_STYLE)] if self._forbidden else []
        parts.append(Text("   ").join(sign for sign, _ in state_signs(self._marks)))
        parts += self._keys(self._here, f"keys {self._here.where}".strip())
        parts += ["", Text("states", HEADING_STYLE), _lines(state_signs(self._marks))]
        parts += ["", Text("other signs", HEADING_STYLE), _lines(other_signs(self._marks))]
        for screen in SCREENS:
            if screen is not self._here:
                parts += ["", *self._keys(screen, screen.where or "on the main screen")]
        return Group(*parts)

    def _keys(self, screen: ScreenKeys, heading: str) -> Iterator[RenderableType]:
        yield Text(heading, HEADING_STYLE)
        offered = (each for each in screen.actions if each.help and not (self._forbidden and each.action in CHANGES))
        yield _lines((Text(each.shown), each.help) for each in offered)


def _lines(lines: Iterable[tuple[Text, str]]) -> Table:
    """Words with their meanings next to them, wrapped within the column."""
    table = Table.grid(padding=(0, 1))
    table.add_column(width=_WORD_WIDTH)
    table.add_column()
    for word, told in lines:
        table.add_row(Text("  ").append_text(word), Text(told))
    return table


class LeavingScreen(KeyedScreen[bool], keys="leaving"):
    """Asks whether to quit when the apply has ended; quitting at once would leave the change half done."""

    def __init__(self, target: str) -> None:
        super().__init__()
        self._target = target

    def compose(self) -> ComposeResult:
        """Create the question, between the top bar and the key bar."""
        yield TopBar("quit", self._target)
        yield Static(f"\n A plan is being applied to TARGET {self._target}. It is never interrupted.\n")
        yield Static(" Quit as soon as it has ended?", id="question")
        yield KeyBar(self.KEYS.actions)

    def action_answer(self, leave: bool) -> None:
        """Close the screen and return the answer."""
        self.dismiss(leave)
