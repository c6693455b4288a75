"""Draws a mesh in characters: rows of cells, each a character and the key of a style."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import cos, floor, sin, sqrt
from typing import NamedTuple

from lumctl.devices.types import PucState
from lumctl.errors import UsageError
from lumctl.fabric.condition import MeshCondition
from lumctl.fabric.drawing.circuits import Carried, DrawnCircuit, carried
from lumctl.fabric.drawing.sheet import Paper, Point, along, paper
from lumctl.fabric.geometry import FREE, Mesh
from lumctl.fabric.routing import Route

Cell = tuple[int, int]
"""Line and column, from 0."""

_LETTER = 0.25
"""Distance of a letter from the vertex, in edge lengths."""
_LEVEL = 0.1
"""An edge counts as level or upright if its ends differ by less than this, in edge lengths, in height or sideways."""
_HALF_CELL = sqrt(3) / 2
_SLANTED = tuple((columns / _HALF_CELL, lines) for columns, lines in ((4, 2), (3, 2), (2, 2), (6, 4), (8, 6), (12, 8)))
_SQUARED = ((6.0, 3), (4.0, 3), (8.0, 5), (12.0, 8))
"""Columns and lines per edge length, the best-looking first."""


@dataclass(frozen=True, slots=True)
class Grid:
    """The positions of one mesh's parts: ``pucs`` and their ``slants``, letters by terminal, numbers by port."""

    lines: int
    columns: int
    pucs: tuple[tuple[Cell, ...], ...]
    slants: tuple[str, ...]
    letters: tuple[Cell, ...]
    numbers: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True, slots=True)
class _Scale:
    """Converts edge lengths to characters. ``staggered``: the second number at a vertex is on a separate line."""

    columns: float
    lines: int
    shift: float
    staggered: bool

    def column(self, x: float) -> int:
        # Half a column is always rounded up: round() would go to the even column, and the drawing would be uneven.
        return floor(self.columns * x + 0.5 + 1e-6)

    def line(self, y: float) -> int:
        return floor(self.lines * y + self.shift + 1e-6)


@lru_cache(maxsize=16)
def grid(mesh: Mesh, width: int) -> Grid:
    """Find positions for all parts on at most ``width`` columns.

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
        f"mesh {mesh.name} does not fit {width} columns: it needs {narrowest}",
        hint="use a wider terminal, or draw it as SVG",
    )


def _placed(mesh: Mesh, on_paper: Paper, scale: _Scale) -> Grid | None:
    """The positions at one scale, from 0; ``None`` if two parts would share a position."""
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
    """The positions of the digits of a port, outwards from its letter."""
    corner = on_paper.corners[terminal]
    line, column = letter
    size = len(str(port))
    out, up = cos(corner.middle), sin(corner.middle)
    first = corner.width < 0  # the first of the two ports of a room, in clockwise order
    if abs(out) > 0.4:  # noqa: PLR2004 - a rim that faces the side
        start = column + 1 if out > 0 else column - size
    else:
        line += (1 if up > 0 else -1) * (2 if scale.staggered and first else 1)
        start = column if column > scale.column(corner.vertex[0]) else column - size + 1
    return tuple((line, start + digit) for digit in range(size))


def _apart(mesh: Mesh, pucs: list[tuple[Cell, ...]], letters: list[Cell], numbers: list[tuple[Cell, ...]]) -> bool:
    """Whether all parts have separate positions, and numbers do not touch."""
    taken: dict[Cell, int] = {}
    for terminal, cell in enumerate(letters):
        # Only the two ends of one waveguide may share a letter's place.
        if taken.setdefault(cell, terminal) not in {terminal, mesh.peers[terminal]}:
            return False
    cells = [*taken, *(cell for run in (*pucs, *numbers) for cell in run)]
    if len(set(cells)) != len(cells):
        return False
    digits = {cell for run in numbers for cell in run}
    return all((run[-1][0], run[-1][1] + 1) not in digits for run in numbers)


BEYOND = "+"
"""The mark of a circuit without a single letter: the 47th and all later ones."""

_BAR = {"|": "│", "-": "─", "/": "╱", "\\": "╲"}  # noqa: RUF001 - meant
_CROSS, _CROSS_ASCII = "╳", "x"  # noqa: RUF001 - meant
_CLOSED, _CLOSED_ASCII = "▒", "#"
_STUCK = {PucState.BAR: "!", PucState.CROSS: "*"}


class Glyph(NamedTuple):
    """One character cell; :func:`~lumctl.fabric.drawing.colours.terminal_style` says what the style key means."""

    char: str
    style: str = ""


Row = tuple[Glyph, ...]
Chosen = Collection[int] | None
"""Numbers of the highlighted circuits; ``None`` if all circuits are drawn alike."""

_BLANK = Glyph(" ")


def text(
    mesh: Mesh,
    states: Mapping[int, PucState],
    routes: Sequence[Route],
    *,
    condition: MeshCondition,
    names: Sequence[str] = (),
    ascii_only: bool = False,
    width: int = 120,
    chosen: Chosen = None,
) -> tuple[Row, ...]:
    """Draw a mesh with its circuits on at most ``width`` columns; all rows have the same length.

    The circuits with the numbers ``chosen`` are highlighted and the others are grey; without it all are drawn alike.

    Raises:
        UsageError: the mesh has no positions, or does not fit.
        InconsistentFabricError: a route is not a path through this mesh.
    """
    shown = carried(mesh, states, routes, condition, names)
    places = grid(mesh, width)
    return rows_of(drawn(shown, places, ascii_only=ascii_only, chosen=chosen), places)


def drawn(shown: Carried, places: Grid, *, ascii_only: bool, chosen: Chosen = None) -> dict[Cell, Glyph]:
    """The characters of the drawing, by position."""
    return {
        **_pucs(shown, places, ascii_only=ascii_only, chosen=chosen),
        **_lanes(shown, places, ascii_only=ascii_only, chosen=chosen),
    }


def rows_of(cells: Mapping[Cell, Glyph], places: Grid) -> tuple[Row, ...]:
    """The rows of a drawing, blank where nothing is drawn."""
    return tuple(
        tuple(cells.get((line, column), _BLANK) for column in range(places.columns)) for line in range(places.lines)
    )


def legend(
    mesh: Mesh,
    states: Mapping[int, PucState],
    routes: Sequence[Route],
    *,
    condition: MeshCondition,
    names: Sequence[str] = (),
    ascii_only: bool = False,
) -> tuple[Row, ...]:
    """The legend of the letters and marks of :func:`text`: a row of marks, a heading, a row for each circuit.

    Raises:
        InconsistentFabricError: a route is not a path through this mesh.
    """
    shown = carried(mesh, states, routes, condition, names)
    rows = [marks_row(shown, ascii_only=ascii_only)]
    if not shown.circuits:
        return (*rows, _plain("no circuits", "quiet"))
    table = [("", "CIRCUIT", "PORTS", "PUCS", "LOSS dB"), *(_entry(circuit) for circuit in shown.circuits)]
    widths = [max(len(entry[at]) for entry in table) for at in range(len(table[0]))]
    for entry, circuit in zip(table, (None, *shown.circuits), strict=True):
        letter, name, ports, pucs, loss = entry
        style = "heading" if circuit is None else style_of(circuit)
        rest = f"  {name:{widths[1]}}  {ports:>{widths[2]}}  {pucs:>{widths[3]}}  {loss:>{widths[4]}}"
        rows.append(_plain(f"{letter:{widths[0]}}", style) + _plain(rest, "heading" if circuit is None else ""))
    return tuple(rows)


def style_of(circuit: DrawnCircuit, chosen: Chosen = None) -> str:
    """The key of a circuit's style."""
    if chosen is None:
        return f"circuit:{circuit.number}"
    return f"chosen:{circuit.number}" if circuit.number in chosen else "quiet"


def _pucs(shown: Carried, places: Grid, *, ascii_only: bool, chosen: Chosen) -> dict[Cell, Glyph]:
    marks: dict[Cell, Glyph] = {}
    for puc, (cells, slant) in enumerate(zip(places.pucs, places.slants, strict=True)):
        marks.update(dict.fromkeys(cells, _puc(shown, puc, slant, ascii_only=ascii_only, chosen=chosen)))
    return marks


def _puc(shown: Carried, puc: int, slant: str, *, ascii_only: bool, chosen: Chosen) -> Glyph:
    state = shown.state(puc)
    if puc in shown.condition.damaged:
        return Glyph(_CLOSED_ASCII if ascii_only else _CLOSED, "damaged")
    if puc in shown.condition.stuck:
        return Glyph(_STUCK[state], "stuck")
    through = [circuit for circuit in shown.circuits_through(puc) if chosen is None or circuit.number in chosen]
    style = "shared" if len(through) > 1 else style_of(through[0], chosen) if through else "quiet"
    if state is PucState.CROSS:
        return Glyph(_CROSS_ASCII if ascii_only else _CROSS, style)
    return Glyph(slant if ascii_only else _BAR[slant], style)


def _lanes(shown: Carried, places: Grid, *, ascii_only: bool, chosen: Chosen) -> dict[Cell, Glyph]:
    """The letters, and the numbers of the ports: a port that carries a circuit has its style."""
    marks: dict[Cell, Glyph] = {}
    for terminal, circuit in shown.lit.items():
        letter = circuit.letter if len(circuit.letter) == 1 else BEYOND
        marks[places.letters[terminal]] = Glyph(letter, style_of(circuit, chosen))
    for port, terminal in enumerate(shown.mesh.ports):
        lit = shown.lit.get(terminal)
        style = style_of(lit, chosen) if lit else "port"
        if port in shown.condition.blocked_ports:
            style = "blocked"
            marks[places.letters[terminal]] = Glyph(_CLOSED_ASCII if ascii_only else _CLOSED, style)
        for cell, digit in zip(places.numbers[port], str(port), strict=True):
            marks[cell] = Glyph(digit, style)
    return marks


def marks_row(shown: Carried, *, ascii_only: bool) -> Row:
    """The legend of the marks of PUCs and ports."""
    slants = tuple(_BAR) if ascii_only else tuple(_BAR.values())
    cross = _CROSS_ASCII if ascii_only else _CROSS
    row = _plain(f"{' '.join(slants)} bar   {cross} cross")
    condition = shown.condition
    stuck = set(condition.stuck.values())
    for state in PucState:
        if state in stuck:
            row += _plain("   ") + _plain(_STUCK[state], "stuck") + _plain(f" stuck in {state.word}")
    closed = [word for word, found in (("damaged", condition.damaged), ("blocked", condition.blocked_ports)) if found]
    if closed:
        mark = _CLOSED_ASCII if ascii_only else _CLOSED
        row += _plain("   ") + _plain(mark, "damaged") + _plain(f" {' or '.join(closed)}")
    if any(len(circuit.letter) > 1 for circuit in shown.circuits):
        row += _plain(f"   {BEYOND} a circuit with a two-letter name")
    return row + _plain("   PUC: programmable unit cell")


def _entry(circuit: DrawnCircuit) -> tuple[str, ...]:
    a, b = circuit.ports
    name = "".join(c if c.isprintable() else "?" for c in circuit.name)
    return circuit.letter, name, f"{a}:{b}", str(len(circuit.legs)), f"{circuit.loss_db:.1f}"


def _plain(words: str, style: str = "") -> Row:
    return tuple(Glyph(char, style) for char in words)
