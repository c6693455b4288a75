"""The screen of one component; readings and ages are updated while it is open."""

from collections.abc import Callable

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Static

from lumctl.tui.look.marks import Marks
from lumctl.tui.look.truncation import wrapped
from lumctl.tui.screens.plot import PLOT_KIND
from lumctl.tui.screens.requests import PlanWanted, Wanted
from lumctl.tui.screens.shortcuts import KeyedScreen
from lumctl.tui.threads.readers import HistoryAsker, HistoryRead
from lumctl.tui.views.detail_text import LINE_S, VALUE_AT, detail_text
from lumctl.tui.views.history import History
from lumctl.tui.views.sections import Detail
from lumctl.tui.views.subject import WorkSubject
from lumctl.tui.widgets.bars import AnswerLine, KeyBar, TopBar

_READ_AGAIN_S = 5.0
_BESIDE = 4
"""Columns next to the text: its padding and a scrollbar."""


class DetailScreen(KeyedScreen[None], keys="facts"):
    """Shows the result of ``describe`` each second, with the last minutes of the readings from ``read``.

    The key that plans a swap of the component is offered while ``offers_swap`` is true.
    """

    def __init__(
        self,
        component: str,
        target: str,
        describe: Callable[[], Detail | None],
        read: Callable[[str, float], History],
        marks: Marks,
        now: Callable[[], float],
        *,
        offers_swap: Callable[[], bool] = lambda: False,
    ) -> None:
        super().__init__()
        self._component = component
        self._target = target
        self._describe = describe
        self._marks = marks
        self._now = now
        self._offers_swap = offers_swap
        self._history = History()
        self._asker = HistoryAsker(read, self.post_message)

    def compose(self) -> ComposeResult:
        """A scrolling text between the bars."""
        yield TopBar(self._component, self._target)
        with VerticalScroll():
            yield Static(id="detail")
        yield AnswerLine()
        yield KeyBar(self.KEYS.actions)

    def on_mount(self) -> None:
        """Show the component now and each second."""
        self.query_one(VerticalScroll).focus()
        self._show()
        self.set_interval(1.0, self._show)
        self._ask()
        self.set_interval(_READ_AGAIN_S, self._ask)

    def subject(self) -> WorkSubject:
        """This component."""
        return WorkSubject(self._component)

    def on_resize(self) -> None:
        """Draw the bars to the new width."""
        self.call_after_refresh(self._show)

    def action_plan_swap(self) -> None:
        """Ask for a swap of this component; if none is possible, the application shows the reason."""
        self.post_message(PlanWanted(self._component))

    def action_plot(self) -> None:
        """Show the readings over time."""
        self.post_message(Wanted(PLOT_KIND, self._component))

    def on_history_read(self, event: HistoryRead) -> None:
        """Show the earlier readings, or report that the store could not be read."""
        event.stop()
        self._history = event.histories[self._component]
        if event.trouble:
            self.query_one(AnswerLine).say(f"could not read the history: {event.trouble}")
        self._show()

    def _ask(self) -> None:
        self._asker.ask((self._component,), LINE_S)

    def _show(self) -> None:
        if (detail := self._describe()) is not None:
            width = self.size.width - _BESIDE
            text = detail_text(detail, self._marks, self._now(), self._history, width)
            self.query_one("#detail", Static).update(Text("\n").join(wrapped(text, width, VALUE_AT, self.app.console)))
            self.query_one(KeyBar).rename({} if self._offers_swap() else {"plan_swap": ""})


class TransponderScreen(DetailScreen, keys="transponder"):
    """The screen of a transponder; it also offers the history of its readings."""


class AcceleratorScreen(DetailScreen, keys="accelerator"):
    """The screen of an accelerator; it also offers the history and a swap."""
