"""A table that stays where it is while its data change: only cells that differ are written."""

from collections.abc import Sequence

from rich.cells import cell_len
from rich.text import Text
from textual.widgets import DataTable

from lumctl.tui.marks import HEADING_STYLE, QUIET_STYLE, STALE_STYLE, age
from lumctl.tui.rows import AGE, Cell, Column, Pane, Row


class PaneTable(DataTable[Text]):
    """One pane. The cursor is a line and follows its row's key, wherever the row goes."""

    def __init__(self, pane: Pane) -> None:
        super().__init__(id=pane.id, cursor_type="row", cursor_foreground_priority="renderable")
        self._cell_columns = tuple(column for column in pane.columns if column.key != AGE)
        self._rows: dict[str, Row] = {}
        self._ages: dict[str, Cell] = {}
        self._widths: dict[str, int] = {}
        self._pane = pane
        for column in pane.columns:
            heading = column.heading.rjust(column.width) if column.right else column.heading.ljust(column.width)
            self.add_column(Text(heading, style=HEADING_STYLE), key=column.key)
            self._widths[column.key] = cell_len(heading)

    @property
    def selected(self) -> Row | None:
        """The row under the cursor."""
        rows = list(self._rows.values())
        return rows[self.cursor_row] if 0 <= self.cursor_row < len(rows) else None

    def show(self, rows: Sequence[Row], now: float, stale_after_s: float) -> None:
        """Show these rows in this order.

        Filling a table anew costs far more than writing the cells that changed, so that is left to the moment when
        other rows, or the same in another order, are to be seen.
        """
        ages = {row.key: self._age(row, now, stale_after_s) for row in rows}
        if [row.key for row in rows] == list(self._rows):
            for row in rows:
                for column, old, new in zip(self._cell_columns, self._rows[row.key].cells, row.cells, strict=True):
                    self._write(row.key, column, old, new)
                self._write(row.key, self._age_column, self._ages[row.key], ages[row.key])
            self._rows = {row.key: row for row in rows}
            self._ages = ages
        else:
            self._fill(rows, ages)

    def tick(self, now: float, stale_after_s: float) -> None:
        """Let the ages grow."""
        self.show(list(self._rows.values()), now, stale_after_s)

    def select(self, component: str) -> bool:
        """Move the cursor to a component's first row; whether it has one here."""
        for index, row in enumerate(self._rows.values()):
            if row.component == component:
                self.move_cursor(row=index)
                return True
        return False

    @property
    def _age_column(self) -> Column:
        return next(column for column in self._pane.columns if column.key == AGE)

    def _age(self, row: Row, now: float, stale_after_s: float) -> Cell:
        text = age(row.at, now)
        if not self._pane.goes_stale:
            return Cell(text)
        if row.at is None:
            return Cell(text, QUIET_STYLE)
        return Cell(f"{text} !", STALE_STYLE) if now - row.at > stale_after_s else Cell(text)

    def _write(self, row: str, column: Column, old: Cell, new: Cell) -> None:
        if new == old:
            return
        wider = _width(new) > self._widths[column.key]
        self.update_cell(row, column.key, self._text(column, new), update_width=wider)

    def _fill(self, rows: Sequence[Row], ages: dict[str, Cell]) -> None:
        selected, line = self.selected, self.cursor_row
        self.clear()
        self._rows = {row.key: row for row in rows}
        self._ages = ages
        for row in rows:
            cells = dict(zip(self._cell_columns, row.cells, strict=True)) | {self._age_column: ages[row.key]}
            texts = [self._text(column, cells[column]) for column in self._pane.columns]
            self.add_row(*texts, key=row.key, height=self._pane.lines)
        keys = list(self._rows)
        if selected is not None and selected.key in self._rows:
            line = keys.index(selected.key)
        self.move_cursor(row=min(line, len(keys) - 1))

    def _text(self, column: Column, cell: Cell) -> Text:
        self._widths[column.key] = max(self._widths[column.key], _width(cell))
        return Text(cell.text, style=cell.style, justify="right" if column.right else "left", no_wrap=True)


def _width(cell: Cell) -> int:
    return max(map(cell_len, cell.text.splitlines()), default=0)
