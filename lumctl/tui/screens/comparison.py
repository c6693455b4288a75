"""The screen of two runbooks beside each other."""

import threading
from dataclasses import dataclass

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.message import Message
from textual.widgets import Static

from lumctl.tui.screens.keyed import KeyedScreen
from lumctl.tui.sources import ScreenContext
from lumctl.tui.threads.collector import one_line
from lumctl.tui.views.comparison import ComparisonView, comparison_text
from lumctl.tui.widgets.bars import Answer, KeyBar, TopBar


@dataclass
class Compared(Message):
    """Both were read: how they differ, or why that is not known."""

    view: ComparisonView | None
    trouble: str = ""


class ComparisonScreen(KeyedScreen[None], keys="comparison"):
    """Both runbooks are read in a thread; nothing of this is changed by time."""

    def __init__(self, a: str, b: str, context: ScreenContext) -> None:
        super().__init__()
        self._a, self._b = a, b
        self.context = context

    def compose(self) -> ComposeResult:
        """A scrolling text between the bars."""
        one, other = (key.rpartition("/")[2] for key in (self._a, self._b))
        yield TopBar(f"{one} beside {other}", self.context.target)
        with VerticalScroll():
            yield Static("reading both runbooks", id="comparison")
        yield Answer()
        yield KeyBar(self.KEYS.actions)

    def on_mount(self) -> None:
        """Begin to read."""
        self.query_one(VerticalScroll).focus()
        threading.Thread(target=self._read, name="lumctl-compare", daemon=True).start()

    def on_compared(self, event: Compared) -> None:
        """Show the differences."""
        event.stop()
        shown = comparison_text(event.view, self.context.marks) if event.view is not None else ""
        self.query_one("#comparison", Static).update(shown)
        if event.trouble:
            self.query_one(Answer).say(f"not compared: {event.trouble}")

    def _read(self) -> None:
        try:
            self.post_message(Compared(self.context.sources.compare(self._a, self._b)))
        except Exception as error:  # noqa: BLE001 - whatever went wrong is a line on the screen, never a traceback
            self.post_message(Compared(None, one_line(error)))
