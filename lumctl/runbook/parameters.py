"""Parameters: values that differ each time a runbook is used, declared at its top and written as ``${name}``."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lumctl.errors import UsageError
from lumctl.inventory.problems import nearest

SECTION = "parameters"
NAME = re.compile(r"[a-z][a-z0-9_]*")
PLACE = re.compile(r"\$\{([^${}]*)\}")
_RECORDED = frozenset({"outcome", "recorded", SECTION})
"""Recorded fields, which cannot be parameters."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter: its meaning in words, and its default value; ``None``: a value is required."""

    name: str
    what: str
    default: Any = None


def parameters_of(document: Mapping[str, Any], name: str) -> tuple[Parameter, ...]:
    """The parameters of a runbook.

    Raises:
        UsageError: the parameters have the wrong form.
    """
    written = document.get(SECTION) or {}
    if not isinstance(written, Mapping):
        raise UsageError(f"{name}: `parameters:` must map names to `what` and `default`")
    found = []
    for word, said in written.items():
        if not isinstance(said, Mapping) or not NAME.fullmatch(str(word)):
            raise UsageError(f"{name}: parameter {word!r} is not written as `{word}: {{what: ..., default: ...}}`")
        found.append(Parameter(str(word), str(said.get("what") or ""), said.get("default")))
    return tuple(found)


def valued(document: Mapping[str, Any], given: Mapping[str, str], name: str) -> dict[str, Any]:
    """A runbook's document with the values of its parameters filled in.

    Raises:
        UsageError: a value is given for an unknown parameter, a parameter has no value, or ``${...}`` names none.
    """
    known = {parameter.name: parameter for parameter in parameters_of(document, name)}
    for word in given:
        if word not in known:
            raise UsageError(f"{name} has no parameter {word!r}", hint=_hint(word, known))
    if not known:
        return dict(document)
    values = {each.name: given.get(each.name, "" if each.default is None else each.default) for each in known.values()}
    missing = [word for word in known if word not in given and known[word].default is None]
    if missing:
        what = known[missing[0]].what
        said = f" ({what})" if what else ""
        raise UsageError(f"{name} needs a value for {missing[0]}{said}", hint=f"--set {missing[0]}=...")
    for _, place in places(document):
        if place not in known:
            raise UsageError(f"{name} uses ${{{place}}}, which is not one of its parameters", hint=_hint(place, known))
    return {key: value if key in _RECORDED else _filled(value, values) for key, value in document.items()}


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], str]]:
    """Every place of a parameter in a document: the keys and indices that lead to its text, and its name."""
    if isinstance(value, str):
        yield from ((path, word) for word in PLACE.findall(value))
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            if key not in _RECORDED:
                yield from places(inner, (*path, key))
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            yield from places(inner, (*path, index))


def given_values(words: list[str]) -> dict[str, str]:
    """Parse ``NAME=VALUE`` words as an operator types them.

    Raises:
        UsageError: a word has another form, or a name is given twice.
    """
    found: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise UsageError(f"{word!r} is not of the form NAME=VALUE", hint="for example --set failed=r2-gpu3")
        if name in found:
            raise UsageError(f"{name} is given twice")
        found[name] = value
    return found


def _filled(value: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(value, str):
        # A default that is the whole value keeps its type: a boolean stays one, and does not become a text.
        whole = PLACE.fullmatch(value)
        if whole:
            return values[whole[1]]
        return PLACE.sub(lambda place: str(values[place[1]]), value)
    if isinstance(value, Mapping):
        return {key: inner if key in _RECORDED else _filled(inner, values) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_filled(inner, values) for inner in value]
    return value


def _hint(word: str, known: Mapping[str, Parameter]) -> str:
    near = nearest(word, known)
    if near:
        return f"did you mean {near}?"
    return f"it has: {', '.join(known)}" if known else "it has no parameters: see `parameters:` in lumctl-runbook(7)"
