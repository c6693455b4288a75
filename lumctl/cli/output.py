"""stdout is data, stderr is narration: tables on a terminal, plain columns in a pipe, JSON and YAML with a schema."""

import json
import math
import os
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from lumctl.cli.hints import completed
from lumctl.cli.progress import beside_progress
from lumctl.printable import printable, printable_json

if TYPE_CHECKING:
    from rich.table import Table


class OutputFormat(StrEnum):
    """Formats for printed data."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


GLYPHS = {"ok": "●", "degraded": "◐", "failed": "✖", "unknown": "○", "disabled": "–"}
ASCII_GLYPHS = {"ok": "+", "degraded": "!", "failed": "X", "unknown": "?", "disabled": "-"}
COLOURS = {"ok": "cyan", "degraded": "yellow", "failed": "bold dark_orange", "unknown": "magenta", "disabled": "dim"}


_GAP = 2
"""The space between two columns, in characters."""
_TIMES = frozenset({"at", "since", "started", "starts", "ends", "until", "asked", "time"})
"""The keys of columns with times; these do not wrap between date and time."""


@dataclass(frozen=True)
class OutputColumn:
    """One column of a table: its heading, the row's key, and whether it is shown with ``-o wide`` only.

    On a narrow screen, the columns with the greatest ``gives_way`` are omitted first; columns with 0 always stay.
    """

    heading: str
    key: str
    wide: bool = False
    right: bool = False
    gives_way: int = 0


@dataclass(frozen=True)
class Output:
    """Prints data in the requested format."""

    format: OutputFormat = OutputFormat.TABLE
    own_format: str = ""
    """The chosen format if only this command has it, such as ``md``; empty if every command has it."""
    ascii_only: bool = False
    quiet: bool = False
    verbose: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    """The inventory and the target from this command's options; they are added to the commands in hints."""

    @property
    def structured(self) -> bool:
        """Whether the data is printed as JSON or YAML; then nothing else may be printed on stdout."""
        return self.format in {OutputFormat.JSON, OutputFormat.YAML}

    @property
    def for_people(self) -> bool:
        """Whether the data is printed as text for people: not as names, a document, or the command's own format."""
        return not (self.structured or self.own_format or self.format is OutputFormat.NAME)

    def narrate(self, text: str) -> None:
        """Print progress on stderr."""
        if not self.quiet:
            with suppress(BrokenPipeError), beside_progress():  # The reader is gone; the work continues.
                print(printable(completed(text, self.options), lines=True), file=sys.stderr, flush=True)

    def detail(self, text: str) -> None:
        """Narration for ``--verbose`` only."""
        if self.verbose:
            self.narrate(text)

    def document(self, noun: str, data: Mapping[str, Any]) -> None:
        """Print one JSON or YAML document with its ``schema`` first. Only where :attr:`structured`."""
        whole = {"schema": f"lumctl/{noun}/v1", **data}
        if self.format is OutputFormat.YAML:
            import yaml

            # Through JSON first: it turns enumerations, tuples and infinities into what a safe dumper accepts.
            data = json.loads(dump_json(whole))
            text = yaml.safe_dump(data, sort_keys=False, allow_unicode=True)
            if printable(text, lines=True) != text:  # PyYAML does not escape direction overrides
                text = yaml.safe_dump(data, sort_keys=False)
            print(text, end="", flush=True)
        else:
            print(dump_json(whole), flush=True)

    def names(self, names: Sequence[str]) -> None:
        """Print one name per line."""
        for name in names:
            print(printable(name), flush=True)

    def table(self, columns: Sequence[OutputColumn], rows: Sequence[Mapping[str, Any]], *, title: str = "") -> None:
        """Print rows as a table on a terminal, as plain aligned columns in a pipe; cells of ``state`` get a glyph."""
        shown = [column for column in columns if self.format is OutputFormat.WIDE or not column.wide]
        if self.on_terminal:
            self._rich_table(shown, rows, title)
        else:
            self._plain_table(shown, rows)

    def state(self, word: str) -> str:
        """A state as glyph and word."""
        return f"{(ASCII_GLYPHS if self.plain_glyphs else GLYPHS).get(word, ' ')} {word}"

    def text(self, text: str = "") -> None:
        """Print a line of data, or several."""
        print(printable(text, lines=True), flush=True)

    def styled(self, text: str, style: str) -> None:
        """Print a line of data, on a terminal in a Rich style; the text must be sufficient without the colour."""
        if not (style and self.on_terminal) or os.environ.get("NO_COLOR"):
            self.text(text)
            return
        from rich.console import Console
        from rich.text import Text

        # Soft wrap: Rich must not break a line that holds a command to copy.
        Console(highlight=False).print(Text(printable(text, lines=True), style), soft_wrap=True)

    @property
    def columns(self) -> int | None:
        """The width of the terminal; ``None`` without a terminal, because programs need whole lines."""
        return shutil.get_terminal_size().columns if self.on_terminal else None

    def wrapped(self, text: str, indent: str = "") -> str:
        """Wrap the text to the terminal's width, with each line after the first indented; words are never broken."""
        if self.columns is None:
            return text
        width = max(self.columns - 1, len(indent) + 1)
        return textwrap.fill(text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)

    @property
    def plain_glyphs(self) -> bool:
        """Whether to print only ASCII: by option, or because stdout's encoding allows no more."""
        encoding = getattr(sys.stdout, "encoding", None) or "ascii"
        return self.ascii_only or "utf" not in encoding.lower()

    @property
    def on_terminal(self) -> bool:
        """Whether stdout is a terminal, so that long output may be shortened for a reader."""
        return sys.stdout.isatty()

    def _cell(self, column: OutputColumn, row: Mapping[str, Any]) -> str:
        value = row.get(column.key)
        return self.state(str(value)) if column.key == "state" and value else printable(in_words(value))

    def _plain_table(self, columns: Sequence[OutputColumn], rows: Sequence[Mapping[str, Any]]) -> None:
        lines = [[column.heading for column in columns], *([self._cell(c, row) for c in columns] for row in rows)]
        widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
        for line in lines:
            padded = [
                cell.rjust(width) if column.right else cell.ljust(width)
                for cell, width, column in zip(line, widths, columns, strict=True)
            ]
            print("  ".join(padded).rstrip())

    def _rich_table(self, columns: Sequence[OutputColumn], rows: Sequence[Mapping[str, Any]], title: str) -> None:
        from rich.console import Console

        width = shutil.get_terminal_size().columns
        table = self.rich_table(columns, rows, title, width)
        # A table that is too wide runs over the edge: cropped, it would lose the columns at the right without a word.
        least = sum(column.width or 0 for column in table.columns) + _GAP * (len(table.columns) - 1)
        console = Console(no_color=bool(os.environ.get("NO_COLOR")), highlight=False, width=max(width, least))
        console.print(table, crop=False)

    def rich_table(
        self, columns: Sequence[OutputColumn], rows: Sequence[Mapping[str, Any]], title: str, width: int
    ) -> "Table":
        """The rows as a Rich table for a screen of ``width`` characters, laid out by :func:`lay_out`."""
        from rich import box
        from rich.table import Table
        from rich.text import Text

        cells = [[self._cell(column, row) for column in columns] for row in rows]
        keeps_all = self.format is OutputFormat.WIDE
        texts = [
            ColumnText(
                c.heading,
                [line[at] for line in cells],
                gives_way=0 if keeps_all else c.gives_way,
                whole=c.right or c.key == "state" or c.key in _TIMES,
            )
            for at, c in enumerate(columns)
        ]
        widths = lay_out(texts, width, _GAP)
        left_out = [column.heading for at, column in enumerate(columns) if at not in widths]
        caption = f"omitted for lack of room: {', '.join(left_out)}; -o wide shows all" if left_out else None
        table = Table(
            title=title or None,
            title_justify="left",
            caption=caption,
            caption_justify="left",
            box=None if self.plain_glyphs else box.SIMPLE_HEAD,
            show_edge=False,
            pad_edge=False,
            padding=(0, _GAP if self.plain_glyphs else _GAP - 1, 0, 0),
        )
        for at, chosen in widths.items():
            table.add_column(columns[at].heading, justify="right" if columns[at].right else "left", width=chosen)
        for row, line in zip(rows, cells, strict=True):
            table.add_row(*(Text(line[at], style=_style(columns[at], row), overflow="fold") for at in widths))
        return table


def in_words(value: Any) -> str:
    """A value as text for people: yes and no, lists with commas, and a dash for an unknown value."""
    match value:
        case None | "" | () | []:
            return "-"
        case bool():
            return "yes" if value else "no"
        case Mapping():
            return ", ".join(f"{key} {in_words(item)}" for key, item in value.items()) or "-"
        case list() | tuple() | set() | frozenset():
            return ", ".join(map(in_words, value))
        case _:
            return str(value)


def _style(column: OutputColumn, row: Mapping[str, Any]) -> str:
    return COLOURS.get(str(row.get(column.key)), "") if column.key == "state" else ""


def dump_json(data: Any) -> str:
    """JSON text as in all documents of the program; infinite numbers and NaN, which JSON lacks, become null.

    No light is minus infinity in dBm, so documents report it in a separate field.
    """
    return printable_json(json.dumps(_finite(data), indent=2, ensure_ascii=False, allow_nan=False))


def _finite(data: Any) -> Any:
    if isinstance(data, float) and not math.isfinite(data):
        return None
    if isinstance(data, Mapping):
        return {str(key): _finite(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_finite(value) for value in data]
    return data


READABLE = 24
"""The narrowest useful column, in characters; other columns are omitted before a column gets narrower."""


@dataclass(frozen=True)
class ColumnText:
    """A column's heading and cells.

    Columns with the greatest ``gives_way`` are omitted first; those with 0 always stay. Cells of ``whole`` columns,
    such as numbers and states, never wrap. A heading of several words may wrap in any column.
    """

    heading: str
    cells: Sequence[str]
    gives_way: int = 0
    whole: bool = False

    @property
    def natural(self) -> int:
        """The width at which no cell wraps."""
        return max(
            [self._heading, *map(_width, self.cells)] if self.whole else map(_width, (self.heading, *self.cells))
        )

    @property
    def least(self) -> int:
        """The least width: that of the longest word, or of the longest cell if the column is ``whole``."""
        if self.whole:
            return self.natural
        return max(self._heading, *(_width(word) for cell in self.cells for word in cell.split()), 1)

    @property
    def _heading(self) -> int:
        return max((_width(word) for word in self.heading.split()), default=1)

    @property
    def readable(self) -> int:
        """The width below which other columns are omitted before this one is narrowed further."""
        return max(self.least, min(self.natural, READABLE))


def lay_out(columns: Sequence[ColumnText], available: int, gap: int) -> dict[int, int]:
    """The widths of the columns that are shown, by index; columns that are missing in the result are omitted.

    ``available`` is the width of the screen and ``gap`` the space between two columns, in characters.
    """
    shown = list(range(len(columns)))

    def room() -> int:
        return available - gap * (len(shown) - 1)

    while sum(columns[at].readable for at in shown) > room():
        # Of columns that give way equally, the rightmost goes first.
        last = max(shown, key=lambda at: (columns[at].gives_way, at))
        if columns[last].gives_way == 0:
            break
        shown.remove(last)
    least = {at: columns[at].readable for at in shown}
    if sum(least.values()) > room():
        least = {at: columns[at].least for at in shown}
    return _narrowed({at: columns[at].natural for at in shown}, least, room())


def _narrowed(widths: dict[int, int], least: dict[int, int], room: int) -> dict[int, int]:
    """Narrow the widest columns first, but none below its ``least`` width."""
    while sum(widths.values()) > room:
        above = [at for at in widths if widths[at] > least[at]]
        if not above:
            break
        # One character at a time, so that the widths of the wide columns become equal.
        widest = max(above, key=lambda at: widths[at])
        widths[widest] -= 1
    return widths


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)
