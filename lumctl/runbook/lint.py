"""Checking a runbook as a file: everything that is wrong with it at once, each with its line and column."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lumctl.inventory.model import Inventory
from lumctl.inventory.positions import MarkedDict, MarkedList, found, read_yaml
from lumctl.inventory.problems import Mark, Problem, Problems
from lumctl.runbook import lint_intents, lint_steps
from lumctl.runbook.document import SCHEMA
from lumctl.runbook.parameters import NAME, PLACE, SECTION, parameters_of, places

RECORDED_KEYS = (
    "schema",
    "id",
    "title",
    SECTION,
    "recorded",
    "start",
    "replacements",
    "candidates",
    "why",
    "circuits",
    "steps",
    "taken_back",
    "end",
    "journal_head",
)
INTENT_KEYS = ("schema", "id", "title", "made_from", SECTION, "rack", "intents")


def lint(text: str, name: str, inventory: Inventory, given: Mapping[str, str] | None = None) -> tuple[Problem, ...]:
    """All problems of a runbook against an inventory, in the order of the file; ``given`` are values of parameters."""
    problems = Problems(name)
    document = read_yaml(text, problems, prose=True)
    if not isinstance(document, MarkedDict):
        if not problems:
            problems.add(
                Mark(1, 1), f"found {found(document)}, expected a runbook", f"it begins with `schema: {SCHEMA}`"
            )
        return problems.error().problems
    if document.get("schema") != SCHEMA:
        mark = document.value_marks.get("schema", document.at)
        problems.add(mark, f"this is not a runbook: it has no `schema: {SCHEMA}`")
        return problems.error().problems
    if _parameters_fit(document, given or {}, problems):
        _fill(document, {p.name: (given or {}).get(p.name, p.default) for p in parameters_of(document, name)})
    known = INTENT_KEYS if "intents" in document else RECORDED_KEYS
    for key in document:
        if key not in known:
            problems.unknown(document.key_marks[key], "key", str(key), known)
    if "intents" in document:
        lint_intents.check(document, inventory, problems)
    else:
        lint_steps.check(document, inventory, problems)
    return problems.error().problems if problems else ()


def lint_file(path: Path, text: str, inventory: Inventory, given: Mapping[str, str]) -> tuple[Problem, ...]:
    """As :func:`lint`, of a file that was read."""
    return lint(text, str(path), inventory, given)


def _parameters_fit(document: MarkedDict, given: Mapping[str, str], problems: Problems) -> bool:
    """Whether every place can be filled in; what is wrong with parameters is noted."""
    written = document.get(SECTION)
    if written is None:
        for word in given:
            problems.add(document.at, f"there is no parameter {word!r}", "it has no `parameters:`")
        return False
    if not isinstance(written, MarkedDict):
        problems.add(document.value_marks[SECTION], f"found {found(written)}, expected names of parameters")
        return False
    fits = [_parameter_fits(written, word, said, problems) for word, said in written.items()]
    for word in given:
        if word not in written:
            problems.unknown(document.key_marks[SECTION], "parameter", word, list(written), listed=True)
    return all(fits) and _places_fit(document, written, problems)


def _places_fit(document: MarkedDict, written: MarkedDict, problems: Problems) -> bool:
    """Whether every place names a parameter; and every parameter should have a place."""
    used = list(places(document))
    strange = [(path, word) for path, word in used if word not in written]
    for path, word in strange:
        problems.unknown(_mark_at(document, path), "parameter", word, list(written), listed=True)
    for word in written:
        if word not in {place for _, place in used}:
            problems.add(written.key_marks[word], f"parameter {word!r} is used nowhere", f"use it as ${{{word}}}")
    return not strange


def _parameter_fits(written: MarkedDict, word: Any, said: Any, problems: Problems) -> bool:
    mark = written.key_marks[word]
    if not NAME.fullmatch(str(word)):
        problems.add(mark, f"{word!r} is no name of a parameter", "small letters, digits and _, a letter first")
        return False
    if not isinstance(said, MarkedDict):
        problems.add(written.value_marks[word], f"found {found(said)}, expected a mapping with `what` and `default`")
        return False
    for key in said:
        if key not in {"what", "default"}:
            problems.unknown(said.key_marks[key], "key", str(key), ("what", "default"))
    if isinstance(said.get("default"), dict | list):
        problems.add(said.value_marks["default"], f"found {found(said['default'])}, expected one value")
        return False
    return True


def _mark_at(document: MarkedDict, path: tuple[Any, ...]) -> Mark:
    """Where a value stands."""
    container: Any = document
    for key in path[:-1]:
        container = container[key]
    marks = container.item_marks if isinstance(container, MarkedList) else container.value_marks
    mark: Mark = marks[path[-1]]
    return mark


def _fill(container: MarkedDict | MarkedList, values: Mapping[str, Any]) -> None:
    """Put the values of parameters into their places, where each place stays known.

    A parameter without a value keeps its place as it is written: whatever checks a name passes that over.
    """
    keys = list(container) if isinstance(container, MarkedDict) else range(len(container))
    for key in keys:
        value = container[key]
        if key in {SECTION, "recorded", "outcome"} and isinstance(container, MarkedDict):
            continue
        if isinstance(value, MarkedDict | MarkedList):
            _fill(value, values)
        elif isinstance(value, str):
            whole = PLACE.fullmatch(value)
            if whole and values.get(whole[1]) is not None:
                container[key] = values[whole[1]]
            elif not whole:
                container[key] = PLACE.sub(lambda at: str(values[at[1]]) if values.get(at[1]) else at[0], value)
