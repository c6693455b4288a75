"""Makes meshes: by name, from an inventory, from data.

Regular meshes are cut from a lattice: cells give the PUCs, then the waveguides round the corners and the ports on the
rim. A vertex lies on a grid of integers, and edges can leave it in a few directions, which are listed clockwise. If two
edges leave a vertex next to each other, a waveguide runs round the corner between them. All other corners are open.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt

from lumctl.errors import UsageError
from lumctl.fabric.geometry import Mesh, Point, joined
from lumctl.inventory.geometry import MOST_COLUMNS, MOST_SIDE, Geometry, MeshData, Shape, flaws
from lumctl.inventory.problems import nearest

Vertex = tuple[int, int]
"""A point of the grid: its position to the right, and downwards."""

Edge = tuple[Vertex, Vertex]
"""An edge from its end 0 to its end 1: from the upper to the lower end; a level edge from left to right."""


_Star = dict[int, int]
"""The edges at one vertex: direction -> the terminal there on the edge's clockwise side (``^ 1``: the other one)."""


@dataclass(frozen=True, slots=True)
class Lattice:
    """A regular pattern. ``directions`` are the directions of edges from a vertex, clockwise from straight up.

    Two edges have a corner between them if they are ``turn`` directions apart. ``across`` and ``down`` are the size of
    one step of the grid on paper.
    """

    directions: tuple[Vertex, ...]
    turn: int
    across: float
    down: float

    def paper(self, vertex: Vertex) -> Point:
        """The position of a vertex on paper."""
        return vertex[0] * self.across, vertex[1] * self.down


# Corners up. The edges at a vertex are 120 degrees apart. The six directions are also those from the middle of a cell
# to its vertices.
HONEYCOMB = Lattice(((0, -2), (1, -1), (1, 1), (0, 2), (-1, 1), (-1, -1)), turn=2, across=sqrt(3) / 2, down=0.5)
SQUARES = Lattice(((0, -1), (1, 0), (0, 1), (-1, 0)), turn=1, across=1.0, down=1.0)


@dataclass(frozen=True, slots=True)
class LatticeCut:
    """A mesh cut from a lattice: the vertices of each PUC, the joined terminals, the ports, the vertices' positions."""

    ends: tuple[tuple[int, int], ...]
    junctions: tuple[tuple[int, int], ...]
    ports: tuple[int, ...]
    points: tuple[Point, ...]


def cut_lattice(lattice: Lattice, edges: Iterable[Edge], corner: Vertex) -> LatticeCut:
    """Cut the mesh with these edges; edges may be listed twice.

    ``corner`` is an open corner at the upper left. It has the first port, whose light runs along the outside of the
    edge that leaves the corner clockwise.
    """
    numbered = sorted(set(edges), key=_middle)
    stars = _stars(lattice, numbered)
    vertices = sorted(stars, key=_reading_order)
    number = {vertex: at for at, vertex in enumerate(vertices)}
    joined, beside = _corners(lattice, stars)
    return LatticeCut(
        ends=tuple((number[upper], number[lower]) for upper, lower in numbered),
        junctions=tuple(joined.items()),
        ports=tuple(_round_the_rim(joined, beside, _first(stars[corner]))),
        points=tuple(lattice.paper(vertex) for vertex in vertices),
    )


def hexagon_edges(middle: Vertex) -> Iterator[Edge]:
    """The six edges round a cell of the honeycomb."""
    x, y = middle
    corners = [(x + dx, y + dy) for dx, dy in HONEYCOMB.directions]
    for here, there in zip(corners, corners[1:] + corners[:1], strict=True):
        yield (here, there) if here[1] < there[1] else (there, here)


def square_edges(corner: Vertex) -> Iterator[Edge]:
    """The four edges round a square whose upper left corner is given."""
    x, y = corner
    yield (x, y), (x + 1, y)
    yield (x, y), (x, y + 1)
    yield (x + 1, y), (x + 1, y + 1)
    yield (x, y + 1), (x + 1, y + 1)


def _reading_order(point: Vertex) -> tuple[int, int]:
    x, y = point
    return y, x


def _middle(edge: Edge) -> tuple[int, int]:
    """The middle of an edge, as a sort key for the reading order."""
    (x0, y0), (x1, y1) = edge
    return _reading_order((x0 + x1, y0 + y1))


def _stars(lattice: Lattice, edges: Iterable[Edge]) -> dict[Vertex, _Star]:
    """The edges at every vertex. The clockwise side is side 0 as seen from end 0, and side 1 as seen from end 1."""
    half_turn = len(lattice.directions) // 2
    stars: dict[Vertex, _Star] = {}
    for puc, (upper, lower) in enumerate(edges):
        direction = lattice.directions.index((lower[0] - upper[0], lower[1] - upper[1]))
        stars.setdefault(upper, {})[direction] = 4 * puc
        stars.setdefault(lower, {})[(direction + half_turn) % len(lattice.directions)] = 4 * puc + 3
    return stars


def _corners(lattice: Lattice, stars: Mapping[Vertex, _Star]) -> tuple[dict[int, int], dict[int, int]]:
    """The joined terminals (each pair once), and the two free terminals of every open corner, clockwise."""
    joined: dict[int, int] = {}
    beside: dict[int, int] = {}
    around = len(lattice.directions)
    for star in stars.values():
        for direction, terminal in star.items():
            ahead = min(turn for turn in range(1, around + 1) if (direction + turn) % around in star)
            (joined if ahead == lattice.turn else beside)[terminal] = star[(direction + ahead) % around] ^ 1
    return joined, beside


def _first(star: _Star) -> int:
    """The outer terminal of the first edge after an upper left corner: the edge that leads to the right."""
    return star[min(star)] ^ 1


def _round_the_rim(joined: Mapping[int, int], beside: Mapping[int, int], first: int) -> Iterator[int]:
    """The free terminals, clockwise: along the outside to the next open corner, and across it."""
    peers = dict(joined) | {b: a for a, b in joined.items()}
    terminal = first
    for _ in beside:
        out = terminal ^ 2
        while out in peers:
            out = peers[out] ^ 2
        yield terminal
        yield out
        terminal = beside[out]


_SHAPE = re.compile(r"(?:(?P<kind>hexagon|square):)?(?P<first>[0-9]{1,4})(?:x(?P<second>[0-9]{1,4}))?")
_SAME_PLACE = 6
"""Ends that agree to this many decimals of an edge's length are at the same place."""


@lru_cache(maxsize=64)
def mesh(columns: int, rows: int) -> Mesh:
    """The parallelogram of ``columns`` x ``rows`` hexagonal cells.

    It has 3NM + 2N + 2M - 1 PUCs and 4N + 4M + 4 ports.

    Raises:
        UsageError: there is no such mesh.
    """
    _require(columns, rows, "cells")
    cells = ((2 * column + row, 3 * row) for row in range(rows) for column in range(columns))
    return _honeycomb(f"{columns}x{rows}", cells)


@lru_cache(maxsize=64)
def hexagon(side: int) -> Mesh:
    """A region of hexagonal cells in the shape of a hexagon, ``side`` cells along each of its six sides.

    It has 3n(n - 1) + 1 cells, 9n^2 - 3n PUCs and 12n ports.

    Raises:
        UsageError: there is no such mesh.
    """
    if side < 1:
        raise UsageError(f"a hexagon with a side of {side} cells is not possible", hint="the side is at least 1")
    return _honeycomb(f"hexagon:{side}", _hexagon_of_cells(side))


@lru_cache(maxsize=64)
def square(columns: int, rows: int) -> Mesh:
    """The mesh whose PUCs are the edges of a grid of ``columns`` x ``rows`` squares.

    It has 2NM + N + M PUCs and 4N + 4M ports, two at each vertex of the rim. Each port can be connected to only half of
    the ports. A cross leads light to a neighbouring square and reverses its sense of rotation: light runs in one sense
    on the light squares of a chessboard, and in the other on the dark ones.

    Raises:
        UsageError: there is no such mesh.
    """
    _require(columns, rows, "squares")
    edges = (edge for y in range(rows) for x in range(columns) for edge in square_edges((x, y)))
    return _made(f"square:{columns}x{rows}", cut_lattice(SQUARES, edges, (0, 0)))


def _require(columns: int, rows: int, cells: str) -> None:
    if columns < 1 or rows < 1:
        raise UsageError(f"a mesh of {columns} x {rows} {cells} is not possible", hint="both numbers are at least 1")


def _hexagon_of_cells(side: int) -> Iterator[Vertex]:
    """The middles of the cells; the top left cell is at the origin. Rows grow to the middle row and shrink again."""
    for row in range(2 * side - 1):
        beyond = max(0, row - side + 1)
        for column in range(side + row - 2 * beyond):
            yield 2 * column - row + 2 * beyond, 3 * row


def _honeycomb(name: str, cells: Iterable[Vertex]) -> Mesh:
    edges = (edge for middle in cells for edge in hexagon_edges(middle))
    return _made(name, cut_lattice(HONEYCOMB, edges, _UPPER_LEFT_OF_A_CELL))


def _made(name: str, found: LatticeCut) -> Mesh:
    return Mesh(name, found.ends, joined(len(found.ends), found.junctions), found.ports, found.points)


def shape(text: str) -> Mesh:
    """The mesh that ``text`` names: ``9x9`` (a parallelogram), ``hexagon:3`` or ``square:4x4``.

    Raises:
        UsageError: the text is not a mesh, or the mesh is too large.
    """
    match = _SHAPE.fullmatch(text)
    if match is None or (match["kind"] == "hexagon") != (match["second"] is None):
        near = _nearest_shape(text)
        raise UsageError(f"{text!r} is not a mesh shape", hint=f"{near}examples: 9x9, hexagon:3, square:4x4")
    first, second = int(match["first"]), int(match["second"] or 0)
    if match["kind"] == "hexagon":
        _require_at_most(text, first, MOST_SIDE)
        return hexagon(first)
    _require_at_most(text, max(first, second), MOST_COLUMNS)
    return square(first, second) if match["kind"] == "square" else mesh(first, second)


def _nearest_shape(text: str) -> str:
    """The valid shape that was probably meant, as the beginning of a hint; empty if no shape is similar."""
    numbers = re.findall(r"[1-9][0-9]*", text)[:2]
    word = re.match(r"[a-z]*", text.lower())
    kind = nearest(word[0] if word else "", ("hexagon", "square"))
    if not numbers:
        return ""
    if kind == "hexagon":
        return f"did you mean 'hexagon:{numbers[0]}'? "
    if kind is None and len(numbers) == 1:
        return ""
    return f"did you mean '{'square:' if kind else ''}{numbers[0]}x{numbers[-1]}'? "


def _require_at_most(text: str, number: int, most: int) -> None:
    if number > most:
        raise UsageError(f"the mesh {text} is too large", hint=f"its numbers may be at most {most}")


def mesh_with(geometry: Geometry) -> Mesh:
    """The mesh that has a geometry of an inventory."""
    if geometry.shape is Shape.HEXAGON:
        return hexagon(geometry.side)
    if geometry.shape is Shape.SQUARE:
        return square(geometry.columns, geometry.rows)
    return mesh(geometry.columns, geometry.rows) if geometry.data is None else from_data(geometry.data)


@lru_cache(maxsize=64)
def from_data(data: MeshData) -> Mesh:
    """The mesh that is given as data.

    Raises:
        UsageError: the data do not describe a mesh; the error names the first fault.
    """
    wrong = next(flaws(data), None)
    if wrong is not None:
        at = "" if wrong.item is None else f" {wrong.item}"
        raise UsageError(f"mesh {data.name}: {wrong.field}{at}: {wrong.message}", hint="items are counted from 0")
    peers = joined(data.puc_count, data.junctions)
    free = tuple(terminal for terminal, peer in enumerate(peers) if peer < 0)
    ends, points = _places(data) if data.positions else (_ends(data), ())
    return Mesh(data.name, ends, peers, data.ports or free, points)


def _places(data: MeshData) -> tuple[tuple[tuple[int, int], ...], tuple[Point, ...]]:
    """The vertices of each PUC and their positions; ends at the same place are one vertex."""
    number: dict[Point, int] = {}

    def vertex(point: Point) -> int:
        x, y = point
        # Adding 0.0 turns -0.0 into 0.0.
        return number.setdefault((round(x, _SAME_PLACE) + 0.0, round(y, _SAME_PLACE) + 0.0), len(number))

    ends = tuple((vertex(here), vertex(there)) for here, there in data.positions)
    return ends, tuple(number)


def _ends(data: MeshData) -> tuple[tuple[int, int], ...]:
    """The vertices of each PUC if no positions are given: ends that a waveguide joins are at one vertex."""
    meets = list(range(2 * data.puc_count))

    def first(end: int) -> int:
        while meets[end] != end:
            # Halves the path, so that later look-ups are short.
            meets[end] = meets[meets[end]]
            end = meets[end]
        return end

    for a, b in data.junctions:
        one, other = sorted((first(a >> 1), first(b >> 1)))
        meets[other] = one
    number: dict[int, int] = {}
    vertices = [number.setdefault(first(end), len(number)) for end in range(2 * data.puc_count)]
    return tuple(zip(vertices[::2], vertices[1::2], strict=True))


_UPPER_LEFT_OF_A_CELL: Vertex = (-1, -1)
