"""What a plan makes of each mesh, as a picture that scrolls."""

from collections.abc import Sequence

from lumctl.tui.look.marks import Marks
from lumctl.tui.views.change_drawing import change_lines
from lumctl.tui.views.meshes import MeshChange
from lumctl.tui.widgets.picture import Picture

NO_CHANGE = "this plan changes no mesh that could be drawn"


class ChangePicture(Picture, can_focus=True):
    """Hidden until its screen has the class ``-viewing``."""

    def draw(self, changes: Sequence[MeshChange], width: int, marks: Marks) -> None:
        """Draw the meshes for a screen of so many columns."""
        lines = change_lines(changes, width=width - 4, marks=marks)
        self.show(len(lines), max(line.cell_len for line in lines), lambda line: lines[line])
