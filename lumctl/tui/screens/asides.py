"""The screens beside the data: help, and the question before leaving in the middle of an apply."""

from collections.abc import Iterable

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import Static

from lumctl.health.states import State
from lumctl.tui.keys import CHANGES, HELP, LEAVING, SCREENS, Action, bindings
from lumctl.tui.look.marks import HEADING_STYLE, STALE_STYLE, STATE_STYLES, Marks
from lumctl.tui.widgets.bars import KeyBar, TopBar

_MEANINGS = {
    State.OK: "read, and nothing is wrong",
    State.DEGRADED: "works, but something needs care",
    State.FAILED: "does not do its work",
    State.UNKNOWN: "not read, or not shown by any evidence",
    State.DISABLED: "taken out of service",
}


class HelpScreen(Screen[None]):
    """Every key by screen, and what the marks mean."""

    BINDINGS = bindings(HELP)  # type: ignore[assignment]

    def __init__(self, target: str, marks: Marks, forbidden: str = "") -> None:
        super().__init__()
        self._target = target
        self._marks = marks
        self._forbidden = forbidden

    def compose(self) -> ComposeResult:
        """A scrolling text between the bars."""
        yield TopBar("help", self._target)
        with VerticalScroll():
            yield Static(self._text())
        yield KeyBar(HELP)

    def on_mount(self) -> None:
        """Let the arrow keys scroll."""
        self.query_one(VerticalScroll).focus()

    def action_back(self) -> None:
        """Go back."""
        self.dismiss()

    def _text(self) -> Text:
        text = Text(style=HEADING_STYLE)
        if self._forbidden:
            text.append(f"{self._forbidden}\n\n", style=STALE_STYLE)
        text.append("keys\n")
        for screen in SCREENS:
            if screen.where:
                text.append(f"\n{screen.where}\n")
            _keys(text, [action for action in screen.actions if not (self._forbidden and action.action in CHANGES)])
        text.append("\nstates\n")
        for state, meaning in _MEANINGS.items():
            text.append(f"  {self._marks.state(state):<12}", style=STATE_STYLES[state])
            text.append(f" {meaning}\n", style="not bold")
        text.append("\nages\n")
        text.append("  An age with ! is that of a reading too old to rely on.\n", style="not bold")
        return text


def _keys(text: Text, actions: Iterable[Action]) -> None:
    for action in actions:
        if not action.help:
            continue
        text.append(f"  {action.shown:<12} {action.help}\n", style="not bold")


class LeavingScreen(Screen[bool]):
    """Whether to leave as soon as the apply under way has ended; at once is not offered: it would be left half way."""

    BINDINGS = bindings(LEAVING)  # type: ignore[assignment]

    def __init__(self, target: str) -> None:
        super().__init__()
        self._target = target

    def compose(self) -> ComposeResult:
        """The question."""
        yield TopBar("quit", self._target)
        yield Static(f"\n A plan is being applied to TARGET {self._target}. It is never cut off half way.\n")
        yield Static(" Quit as soon as it has ended?", id="question")
        yield KeyBar(LEAVING)

    def action_answer(self, leave: bool) -> None:
        """Hand the answer on."""
        self.dismiss(leave)
