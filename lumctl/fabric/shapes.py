"""Meshes by what they are called, by what an inventory says of them, and from data."""

import re
from functools import lru_cache

from lumctl.errors import UsageError
from lumctl.fabric.geometry import Mesh, hexagon, joined, mesh, square
from lumctl.fabric.lattice import Point
from lumctl.inventory.geometry import MOST_COLUMNS, MOST_SIDE, Geometry, Shape
from lumctl.inventory.mesh_data import MeshData, flaws

_SHAPE = re.compile(r"(?:(?P<kind>hexagon|square):)?(?P<first>[0-9]{1,4})(?:x(?P<second>[0-9]{1,4}))?")
_SAME_PLACE = 6
"""To how many decimals of an edge's length two ends lie at one place."""


def shape(text: str) -> Mesh:
    """The mesh that ``text`` names: ``9x9`` (a parallelogram), ``hexagon:3`` or ``square:4x4``.

    Raises:
        UsageError: it names none, or one that is too large.
    """
    match = _SHAPE.fullmatch(text)
    if match is None or (match["kind"] == "hexagon") != (match["second"] is None):
        raise UsageError(f"{text!r} is no shape of a mesh", hint="such as 9x9, hexagon:3 or square:4x4")
    first, second = int(match["first"]), int(match["second"] or 0)
    if match["kind"] == "hexagon":
        _require_at_most(text, first, MOST_SIDE)
        return hexagon(first)
    _require_at_most(text, max(first, second), MOST_COLUMNS)
    return square(first, second) if match["kind"] == "square" else mesh(first, second)


def _require_at_most(text: str, number: int, most: int) -> None:
    if number > most:
        raise UsageError(f"the mesh {text} is too large", hint=f"its numbers may be {most} at most")


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
        UsageError: the data are not those of a mesh; the first thing that is wrong is named.
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
    """The vertices of each PUC and where they lie: what lies at one place is one vertex."""
    number: dict[Point, int] = {}

    def vertex(point: Point) -> int:
        x, y = point
        # Adding 0.0 makes -0.0 the 0.0 that it equals.
        return number.setdefault((round(x, _SAME_PLACE) + 0.0, round(y, _SAME_PLACE) + 0.0), len(number))

    ends = tuple((vertex(here), vertex(there)) for here, there in data.positions)
    return ends, tuple(number)


def _ends(data: MeshData) -> tuple[tuple[int, int], ...]:
    """The vertices of each PUC where no places are given: ends that a waveguide joins are at one vertex."""
    meets = list(range(2 * data.puc_count))

    def first(end: int) -> int:
        while meets[end] != end:
            meets[end] = meets[meets[end]]
            end = meets[end]
        return end

    for a, b in data.junctions:
        one, other = sorted((first(a >> 1), first(b >> 1)))
        meets[other] = one
    number: dict[int, int] = {}
    vertices = [number.setdefault(first(end), len(number)) for end in range(2 * data.puc_count)]
    return tuple(zip(vertices[::2], vertices[1::2], strict=True))
