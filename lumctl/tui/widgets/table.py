"""A table that stays where it is while its data change: only what is in sight is drawn, only what differs again."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.events import Click, Leave, MouseMove
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from lumctl.tui.look.marks import HEADING_STYLE, QUIET_STYLE, STALE_STYLE, age
from lumctl.tui.panes.rows import AGE, Cell, Pane, Row

_GAP = " "
"""Before and after each cell."""
_HEADER = 1
TOLD_EACH_S = 1.0
"""Ages are shown in whole seconds: more frequent updates would redraw half the table for fractions."""


class PaneTable(ScrollView, can_focus=True):
    """One pane. The cursor is a line and follows its row's key, wherever the row goes.

    A thousand rows are as cheap as those in sight, so that all of them may be new each second.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {"table--header", "table--cursor", "table--hover"}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", show=False),
        Binding("down", "move(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
        Binding("home,ctrl+home", "go_to(0)", show=False),
        Binding("end,ctrl+end", "go_to(-1)", show=False),
        Binding("enter", "choose", show=False),
    ]
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
        self._order: list[Row] = []
        self._ages: dict[float | None, Cell] = {}
        self._now = 0.0
        self._stale_after_s = 0.0
        self._widths = [max(column.width, cell_len(column.heading)) for column in pane.columns]

    @property
    def selected(self) -> Row | None:
        """The row under the cursor."""
        return self._order[self.cursor_row] if 0 <= self.cursor_row < len(self._order) else None

    def show(self, rows: Sequence[Row], now: float, stale_after_s: float) -> None:
        """Show these rows in this order."""
        before, self._order = self._order, list(rows)
        drawn = {row: self._age(before[row].at) for row in self._in_sight() if row < len(before)}
        self._now, self._stale_after_s, self._ages = now, stale_after_s, {}
        wider = self._widen(rows)
        if wider or [row.key for row in rows] != list(self._rows):
            kept = before[self.cursor_row].key if self.cursor_row < len(before) else None
            self._rows = {row.key: row for row in rows}
            self.virtual_size = Size(sum(self._widths) + 2 * len(self._widths), _HEADER + len(rows) * self._pane.lines)
            keys = list(self._rows)
            self.move_cursor(row=keys.index(kept) if kept in self._rows else self.cursor_row)
            self.refresh()
        else:
            self._rows = {row.key: row for row in rows}
            self._refresh_rows(
                [
                    row
                    for row, told in drawn.items()
                    if (before[row].cells, told) != (rows[row].cells, self._age(rows[row].at))
                ]
            )

    def tick(self, now: float, stale_after_s: float) -> None:
        """Update the ages, unless they were updated within the last second."""
        if not 0 <= now - self._now < TOLD_EACH_S:
            self.show(self._order, now, stale_after_s)

    def select(self, component: str) -> bool:
        """Move the cursor to a component's first row; whether it has one here."""
        for index, row in enumerate(self._order):
            if row.component == component:
                self.move_cursor(row=index)
                return True
        return False

    def select_key(self, key: str) -> None:
        """Move the cursor to the row of this key, if there is one."""
        for index, row in enumerate(self._order):
            if row.key == key:
                self.move_cursor(row=index)

    def move_cursor(self, *, row: int) -> None:
        """Move the cursor to a row, or as near as there is one, and bring it into sight."""
        self.cursor_row = max(0, min(row, len(self._order) - 1))
        lines = self._pane.lines
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
        """Move the cursor by what is in sight."""
        self.move_cursor(row=self.cursor_row + by * max(1, len(self._in_sight()) - 1))

    def action_go_to(self, row: int) -> None:
        """Move the cursor to the first or to the last row."""
        self.move_cursor(row=row if row >= 0 else len(self._order) - 1)

    def action_choose(self) -> None:
        """Report the selection of a row."""
        if (row := self.selected) is not None:
            self.post_message(self.RowSelected(row))

    def on_click(self, event: Click) -> None:
        """Select a row; one that is selected is meant."""
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
        """Hide it."""
        self.hover_row = -1

    def render_line(self, y: int) -> Strip:
        """One line of what is in sight."""
        if y < _HEADER:
            return self._shown(*self._heading())
        number, line = divmod(self.scroll_offset.y + y - _HEADER, self._pane.lines)
        if number >= len(self._order):
            return Strip.blank(self.size.width, self.rich_style)
        return self._shown(*self._line(number, line))

    def _shown(self, segments: list[Segment], beneath: Style) -> Strip:
        """The part of a line that is in sight, with the style beneath it to the right edge."""
        left = self.scroll_offset.x
        return Strip(segments).crop_extend(left, left + self.size.width, beneath)

    def _heading(self) -> tuple[list[Segment], Style]:
        style = self.get_component_rich_style("table--header") + self.app.console.get_style(HEADING_STYLE)
        cells = [
            Segment(_fitted(column.heading, width, right=column.right), style)
            for column, width in zip(self._pane.columns, self._widths, strict=True)
        ]
        return cells, style

    def _line(self, number: int, line: int) -> tuple[list[Segment], Style]:
        row = self._order[number]
        name = "table--cursor" if number == self.cursor_row else "table--hover" if number == self.hover_row else ""
        beneath = self.get_component_rich_style(name) if name else self.rich_style
        segments = []
        for column, width, cell in zip(self._pane.columns, self._widths, self._cells(row), strict=True):
            lines = cell.text.split("\n") if self._pane.lines > 1 else [cell.text]
            text = lines[line] if line < len(lines) else ""
            style = beneath + self.app.console.get_style(cell.style) if cell.style else beneath
            segments.append(Segment(_fitted(text, width, right=column.right), style))
        return segments, beneath

    def _cells(self, row: Row) -> list[Cell]:
        """The cells of a row, its age among them."""
        given = iter(row.cells)
        return [self._age(row.at) if column.key == AGE else next(given) for column in self._pane.columns]

    def _age(self, at: float | None) -> Cell:
        known = self._ages.get(at)
        if known is None:
            known = self._ages[at] = self._told_age(at)
        return known

    def _told_age(self, at: float | None) -> Cell:
        text = age(at, self._now)
        if not self._pane.goes_stale:
            return Cell(text)
        if at is None:
            return Cell(text, QUIET_STYLE)
        return Cell(f"{text} !", STALE_STYLE) if self._now - at > self._stale_after_s else Cell(text)

    def _widen(self, rows: Sequence[Row]) -> bool:
        """Make columns as wide as their longest cell so far; whether one has become wider."""
        wider = False
        at = next((number for number, column in enumerate(self._pane.columns) if column.key == AGE), -1)
        if at >= 0:
            longest = max((_width(self._age(each).text) for each in {row.at for row in rows}), default=0)
            wider = self._widen_to(at, longest)
        others = [number for number in range(len(self._pane.columns)) if number != at]
        changed = [row.cells for row in rows if (old := self._rows.get(row.key)) is None or old.cells != row.cells]
        for number, cells in zip(others, zip(*changed, strict=True), strict=False):
            longest = max(map(_width, {cell.text for cell in cells}))  # most have the same text: each is measured once
            wider = self._widen_to(number, longest) or wider
        return wider

    def _widen_to(self, column: int, width: int) -> bool:
        if width <= self._widths[column]:
            return False
        self._widths[column] = width
        return True

    def _in_sight(self) -> range:
        first = self.scroll_offset.y // self._pane.lines
        shown = -(-max(0, self.size.height - _HEADER) // self._pane.lines)
        return range(first, min(first + shown + 1, len(self._order)))

    def _refresh_rows(self, rows: Sequence[int]) -> None:
        lines, width = self._pane.lines, self.size.width
        top = _HEADER - self.scroll_offset.y
        regions = [Region(0, top + row * lines, width, lines) for row in rows if row >= 0]
        seen = [region for region in regions if _HEADER <= region.y < self.size.height]
        if seen:
            self.refresh(*seen)

    def _row_at(self, y: int) -> int:
        if y < _HEADER:
            return -1
        return int(self.scroll_offset.y + y - _HEADER) // self._pane.lines


def _fitted(text: str, width: int, *, right: bool) -> str:
    room = " " * (width - cell_len(text))
    return f"{_GAP}{room}{text}{_GAP}" if right else f"{_GAP}{text}{room}{_GAP}"


def _width(text: str) -> int:
    if "\n" in text:
        return max(map(cell_len, text.splitlines()), default=0)
    return len(text) if text.isascii() else cell_len(text)
