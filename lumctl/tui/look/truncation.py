"""Cut or wrap texts that are too long for their lines."""

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


def wrapped(text: Text, width: int, indent: int, console: Console) -> list[Text]:
    """The lines of a text of which each begins with a label: what does not fit continues ``indent`` columns in.

    If ``indent`` were most of the width, it continues at the left.
    """
    if width < 2 * indent:
        return [*text.wrap(console, width)]
    lines: list[Text] = []
    for line in text.split("\n", allow_blank=True):
        if line.cell_len <= width:
            lines.append(line)
            continue
        label, value = line.divide([indent])
        first, *more = value.wrap(console, width - indent)
        lines += [label.append_text(first), *(Text(" " * indent).append_text(each) for each in more)]
    return lines


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
