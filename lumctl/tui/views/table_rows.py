"""The rows of a table: their order by a column, their ages, and those at fault; pure."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lumctl.health.states import SEVERITY, State, worst
from lumctl.tui.look.marks import QUIET_STYLE, STALE_STYLE, age
from lumctl.tui.panes.rows import AGE, TROUBLE, Cell, Column, Pane, Row

_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?")
_PARTS = re.compile(r"(\d+)")
_NOTHING = frozenset({"", "-"})
_STATE = "state"
Key = tuple[int, tuple[tuple[int, float, str], ...]]


@dataclass(frozen=True, slots=True)
class SortOrder:
    """The key of the column to sort by, and the direction."""

    column: str
    descending: bool


def begin(column: Column) -> SortOrder:
    """The first order of a column: worst state, greatest number or newest first; text in alphabetical order."""
    return SortOrder(column.key, descending=column.key == _STATE or (column.is_numeric and column.key != AGE))


def after_click(sorting: SortOrder | None, column: Column) -> SortOrder | None:
    """The order after a click on a heading: first by its column, then reversed, then the pane's own (``None``)."""
    first = begin(column)
    if sorting is None or sorting.column != column.key:
        return first
    return SortOrder(column.key, not first.descending) if sorting == first else None


def sorted_rows(pane: Pane, rows: Sequence[Row], sorting: SortOrder | None) -> list[Row]:
    """The sorted rows. Rows beneath a head stay beneath it; rows without a value come last, in both directions."""
    if sorting is None or all(column.key != sorting.column for column in pane.columns):
        return list(rows)
    ordered = _ordered(pane, [row for row in rows if not row.beneath], sorting)
    beneath: dict[str, list[Row]] = {}
    for row in rows:
        if row.beneath:
            beneath.setdefault(row.beneath, []).append(row)
    heads = {row.key for row in ordered}
    strays = [row for row in rows if row.beneath and row.beneath not in heads]
    return [each for row in ordered for each in (row, *_ordered(pane, beneath.get(row.key, ()), sorting))] + strays


def _ordered(pane: Pane, rows: Iterable[Row], sorting: SortOrder) -> list[Row]:
    column = next(column for column in pane.columns if column.key == sorting.column)
    at = [column.key for column in pane.columns if column.key != AGE].index(column.key) if column.key != AGE else -1
    keyed = [(_value(row, column, at), row) for row in rows]
    known = sorted((pair for pair in keyed if pair[0] is not None), key=_first, reverse=sorting.descending)
    return [row for _, row in (*known, *(pair for pair in keyed if pair[0] is None))]


def _first(pair: "tuple[Key | None, Row]") -> Key:
    return pair[0] or (0, ())


def _value(row: Row, column: Column, at: int) -> Key | None:
    """The sort key of a row; ``None`` if it has no value in the column."""
    if column.key == AGE:
        # The age is the time that has passed: the newest has the least.
        return None if row.at is None else (0, ((0, -row.at, ""),))
    if column.key == _STATE:
        return 0, ((0, SEVERITY.index(row.state), ""),)
    text = row.cells[at].text.strip()
    if text in _NOTHING:
        return None
    if column.is_numeric:
        values = [float(number) for number in _NUMBER.findall(text)]
        if "dark" in text:
            values.append(float("-inf"))
        return (0, ((0, min(values), ""),)) if values else None
    # Numbers within a name are compared as numbers: h2 comes before h10.
    # Tuples of one shape, because a number and a text cannot be compared. ``isdecimal`` as ``\d``: "²" is not a number.
    return 1, tuple((0, float(part), "") if part.isdecimal() else (1, 0.0, part) for part in _PARTS.split(text.lower()))


class Ages:
    """The ages of rows as cells, at the time ``now`` (seconds since the epoch)."""

    def __init__(self, pane: Pane, now: float = 0.0, stale_after_s: float = 0.0) -> None:
        self.now = now
        self.stale_after_s = stale_after_s
        self._goes_stale = pane.goes_stale
        self._known: dict[float | None, Cell] = {}

    def of(self, at: float | None) -> Cell:
        """The age of a reading taken at a time; the age of a stale reading is marked."""
        known = self._known.get(at)
        if known is None:
            known = self._known[at] = self._cell(at)
        return known

    def _cell(self, at: float | None) -> Cell:
        text = age(at, self.now)
        if not self._goes_stale:
            return Cell(text)
        if at is None:
            return Cell(text, QUIET_STYLE)
        return Cell(f"{text} !", STALE_STYLE) if self.now - at > self.stale_after_s else Cell(text)


class TroubleRows:
    """The indices of the rows at fault."""

    def __init__(self, pane: Pane, rows: Sequence[Row] = ()) -> None:
        self._rows = rows
        self._counts = pane.counts
        self._at = [number for number, row in enumerate(rows) if row.state in TROUBLE and not row.known]

    def beside(self, row: int, by: int) -> int | None:
        """The next row at fault (or the previous one if ``by`` is -1), around the ends; ``None`` if there is none."""
        if not self._at:
            return None
        at = bisect_left(self._at, row + 1 if by > 0 else row)
        return self._at[(at if by > 0 else at - 1) % len(self._at)]

    def outside(self, shown: range) -> list[tuple[str, State]]:
        """The worst state above and below the shown rows, each as text with the number of rows, and as state."""
        first, last = bisect_left(self._at, shown.start), bisect_left(self._at, shown.stop)
        told = []
        for troubled, where in ((self._at[:first], "above"), (self._at[last:], "below")):
            states = [state for row in troubled if (state := self._rows[row].state) in self._counts]
            if states:
                state = worst(tuple(states))
                told.append((f"{states.count(state)} {state} {where}", state))
        return told
