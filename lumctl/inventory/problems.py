"""What is wrong with an inventory: every problem with its place, all of them in one error."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple

from lumctl.errors import UsageError


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that ``word`` was probably meant to be, or ``None``."""
    found = get_close_matches(word, list(known), n=1, cutoff=0.6)
    return found[0] if found else None


_SHOWN = 200
_FEW = 8
_COMPARISONS = 200_000


class Mark(NamedTuple):
    """A place in the file; lines and columns are counted from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Problem:
    """One error. ``mark`` is ``None`` if the file could not be read at all."""

    file: str
    mark: Mark | None
    message: str
    hint: str | None = None

    def __str__(self) -> str:
        place = f"{self.file}:{self.mark.line}:{self.mark.column}" if self.mark else self.file
        return f"{place}: {self.message}" + (f"; {self.hint}" if self.hint else "")


class InventoryError(UsageError):
    """The inventory has errors; ``problems`` are all of them, in the order of the file."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        lines = [str(problem) for problem in problems]
        if len(lines) > 1:
            lines.insert(0, f"{problems[0].file}: {len(lines)} errors")
        if len(lines) > _SHOWN:
            lines[_SHOWN:] = [f"... and {len(lines) - _SHOWN} more"]
        super().__init__("\n".join(lines))
        self.problems = problems


class Problems:
    """Collects the problems of one file, and of those that it names."""

    def __init__(self, file: Path | str) -> None:
        self._file = str(file)
        self._found: dict[Problem, None] = {}
        self._comparisons = _COMPARISONS

    def __bool__(self) -> bool:
        return bool(self._found)

    def add(self, mark: Mark | None, message: str, hint: str | None = None) -> None:
        """Note a problem; the same one twice (a value that several aliases share) is one."""
        self._found[Problem(self._file, mark, message, hint)] = None

    def adopt(self, others: "Problems") -> None:
        """Take in the problems of another file: they come after those of this one."""
        self._found |= others._found  # noqa: SLF001 - of its own kind

    def unknown(self, mark: Mark, what: str, word: str, known: Collection[str], *, listed: bool = False) -> str | None:
        """Note a word that is not known, with the nearest known one (also returned) or, if ``listed`` or few, all."""
        near = self.nearest(word, known)
        hint = f"did you mean {near!r}?" if near else None
        if not near and known and (listed or len(known) <= _FEW):
            hint = f"expected one of: {', '.join(known)}"
        self.add(mark, f"{what} {word!r} is not known", hint)
        return near

    def nearest(self, word: str, known: Collection[str]) -> str | None:
        """The nearest known word, if there is one and the file has not asked too often."""
        # Comparing every wrong word with every known one is quadratic: a large file with many errors gets fewer hints.
        if len(known) > self._comparisons:
            return None
        self._comparisons -= len(known)
        return nearest(word, known)

    def error(self) -> InventoryError:
        """All problems as one error; there must be one at least."""
        files = [self._file, *dict.fromkeys(problem.file for problem in self._found if problem.file != self._file)]
        in_order = sorted(self._found, key=lambda problem: (files.index(problem.file), problem.mark or Mark(0, 0)))
        return InventoryError(tuple(in_order))


def listing(words: Iterable[object]) -> str:
    """Words as a sentence lists them: ``a, b or c``."""
    *first, last = [str(word) for word in words]
    return f"{', '.join(first)} or {last}" if first else last
