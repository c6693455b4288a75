"""Cut texts that are too long for their lines; the end shows a sign that the text is cut."""

from rich.cells import set_cell_size
from rich.console import Console
from rich.text import Text

from lumctl.tui.look.marks import Marks


def cut_line(text: Text, width: int, marks: Marks) -> None:
    """Cut a line that is wider than ``width``, in place; it then ends with the sign of a cut."""
    if text.cell_len > width:
        sign = ".." if marks.ascii_only else "…"
        # Set as a whole, so that the sign has the style of what it replaces.
        text.plain = set_cell_size(text.plain, max(width - len(sign), 0)) + sign


def cut_lines(text: Text, width: int, most: int, marks: Marks, console: Console) -> Text:
    """The text in at most ``most`` lines; the last one ends with the sign of a cut if more would follow."""
    lines = text.wrap(console, width)
    if len(lines) <= most:
        return text
    last = lines[most - 1]
    last.rstrip()
    last.append(" ").append_text(lines[most])
    cut_line(last, width, marks)
    return Text("\n").join([*lines[: most - 1], last])
