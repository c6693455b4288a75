"""The middle of the main screen: the racks as a picture, or one of the tables; and the selection there."""

from collections.abc import Callable

from textual.app import ComposeResult
from textual.message import Message
from textual.widgets import ContentSwitcher

from lumctl.tui.look.marks import Marks
from lumctl.tui.panes import PANES
from lumctl.tui.panes.racks import RACKS
from lumctl.tui.panes.rows import Pane
from lumctl.tui.preferences import Preferences
from lumctl.tui.views.destinations import PANE_BY_ID, Destination
from lumctl.tui.views.history import History
from lumctl.tui.views.records import RecordedLook
from lumctl.tui.views.selection import Selection
from lumctl.tui.views.visible_rows import VisibleRows, marked_line
from lumctl.tui.widgets.rack_view import RackView
from lumctl.tui.widgets.table import PaneTable


class PaneArea(ContentSwitcher):
    """Only visible parts are kept up to date; other parts are updated when they are shown."""

    class Turned(Message):
        """Another pane is visible."""

    class Changed(Message):
        """Other rows are shown, selected or marked, or another quantity; ``line`` describes what is shown."""

    def __init__(
        self, marks: Marks, now: Callable[[], float], preferences: Preferences, remembered: Callable[[str], History]
    ) -> None:
        # Before the base class, which needs the id of the first pane.
        self.view = RackView(marks, now, remembered=remembered)
        super().__init__(initial=self.view.id)
        self._now = now
        self._preferences = preferences
        self._rows = VisibleRows(marks)
        self._seen: RecordedLook | None = None
        self._is_listed = False
        """Whether the racks are shown as a table."""
        self.line = "nothing has been read yet"
        """How many of which rows are shown, and how many are hidden."""

    def compose(self) -> ComposeResult:
        """The picture and all tables, one of which is visible."""
        yield self.view
        for pane in PANES:
            yield PaneTable(pane)

    def on_mount(self) -> None:
        """Hide the columns that the user does not want."""
        for table in self.query(PaneTable):
            table.hide(self._preferences.hidden(str(table.id)))
            self.watch(table, "cursor_row", self._select, init=False)

    @property
    def is_drawn(self) -> bool:
        """Whether the racks are drawn now."""
        return self.current in {None, self.view.id}

    @property
    def pane(self) -> Pane:
        """The visible pane."""
        return RACKS if self.is_drawn else PANE_BY_ID[str(self.current)]

    @property
    def table(self) -> PaneTable:
        """The pane's table."""
        return self.query_one(f"#{self.pane.id}", PaneTable)

    @property
    def selection(self) -> Selection:
        """The selection that the keys act on."""
        if self.is_drawn:
            return Selection(chosen=self.view.chosen)
        return Selection(self.pane, self.table.selected, tuple(self.table.marked.values()))

    @property
    def filter_words(self) -> str:
        """The words of the pane's filter; empty without one."""
        return "" if self.is_drawn else self._rows.words(self.pane)

    def show(self, seen: RecordedLook) -> None:
        """Show an observation."""
        self._seen = seen
        self._show_rows()

    def tick(self) -> None:
        """Update the ages."""
        if self.is_drawn:
            self.view.tick()
        elif self._seen is not None:
            self.table.tick(self._now(), self._seen.observation.inventory.thresholds.stale_after_s)

    def take_focus(self) -> None:
        """Have the keys."""
        (self.view.picture if self.is_drawn else self.table).focus()

    def turn_to(self, pane: Pane) -> None:
        """Show another pane."""
        drawn = pane is RACKS and not self._is_listed
        self.current = self.view.id if drawn else pane.id
        self.post_message(self.Turned())
        self._show_rows()
        self.take_focus()

    def list_racks(self, *, listed: bool | None = None) -> None:
        """Show the racks as a table, or drawn; by default switch between the two."""
        # From another pane, the key always leads to the picture.
        other = not self._is_listed if self.pane is RACKS else False
        self._is_listed = other if listed is None else listed
        self.turn_to(RACKS)

    def turn_quantity(self) -> None:
        """Show another quantity in the picture of the racks."""
        if self.is_drawn:
            self.view.turn_quantity()
        else:
            self.list_racks(listed=False)

    def move(self, by: int) -> None:
        """Move the cursor."""
        if self.is_drawn:
            self.view.picture.action_choose(0, by)
        else:
            self.table.move_cursor(row=self.table.cursor_row + by)

    def mark(self) -> None:
        """Mark the selected row, or take its mark away."""
        self.table.action_mark()
        self._show_rows()

    def unmark(self) -> bool:
        """Take all marks away; whether there was one."""
        if not self.table.unmark():
            return False
        self._show_rows()
        return True

    def fold(self) -> None:
        """Fold or unfold the rows beneath the selected row's head; the cursor stays or moves to the head."""
        if (row := self.table.selected) is None or self._seen is None:
            return
        head = self._rows.fold(self.pane, row, self._seen)
        self._show_rows()
        # The row itself may now be folded away.
        selected = self.table.selected
        if head and (selected is None or selected.key != row.key):
            self.table.select_key(head)

    def filter(self, words: str) -> None:
        """Show only rows with these words."""
        self._rows.filter(self.pane, words)
        self._show_rows()

    def show_all(self) -> None:
        """Take the filter away."""
        if self._rows.show_all(self.pane):
            self._show_rows()

    def go_to(self, to: Destination) -> None:
        """Switch to a pane, and select a row there, even if it is filtered out or folded."""
        if to.pane is None:
            return
        if to.row is not None:
            self._rows.reveal(to.pane, to.row)
            # A row can be selected in the table only, so the racks must not be drawn.
            self._is_listed = self._is_listed or to.pane is RACKS
        self.turn_to(to.pane)
        if to.row is not None:
            self.table.select(to.row.component)

    def on_rack_view_redrawn(self) -> None:
        """Another accelerator was chosen, or another quantity."""
        self._show_rows()

    def on_heat_picture_scrolled(self) -> None:
        """Other lines of the racks are visible: count the faults out of sight again."""
        self._show_rows()

    def _select(self) -> None:
        self.post_message(self.Changed())

    def _show_rows(self) -> None:
        if self._seen is None:
            return
        if self.is_drawn:
            self.view.show(self._seen)
            self.line = self.view.legend_with_states
        else:
            rows, self.line = self._rows.of(self.pane, self._seen)
            self.table.show(rows, self._now(), self._seen.observation.inventory.thresholds.stale_after_s)
            if marked := len(self.table.marked):
                self.line = marked_line(self.pane, marked)
        self.post_message(self.Changed())
