"""The layout of a table on the screen: widths of columns, long names, and texts of several lines; pure."""

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from textwrap import wrap

from rich.cells import cell_len

from lumctl.tui.panes.rows import AGE, Cell, Column, Pane, Row
from lumctl.tui.views.table_rows import Ages, SortOrder

GAP = " "
"""The space before and after each cell."""
_INDENT = 3
"""The indentation of a row's second and further lines, which have the remaining width."""
MOST_LINES = 3
"""The most lines of a row. Rows of several lines get one line more than their pane states if texts need it."""


class TableLayout:
    """The visible columns of a pane with their widths, for one width of the table.

    A column is as wide as its longest cell so far. If the columns do not fit, columns of names shrink, at most to their
    least width, and the middle of long names is omitted.
    """

    def __init__(self, pane: Pane) -> None:
        self.pane = pane
        self.lines = pane.lines
        self.hidden: frozenset[str] = frozenset()
        self.ascii_only = False
        self._width = 0
        self._natural = [max(column.width, cell_len(column.heading)) for column in pane.columns]
        self._shown = list(self._natural)

    @property
    def ellipsis(self) -> str:
        """The mark for text that was cut."""
        return ".." if self.ascii_only else "…"

    @property
    def visible(self) -> list[tuple[int, Column]]:
        """Each visible column with its index in the pane."""
        return [(at, column) for at, column in enumerate(self.pane.columns) if column.key not in self.hidden]

    @property
    def columns_width(self) -> int:
        """The width of all visible columns with their gaps."""
        return sum(self._shown[at] + 2 for at, _ in self.visible)

    def width_of(self, column: int) -> int:
        """The width of a column without its gaps."""
        return self._shown[column]

    def column_at(self, x: int) -> Column | None:
        """The visible column at a position, in characters from the left; ``None`` to the right of all columns."""
        left = 0
        for at, column in self.visible:
            left += self._shown[at] + 2
            if x < left:
                return column
        return None

    def headings(self, sorting: SortOrder | None) -> list[str]:
        """The headings of the visible columns; the sorted column's heading shows the direction."""
        marks = "v^" if self.ascii_only else "▼▲"
        mark = {sorting.column: marks[not sorting.descending]} if sorting else {}
        return [
            fitted(f"{column.heading}{mark.get(column.key, '')}", self._shown[at], right=column.right)
            for at, column in self.visible
        ]

    def measure(self, rows: Sequence[Row], known: Mapping[str, Row], ages: Ages) -> bool:
        """Make columns as wide as their longest cell so far; return whether a column has become wider.

        Rows that are ``known`` with the same cells were measured before.
        """
        wider = False
        at = next((number for number, column in enumerate(self.pane.columns) if column.key == AGE), -1)
        if at >= 0:
            longest = max((longest_line(ages.of(each).text) for each in {row.at for row in rows}), default=0)
            wider = self.widen(at, longest)
        others = [number for number in range(len(self.pane.columns)) if number != at]
        changed = [row.cells for row in rows if (old := known.get(row.key)) is None or old.cells != row.cells]
        # Not strict: if no row has changed, there are no columns of cells at all.
        for number, cells in zip(others, zip(*changed, strict=True), strict=False):
            longest = max(map(longest_line, {cell.text for cell in cells}))  # equal texts are measured once
            wider = self.widen(number, longest) or wider
        return wider

    def hide(self, columns: Collection[str]) -> None:
        """Hide these columns, except for those that must stay visible."""
        self.hidden = frozenset(column.key for column in self.pane.optional_columns if column.key in columns)
        self.fit(self._width)

    def widen(self, column: int, width: int) -> bool:
        """Make a column at least this wide; return whether it has become wider."""
        if width <= self._natural[column]:
            return False
        self._natural[column] = width
        self.fit(self._width)
        return True

    def fit(self, width: int) -> bool:
        """Divide this width among the columns; return whether anything has changed."""
        before, self._width = (self._shown, self.lines), width
        self._shown = list(self._natural)
        visible = self.visible
        *fixed, (last, flexible) = visible
        over = sum(self._natural[at] + 2 for at, _ in fixed) + flexible.width + 2 - width
        names = [(at, column) for at, column in fixed if column.is_name]
        for at, column in sorted(names, key=lambda each: -self._natural[each[0]]):
            spare = max(0, self._natural[at] - max(column.width, cell_len(column.heading)))
            cut = min(max(over, 0), spare)
            self._shown[at] -= cut
            over -= cut
        if self.pane.lines > 1:
            self._shown[last] = max(flexible.width, width - sum(self._shown[at] + 2 for at, _ in fixed) - 2)
        return before != (self._shown, self.lines)

    def fit_lines(self, texts: Collection[str]) -> bool:
        """Choose the number of lines of all rows by the longest of the texts; return whether it has changed."""
        if self.pane.lines == 1 or not self._width:
            return False
        before, room, rest = self.lines, self._shown[len(self.pane.columns) - 1], self._width - _INDENT - 1
        parts = [text.split("\n") for text in texts]
        is_long = any(len(first) > room or any(len(more) > rest for more in others) for first, *others in parts)
        self.lines = min(MOST_LINES, self.pane.lines + 1) if is_long else self.pane.lines
        return self.lines != before

    def cell(self, column: int, cell: Cell) -> str:
        """The first line of a cell in the width of its column, with gaps."""
        written = self.pane.columns[column]
        text, width = cell.text, self._shown[column]
        if self.pane.lines > 1:
            text = self._wrapped(text)[0] if column == len(self.pane.columns) - 1 else text.partition("\n")[0]
        if written.is_name and cell_len(text) > width:
            text = without_middle(text, width, self.ellipsis)
        return fitted(text, width, right=written.right)

    def below(self, cells: Sequence[Cell], line: int) -> str:
        """A further line of a row; ``line`` counts from its first line as 0."""
        lines = self._wrapped(cells[-1].text)
        return f"{GAP * _INDENT}{lines[line]}" if line < len(lines) else ""

    def _wrapped(self, text: str) -> tuple[str, ...]:
        return wrapped(
            text, self._shown[len(self.pane.columns) - 1], self._width - _INDENT - 1, self.lines, self.ellipsis
        )


@lru_cache(maxsize=4096)
def wrapped(text: str, first: int, rest: int, lines: int, ellipsis: str) -> tuple[str, ...]:
    """Wrap a text into at most ``lines`` lines: the first is ``first`` characters wide, the others ``rest``.

    Each part of the text (its lines) begins on a new line. If the lines do not suffice, the first part is cut, then the
    others. Names are broken only if they are longer than a line.
    """
    head, *others = text.split("\n")
    start = _wrap(head, first)
    # The rest of the first part is wrapped again, because further lines have another width.
    more = _wrap(" ".join(start[1:]), rest) if len(start) > 1 else []
    below = [line for other in others for line in _wrap(other, rest)]
    room = max(0, lines - 1 - len(below))
    whole = (start[0], *more[:room], *below)
    if len(more) > room:
        at = min(room, lines - 1)
        whole = (*whole[:at], _cut(whole[at], rest if at else first, ellipsis), *whole[at + 1 :])
    return whole if len(whole) <= lines else (*whole[: lines - 1], _cut(whole[lines - 1], rest, ellipsis))


def _cut(text: str, width: int, ellipsis: str) -> str:
    """A line with the ellipsis at its end, cut after a whole word if possible."""
    room = max(0, width - len(ellipsis) - 1)
    if len(text) > room:
        text = text[:room].rpartition(" ")[0] or text[:room]
    return f"{text} {ellipsis}"


def _wrap(text: str, width: int) -> list[str]:
    return wrap(text, max(width, 1), break_on_hyphens=False) or [""]


def without_middle(text: str, width: int, ellipsis: str) -> str:
    """A name cut in its middle to ``width`` characters, because names differ at their ends."""
    room = max(0, width - len(ellipsis))
    tail = room - room // 2
    return f"{text[: room // 2]}{ellipsis}{text[len(text) - tail :]}"[:width]


def fitted(text: str, width: int, *, right: bool) -> str:
    """The text padded to the width of its column, with gaps."""
    room = " " * (width - cell_len(text))
    return f"{GAP}{room}{text}{GAP}" if right else f"{GAP}{text}{room}{GAP}"


def longest_line(text: str) -> int:
    """The width of the longest line of a cell."""
    if "\n" in text:
        return max(map(cell_len, text.splitlines()), default=0)
    return len(text) if text.isascii() else cell_len(text)
