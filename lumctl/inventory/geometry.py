"""The shapes of meshes, as far as an inventory needs them: their names and their sizes.

:mod:`lumctl.fabric.geometry` has the positions of a mesh's parts.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from math import isfinite
from typing import NamedTuple

Point = tuple[float, float]
"""A position in a drawing: to the right, and downwards."""

MOST_PUCS = 50_000


@dataclass(frozen=True, slots=True)
class MeshData:
    """A mesh as data; :func:`flaws` finds its errors.

    ``junctions`` are pairs of terminals. ``ports`` are all free terminals in the order of the port numbers; if empty,
    ports are in the order of the terminals. ``positions`` has the positions of the two ends of each PUC, with an edge
    length of about 1; it is empty if the mesh cannot be drawn.
    """

    name: str
    puc_count: int
    junctions: tuple[tuple[int, int], ...]
    ports: tuple[int, ...] = ()
    positions: tuple[tuple[Point, Point], ...] = ()

    def __hash__(self) -> int:
        # Every trace looks up the shape. Hashing thousands of junctions each time would be slow.
        return hash((self.name, self.puc_count, len(self.junctions)))

    @property
    def port_count(self) -> int:
        """Number of ports: every PUC has four terminals, and every junction takes two of them."""
        return 4 * self.puc_count - 2 * len(self.junctions)


class Flaw(NamedTuple):
    """One error: the field of the data, and the item in it (``None``: the whole field)."""

    field: str
    item: int | None
    message: str


def spoken(terminal: int) -> str:
    """A terminal in words."""
    puc, rest = divmod(terminal, 4)
    return f"PUC {puc} end {rest >> 1} side {rest & 1}"


def flaws(data: MeshData) -> Iterator[Flaw]:
    """All errors in the data, each in one line."""
    if not 1 <= data.puc_count <= MOST_PUCS:
        yield Flaw("puc_count", None, f"found {data.puc_count} PUCs, expected 1 to {MOST_PUCS}")
        return
    junctions = tuple(_junction_flaws(data))
    yield from junctions
    if not junctions:  # with wrong junctions it is not certain which terminals are free
        yield from _port_flaws(data)
    yield from _position_flaws(data)


def _junction_flaws(data: MeshData) -> Iterator[Flaw]:
    last = 4 * data.puc_count - 1
    first_joined: dict[int, int] = {}
    for at, (a, b) in enumerate(data.junctions):
        outside = [terminal for terminal in (a, b) if not 0 <= terminal <= last]
        if outside:
            message = f"found {spoken(outside[0])}, expected PUCs 0 to {data.puc_count - 1}"
            yield Flaw("junctions", at, message)
            continue
        if a >> 2 == b >> 2:
            yield Flaw("junctions", at, f"PUC {a >> 2} is connected to itself")
            continue
        for terminal in (a, b):
            if first_joined.setdefault(terminal, at) != at:
                message = f"{spoken(terminal)} is connected twice, first in junction {first_joined[terminal]} (from 0)"
                yield Flaw("junctions", at, message)


def _port_flaws(data: MeshData) -> Iterator[Flaw]:
    if data.port_count < 2:  # noqa: PLR2004 - light enters at one port and leaves at another
        yield Flaw("junctions", None, "every waveguide end is connected: no port is left, expected at least two")
        return
    if not data.ports:
        return
    joined = {terminal for junction in data.junctions for terminal in junction}
    free = set(range(4 * data.puc_count)) - joined
    seen = Counter[int]()
    for at, terminal in enumerate(data.ports):
        seen[terminal] += 1
        if terminal not in free:
            why = "is connected, so it is not a port" if terminal in joined else "is not on the mesh"
            yield Flaw("ports", at, f"{spoken(terminal)} {why}")
        elif seen[terminal] > 1:
            yield Flaw("ports", at, f"{spoken(terminal)} is listed twice")
    missing = sorted(free - set(seen))
    if missing:
        are = "is" if len(missing) == 1 else f"and {len(missing) - 1} more are"
        verb = "is" if len(missing) == 1 else "are"
        message = f"{spoken(missing[0])} {are} connected to nothing and {verb} not here"
        yield Flaw("ports", None, message)


def _position_flaws(data: MeshData) -> Iterator[Flaw]:
    if data.positions and len(data.positions) != data.puc_count:
        message = f"found {len(data.positions)} positions, expected one for each of the {data.puc_count} PUCs"
        yield Flaw("positions", None, message)
    for at, (here, there) in enumerate(data.positions):
        if not all(isfinite(number) for number in (*here, *there)):
            yield Flaw("positions", at, "found a number that is not finite")
        elif here == there:
            yield Flaw("positions", at, f"both ends of PUC {at} have the same position")


MOST_COLUMNS = 64
"""The most columns, and the most rows, of a mesh."""

MOST_SIDE = 32
"""The longest side of a region in the shape of a hexagon, in cells."""


class Shape(StrEnum):
    """How the cells of a mesh lie. ``given``: it has no cells of one kind, its waveguides are given as data."""

    PARALLELOGRAM = "parallelogram"
    HEXAGON = "hexagon"
    SQUARE = "square"
    GIVEN = "given"


@dataclass(frozen=True, slots=True)
class Geometry:
    """The shape of a mesh: ``columns`` x ``rows`` cells, hexagons or (in a square mesh) squares.

    A hexagonal region has as many columns and rows as there are cells across its middle. A mesh given as data has no
    columns and rows.
    """

    columns: int
    rows: int
    shape: Shape = Shape.PARALLELOGRAM
    data: MeshData | None = None

    @classmethod
    def hexagon(cls, side: int) -> "Geometry":
        """A region of hexagonal cells in the shape of a hexagon, ``side`` cells along each of its sides."""
        return cls(2 * side - 1, 2 * side - 1, Shape.HEXAGON)

    @classmethod
    def given(cls, data: MeshData) -> "Geometry":
        """A mesh as data."""
        return cls(0, 0, Shape.GIVEN, data)

    @property
    def side(self) -> int:
        """The number of cells along a side of a region in the shape of a hexagon."""
        return (self.columns + 1) // 2

    @property
    def name(self) -> str:
        """The shape as a command takes it.

        ``9x9``, ``hexagon:3``, ``square:4x4``; the name of a mesh given as data.
        """
        match self.shape:
            case Shape.PARALLELOGRAM:
                return f"{self.columns}x{self.rows}"
            case Shape.HEXAGON:
                return f"hexagon:{self.side}"
            case Shape.SQUARE:
                return f"square:{self.columns}x{self.rows}"
            case Shape.GIVEN:
                return self._data.name

    @property
    def described(self) -> str:
        """The shape in words, for messages."""
        match self.shape:
            case Shape.PARALLELOGRAM:
                return f"{self.columns} x {self.rows} cells"
            case Shape.HEXAGON:
                return f"hexagon of side {self.side}"
            case Shape.SQUARE:
                return f"{self.columns} x {self.rows} squares"
            case Shape.GIVEN:
                return self._data.name

    @property
    def puc_count(self) -> int:
        """Number of PUCs: one for each edge of the cells."""
        match self.shape:
            case Shape.PARALLELOGRAM:  # three edges for each hexagon, and the edges that close the rim
                return 3 * self.columns * self.rows + 2 * self.columns + 2 * self.rows - 1
            case Shape.HEXAGON:
                return 9 * self.side**2 - 3 * self.side
            case Shape.SQUARE:
                return 2 * self.columns * self.rows + self.columns + self.rows
            case Shape.GIVEN:
                return self._data.puc_count

    @property
    def port_count(self) -> int:
        """Number of ports: two free waveguides at each open corner of the rim."""
        match self.shape:
            case Shape.PARALLELOGRAM:
                return 4 * self.columns + 4 * self.rows + 4
            case Shape.HEXAGON:
                return 12 * self.side
            case Shape.SQUARE:
                return 4 * self.columns + 4 * self.rows
            case Shape.GIVEN:
                return self._data.port_count

    @property
    def _data(self) -> MeshData:
        if self.data is None:
            raise ValueError("a mesh with the shape 'given' needs data")
        return self.data
