"""The screens beside the data: help, and the question before leaving in the middle of an apply."""

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import Static

from lumctl.health.states import State
from lumctl.tui.bars import KeyBar, TopBar
from lumctl.tui.keys import DETAIL, HELP, LEAVING, MAIN, PLAN, Action, bindings
from lumctl.tui.marks import HEADING_STYLE, STATE_STYLES, Marks

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

    def __init__(self, target: str, marks: Marks) -> None:
        super().__init__()
        self._target = target
        self._marks = marks

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
        text = Text("keys\n", style=HEADING_STYLE)
        _keys(text, MAIN)
        text.append("\non the screen of a component\n")
        _keys(text, DETAIL)
        text.append("\non the screen of a swap\n")
        _keys(text, PLAN)
        text.append("\nstates\n")
        for state, meaning in _MEANINGS.items():
            text.append(f"  {self._marks.state(state):<12}", style=STATE_STYLES[state])
            text.append(f" {meaning}\n", style="not bold")
        text.append("\nages\n")
        text.append("  An age with ! is that of a reading too old to rely on.\n", style="not bold")
        return text


def _keys(text: Text, actions: tuple[Action, ...]) -> None:
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
