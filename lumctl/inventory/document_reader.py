"""Turn marked values into the document: every error of form is reported, and the valid parts are kept.

Checks of meaning (references, ports, jobs) still run on the valid parts of a file with errors of form, so that all
errors are reported at once. For this, an invalid value is removed: an optional key alone, otherwise its whole entry.
Names that were removed are remembered as *unsure*, so that references to them are not reported as errors too.
"""

import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, NamedTuple, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from lumctl.inventory.document import PATTERNS, Document
from lumctl.inventory.entry import Entry
from lumctl.inventory.folded_names import FoldError, expand
from lumctl.inventory.positions import MarkedDict, MarkedList, found
from lumctl.inventory.problems import Mark, Problems, listing

EntryType = TypeVar("EntryType", bound=Entry)

_EXPECTED = {
    "string_type": "a text (quote it if it looks like a number)",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "string_too_short": "a text that is not empty",
    "string_too_long": "a text of at most {max_length} characters",
    "greater_than": "a number above {gt:g}",
    "greater_than_equal": "at least {ge:g}",
    "less_than_equal": "at most {le:g}",
    "finite_number": "a finite number",
    "int_parsing": "a whole number as key",
}
_ANY = "*"
_SECTION_ITEM = 2
"""The number of steps from the file to an item of a section, such as the first host."""

_DEFINING = {"racks", "hosts", "devices", "transponders", "jobs", "fillers", "receivers"}
"""The sections that define names."""

_MOST_PATTERNS = 64

_Step = tuple[MarkedDict | MarkedList, Any]
"""A container and the key or index in it."""


class Unsure:
    """Names that a removed part would have defined, as glob patterns."""

    def __init__(self) -> None:
        self._patterns: set[str] = set()

    def add(self, written: Any) -> None:
        """Note a name as written (folded, with placeholders). A value that is not a text matches all names."""
        text = re.sub(r"\{[^}]*\}?", _ANY, written) if isinstance(written, str) else _ANY
        try:
            names = expand(text)
        except FoldError:
            names = []
        # The names that it expands to; more than a few, or a wrong bracket, match any text in place of the brackets.
        few = 0 < len(names) <= _MOST_PATTERNS
        self._patterns |= set(names) if few else {re.sub(r"\[[^\]]*\]?", _ANY, text)}

    @property
    def some(self) -> bool:
        """Whether any name is in doubt."""
        return bool(self._patterns)

    def __contains__(self, name: str) -> bool:
        return any(fnmatchcase(name, pattern) for pattern in self._patterns)


class Doubts(NamedTuple):
    """The names, and the accelerators' lanes, that cannot be judged because their definition was removed."""

    names: Unsure
    lanes: Unsure


def read_document(data: MarkedDict, problems: Problems, doubts: Doubts) -> Document | None:
    """The document without its invalid parts; ``None`` if too little is left.

    ``data`` is changed: invalid parts are removed from it.
    """
    first = True
    while True:
        try:
            return Document.model_validate(data)
        except ValidationError as error:
            spots = [(detail, _spot(data, detail)) for detail in error.errors(include_url=False)]
        if first:
            # Unknown keys come first, so that a misspelt key is not reported as a missing key too.
            for detail, spot in sorted(spots, key=lambda pair: pair[0]["type"] != "extra_forbidden"):
                _report(detail, spot, problems)
        # Errors of later rounds only follow from what was cut out, so they are not reported.
        first = False
        if not _cut_out(data, spots, doubts):
            return None


def read_whole(model: type[EntryType], data: MarkedDict, problems: Problems) -> EntryType | None:
    """An entry that is a whole file; ``None`` if any part is invalid. All invalid parts are reported."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            _report(detail, _spot(data, detail), problems)
    return None


def read_under(model: type[EntryType], container: MarkedDict, key: str, problems: Problems) -> EntryType | None:
    """The entry under a key, read by another model; ``None`` if any part is invalid. All invalid parts are reported."""
    try:
        return model.model_validate(container[key])
    except ValidationError as error:
        details = error.errors(include_url=False)
    for detail in sorted(details, key=lambda detail: detail["type"] != "extra_forbidden"):
        _report(detail, _spot(container, detail, key), problems)
    return None


class _Spot(NamedTuple):
    """The place of a model's error in the data: the value and the containers around it, outermost first."""

    value: Any
    around: tuple[_Step, ...]

    @property
    def mark(self) -> Mark:
        if not self.around:
            return Mark(1, 1)
        container, key = self.around[-1]
        return container.value_marks[key] if isinstance(container, MarkedDict) else container.item_marks[key]

    @property
    def key_mark(self) -> Mark:
        container, key = self.around[-1]
        return container.key_marks[key] if isinstance(container, MarkedDict) else self.mark


def _spot(data: MarkedDict, detail: ErrorDetails, *first: str) -> _Spot:
    """Follow an error's location. Steps that the model adds (the tag of a union) are not in the data."""
    value: Any = data
    around: list[_Step] = []
    for step in (*first, *detail["loc"]):
        here = isinstance(value, MarkedDict) and step in value
        if here or (isinstance(value, MarkedList) and isinstance(step, int) and step < len(value)):
            around.append((value, step))
            value = value[step]
    return _Spot(value, tuple(around))


def _report(detail: ErrorDetails, spot: _Spot, problems: Problems) -> None:
    kind, context = detail["type"], detail.get("ctx", {})
    match kind:
        case "extra_forbidden":
            container, key = spot.around[-1]
            if isinstance(container, MarkedDict):
                meant = problems.unknown(spot.key_mark, "key", str(key), container.valid_keys, listed=True)
                container.cut.add(meant)
        case "missing" if not (isinstance(spot.value, MarkedDict) and detail["loc"][-1] in spot.value.cut):
            problems.add(spot.mark, f"key {str(detail['loc'][-1])!r} is missing here")
        case "missing":
            pass
        case "int_type" if detail["loc"][-1] == "[key]":
            key = spot.around[-1][1]
            problems.add(spot.key_mark, f"found {found(key)} as a key, expected a whole number")
        case "literal_error" | "enum":
            _report_word(spot, re.findall(r"'([^']*)'", context["expected"]) or [context["expected"]], problems)
        case "union_tag_invalid" if isinstance(spot.value, MarkedDict) and "kind" in spot.value:
            steps: tuple[_Step, ...] = (*spot.around, (spot.value, "kind"))
            inner = _Spot(spot.value["kind"], steps)
            _report_word(inner, re.findall(r"'([^']*)'", context["expected_tags"]), problems)
        case "union_tag_not_found" if isinstance(spot.value, dict):
            problems.add(spot.mark, "key 'kind' is missing here", "expected ring, pairs or torus")
        case "too_short" | "too_long":
            bound = context.get("min_length", context.get("max_length"))
            word = "at least" if kind == "too_short" else "at most"
            problems.add(spot.mark, f"found a list of length {context['actual_length']}, expected {word} {bound}")
        case _:
            text = _expectation(kind, context) or detail["msg"]
            problems.add(spot.mark, f"found {found(spot.value)}, {text}")


def _expectation(kind: str, context: Mapping[str, Any]) -> str | None:
    if kind == "string_pattern_mismatch":
        return f"expected {PATTERNS[context['pattern']]}"
    expected = _EXPECTED.get("model_type" if kind.startswith("union_tag") else kind)
    return f"expected {expected.format(**context)}" if expected else None


def _report_word(spot: _Spot, words: list[str], problems: Problems) -> None:
    hint = problems.nearest(spot.value, words) if isinstance(spot.value, str) else None
    message = f"found {found(spot.value)}, expected {listing(words)}"
    problems.add(spot.mark, message, f"did you mean {hint!r}?" if hint else None)


def _cut_out(data: MarkedDict, spots: list[tuple[ErrorDetails, _Spot]], doubts: Doubts) -> bool:
    """Remove the invalid parts; return whether any part was removed."""
    doomed: dict[tuple[int, Any], _Step] = {}
    for detail, spot in spots:
        around = _cut_at(spot)
        if around:
            container, key = around[-1]
            # By identity: containers cannot be keys.
            doomed[id(container), key] = (container, key)
        elif detail["type"] == "missing":
            return False
    # Lists are processed from their end, so that a removal does not shift items that are still to be removed.
    for container, key in sorted(doomed.values(), key=lambda step: -step[1] if isinstance(step[1], int) else 0):
        _remove(container, key, doubts, whole_section=container is data and key in _DEFINING)
    return bool(doomed)


def _cut_at(spot: _Spot) -> tuple[_Step, ...]:
    """The path to the part that must be removed: the value itself, or the list around it.

    A value in a list is removed with its whole list, because a shorter one would no longer match the names next to it.
    Entries are removed alone.
    """
    around = spot.around
    if not isinstance(spot.value, MarkedDict):
        while len(around) > _SECTION_ITEM and isinstance(around[-1][0], MarkedList):
            around = around[:-1]
    return around


def _remove(container: MarkedDict | MarkedList, key: Any, doubts: Doubts, *, whole_section: bool) -> None:
    for mapping in _mappings(container[key]):
        _doubt(mapping, doubts)
    if isinstance(container, MarkedDict):
        if whole_section:
            doubts.names.add(_ANY)
        elif not container.valid_keys:
            doubts.names.add(str(key))  # a rack
        container.cut.add(key)
    else:
        if not isinstance(container[key], MarkedDict):
            doubts.names.add(_ANY)
        del container.item_marks[key]
    del container[key]


def _mappings(value: Any) -> Iterator[MarkedDict]:
    if isinstance(value, MarkedDict):
        yield value
    items = value.values() if isinstance(value, MarkedDict) else value if isinstance(value, MarkedList) else ()
    for item in items:
        yield from _mappings(item)


def _doubt(mapping: MarkedDict, doubts: Doubts) -> None:
    for key in ("id", "name"):
        if key in mapping.valid_keys:
            doubts.names.add(mapping.get(key))
    if "accelerator" in mapping.valid_keys:
        accelerator = mapping.get("accelerator")
        for written in accelerator if isinstance(accelerator, list) else [accelerator]:
            doubts.lanes.add(written)
