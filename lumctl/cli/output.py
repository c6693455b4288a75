"""stdout is data, stderr is narration: tables on a terminal, plain columns in a pipe, JSON and YAML with a schema."""

import json
import math
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from lumctl.printable import printable, printable_json

if TYPE_CHECKING:
    from rich.table import Table


class OutputFormat(StrEnum):
    """Ways to print data."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


GLYPHS = {"ok": "●", "degraded": "◐", "failed": "✖", "unknown": "○", "disabled": "–"}
ASCII_GLYPHS = {"ok": "+", "degraded": "!", "failed": "X", "unknown": "?", "disabled": "-"}
COLOURS = {"ok": "cyan", "degraded": "yellow", "failed": "bold dark_orange", "unknown": "magenta", "disabled": "dim"}


@dataclass(frozen=True)
class OutputColumn:
    """One column of a table: its heading, the row's key, and whether it is shown with ``-o wide`` only."""

    heading: str
    key: str
    wide: bool = False
    right: bool = False


@dataclass(frozen=True)
class Output:
    """Prints data in the wanted format."""

    format: OutputFormat = OutputFormat.TABLE
    ascii_only: bool = False
    quiet: bool = False
    verbose: bool = False

    @property
    def structured(self) -> bool:
        """Whether the data goes out as JSON or YAML: then nothing else may be printed on stdout."""
        return self.format in {OutputFormat.JSON, OutputFormat.YAML}

    def narrate(self, text: str) -> None:
        """Print progress on stderr."""
        if not self.quiet:
            with suppress(BrokenPipeError):  # The reader is gone; the work continues.
                print(printable(text, lines=True), file=sys.stderr, flush=True)

    def detail(self, text: str) -> None:
        """Narration for ``--verbose`` only."""
        if self.verbose:
            self.narrate(text)

    def document(self, noun: str, data: Mapping[str, Any]) -> None:
        """Print one JSON or YAML document with its ``schema`` first. Only where :attr:`structured`."""
        whole = {"schema": f"lumctl/{noun}/v1", **data}
        if self.format is OutputFormat.YAML:
            import yaml

            data = json.loads(dump_json(whole))
            text = yaml.safe_dump(data, sort_keys=False, allow_unicode=True)
            if printable(text, lines=True) != text:  # PyYAML escapes controls, but no overrides of the direction
                text = yaml.safe_dump(data, sort_keys=False)
            print(text, end="", flush=True)
        else:
            print(dump_json(whole), flush=True)

    def names(self, names: Sequence[str]) -> None:
        """Print one name a line."""
        for name in names:
            print(printable(name), flush=True)

    def table(self, columns: Sequence[OutputColumn], rows: Sequence[Mapping[str, Any]], *, title: str = "") -> None:
        """Print rows as a table on a terminal, as plain aligned columns in a pipe. A ``state`` cell gets its glyph."""
        shown = [column for column in columns if self.format is OutputFormat.WIDE or not column.wide]
        if self._on_terminal():
            self._rich_table(shown, rows, title)
        else:
            self._plain_table(shown, rows)

    def state(self, word: str) -> str:
        """A state as glyph and word."""
        return f"{(ASCII_GLYPHS if self.plain_glyphs else GLYPHS).get(word, ' ')} {word}"

    def text(self, text: str = "") -> None:
        """Print a line of data, or several."""
        print(printable(text, lines=True), flush=True)

    @property
    def plain_glyphs(self) -> bool:
        """Whether only ASCII may be printed: by option, or because stdout's encoding allows no more."""
        encoding = getattr(sys.stdout, "encoding", None) or "ascii"
        return self.ascii_only or "utf" not in encoding.lower()

    @staticmethod
    def _on_terminal() -> bool:
        return sys.stdout.isatty()

    def _cell(self, column: OutputColumn, row: Mapping[str, Any]) -> str:
        value = row.get(column.key)
        if value is None or value == "":
            return "-"
        return self.state(str(value)) if column.key == "state" else printable(str(value))

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

        table = self.rich_table(columns, rows, title)
        Console(no_color=bool(os.environ.get("NO_COLOR")), highlight=False).print(table)

    def rich_table(self, columns: Sequence[OutputColumn], rows: Sequence[Mapping[str, Any]], title: str) -> "Table":
        """The rows as Rich draws them."""
        from rich import box
        from rich.table import Table
        from rich.text import Text

        table = Table(title=title or None, title_justify="left", box=None if self.ascii_only else box.SIMPLE_HEAD)
        for column in columns:
            # Folded, not cut: an id that was cut short cannot be typed again, and the mark of a cut is not ASCII.
            table.add_column(column.heading, justify="right" if column.right else "left", overflow="fold")
        for row in rows:
            cells = []
            for column in columns:
                style = COLOURS.get(str(row.get(column.key)), "") if column.key == "state" else ""
                cells.append(Text(self._cell(column, row), style=style))
            table.add_row(*cells)
        return table


def dump_json(data: Any) -> str:
    """JSON as in every document of the program: infinite numbers and NaN are null, which JSON lacks.

    No light is minus infinity in dBm: documents have a field of its own for it.
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
