"""The shape of a hexagonal mesh: its cells, PUCs, waveguides and ports, and how all of them are numbered.

A mesh is a parallelogram of hexagonal cells, corners up, each row half a cell further to the right than the row above.
Every edge of a hexagon is one PUC: two waveguides run along it, one on the side of each cell that the edge parts.

PUCs are numbered from 0 in reading order of their middles: top to bottom, then left to right.

A PUC has two *ends* (end 0 is the upper one) and two *sides* (side 0 is the left one on paper). Its four *terminals*
are numbered ``4 * puc + 2 * end + side``, so that bar leads from terminal ``t`` to ``t ^ 2`` (other end, same side) and
cross to ``t ^ 3`` (other end, other side); nothing leads back to the end where light came in.

Where edges meet, a short waveguide runs round each corner between two of them. Where only two edges meet, no waveguide
closes the outer corner: the two terminals there are *ports*, ways in and out of the mesh. Ports are numbered from 0
along the perimeter, clockwise: port 0 lies at the upper left vertex of the top left cell, where light goes in to run
along the outside of the top edge, and the last port is its neighbour at that vertex. With every PUC in bar light keeps
to the outside: port 0 is joined with 1, port 2 with 3, and so on.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from lumctl.errors import UsageError

Vertex = tuple[int, int]
"""A point of the drawing: ``x`` in half cell widths to the right, ``y`` in half edge lengths downwards.

With edges of length 1 on paper it lies at ``(x * sqrt(3) / 2, y / 2)``.
"""

PortPair = tuple[int, int]
"""Two ports: the ends of a circuit, or of one that is wanted."""

FREE = -1
"""Stands for the far terminal of a waveguide that leaves the mesh."""

# The six ways an edge can leave a vertex, clockwise from straight up, and also where a cell's vertices lie, seen from
# its middle. The edges that meet at a vertex are two directions (120 degrees) apart.
_AROUND: tuple[Vertex, ...] = ((0, -2), (1, -1), (1, 1), (0, 2), (-1, 1), (-1, -1))
_UP_RIGHT = 1
_UPPER_LEFT: Vertex = (-1, -1)

_Star = dict[int, int]
"""The edges at one vertex: direction -> the terminal there on the edge's clockwise side (``^ 1``: the other one)."""


@dataclass(frozen=True, eq=False)
class Mesh:
    """A mesh of ``columns`` x ``rows`` cells. Equal shapes are the same object: see :func:`mesh`.

    ``vertices`` are the drawing's points in reading order, ``ends[puc]`` the two vertices of a PUC, ``peers[t]`` the
    terminal at the far end of the waveguide at terminal ``t`` (:data:`FREE` at a port), ``ports[p]`` the terminal of
    port ``p``.
    """

    columns: int
    rows: int
    vertices: tuple[Vertex, ...]
    ends: tuple[tuple[int, int], ...]
    peers: tuple[int, ...]
    ports: tuple[int, ...]

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

    def port_vertex(self, port: int) -> Vertex:
        """The point of the perimeter at which a port lies."""
        puc, terminal = divmod(self.ports[port], 4)
        return self.vertices[self.ends[puc][terminal >> 1]]


@lru_cache(maxsize=64)
def mesh(columns: int, rows: int) -> Mesh:
    """The mesh of ``columns`` x ``rows`` cells.

    Raises:
        UsageError: there is no such mesh.
    """
    if columns < 1 or rows < 1:
        raise UsageError(f"a mesh of {columns} x {rows} cells cannot be", hint="both numbers start at 1")
    edges = sorted({edge for middle in _cells(columns, rows) for edge in _outline(middle)}, key=_middle)
    stars = _stars(edges)
    vertices = sorted(stars, key=_reading_order)
    number = {vertex: at for at, vertex in enumerate(vertices)}
    peers, ports = _waveguides(stars, 4 * len(edges))
    return Mesh(
        columns=columns,
        rows=rows,
        vertices=tuple(vertices),
        ends=tuple((number[upper], number[lower]) for upper, lower in edges),
        peers=peers,
        ports=ports,
    )


def _cells(columns: int, rows: int) -> Iterator[Vertex]:
    """The middles of all cells; the top left one's is the origin."""
    for row in range(rows):
        for column in range(columns):
            yield 2 * column + row, 3 * row


def _outline(middle: Vertex) -> Iterator[tuple[Vertex, Vertex]]:
    """The six edges round a cell, each from its upper end to its lower one."""
    x, y = middle
    corners = [(x + dx, y + dy) for dx, dy in _AROUND]
    for here, there in zip(corners, corners[1:] + corners[:1], strict=True):
        yield (here, there) if here[1] < there[1] else (there, here)


def _reading_order(point: Vertex) -> tuple[int, int]:
    x, y = point
    return y, x


def _middle(edge: tuple[Vertex, Vertex]) -> tuple[int, int]:
    """Where an edge stands in reading order."""
    (x0, y0), (x1, y1) = edge
    return _reading_order((x0 + x1, y0 + y1))


def _stars(edges: Iterable[tuple[Vertex, Vertex]]) -> dict[Vertex, _Star]:
    """The edges at every vertex. Seen from end 0 the clockwise side is side 0, seen from end 1 it is side 1."""
    stars: dict[Vertex, _Star] = {}
    for puc, (upper, lower) in enumerate(edges):
        direction = _AROUND.index((lower[0] - upper[0], lower[1] - upper[1]))
        stars.setdefault(upper, {})[direction] = 4 * puc
        stars.setdefault(lower, {})[(direction + 3) % 6] = 4 * puc + 3
    return stars


def _waveguides(stars: Mapping[Vertex, _Star], terminals: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Join the terminals round every corner; what no corner joins are the ports, in the order of the perimeter."""
    peers = [FREE] * terminals
    neighbour: dict[int, int] = {}
    for star in stars.values():
        for direction, terminal in star.items():
            across = star.get((direction + 2) % 6)
            if across is not None:
                peers[terminal], peers[across ^ 1] = across ^ 1, terminal
            else:  # an open corner: the next edge clockwise is a third of a turn further on
                neighbour[terminal] = star[(direction + 4) % 6] ^ 1
    ports: list[int] = []
    terminal = stars[_UPPER_LEFT][_UP_RIGHT] ^ 1
    while len(ports) < 2 * len(neighbour):
        out = terminal ^ 2
        while peers[out] != FREE:  # clockwise along the outside to the next open corner
            out = peers[out] ^ 2
        ports += (terminal, out)
        terminal = neighbour[out]
    return tuple(peers), tuple(ports)
