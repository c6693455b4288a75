"""Draws a change of a mesh in characters: circuits added, removed and kept, and the PUCs that are written."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lumctl.devices.types import PucState
from lumctl.fabric.condition import MeshCondition
from lumctl.fabric.drawing.circuits import Carried, DrawnCircuit, carried
from lumctl.fabric.drawing.text import Glyph, Row, drawn, grid, rows_of
from lumctl.fabric.geometry import Mesh
from lumctl.fabric.routing import Route

_TO: Mapping[PucState, str] = {PucState.CROSS: "+", PucState.BAR: "-"}
_DARK, _DARK_ASCII = "\u00b7", "."


@dataclass(frozen=True, slots=True)
class NamedRoutes:
    """Circuits with their routes; a name and its route have the same index."""

    names: tuple[str, ...] = ()
    routes: tuple[Route, ...] = ()


@dataclass(frozen=True, slots=True)
class MeshDifference:
    """A drawn change: its rows, the legend of its marks, and the circuits with their letters, added ones first."""

    rows: tuple[Row, ...]
    marks: Row
    added: tuple[DrawnCircuit, ...]
    kept: tuple[DrawnCircuit, ...]


def difference(  # noqa: PLR0913 - the states before and after, and how to draw them
    mesh: Mesh,
    before: Mapping[int, PucState],
    after: Mapping[int, PucState],
    *,
    added: NamedRoutes,
    removed: Sequence[Route],
    kept: NamedRoutes,
    condition: MeshCondition,
    ascii_only: bool = False,
    width: int = 120,
) -> MeshDifference:
    """Draw a mesh after a change: added circuits are highlighted, kept ones are grey, dots mark paths that go dark.

    A PUC that changes shows its new state: ``+`` cross, ``-`` bar.

    Raises:
        UsageError: the mesh has no positions, or does not fit.
        InconsistentFabricError: a route is not a path through this mesh.
    """
    shown = carried(mesh, after, (*added.routes, *kept.routes), condition, (*added.names, *kept.names))
    places = grid(mesh, width)
    cells = drawn(shown, places, ascii_only=ascii_only, chosen=range(len(added.routes)))
    gone = carried(mesh, before, removed, condition, ())
    for terminal in gone.lit:
        # The two terminals of a waveguide share one character, so both must be dark.
        if terminal not in shown.lit and mesh.peers[terminal] not in shown.lit:
            cells[places.letters[terminal]] = Glyph(_DARK_ASCII if ascii_only else _DARK, "removed")
    for puc, mark in _changes(shown, before, after).items():
        cells.update(dict.fromkeys(places.pucs[puc], Glyph(mark, "changed")))
    return MeshDifference(
        rows_of(cells, places),
        _meanings(ascii_only=ascii_only),
        shown.circuits[: len(added.routes)],
        shown.circuits[len(added.routes) :],
    )


def _changes(shown: Carried, before: Mapping[int, PucState], after: Mapping[int, PucState]) -> dict[int, str]:
    """The sign of the new state of each PUC that changes; a stuck PUC does not change, whatever is written."""
    return {
        puc: _TO[state]
        for puc, state in after.items()
        if before.get(puc) is not state and puc not in shown.condition.stuck
    }


def _meanings(*, ascii_only: bool) -> Row:
    dot = _DARK_ASCII if ascii_only else _DARK
    words: tuple[tuple[str, str], ...] = (
        ("+", "changed"),
        (" becomes cross   ", ""),
        ("-", "changed"),
        (" becomes bar   ", ""),
        (dot, "removed"),
        (" goes dark   ", ""),
        ("A", "chosen:0"),
        (" added   ", ""),
        ("B", "quiet"),
        (" stays", "quiet"),
    )
    return tuple(Glyph(char, style) for text, style in words for char in text)
