"""Where everything lies when a mesh is drawn in characters.

A PUC is one mark in the middle of its edge (two for an upright edge), and at each end of it, on each side, is room for
the letter of the circuit whose light runs there. Two terminals that a waveguide joins share one such place: a letter
is a waveguide. So a circuit is read from letter to letter: past a PUC in bar it stays on its side, past one in cross
it is on the other side afterwards. Numbers of ports stand outside the rim, beside the place of the port's letter.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import cos, floor, sin, sqrt

from lumctl.errors import UsageError
from lumctl.fabric.drawing.paper import Paper, Point, along, paper
from lumctl.fabric.geometry import FREE, Mesh

Cell = tuple[int, int]
"""Line and column, from 0."""

_LETTER = 0.25
"""How far from the vertex a letter stands, in edge lengths."""
_LEVEL = 0.1
"""Up to this fall, in edge lengths, an edge is level; up to this lean it is upright."""
_HALF_CELL = sqrt(3) / 2
_SLANTED = tuple((columns / _HALF_CELL, lines) for columns, lines in ((4, 2), (3, 2), (2, 2), (6, 4), (8, 6), (12, 8)))
_SQUARED = ((6.0, 3), (4.0, 3), (8.0, 5), (12.0, 8))
"""Columns and lines to an edge length, the best to look at first."""


@dataclass(frozen=True, slots=True)
class Grid:
    """The places of one mesh: ``pucs`` and their ``slants``, letters by terminal, numbers by port."""

    lines: int
    columns: int
    pucs: tuple[tuple[Cell, ...], ...]
    slants: tuple[str, ...]
    letters: tuple[Cell, ...]
    numbers: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True, slots=True)
class _Scale:
    """Edge lengths to characters. ``staggered``: the second number at a vertex stands on a line of its own."""

    columns: float
    lines: int
    shift: float
    staggered: bool

    def column(self, x: float) -> int:
        return floor(self.columns * x + 0.5 + 1e-6)

    def line(self, y: float) -> int:
        return floor(self.lines * y + self.shift + 1e-6)


@lru_cache(maxsize=16)
def grid(mesh: Mesh, width: int) -> Grid:
    """Find places on at most ``width`` columns.

    Raises:
        UsageError: the mesh has no positions, or does not fit.
    """
    on_paper = paper(mesh)
    level = any(abs(a[1] - b[1]) < _LEVEL for a, b in on_paper.ends)
    narrowest = 0
    for columns, lines in _SQUARED if level else _SLANTED:
        for staggered in (False, True):
            found = _placed(mesh, on_paper, _Scale(columns, lines, 0.5 if level else 0.0, staggered))
            if found is None:
                continue
            if found.columns <= width:
                return found
            narrowest = min(narrowest or found.columns, found.columns)
    if not narrowest:
        raise UsageError(f"mesh {mesh.name} is too dense to be drawn in characters", hint="draw it as SVG")
    raise UsageError(
        f"mesh {mesh.name} does not fit {width} columns: it needs {narrowest}", hint="widen, or draw it as SVG"
    )


def _placed(mesh: Mesh, on_paper: Paper, scale: _Scale) -> Grid | None:
    """The places at one scale, from 0; ``None`` where two things would want the same one."""
    pucs = [tuple(_marks(pair, scale)) for pair in on_paper.ends]
    letters = [_letter(mesh, on_paper, terminal, scale) for terminal in range(len(mesh.peers))]
    numbers = [_number(on_paper, port, terminal, letters[terminal], scale) for port, terminal in enumerate(mesh.ports)]
    if not _apart(mesh, pucs, letters, numbers):
        return None
    every = [*letters, *(cell for cells in (*pucs, *numbers) for cell in cells)]
    top, left = min(line for line, _ in every), min(column for _, column in every)

    def moved(cells: Iterable[Cell]) -> tuple[Cell, ...]:
        return tuple((line - top, column - left) for line, column in cells)

    return Grid(
        lines=max(line for line, _ in every) - top + 1,
        columns=max(column for _, column in every) - left + 1,
        pucs=tuple(moved(cells) for cells in pucs),
        slants=tuple(_slant(pair) for pair in on_paper.ends),
        letters=moved(letters),
        numbers=tuple(moved(cells) for cells in numbers),
    )


def _slant(pair: tuple[Point, Point]) -> str:
    (x0, y0), (x1, y1) = pair
    if abs(x1 - x0) < _LEVEL:
        return "|"
    if abs(y1 - y0) < _LEVEL:
        return "-"
    return "/" if (x1 - x0) * (y1 - y0) < 0 else "\\"


def _marks(pair: tuple[Point, Point], scale: _Scale) -> Iterator[Cell]:
    (x0, y0), (x1, y1) = pair
    for part in (0.25, 0.75) if _slant(pair) == "|" else (0.5,):
        yield scale.line(y0 + part * (y1 - y0)), scale.column(x0 + part * (x1 - x0))


def _letter(mesh: Mesh, on_paper: Paper, terminal: int, scale: _Scale) -> Cell:
    corner = on_paper.corners[terminal]
    angle = corner.quarter if corner.lone or mesh.peers[terminal] == FREE else corner.middle
    _, y = along(corner.vertex, angle, _LETTER)
    aside = _LETTER * cos(angle) * scale.columns
    step = 0 if abs(aside) < 0.3 else max(1, floor(abs(aside) + 0.5))  # noqa: PLR2004 - straight up or down but for rounding
    return scale.line(y), scale.column(corner.vertex[0]) + (step if aside > 0 else -step)


def _number(on_paper: Paper, port: int, terminal: int, letter: Cell, scale: _Scale) -> tuple[Cell, ...]:
    """Where the digits of a port stand: outwards from its letter."""
    corner = on_paper.corners[terminal]
    line, column = letter
    size = len(str(port))
    out, up = cos(corner.middle), sin(corner.middle)
    first = corner.width < 0  # of the two ports of a room the one that is met first, going round clockwise
    if abs(out) > 0.4:  # noqa: PLR2004 - a rim that faces the side
        start = column + 1 if out > 0 else column - size
    else:
        line += (1 if up > 0 else -1) * (2 if scale.staggered and first else 1)
        start = column if column > scale.column(corner.vertex[0]) else column - size + 1
    return tuple((line, start + digit) for digit in range(size))


def _apart(mesh: Mesh, pucs: list[tuple[Cell, ...]], letters: list[Cell], numbers: list[tuple[Cell, ...]]) -> bool:
    """Whether everything has a place of its own, and numbers are not run together."""
    taken: dict[Cell, int] = {}
    for terminal, cell in enumerate(letters):
        if taken.setdefault(cell, terminal) not in {terminal, mesh.peers[terminal]}:
            return False
    cells = [*taken, *(cell for run in (*pucs, *numbers) for cell in run)]
    if len(set(cells)) != len(cells):
        return False
    digits = {cell for run in numbers for cell in run}
    return all((run[-1][0], run[-1][1] + 1) not in digits for run in numbers)
