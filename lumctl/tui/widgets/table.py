"""A table that keeps its position while its data change; it draws only visible rows, and only changed ones again."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.events import Click, Leave, MouseMove
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from lumctl.health.states import State
from lumctl.tui.look.marks import HEADING_STYLE, STATE_STYLES
from lumctl.tui.panes.rows import AGE, Cell, Pane, Row
from lumctl.tui.views.table_layout import TableLayout
from lumctl.tui.views.table_rows import Ages, SortOrder, TroubleRows, after_click, begin, sorted_rows

_HEADER = 1
_MARK_STYLE = "bold"
_REVERSE = Style(reverse=True)
TOLD_EACH_S = 1.0
"""Ages are shown in whole seconds: more frequent updates would redraw half the table for fractions."""


class PaneTable(ScrollView, can_focus=True):
    """The table of one pane.

    Until the user moves the cursor, it stays on the first line; then it follows its row by the row's key. The heading
    counts the rows with faults that are hidden above and below. Rows are in the order of their pane, or sorted by a
    column that the user chose. Only visible rows take time, so a thousand rows may change each second.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {"table--header", "table--cursor", "table--hover"}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", show=False),
        Binding("down", "move(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
        Binding("home,ctrl+home", "go_to(0)", show=False),
        Binding("end,ctrl+end", "go_to(-1)", show=False),
        Binding("left_square_bracket", "problem(-1)", show=False),
        Binding("right_square_bracket", "problem(1)", show=False),
        Binding("less_than_sign", "sort(-1)", show=False),
        Binding("greater_than_sign", "sort(1)", show=False),
        Binding("R", "reverse", show=False),
        Binding("enter", "choose", show=False),
    ]
    # Without a repaint: the watchers draw the two rows that change, where Textual would draw all.
    cursor_row: reactive[int] = reactive(0, repaint=False)
    hover_row: reactive[int] = reactive(-1, repaint=False)

    @dataclass
    class RowSelected(Message):
        """Enter on a row, or a click on the one that has the cursor."""

        row: Row

    def __init__(self, pane: Pane) -> None:
        super().__init__(id=pane.id)
        self._pane = pane
        self._rows: dict[str, Row] = {}
        self._given: Sequence[Row] = ()
        """The rows in the order of the pane."""
        self._order: list[Row] = []
        self._trouble = TroubleRows(pane)
        self._is_moved = False
        """Whether the user has moved the cursor; until then it stays on the first line, whichever row is there."""
        self._ages = Ages(pane)
        self.cells = TableLayout(pane)
        self.sorting: SortOrder | None = None
        self.marked: dict[str, Row] = {}
        """The rows that the user has marked, by key, as far as they are still shown."""

    @property
    def selected(self) -> Row | None:
        """The row under the cursor."""
        return self._order[self.cursor_row] if 0 <= self.cursor_row < len(self._order) else None

    def show(self, rows: Sequence[Row], now: float, stale_after_s: float) -> None:
        """Show these rows, in this order unless the user chose another."""
        self._given = rows
        rows = sorted_rows(self._pane, rows, self.sorting)
        # What is drawn now must be known before rows and ages are replaced: only what differs is drawn again.
        out_of_sight = self._out_of_sight()
        before, self._order = self._order, rows
        self._trouble = TroubleRows(self._pane, rows)
        drawn = {row: self._ages.of(before[row].at) for row in self._in_sight() if row < len(before)}
        self._ages = Ages(self._pane, now, stale_after_s)
        wider = self.cells.measure(rows, self._rows, self._ages)
        # Also if a column has become wider: the last one then has less room, and the rows may need another line.
        is_other = self._fit() or wider
        keys = [row.key for row in rows]
        if is_other or keys != list(self._rows):
            kept = before[self.cursor_row].key if self.cursor_row < len(before) else None
            self._rows = {row.key: row for row in rows}
            self._resize_content()
            self._put_cursor((keys.index(kept) if kept in self._rows else self.cursor_row) if self._is_moved else 0)
            self.refresh()
        else:
            self._rows = {row.key: row for row in rows}
            self._refresh_rows(
                [
                    row
                    for row, told in drawn.items()
                    if (before[row].cells, told) != (rows[row].cells, self._ages.of(rows[row].at))
                ]
            )
            if self._out_of_sight() != out_of_sight:
                self.refresh(Region(0, 0, self.size.width, _HEADER))
        self.marked = {key: self._rows[key] for key in self.marked if key in self._rows}

    def hide(self, columns: Collection[str]) -> None:
        """Hide these columns, and show the others."""
        self.cells.hide(columns)
        self._lay_out()

    def sort_by(self, sorting: SortOrder | None) -> None:
        """Show the rows in this order; ``None`` is the order of the pane."""
        self.sorting = sorting
        if sorting is not None:
            at = [column.key for column in self._pane.columns].index(sorting.column)
            self.cells.widen(at, len(self._pane.columns[at].heading) + 1)
        self._lay_out()

    def on_mount(self) -> None:
        """Find out whether the terminal shows only ASCII."""
        self.cells.ascii_only = self.app.has_class("-ascii")

    def on_resize(self) -> None:
        """Divide the new width among the columns."""
        self._lay_out()

    def _lay_out(self) -> None:
        """Show the same rows again, after the order or the columns have changed."""
        self._fit()
        self.show(self._given, self._ages.now, self._ages.stale_after_s)
        self._resize_content()
        self.refresh()

    def _fit(self) -> bool:
        """Set the widths of the columns and the lines of the rows; return whether any has changed."""
        layout = self.cells
        width = max(0, self.size.width - self.styles.scrollbar_size_vertical)
        changed = layout.fit(width)
        texts = {row.cells[-1].text for row in self._order} if self._pane.lines > 1 else ()
        return layout.fit_lines(texts) or changed

    def _resize_content(self) -> None:
        layout = self.cells
        self.virtual_size = Size(layout.columns_width, _HEADER + len(self._order) * layout.lines)

    def tick(self, now: float, stale_after_s: float) -> None:
        """Update the ages, unless they were updated within the last second."""
        # The difference is negative after the clock was set back; then it is time to update, too.
        if not 0 <= now - self._ages.now < TOLD_EACH_S:
            self.show(self._given, now, stale_after_s)

    def select(self, component: str) -> bool:
        """Move the cursor to a component's first row; return whether it has one here."""
        for index, row in enumerate(self._order):
            if row.component == component:
                self.move_cursor(row=index)
                return True
        return False

    def select_key(self, key: str) -> None:
        """Move the cursor to the row with this key, if there is one."""
        for index, row in enumerate(self._order):
            if row.key == key:
                self.move_cursor(row=index)

    def move_cursor(self, *, row: int) -> None:
        """Move the cursor for the user to a row, or to the nearest one, and scroll to it."""
        self._is_moved = True
        self._put_cursor(row)

    def to_problem(self, by: int) -> bool:
        """Move the cursor to the next row at fault (-1: previous), around the ends; ``False`` if there is none."""
        if (row := self._trouble.beside(self.cursor_row, by)) is None:
            return False
        self.move_cursor(row=row)
        return True

    def _put_cursor(self, row: int) -> None:
        self.cursor_row = max(0, min(row, len(self._order) - 1))
        lines = self.cells.lines
        # The heading stays: the content is below it.
        region = Region(self.scroll_offset.x, self.cursor_row * lines, 1, lines + _HEADER)
        self.scroll_to_region(region, animate=False, force=True)

    def watch_cursor_row(self, before: int, after: int) -> None:
        """Draw both rows again."""
        self._refresh_rows((before, after))

    def watch_hover_row(self, before: int, after: int) -> None:
        """Draw both rows again."""
        self._refresh_rows((before, after))

    def action_move(self, by: int) -> None:
        """Move the cursor by lines."""
        self.move_cursor(row=self.cursor_row + by)

    def action_page(self, by: int) -> None:
        """Move the cursor by the height of the visible part."""
        self.move_cursor(row=self.cursor_row + by * max(1, len(self._in_sight()) - 1))

    def action_go_to(self, row: int) -> None:
        """Move the cursor to the last row, or to the first line, where it then stays."""
        self.move_cursor(row=row if row >= 0 else len(self._order) - 1)
        self._is_moved = row != 0  # after ``move_cursor``, which sets it

    def action_problem(self, by: int) -> None:
        """Move the cursor to the next or the previous row with a fault."""
        self.to_problem(by)

    def action_sort(self, by: int) -> None:
        """Sort by the next or the previous column; beyond the last and the first is the order of the pane."""
        columns = [column for _, column in self.cells.visible]
        keys = [None, *(column.key for column in columns)]
        at = (keys.index(self.sorting.column if self.sorting else None) + by) % len(keys)
        self.sort_by(begin(columns[at - 1]) if at else None)

    def action_reverse(self) -> None:
        """Reverse the order."""
        if self.sorting is not None:
            self.sort_by(SortOrder(self.sorting.column, not self.sorting.descending))

    def action_mark(self) -> None:
        """Mark the row under the cursor, or remove its mark, and go to the next row."""
        if (row := self.selected) is None:
            return
        if self.marked.pop(row.key, None) is None:
            self.marked[row.key] = row
        self._refresh_rows((self.cursor_row,))
        self.move_cursor(row=self.cursor_row + 1)

    def unmark(self) -> bool:
        """Remove all marks; return whether there were any."""
        had, self.marked = bool(self.marked), {}
        if had:
            self.refresh()
        return had

    def action_choose(self) -> None:
        """Report the selection of a row."""
        if (row := self.selected) is not None:
            self.post_message(self.RowSelected(row))

    def on_click(self, event: Click) -> None:
        """Select a row, or open the selected one; sort by a heading."""
        if event.y < _HEADER:
            if (column := self.cells.column_at(event.x + self.scroll_offset.x)) is not None:
                self.sort_by(after_click(self.sorting, column))
            return
        row = self._row_at(event.y)
        if not 0 <= row < len(self._order):
            return
        if row == self.cursor_row:
            self.action_choose()
        self.move_cursor(row=row)

    def on_mouse_move(self, event: MouseMove) -> None:
        """Show what a click would select."""
        self.hover_row = self._row_at(event.y)

    def on_leave(self, _event: Leave) -> None:
        """Stop showing what a click would select."""
        self.hover_row = -1

    def render_line(self, y: int) -> Strip:
        """One visible line."""
        if y < _HEADER:
            return self._with_out_of_sight(self._shown(*self._heading()))
        number, line = divmod(self.scroll_offset.y + y - _HEADER, self.cells.lines)
        if number >= len(self._order):
            return Strip.blank(self.size.width, self.rich_style)
        return self._shown(*self._line(number, line))

    def _shown(self, segments: list[Segment], beneath: Style) -> Strip:
        """The visible part of a line, with its background style up to the right edge."""
        left = self.scroll_offset.x
        return Strip(segments).crop_extend(left, left + self.size.width, beneath)

    def _heading(self) -> tuple[list[Segment], Style]:
        style = self.get_component_rich_style("table--header") + self.app.console.get_style(HEADING_STYLE)
        return [Segment(text, style) for text in self.cells.headings(self.sorting)], style

    def _with_out_of_sight(self, heading: Strip) -> Strip:
        """The heading with, at its right end, the number of hidden rows with faults above and below."""
        base = self.get_component_rich_style("table--header")
        said = [
            Segment(f" {text} ", base + self.app.console.get_style(STATE_STYLES[state]) + _REVERSE)
            for text, state in self._out_of_sight()
        ]
        tail = Strip(said)
        left = self.scrollable_content_region.width - tail.cell_length
        return Strip.join([heading.crop_extend(0, left, base), tail]) if said else heading

    def _out_of_sight(self) -> list[tuple[str, State]]:
        return self._trouble.outside(self._whole_in_sight())

    def _line(self, number: int, line: int) -> tuple[list[Segment], Style]:
        row = self._order[number]
        name = "table--cursor" if number == self.cursor_row else "table--hover" if number == self.hover_row else ""
        beneath = self.get_component_rich_style(name) if name else self.rich_style
        cells, layout, get_style = self._cells(row), self.cells, self.app.console.get_style
        if line:
            style = cells[-1].style
            below = layout.below(cells, line)
            segments = [Segment(below, beneath + get_style(style) if style else beneath)]
        else:
            segments = [
                Segment(
                    layout.cell(at, cells[at]),
                    beneath + get_style(cells[at].style) if cells[at].style else beneath,
                )
                for at, _ in layout.visible
            ]
        if row.key in self.marked:
            mark = "*" if self.cells.ascii_only else "▌"
            # In the gap before the first cell, so that the row does not move.
            first = segments[0]
            segments[:1] = [Segment(mark, beneath + get_style(_MARK_STYLE)), Segment(first.text[1:], first.style)]
        return segments, beneath

    def _cells(self, row: Row) -> list[Cell]:
        """The cells of a row, including its age."""
        given = iter(row.cells)
        return [self._ages.of(row.at) if column.key == AGE else next(given) for column in self._pane.columns]

    def _in_sight(self) -> range:
        first = self.scroll_offset.y // self.cells.lines
        shown = -(-max(0, self.size.height - _HEADER) // self.cells.lines)
        return range(first, min(first + shown + 1, len(self._order)))

    def _whole_in_sight(self) -> range:
        """The rows that are completely visible."""
        first = -(-self.scroll_offset.y // self.cells.lines)
        height = max(0, self.scrollable_content_region.height - _HEADER)
        return range(first, max(first, (self.scroll_offset.y + height) // self.cells.lines))

    def _refresh_rows(self, rows: Sequence[int]) -> None:
        lines, size = self.cells.lines, self.size
        top = _HEADER - self.scroll_offset.y
        below_heading = Region(0, _HEADER, size.width, max(0, size.height - _HEADER))
        # The visible part: of a row of several lines, the first may be beneath the heading.
        regions = [
            Region(0, top + row * lines, size.width, lines).intersection(below_heading) for row in rows if row >= 0
        ]
        if seen := [region for region in regions if region]:
            self.refresh(*seen)

    def _row_at(self, y: int) -> int:
        if y < _HEADER:
            return -1
        return int(self.scroll_offset.y + y - _HEADER) // self.cells.lines
