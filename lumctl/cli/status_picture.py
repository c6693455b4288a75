"""``lumctl status --svg``: the tables of the status as a picture that looks the same wherever it is drawn."""

import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lumctl.cli.check import write_atomically
from lumctl.cli.output import Column, Output, OutputFormat
from lumctl.printable import printable

if TYPE_CHECKING:
    from rich.console import Console

    from lumctl.context import Observation

WIDTH = 140
_FONT_FROM_ELSEWHERE = re.compile(r"@font-face \{.*?\n\s*\}\n", re.DOTALL)


class Canvas(Output):
    """Prints what is shown on a terminal onto a console that remembers it."""

    def __init__(self, like: Output, console: "Console") -> None:
        super().__init__(format=like.format, ascii_only=like.ascii_only)
        object.__setattr__(self, "console", console)

    console: "Console"

    def table(self, columns: Sequence[Column], rows: Sequence[Mapping[str, Any]], *, title: str = "") -> None:
        """Print rows as a table."""
        shown = [column for column in columns if self.format is OutputFormat.WIDE or not column.wide]
        self.console.print(self.rich_table(shown, rows, title))

    def text(self, text: str = "") -> None:
        """Print a line."""
        self.console.print(printable(text, lines=True), markup=False)

    @property
    def plain_glyphs(self) -> bool:
        """Whether ASCII was asked for: a picture can show every character."""
        return self.ascii_only


def draw_status(out: Output, observation: "Observation", file: Path) -> None:
    """Draw what ``lumctl status`` prints into a file, whole or not at all.

    Raises:
        UsageError: the file cannot be written.
    """
    from lumctl.cli.views import status_document

    write_atomically(file, status_svg(out, status_document(observation)))


def status_svg(out: Output, document: Mapping[str, Any]) -> str:
    """A status document as an SVG picture; nothing in it is fetched from elsewhere."""
    from rich.console import Console

    from lumctl.cli.status_tables import print_status

    console = Console(
        file=io.StringIO(), record=True, width=WIDTH, force_terminal=True, color_system="truecolor", highlight=False
    )
    print_status(Canvas(out, console), document)
    svg = console.export_svg(title="lumctl status", unique_id="lumctl-status")
    return _FONT_FROM_ELSEWHERE.sub("", svg)
