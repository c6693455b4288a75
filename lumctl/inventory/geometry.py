"""The shapes that a mesh may have, as far as an inventory must know them: what they are called and how much they hold.

Where everything lies in them is :mod:`lumctl.fabric.geometry`.
"""

from dataclasses import dataclass
from enum import StrEnum

from lumctl.inventory.mesh_data import MeshData

MOST_COLUMNS = 64
"""The largest mesh has so many columns and rows."""

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

    A region in the shape of a hexagon has as many columns and rows as there are cells across its middle. A mesh that is
    given as data has it here, and no columns and rows.
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
        """A mesh as data says."""
        return cls(0, 0, Shape.GIVEN, data)

    @property
    def side(self) -> int:
        """How many cells lie along a side of a region in the shape of a hexagon."""
        return (self.columns + 1) // 2

    @property
    def name(self) -> str:
        """The shape as a command takes it: ``9x9``, ``hexagon:3``, ``square:4x4``; the own name of a given mesh."""
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
        """The shape for people."""
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
            case Shape.PARALLELOGRAM:  # three edges for each hexagon, and those that close the rim
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
            raise ValueError("a mesh that is given has data")
        return self.data
