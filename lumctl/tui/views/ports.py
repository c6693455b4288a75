"""Powers that a mesh measures at its ports, written next to the ports in its drawing if there is room; pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from lumctl.fabric import Mesh
from lumctl.fabric.drawing import Glyph, Row
from lumctl.fabric.drawing.text import Cell, Grid
from lumctl.tui.look.marks import power

_BEYOND = 4
"""A power may be this many lines above or below its port, because the port's number is written before it."""
_ASIDE = (0, -1, 1, -2, 2, -3, 3)
_DARK = "removed"
"""The style of a port without light; it looks like a failure."""


@dataclass(frozen=True, slots=True)
class Written:
    """A drawing with powers, all rows of one length, and the ports whose powers it contains."""

    rows: tuple[Row, ...]
    ports: frozenset[int]

    @property
    def columns(self) -> int:
        """The length of the rows."""
        return len(self.rows[0]) if self.rows else 0


def with_powers(rows: Sequence[Row], mesh: Mesh, places: Grid, powers: Mapping[int, float]) -> Written:
    """Write each power (dBm, by port) in the style of its port; a port without light has a style of its own."""
    cells = {
        (line, column): glyph
        for line, row in enumerate(rows)
        for column, glyph in enumerate(row)
        if glyph != Glyph(" ")
    }
    shown = set()
    for port, dbm in powers.items():
        number, letter = places.numbers[port], places.letters[mesh.ports[port]]
        style = _DARK if dbm == float("-inf") else cells[number[0]].style
        for start, words in _wanted(port, power(dbm), number, letter):
            place = [(start[0], start[1] + at) for at in range(len(words))]
            if not _is_free(place, cells):
                continue
            cells.update(zip(place, (Glyph(char, style) for char in words), strict=True))
            shown.add(port)
            break
    return Written(_rows(cells, rows), frozenset(shown))


def _wanted(port: int, told: str, number: Sequence[Cell], letter: Cell) -> Iterator[tuple[Cell, str]]:
    """The possible positions of a port's power, best first, each with the text to write there."""
    line, first = number[0]
    if line == letter[0]:  # a port at the left or right side: further out on the same line
        yield (line, first - 1 - len(told) if first < letter[1] else number[-1][1] + 2), told
        return
    # Away from the mesh: below a port at the bottom, above one at the top.
    out = 1 if line > letter[0] else -1
    for beyond in range(1, _BEYOND + 1):
        for aside in _ASIDE:
            yield (line + out * beyond, first + aside), f"{port}:{told}"


def _is_free(place: Sequence[Cell], cells: Mapping[Cell, Glyph]) -> bool:
    """Whether the cells are empty, and their neighbours on the line as well."""
    line, first = place[0]
    return not any((line, column) in cells for column in range(first - 1, place[-1][1] + 2))


def _rows(cells: Mapping[Cell, Glyph], before: Sequence[Row]) -> tuple[Row, ...]:
    """The rows of all cells, at least as large as the drawing ``before``."""
    lines, columns = range(len(before)), range(len(before[0]) if before else 0)
    tops, lefts = _span(lines, (line for line, _ in cells)), _span(columns, (column for _, column in cells))
    return tuple(tuple(cells.get((line, column), Glyph(" ")) for column in lefts) for line in tops)


def _span(before: range, taken: Iterable[int]) -> range:
    every = (*before, *taken)
    return range(min(every), max(every) + 1) if every else before
