"""A terminal's screen made from what a program prints: as much of xterm as a full-screen program uses.

What it does not know is an error, so that no test reads a screen that a real terminal would have drawn otherwise.
"""

import re
from codecs import getincrementaldecoder

from rich.cells import cell_len

_PIECE = re.compile(
    r"\x1b\[(?P<mark>[<=>?]?)(?P<numbers>[\d;:]*)(?P<between>[ -/]*)(?P<final>[@-~])"
    r"|\x1b[\]P](?P<string>[^\x07\x1b]*)(?:\x07|\x1b\\)"
    r"|\x1b(?P<escape>[^\[\]P])"
    r"|(?P<control>[\x00-\x1a\x1c-\x1f])"
    r"|(?P<text>[^\x00-\x1f]+)"
)
_ALTERNATE, _CURSOR = "1049", "25"


class Emulated:
    """A screen of so many columns and lines; colours and the like are passed over."""

    def __init__(self, columns: int, lines: int) -> None:
        self.columns = columns
        self.is_alternate = False
        """Whether a program has taken the screen."""
        self._cells = [[" "] * columns for _ in range(lines)]
        self._row = self._column = 0
        self._decoder = getincrementaldecoder("utf-8")()
        self._rest = ""

    @property
    def lines(self) -> list[str]:
        """What stands there, without the blanks at the right."""
        return ["".join(row).rstrip() for row in self._cells]

    def feed(self, printed: bytes) -> None:
        """Show this; what is cut in its midst waits for the rest.

        Raises:
            AssertionError: a real terminal might do something else with it.
        """
        text, at = self._rest + self._decoder.decode(printed), 0
        while at < len(text) and (piece := _PIECE.match(text, at)):
            self._do(piece)
            at = piece.end()
        self._rest = text[at:]
        assert len(self._rest) < 10_000, f"no end of it: {self._rest[:80]!r}"

    def _do(self, piece: re.Match[str]) -> None:
        if piece["text"] is not None:
            self._put(piece["text"])
        elif piece["control"] is not None:
            self._control(piece["control"])
        elif piece["final"] is not None:
            self._sequence(piece)
        else:
            # Of the rest only titles, pointers and questions may come, none of which is seen.
            assert piece["escape"] is None, f"unknown: {piece[0]!r}"

    def _put(self, text: str) -> None:
        for character in text:
            width = cell_len(character)
            if width == 0:
                continue
            assert self._column + width <= self.columns, f"{text!r} runs over the right edge of line {self._row}"
            self._cells[self._row][self._column : self._column + width] = [character, *[""] * (width - 1)]
            self._column += width

    def _control(self, control: str) -> None:
        match control:
            case "\r":
                self._column = 0
            case "\n":
                self._row = min(self._row + 1, len(self._cells) - 1)
            case "\x08":
                self._column = max(self._column - 1, 0)
            case _:
                assert control == "\x07", f"unknown: {control!r}"

    def _sequence(self, piece: re.Match[str]) -> None:
        given = [int(number or 0) for number in re.split("[;:]", piece["numbers"])]
        match piece["mark"], piece["between"], piece["final"]:
            case "", "", "H":
                row, column = (*given, 1)[:2]
                self._row, self._column = max(row, 1) - 1, max(column, 1) - 1
            case "", "", "J":
                assert given[0] == 2, f"unknown: {piece[0]!r}"
                self._clear()
            case "", "", "K":
                assert given[0] == 0, f"unknown: {piece[0]!r}"
                self._cells[self._row][self._column :] = [" "] * (self.columns - self._column)
            case "?", "", "h" | "l" as how:
                if _ALTERNATE in piece["numbers"].split(";"):
                    self.is_alternate = how == "h"
                    self._clear()
            case ("", "", "m") | ("", "", "t") | ("?", "$", "p") | (">" | "<" | "?", "", "u") | (">", "", "q"):
                pass  # styles, the window, and questions that need no answer
            case _:
                raise AssertionError(f"unknown: {piece[0]!r}")

    def _clear(self) -> None:
        self._cells = [[" "] * self.columns for _ in self._cells]
