"""Meshes: their PUCs, waveguides and ports, and how all of them are numbered.

A mesh is a parallelogram of hexagonal cells, corners up, each row half a cell further to the right than the row above;
or a region of such cells in the shape of a hexagon; or a grid of squares; or what data say. Every edge of a cell is one
PUC: two waveguides run along it, one on the side of each cell that the edge parts.

PUCs are numbered from 0 in reading order of their middles: top to bottom, then left to right.

A PUC has two *ends* (end 0 is the upper one, or the left one of a level edge) and two *sides* (side 0 is the left one
on paper, or the lower one of a level edge: from end 0 to end 1 the one on the right hand). Its four *terminals* are
numbered ``4 * puc + 2 * end + side``, so that bar leads from terminal ``t`` to ``t ^ 2`` (other end, same side) and
cross to ``t ^ 3`` (other end, other side); nothing leads back to the end where light came in.

Where edges meet, a short waveguide runs round each corner between two neighbouring ones. A corner on the rim that is
wider than those inside has no waveguide: the two terminals there are *ports*, ways in and out of the mesh. In a
honeycomb that is where only two edges meet, in a grid of squares every vertex of the rim. Ports are numbered from 0
along the perimeter, clockwise: port 0 lies at the upper left vertex of the top left cell, where light goes in to run
along the outside of the top edge, and the last port is its neighbour at that vertex. With every PUC in bar light keeps
to the outside: port 0 is joined with 1, port 2 with 3, and so on.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from lumctl.errors import UsageError
from lumctl.fabric.lattice import HONEYCOMB, SQUARES, Cut, Point, Vertex, cut, hexagon_edges, square_edges

PortPair = tuple[int, int]
"""Two ports: the ends of a circuit, or of one that is wanted."""

FREE = -1
"""Stands for the far terminal of a waveguide that leaves the mesh."""

_UPPER_LEFT_OF_A_CELL: Vertex = (-1, -1)


@dataclass(frozen=True, eq=False)
class Mesh:
    """A mesh. Equal shapes are the same object: they are made by :func:`mesh` and its like, and kept.

    ``ends[puc]`` are the two vertices of a PUC, ``peers[t]`` is the terminal at the far end of the waveguide at
    terminal ``t`` (:data:`FREE` at a port), ``ports[p]`` the terminal of port ``p``. ``points`` is where each vertex
    lies on paper, to the right and downwards, with edges of length 1; it is empty where that is not known.
    """

    name: str
    ends: tuple[tuple[int, int], ...]
    peers: tuple[int, ...]
    ports: tuple[int, ...]
    points: tuple[Point, ...] = ()

    @property
    def puc_count(self) -> int:
        """How many PUCs the mesh has."""
        return len(self.ends)

    @property
    def port_count(self) -> int:
        """How many ports the mesh has."""
        return len(self.ports)

    @cached_property
    def port_at(self) -> Mapping[int, int]:
        """Terminal on the perimeter -> number of its port."""
        return {terminal: port for port, terminal in enumerate(self.ports)}

    def port_vertex(self, port: int) -> int:
        """The vertex at which a port lies."""
        puc, terminal = divmod(self.ports[port], 4)
        return self.ends[puc][terminal >> 1]


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
        raise UsageError(f"a hexagon with a side of {side} cells cannot be", hint="the side starts at 1")
    return _honeycomb(f"hexagon:{side}", _hexagon_of_cells(side))


@lru_cache(maxsize=64)
def square(columns: int, rows: int) -> Mesh:
    """The mesh whose PUCs are the edges of a grid of ``columns`` x ``rows`` squares.

    It has 2NM + N + M PUCs and 4N + 4M ports, two at each vertex of the rim. Each port can be joined with half of the
    ports only: a cross leads light to a neighbouring square and turns its sense round, so on the light squares of a
    chessboard it always runs one way round, and on the dark ones the other.

    Raises:
        UsageError: there is no such mesh.
    """
    _require(columns, rows, "squares")
    edges = (edge for y in range(rows) for x in range(columns) for edge in square_edges((x, y)))
    return _made(f"square:{columns}x{rows}", cut(SQUARES, edges, (0, 0)))


def joined(puc_count: int, junctions: Iterable[tuple[int, int]]) -> tuple[int, ...]:
    """The far terminal for every terminal, from the pairs that are joined."""
    peers = [FREE] * (4 * puc_count)
    for a, b in junctions:
        peers[a], peers[b] = b, a
    return tuple(peers)


def _require(columns: int, rows: int, cells: str) -> None:
    if columns < 1 or rows < 1:
        raise UsageError(f"a mesh of {columns} x {rows} {cells} cannot be", hint="both numbers start at 1")


def _hexagon_of_cells(side: int) -> Iterator[Vertex]:
    """The middles of the cells; the top left one's is the origin. The rows grow to the middle one and shrink again."""
    for row in range(2 * side - 1):
        beyond = max(0, row - side + 1)
        for column in range(side + row - 2 * beyond):
            yield 2 * column - row + 2 * beyond, 3 * row


def _honeycomb(name: str, cells: Iterable[Vertex]) -> Mesh:
    edges = (edge for middle in cells for edge in hexagon_edges(middle))
    return _made(name, cut(HONEYCOMB, edges, _UPPER_LEFT_OF_A_CELL))


def _made(name: str, found: Cut) -> Mesh:
    return Mesh(name, found.ends, joined(len(found.ends), found.junctions), found.ports, found.points)
