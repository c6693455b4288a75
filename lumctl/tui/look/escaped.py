"""The last thing every line of the dashboard goes through: what devices and hosts say cannot command the terminal."""

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

from lumctl.printable import printable


class Escaped(LineFilter):
    """Shows control and format characters as their escapes, within the width that the text has without them."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:  # noqa: ARG002 - Textual's signature
        """The line, safe to print."""
        return [each if each.control or each.text.isprintable() else _escaped(each) for each in segments]


def _escaped(segment: Segment) -> Segment:
    safe = printable(segment.text)
    if safe == segment.text:
        return segment
    return Segment(set_cell_size(safe, cell_len(segment.text)), segment.style)


ESCAPED = Escaped()
