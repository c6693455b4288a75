"""A base for screens with a table of components, a summary above it, and details below it."""

from abc import abstractmethod
from collections.abc import Iterable, Sequence

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widget import Widget
from textual.widgets import Static

from lumctl.tui.panes.jobs import ranks_pane
from lumctl.tui.panes.rows import COMPONENT, Pane, Row
from lumctl.tui.screens.requests import PlanWanted, Wanted
from lumctl.tui.screens.shortcuts import KeyedScreen
from lumctl.tui.sources import ScreenContext
from lumctl.tui.threads.collector import one_line
from lumctl.tui.threads.readers import AnswerReader
from lumctl.tui.views.job_light import light_text
from lumctl.tui.views.job_waits import JobWaits, waits_text
from lumctl.tui.views.jobs import head_text, recoveries_text, told_of
from lumctl.tui.views.records import RecordedLook
from lumctl.tui.views.subject import WorkSubject
from lumctl.tui.views.swap_choice import offers_swap, swaps_of_component
from lumctl.tui.widgets.bars import AnswerLine, KeyBar, TopBar
from lumctl.tui.widgets.table import PaneTable

_JUDGED_EVERY_S = 15.0
"""The coordinator of a job hands over its record for this: not at every look."""
_BESIDE = 4
"""Columns next to the text: its padding and a scrollbar."""


class ListingScreen(KeyedScreen[None]):
    """A screen with a table, redrawn each second. Enter opens the component under the cursor."""

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

    def replaced(self, seen: RecordedLook, row: Row | None) -> Sequence[str]:
        """The accelerators for which ``p`` plans spares, if ``row`` is under the cursor."""
        return swaps_of_component(seen.observation, row.component if row is not None else None)

    def questions(self) -> Iterable[Widget]:
        """Widgets for questions at the bottom; none by default."""
        return ()

    def compose(self) -> ComposeResult:
        """Create the widgets from top to bottom."""
        yield TopBar(self._title, self.shared.target)
        yield Static(id="head", markup=False)
        yield PaneTable(self._pane)
        with VerticalScroll():
            yield Static(id="more", markup=False)
        yield AnswerLine()
        yield from self.questions()
        yield KeyBar(self.KEYS.actions)

    def on_mount(self) -> None:
        """Draw now and each second."""
        self.table.focus()
        self.show()
        self.set_interval(1.0, self.show)
        self.watch(self.table, "cursor_row", self._show_more, init=False)

    @property
    def table(self) -> PaneTable:
        """The table."""
        return self.query_one(PaneTable)

    def say(self, text: str) -> None:
        """Show a message to the operator in one line; an empty text removes the line."""
        self.query_one(AnswerLine).say(text)

    def show(self) -> None:
        """Draw the newest observation."""
        if (seen := self.shared.seen()) is None:
            return
        rows, thresholds = self._pane.rows(seen, self.shared.marks), seen.observation.inventory.thresholds
        self.table.show(rows, self.shared.now(), thresholds.stale_after_s)
        self.query_one("#head", Static).update(self.head(seen))
        self._show_more()

    def action_move(self, by: int) -> None:
        """Move the cursor."""
        self.table.move_cursor(row=self.table.cursor_row + by)

    def action_sort(self, by: int) -> None:
        """Sort by the next or the previous column."""
        self.table.action_sort(by)

    def action_reverse(self) -> None:
        """Reverse the order."""
        self.table.action_reverse()

    def action_problem(self, by: int) -> None:
        """Select the next or the previous row with a fault."""
        self.say("" if self.table.to_problem(by) else f"none of these {self._pane.noun} has a fault")

    def action_open(self) -> None:
        """Open the component under the cursor."""
        if (row := self.table.selected) is not None:
            self.post_message(Wanted(COMPONENT, row.component))

    def subject(self) -> WorkSubject:
        """The component under the cursor."""
        row = self.table.selected
        return WorkSubject(row.component if row is not None else "")

    def action_plan_swap(self) -> None:
        """Ask for a plan for the accelerator under the cursor."""
        if (row := self.table.selected) is not None:
            self.post_message(PlanWanted(row.component))

    def on_pane_table_row_selected(self, event: PaneTable.RowSelected) -> None:
        """Enter, or a click on the selected line."""
        event.stop()
        self.action_open()

    def _show_more(self) -> None:
        if (seen := self.shared.seen()) is None:
            return
        self.query_one("#more", Static).update(self.more(seen, self.table.selected))
        # Pressed all the same, the key shows why nothing is planned.
        is_offered = offers_swap(seen, self.replaced(seen, self.table.selected))
        self.query_one(KeyBar).rename({} if is_offered else {"plan_swap": ""})


class JobScreen(ListingScreen, keys="job"):
    """One job."""

    def __init__(self, job: str, context: ScreenContext) -> None:
        super().__init__(f"job {job}", ranks_pane(job), context)
        self._job = job
        self._waits = AnswerReader(self._read_waits, None, _unknown, context.now, _JUDGED_EVERY_S)

    def head(self, seen: RecordedLook) -> Text:
        """The health of the job's accelerators, and its state."""
        return head_text(seen, self._job, self.shared.marks)

    def more(self, seen: RecordedLook, row: Row | None) -> Text:  # noqa: ARG002 - recoveries are those of the whole job
        """Who is late in the job, its light between phases, and its recoveries."""
        now, marks = self.shared.now(), self.shared.marks
        told, width = told_of(seen, self._job), self.size.width - _BESIDE
        text = waits_text(self._waits.answer(), marks, now, width)
        text.append_text(light_text(told.get("light") if told else None, marks, width))
        return text.append_text(recoveries_text(told, now, marks))

    def _read_waits(self) -> JobWaits | None:
        seen = self.shared.seen()
        return self.shared.sources.job_waits(seen.observation, self._job) if seen is not None else None


def _unknown(error: Exception) -> JobWaits:
    return JobWaits(trouble=f"unknown: {one_line(error)}")
