"""The rows of a pane that a filter or folds leave visible, and the line that reports this; pure."""

from collections.abc import Sequence
from dataclasses import replace

from lumctl.tui.look.marks import Marks
from lumctl.tui.panes.rows import Cell, Pane, Row, counts_cell, not_well
from lumctl.tui.views.records import RecordedLook

_MANY = 30
"""With more rows than this, all groups that the user has not unfolded are folded."""
_MARKED_KEYS = ": h history, p swap, a acknowledge, w maintain, d drain, esc unmark"


class VisibleRows:
    """The filter of each pane, and the folded groups. With a filter, folds do not apply."""

    def __init__(self, marks: Marks) -> None:
        self._marks = marks
        self._filters: dict[str, str] = {}
        self._folding = Folding()

    def words(self, pane: Pane) -> str:
        """The words of a pane's filter; empty if it has none."""
        return self._filters.get(pane.id, "")

    def filter(self, pane: Pane, words: str) -> None:
        """Show only rows with these words."""
        self._filters[pane.id] = words

    def show_all(self, pane: Pane) -> bool:
        """Remove the filter; return whether there was one."""
        return bool(self._filters.pop(pane.id, ""))

    def reveal(self, pane: Pane, row: Row) -> None:
        """Make a row visible: remove the filter and unfold the row's group."""
        self.show_all(pane)
        self._folding.unfold(row)

    def fold(self, pane: Pane, row: Row, seen: RecordedLook) -> str:
        """Fold or unfold the group of a row; return the head's key, empty if there is nothing to fold."""
        if pane.folds_at is None or self.words(pane):
            return ""
        return self._folding.turn(row, pane.rows(seen, self._marks))

    def of(self, pane: Pane, seen: RecordedLook) -> tuple[list[Row], str]:
        """The rows to show, and a line with their number and the hidden failures."""
        everything = pane.rows(seen, self._marks)
        if words := self.words(pane):
            rows = [row for row in everything if row.matches(words.lower().split())]
            match = "matches" if len(rows) == 1 else "match"
            hidden = _failures_hidden(everything, rows, pane)
            return rows, f"{len(rows)} of {pane.count(len(everything))} {match} {words!r}{hidden} (esc: all)"
        if not everything:
            return [], f"no {pane.noun}"
        rows = everything
        if pane.folds_at is not None:
            rows = self._folding.seen(everything, pane.folds_at, self._marks)
        folded = len(everything) - len(rows)
        hidden = _failures_hidden(everything, rows, pane)
        away = f", {folded} of them folded away{hidden} (space: unfold)" if folded else ""
        return rows, f"{pane.count(len(everything))}{away}"


def marked_line(pane: Pane, marked: int) -> str:
    """A line with the number of marked rows and the keys that act on them."""
    return f"{pane.count(marked)} marked{_MARKED_KEYS if pane.can_act else ': esc unmark'}"


def _failures_hidden(everything: Sequence[Row], shown: Sequence[Row], pane: Pane) -> str:
    """A text with the number of rows at fault that a filter or a fold hides; empty if none."""
    seen = {row.key for row in shown}
    states = tuple(
        row.state for row in everything if row.key not in seen and row.state in pane.counts and not row.known
    )
    return f", {counts_cell(states).text} hidden" if states else ""


class Folding:
    """The groups of rows that the user has folded or unfolded; a group is a head with the rows beneath it.

    If there are several heads or many rows, all groups are folded at first, but components that are not ok stay
    visible.
    """

    def __init__(self) -> None:
        self._open: dict[str, bool] = {}

    def turn(self, row: Row, rows: Sequence[Row]) -> str:
        """Unfold the group of a row, or fold it if none of its rows is hidden.

        Return the head's key, empty if the row has no group.
        """
        head = row.beneath or row.key
        beneath = [each for each in rows if each.beneath == head]
        if not beneath:
            return ""
        # Folded at first, a group still shows what is not ok: the first key press opens it whole.
        folded = _begins_folded(rows)
        self._open[head] = not all(self._is_seen(each, folded) for each in beneath)
        return head

    def unfold(self, row: Row) -> None:
        """Make a row visible, with all rows of its group."""
        if row.beneath:
            self._open[row.beneath] = True

    def seen(self, rows: Sequence[Row], column: int, marks: Marks) -> list[Row]:
        """The visible rows; heads get a mark in the cell with index ``column``."""
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
