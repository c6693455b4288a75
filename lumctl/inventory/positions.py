"""Read YAML so that every value has its line and column.

PyYAML's own constructor is not used for three reasons. It forgets positions. It silently keeps the last of two equal
keys. Following YAML 1.1 it reads the PCI address ``0000:17:00.0`` as a number in base 60 and the name ``no`` as
false. Here plain values follow the core schema of YAML 1.2, and tags that build objects are refused.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

import yaml

from lumctl.inventory.problems import Mark, Problems

# The parser in C is many times faster, but not every build of PyYAML has it.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MAX_DEPTH = 32
_MAX_VALUES = 500_000
_MAX_TEXT = 1024
_SHOWN = 60

_NULL = {"", "~", "null", "Null", "NULL"}
_BOOLS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INTEGER = re.compile(r"[-+]?[0-9]{1,1024}")  # Python parses no more than 4,300 digits
_NUMBER = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_STRING_TAGS = {"!", "tag:yaml.org,2002:str"}
_NO_KEY = object()
_NODE_TAGS = {"!", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"}


class MarkedDict(dict[Any, Any]):
    """A mapping with its own place and the places of its keys and values.

    The model that reads it fills in ``valid_keys``, for hints about unknown keys. The code that cuts out invalid parts
    fills in ``cut``.
    """

    def __init__(self, at: Mark) -> None:
        super().__init__()
        self.at = at
        self.key_marks: dict[Any, Mark] = {}
        self.value_marks: dict[Any, Mark] = {}
        self.valid_keys: tuple[str, ...] = ()
        self.cut: set[Any] = set()


class MarkedList(list[Any]):
    """A list with its own place and the places of its items."""

    def __init__(self, at: Mark) -> None:
        super().__init__()
        self.at = at
        self.item_marks: list[Mark] = []


@dataclass(slots=True)
class _Open:
    """A container whose end has not been read yet. ``key`` is the key whose value comes next."""

    container: MarkedDict | MarkedList
    anchor: str | None
    values_before: int
    key: tuple[Any, Mark] | None = None


class _StopReadingError(Exception):
    """The file cannot be read further; the problem is already reported."""


def read_yaml(text: str, problems: Problems, *, prose: bool = False) -> Any:
    """The one document of ``text`` as marked mappings, marked lists and scalars; ``None`` if it cannot be read.

    With ``prose``, texts may be long and have several lines, such as answers of devices and comments of operators.
    """
    reader = _Reader(problems, prose=prose)
    try:
        for event in _events(text, problems):
            reader.take(event)
    except _StopReadingError:
        return None
    if not reader.documents:
        page = "lumctl-runbook(7)" if prose else "lumctl-inventory(5)"
        problems.add(Mark(1, 1), "the file is empty", f"its keys are described in {page}")
    return reader.root


def _events(text: str, problems: Problems) -> Iterator[Any]:
    try:
        yield from yaml.parse(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        where = error.problem_mark or error.context_mark
        mark = Mark(where.line + 1, where.column + 1) if where else Mark(1, 1)
        said = ", ".join(part for part in (error.context, error.problem) if part)
        problems.add(mark, f"not valid YAML: {said}", _syntax_hint(text, mark))
        raise _StopReadingError from None
    except yaml.reader.ReaderError as error:
        before = text[: error.position] if isinstance(error.position, int) else ""
        mark = Mark(before.count("\n") + 1, len(before) - before.rfind("\n"))
        problems.add(mark, f"a character that YAML does not allow: {error.reason}")
        raise _StopReadingError from None


def _syntax_hint(text: str, mark: Mark) -> str | None:
    lines = text.split("\n")
    line = lines[mark.line - 1] if mark.line <= len(lines) else ""
    folded_in_flow = re.search(r"[\[{,].*\w\[[\w,-]+\]", line)
    return 'inside [...] and {...} a folded name needs quotes: "h[01-04]"' if folded_in_flow else None


class _Reader:
    """Builds values from events, without recursion, because a hostile file may nest deeper than the stack allows."""

    def __init__(self, problems: Problems, *, prose: bool = False) -> None:
        self.problems = problems
        self.prose = prose
        self.root: Any = None
        self.documents = 0
        self.values = 0
        self.open: list[_Open] = []
        self.anchors: dict[str, tuple[Any, int]] = {}

    def take(self, event: Any) -> None:
        mark = Mark(event.start_mark.line + 1, event.start_mark.column + 1)
        match event:
            case yaml.ScalarEvent():
                value = self._scalar(event, mark)
                if event.anchor:
                    self.anchors[event.anchor] = (value, 1)
                self._place(value, mark, 1)
            case yaml.AliasEvent():
                self._place(*self._alias(event.anchor or "", mark))
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                self._start(event, mark)
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                ended = self.open.pop()
                # Only here, at its end, is an anchor known: so no value contains itself.
                if ended.anchor:
                    self.anchors[ended.anchor] = (ended.container, self.values - ended.values_before)
                self._place(ended.container, ended.container.at, 1)
            case yaml.DocumentStartEvent():
                self.documents += 1
                if self.documents > 1:
                    self._stop(mark, "a second document begins, expected one")

    def _alias(self, anchor: str, mark: Mark) -> tuple[Any, Mark, int]:
        if anchor not in self.anchors:
            self._stop(mark, f"alias *{anchor} does not refer to an earlier, complete value")
        value, size = self.anchors[anchor]
        return value, mark, size

    def _start(self, event: Any, mark: Mark) -> None:
        if event.tag and event.tag not in _NODE_TAGS:
            self.problems.add(mark, f"tag {event.tag!r} is not allowed")
        if len(self.open) >= _MAX_DEPTH:
            self._stop(mark, f"nested more than {_MAX_DEPTH} levels deep")
        container = MarkedDict(mark) if isinstance(event, yaml.MappingStartEvent) else MarkedList(mark)
        self.open.append(_Open(container, event.anchor, self.values))

    def _place(self, value: Any, mark: Mark, size: int) -> None:
        self.values += size
        if self.values > _MAX_VALUES:
            self._stop(mark, f"more than {_MAX_VALUES} values (aliases count as often as they are used)")
        if not self.open:
            self.root = value
            return
        parent = self.open[-1]
        if isinstance(parent.container, MarkedList):
            parent.container.append(value)
            parent.container.item_marks.append(mark)
        elif parent.key is None:
            parent.key = (self._key(value, mark), mark)
        else:
            self._set(parent.container, parent.key, value, mark)
            parent.key = None

    def _key(self, value: Any, mark: Mark) -> Any:
        if isinstance(value, (str, int)) and not isinstance(value, bool):
            return value
        self.problems.add(mark, f"found {found(value)} as a key, expected a word or a whole number")
        return _NO_KEY

    def _set(self, mapping: MarkedDict, key: tuple[Any, Mark], value: Any, mark: Mark) -> None:
        word, key_mark = key
        if word is _NO_KEY:
            return
        if word in mapping:
            first = mapping.key_marks[word]
            self.problems.add(key_mark, f"key {word!r} occurs twice, first in line {first.line}")
            return
        mapping[word] = value
        mapping.key_marks[word] = key_mark
        mapping.value_marks[word] = mark

    def _scalar(self, event: Any, mark: Mark) -> Any:
        text: str = event.value
        if len(text) > _MAX_TEXT and not self.prose:
            self.problems.add(mark, f"found a text of {len(text)} characters, expected at most {_MAX_TEXT}")
            text = text[:_MAX_TEXT]
        if not text.isprintable() and not self.prose:
            self.problems.add(mark, "found a text with a line break or a control character, expected plain text")
        if event.tag:
            if event.tag not in _STRING_TAGS:
                self.problems.add(mark, f"tag {event.tag!r} is not allowed")
            return text
        return _plain(text) if event.implicit[0] else text

    def _stop(self, mark: Mark, message: str) -> NoReturn:
        self.problems.add(mark, message)
        raise _StopReadingError


def _plain(text: str) -> Any:
    """The value of a scalar without quotes, by the core schema of YAML 1.2."""
    if text in _NULL:
        return None
    if text in _BOOLS:
        return _BOOLS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _NUMBER.fullmatch(text):
        return float(text)
    return text


def found(value: Any) -> str:
    """The words for a found value in an error message."""
    match value:
        case None:
            return "nothing"
        case bool():
            return str(value).lower()
        case dict():
            return "a mapping"
        case list():
            return "a list"
        case _:
            text = repr(value)
            return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
