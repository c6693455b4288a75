"""The problems of an inventory: each with its place, all of them in one error."""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from lumctl.errors import UsageError


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that ``word`` probably should be; ``None`` if no word is near.

    Words that begin with the same parts come first: h03-gpu2 rather than h93-gpu9 for h03-gpu9.
    """
    words, parts = list(known), _parts(word)
    alike = {each: _alike(parts, _parts(each)) for each in words}
    most = max(alike.values(), default=0)
    kin = [each for each in words if alike[each] == most]
    found = get_close_matches(word, kin, n=1, cutoff=0.6) or get_close_matches(word, words, n=1, cutoff=0.6)
    return found[0] if found else None


def _parts(word: str) -> list[str]:
    return re.split(r"[-_./]", _unpadded(word))


def _alike(parts: list[str], others: list[str]) -> int:
    """How many of the first parts of two words are the same."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(parts, others, strict=False)))


def nearest_name(name: str, names: Iterable[str]) -> str | None:
    """The name that is most likely meant: h03-gpu2 rather than h13-gpu2 for h3-gpu2; for a PUC, its mesh."""
    names = list(names)
    alike = (known for known in names if _unpadded(known) == _unpadded(name) or name.startswith(f"{known}/"))
    return next(alike, None) or nearest(name, names)


def _unpadded(name: str) -> str:
    return re.sub(r"(?<!\d)0+(?=\d)", "", name)


def require_known(kind: str, names: Iterable[str], known: Collection[str], place: str = "the inventory") -> None:
    """Refuse names that a place lacks, with the nearest name that it has, or else with the first of all.

    Raises:
        UsageError: a name is not known.
    """
    for name in names:
        if name not in known:
            near, there = nearest_name(name, known), list(known)
            more = f" and {len(there) - _FEW} more" if len(there) > _FEW else ""
            listed = f"it has {', '.join(there[:_FEW])}{more}" if there else f"it has no {kind}"
            raise UsageError(f"no {kind} {name!r} in {place}", hint=f"did you mean {near}?" if near else listed)


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
    """Collects the problems of one file and of the files that it names."""

    def __init__(self, file: Path | str) -> None:
        self._file = str(file)
        self._found: dict[Problem, None] = {}
        self._comparisons = _COMPARISONS

    def __bool__(self) -> bool:
        return bool(self._found)

    def add(self, mark: Mark | None, message: str, hint: str | None = None) -> None:
        """Note a problem. The same problem twice counts once; several aliases may share a value."""
        self._found[Problem(self._file, mark, message, hint)] = None

    def adopt(self, others: "Problems") -> None:
        """Add the problems of another file after those of this one."""
        self.take(others._found)  # noqa: SLF001 - of its own kind

    def take(self, found: Iterable[Problem]) -> None:
        """Add problems that are already made."""
        self._found |= dict.fromkeys(found)

    def unknown(self, mark: Mark, what: str, word: str, known: Collection[str], *, listed: bool = False) -> str | None:
        """Note an unknown word, with the nearest known word (also returned), or all if ``listed`` or they are few."""
        near = self.nearest(word, known)
        hint = f"did you mean {near!r}?" if near else None
        if not near and known and (listed or len(known) <= _FEW):
            hint = f"expected one of: {', '.join(known)}"
        self.add(mark, f"{what} {word!r} is not known", hint)
        return near

    def nearest(self, word: str, known: Collection[str]) -> str | None:
        """The nearest known word; ``None`` if there is none, or if this file has needed too many comparisons."""
        # Comparing every wrong word with every known word is quadratic, so a large file with many errors gets fewer
        # hints.
        if len(known) > self._comparisons:
            return None
        self._comparisons -= len(known)
        return nearest(word, known)

    def error(self) -> InventoryError:
        """All problems as one error; there must be at least one."""
        files = [self._file, *dict.fromkeys(problem.file for problem in self._found if problem.file != self._file)]
        in_order = sorted(self._found, key=lambda problem: (files.index(problem.file), problem.mark or Mark(0, 0)))
        return InventoryError(tuple(in_order))


def listing(words: Iterable[object]) -> str:
    """Words as listed in a sentence: ``a, b or c``."""
    *first, last = [str(word) for word in words]
    return f"{', '.join(first)} or {last}" if first else last
