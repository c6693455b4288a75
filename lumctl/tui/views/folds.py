"""Rows beneath other rows: which of them are visible."""

from collections.abc import Sequence
from dataclasses import replace

from lumctl.tui.look.marks import Marks
from lumctl.tui.panes.rows import Cell, Row, not_well

_MANY = 30
"""With more lines than this everything is folded that the user has not unfolded."""


class Folding:
    """The rows that the user has folded and unfolded, and those folded at the beginning.

    If there are several heads, or many lines, everything begins folded; components that are not ok stay visible.
    """

    def __init__(self) -> None:
        self._open: dict[str, bool] = {}

    def turn(self, row: Row, rows: Sequence[Row]) -> str:
        """Unfold the hidden rows of a row's head, or fold them if none is hidden.

        Return the head's key, empty if none.
        """
        head = row.beneath or row.key
        beneath = [each for each in rows if each.beneath == head]
        if not beneath:
            return ""
        folded = _begins_folded(rows)
        self._open[head] = not all(self._is_seen(each, folded) for each in beneath)
        return head

    def unfold(self, row: Row) -> None:
        """Make a row visible, with all rows beside it."""
        if row.beneath:
            self._open[row.beneath] = True

    def seen(self, rows: Sequence[Row], column: int, marks: Marks) -> list[Row]:
        """The visible rows; heads have a mark in the cell of this number."""
        folded = _begins_folded(rows)
        hidden = {each.beneath for each in rows if not self._is_seen(each, folded)}
        heads = {each.beneath for each in rows}
        return [
            _marked(each, column, marks, folded=each.key in hidden) if each.key in heads else each
            for each in rows
            if self._is_seen(each, folded)
        ]

    def _is_seen(self, row: Row, begins_folded: bool) -> bool:
        if not row.beneath:
            return True
        opened = self._open.get(row.beneath)
        return opened if opened is not None else not begins_folded or bool(not_well((row.state,)))


def _begins_folded(rows: Sequence[Row]) -> bool:
    return len(rows) > _MANY or sum(not each.beneath for each in rows) > 1


def _marked(row: Row, column: int, marks: Marks, *, folded: bool) -> Row:
    mark = ("+" if folded else "-") if marks.ascii_only else ("▸" if folded else "▾")
    cells = list(row.cells)
    cells[column] = Cell(f"{mark} {cells[column].text}", cells[column].style)
    return replace(row, cells=tuple(cells))
