"""A screen with a table of components in the middle, a summary above, and details below."""

from abc import abstractmethod
from collections.abc import Iterable

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widget import Widget
from textual.widgets import Static

from lumctl.tui.panes.jobs import ranks_pane
from lumctl.tui.panes.rows import COMPONENT, Pane, Row
from lumctl.tui.screens.main import PlanWanted, Wanted
from lumctl.tui.screens.shortcuts import KeyedScreen
from lumctl.tui.sources import ScreenContext
from lumctl.tui.views.jobs import head_text, recoveries_text, told_of
from lumctl.tui.views.records import RecordedLook
from lumctl.tui.widgets.bars import AnswerLine, KeyBar, TopBar
from lumctl.tui.widgets.table import PaneTable


class ListingScreen(KeyedScreen[None]):
    """Shown again each second. Enter opens the component under the cursor."""

    def __init__(self, title: str, pane: Pane, context: ScreenContext) -> None:
        super().__init__()
        self.shared = context
        self._title = title
        self._pane = pane

    @abstractmethod
    def head(self, seen: RecordedLook) -> Text:
        """The text above the table."""

    @abstractmethod
    def more(self, seen: RecordedLook, row: Row | None) -> Text:
        """The text below the table; ``row`` is the one under the cursor."""

    def questions(self) -> Iterable[Widget]:
        """What may be asked below all of that."""
        return ()

    def compose(self) -> ComposeResult:
        """From top to bottom."""
        yield TopBar(self._title, self.shared.target)
        yield Static(id="head", markup=False)
        yield PaneTable(self._pane)
        with VerticalScroll():
            yield Static(id="more", markup=False)
        yield AnswerLine()
        yield from self.questions()
        yield KeyBar(self.KEYS.actions)

    def on_mount(self) -> None:
        """Show it now and each second."""
        self.table.focus()
        self.show()
        self.set_interval(1.0, self.show)
        self.watch(self.table, "cursor_row", self._show_more, init=False)

    @property
    def table(self) -> PaneTable:
        """The table."""
        return self.query_one(PaneTable)

    def say(self, text: str) -> None:
        """Answer the operator in one line; an empty text takes the line away."""
        self.query_one(AnswerLine).say(text)

    def show(self) -> None:
        """Show what was seen last."""
        if (seen := self.shared.seen()) is None:
            return
        rows, thresholds = self._pane.rows(seen, self.shared.marks), seen.observation.inventory.thresholds
        self.table.show(rows, self.shared.now(), thresholds.stale_after_s)
        self.query_one("#head", Static).update(self.head(seen))
        self._show_more()

    def action_move(self, by: int) -> None:
        """Move the cursor."""
        self.table.move_cursor(row=self.table.cursor_row + by)

    def action_open(self) -> None:
        """Open the component under the cursor."""
        if (row := self.table.selected) is not None:
            self.post_message(Wanted(COMPONENT, row.component))

    def action_plan_swap(self) -> None:
        """Ask for a plan for the accelerator under the cursor."""
        if (row := self.table.selected) is not None:
            self.post_message(PlanWanted(row.component))

    def on_pane_table_row_selected(self, event: PaneTable.RowSelected) -> None:
        """Enter, or a click on the selected line."""
        event.stop()
        self.action_open()

    def _show_more(self) -> None:
        if (seen := self.shared.seen()) is not None:
            self.query_one("#more", Static).update(self.more(seen, self.table.selected))


class JobScreen(ListingScreen, keys="job"):
    """One job."""

    def __init__(self, job: str, context: ScreenContext) -> None:
        super().__init__(f"job {job}", ranks_pane(job), context)
        self._job = job

    def head(self, seen: RecordedLook) -> Text:
        """The health of its accelerators, and its state."""
        return head_text(seen, self._job, self.shared.marks)

    def more(self, seen: RecordedLook, row: Row | None) -> Text:  # noqa: ARG002 - recoveries are those of the whole job
        """Its recoveries."""
        return recoveries_text(told_of(seen, self._job), self.shared.now(), self.shared.marks)
