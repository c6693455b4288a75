"""Meshes cut from a regular pattern: from cells to PUCs, to waveguides round the corners, and to ports on the rim.

A vertex lies on a grid of whole numbers, and edges can leave it in a few directions, which are listed clockwise. Where
two edges leave a vertex next to each other, a waveguide runs round the corner between them. All other corners are open.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import sqrt

Vertex = tuple[int, int]
"""A point of the grid: to the right, and downwards."""

Edge = tuple[Vertex, Vertex]
"""An edge from its end 0 to its end 1: from the upper one to the lower one, a level edge from left to right."""

Point = tuple[float, float]
"""A point on paper: to the right and downwards, with edges of length 1."""

_Star = dict[int, int]
"""The edges at one vertex: direction -> the terminal there on the edge's clockwise side (``^ 1``: the other one)."""


@dataclass(frozen=True, slots=True)
class Lattice:
    """A regular pattern. ``directions`` are the ways an edge can leave a vertex, clockwise from straight up.

    Two edges have a corner between them if they are ``turn`` directions apart. ``across`` and ``down`` are what one
    step of the grid is on paper.
    """

    directions: tuple[Vertex, ...]
    turn: int
    across: float
    down: float

    def paper(self, vertex: Vertex) -> Point:
        """Where a vertex lies on paper."""
        return vertex[0] * self.across, vertex[1] * self.down


# Corners up. The edges at a vertex are 120 degrees apart, and the six directions are also where the vertices of a cell
# lie, seen from its middle.
HONEYCOMB = Lattice(((0, -2), (1, -1), (1, 1), (0, 2), (-1, 1), (-1, -1)), turn=2, across=sqrt(3) / 2, down=0.5)
SQUARES = Lattice(((0, -1), (1, 0), (0, 1), (-1, 0)), turn=1, across=1.0, down=1.0)


@dataclass(frozen=True, slots=True)
class Cut:
    """A mesh cut from a lattice: the vertices of each PUC, what is joined, the ports, where the vertices lie."""

    ends: tuple[tuple[int, int], ...]
    junctions: tuple[tuple[int, int], ...]
    ports: tuple[int, ...]
    points: tuple[Point, ...]


def cut(lattice: Lattice, edges: Iterable[Edge], corner: Vertex) -> Cut:
    """The mesh that has these edges; edges may come twice.

    ``corner`` is an open corner at the upper left: the first port is where light goes in there to run along the outside
    of the edge that leaves it clockwise.
    """
    numbered = sorted(set(edges), key=_middle)
    stars = _stars(lattice, numbered)
    vertices = sorted(stars, key=_reading_order)
    number = {vertex: at for at, vertex in enumerate(vertices)}
    joined, beside = _corners(lattice, stars)
    return Cut(
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
    """Where an edge stands in reading order."""
    (x0, y0), (x1, y1) = edge
    return _reading_order((x0 + x1, y0 + y1))


def _stars(lattice: Lattice, edges: Iterable[Edge]) -> dict[Vertex, _Star]:
    """The edges at every vertex. Seen from end 0 the clockwise side is side 0, seen from end 1 it is side 1."""
    half_turn = len(lattice.directions) // 2
    stars: dict[Vertex, _Star] = {}
    for puc, (upper, lower) in enumerate(edges):
        direction = lattice.directions.index((lower[0] - upper[0], lower[1] - upper[1]))
        stars.setdefault(upper, {})[direction] = 4 * puc
        stars.setdefault(lower, {})[(direction + half_turn) % len(lattice.directions)] = 4 * puc + 3
    return stars


def _corners(lattice: Lattice, stars: Mapping[Vertex, _Star]) -> tuple[dict[int, int], dict[int, int]]:
    """What is joined (each pair once), and the two free terminals of every open corner, clockwise."""
    joined: dict[int, int] = {}
    beside: dict[int, int] = {}
    around = len(lattice.directions)
    for star in stars.values():
        for direction, terminal in star.items():
            ahead = min(turn for turn in range(1, around + 1) if (direction + turn) % around in star)
            (joined if ahead == lattice.turn else beside)[terminal] = star[(direction + ahead) % around] ^ 1
    return joined, beside


def _first(star: _Star) -> int:
    """The terminal outside of the first edge after an upper left corner: the one that leads to the right."""
    return star[min(star)] ^ 1


def _round_the_rim(joined: Mapping[int, int], beside: Mapping[int, int], first: int) -> Iterator[int]:
    """The free terminals clockwise: along the outside to the next open corner, and across it."""
    peers = dict(joined) | {b: a for a, b in joined.items()}
    terminal = first
    for _ in beside:
        out = terminal ^ 2
        while out in peers:
            out = peers[out] ^ 2
        yield terminal
        yield out
        terminal = beside[out]
