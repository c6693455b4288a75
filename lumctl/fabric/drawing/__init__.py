"""Draws meshes with their circuits: in characters for a terminal, as SVG, as PNG. It reads and writes no files."""

from collections.abc import Mapping, Sequence

from lumctl.devices.types import PucState
from lumctl.fabric.condition import MeshCondition
from lumctl.fabric.drawing.circuits import carried
from lumctl.fabric.drawing.colours import terminal_style
from lumctl.fabric.drawing.difference import MeshDifference, NamedRoutes, difference
from lumctl.fabric.drawing.image import painted, written
from lumctl.fabric.drawing.picture import picture
from lumctl.fabric.drawing.text import Glyph, Row, legend, marks_row, text
from lumctl.fabric.geometry import Mesh
from lumctl.fabric.routing import Route

__all__ = [
    "Glyph",
    "MeshDifference",
    "NamedRoutes",
    "Row",
    "carried",
    "difference",
    "legend",
    "marks_row",
    "png",
    "svg",
    "terminal_style",
    "text",
]


def svg(
    mesh: Mesh,
    states: Mapping[int, PucState],
    routes: Sequence[Route],
    *,
    condition: MeshCondition,
    names: Sequence[str] = (),
    title: str = "",
) -> str:
    """Draw a mesh with its circuits as SVG. Without a ``title`` the mesh's own name is the title.

    Raises:
        UsageError: the mesh has no positions.
        InconsistentFabricError: a route is not a path through this mesh.
    """
    return written(picture(carried(mesh, states, routes, condition, names), title or mesh.name))


def png(
    mesh: Mesh,
    states: Mapping[int, PucState],
    routes: Sequence[Route],
    *,
    condition: MeshCondition,
    names: Sequence[str] = (),
    title: str = "",
    scale: float = 2,
) -> bytes:
    """The same picture as PNG; with a ``scale`` of 1 an edge is 60 pixels long.

    Raises:
        UsageError: the mesh has no positions, Pillow is not installed, or the scale is invalid.
        InconsistentFabricError: a route is not a path through this mesh.
    """
    return painted(picture(carried(mesh, states, routes, condition, names), title or mesh.name), scale)
