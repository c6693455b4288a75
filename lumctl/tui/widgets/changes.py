"""The changes of a plan to each mesh, as a picture that scrolls."""

from collections.abc import Iterator, Sequence

from rich.text import Text

from lumctl.errors import LumctlError
from lumctl.fabric import condition_of, mesh_of
from lumctl.fabric.drawing import MeshDifference, difference
from lumctl.fabric.drawing.circuits import DrawnCircuit
from lumctl.printable import counted, stay
from lumctl.tui.look.marks import HEADING_STYLE, QUIET_STYLE, Marks
from lumctl.tui.views.mesh_drawing import fitting, styled
from lumctl.tui.views.meshes import MeshChange
from lumctl.tui.widgets.picture import PictureWidget


def change_lines(changes: Sequence[MeshChange], *, width: int, marks: Marks) -> list[Text]:
    """The pictures of a plan one below the other; a mesh that cannot be drawn lists its circuits instead."""
    return [line for change in changes for line in _lines(change, width, marks)]


def _lines(change: MeshChange, width: int, marks: Marks) -> Iterator[Text]:
    written = sum(change.before.get(puc) is not state for puc, state in change.after.items())
    changed = f"{counted(written, 'PUCs')} {'changes' if written == 1 else 'change'}"
    yield _told(f"{change.device.id}: {changed}, {stay(len(change.kept.names), 'circuits')}", HEADING_STYLE)
    yield _told("")
    try:
        drawn = _drawn(change, width, marks)
    except LumctlError as error:
        yield _told(error.message, QUIET_STYLE)
        yield from (_told(f"+ {name}") for name in change.added.names)
        yield from (_told(f"- {name}") for name in change.removed.names)
        return
    yield from map(styled, drawn.rows)
    yield _told("")
    yield styled(drawn.marks)
    yield from (_added(circuit) for circuit in drawn.added)
    for name, route in zip(change.removed.names, change.removed.routes, strict=True):
        a, b = route.ports
        dark = f"{counted(len(route.pucs), 'PUCs')} {'goes' if len(route.pucs) == 1 else 'go'} dark"
        yield _told(f"-    {name}  {a}:{b}  {dark}", "removed")
    yield _told("")


def _drawn(change: MeshChange, width: int, marks: Marks) -> MeshDifference:
    def drawn(columns: int) -> MeshDifference:
        return difference(
            mesh_of(change.device),
            change.before,
            change.after,
            added=change.added,
            removed=change.removed.routes,
            kept=change.kept,
            condition=condition_of(change.device),
            ascii_only=marks.ascii_only,
            width=columns,
        )

    return fitting(drawn, width)


def _added(circuit: DrawnCircuit) -> Text:
    a, b = circuit.ports
    text = _told("+ ", "changed")
    text.append(f" {circuit.letter} {circuit.name}  {a}:{b}  {counted(len(circuit.legs), 'PUCs')}", style="not reverse")
    return text


def _told(words: str, style: str = "") -> Text:
    return Text(words, style=style, no_wrap=True, end="")


NO_CHANGE = "this plan changes no mesh that can be drawn"


class ChangePicture(PictureWidget, can_focus=True):
    """The picture of a plan's changes; hidden until its screen has the class ``-viewing``."""

    def draw(self, changes: Sequence[MeshChange], width: int, marks: Marks) -> None:
        """Draw the meshes for a screen of ``width`` columns."""
        lines = change_lines(changes, width=width - 4, marks=marks)  # minus the padding and the scroll bar
        self.show(len(lines), max(line.cell_len for line in lines), lambda line: lines[line])
