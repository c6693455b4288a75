"""Reading a runbook back, whatever a person made of it: from YAML to values, with its parameters filled in."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lumctl.errors import UsageError
from lumctl.inventory.positions import MarkedDict, read_yaml
from lumctl.inventory.problems import Problems
from lumctl.runbook.document import SCHEMA, Runbook, parse
from lumctl.runbook.intents import IntentRunbook, parse_intents
from lumctl.runbook.parameters import parameters_of, valued
from lumctl.runbook.writing import plain

AnyRunbook = Runbook | IntentRunbook

_MOST_CHARACTERS = 32 * 1024 * 1024


def read(text: str, name: str, given: Mapping[str, str] | None = None) -> AnyRunbook:
    """A runbook of recorded steps or of intents; ``given`` are values of its parameters.

    Raises:
        UsageError: it is not YAML, not a runbook, or a part of it cannot be understood.
    """
    return parsed(_written(text, name), name, given)


def _written(text: str, name: str) -> dict[str, Any]:
    problems = Problems(name)
    document = read_yaml(text, problems, prose=True)
    if problems:
        raise problems.error()
    if not isinstance(document, MarkedDict) or document.get("schema") != SCHEMA:
        raise UsageError(f"{name}: this is not a runbook: it has no `schema: {SCHEMA}`")
    return dict(plain(document))


def parameter_names(path: Path) -> list[str]:
    """The parameters of a runbook file.

    Raises:
        UsageError: as :func:`read`.
    """
    return [parameter.name for parameter in parameters_of(_written(text_of(path), str(path)), str(path))]


def parsed(written: Mapping[str, Any], name: str, given: Mapping[str, str] | None = None) -> AnyRunbook:
    """A runbook's document as values.

    Raises:
        UsageError: a part of it cannot be understood.
    """
    document = valued(written, given or {}, name)
    if "intents" in document:
        return parse_intents(document, written, name)
    return parse(document, name)


def read_file(path: Path, given: Mapping[str, str] | None = None) -> AnyRunbook:
    """Read a runbook file.

    Raises:
        UsageError: it cannot be read.
    """
    return read(text_of(path), str(path), given)


def text_of(path: Path) -> str:
    """What stands in a file.

    Raises:
        UsageError: it cannot be read, or is larger than a runbook can be.
    """
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(_MOST_CHARACTERS + 1)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if len(text) > _MOST_CHARACTERS:
        raise UsageError(f"{path} is larger than {_MOST_CHARACTERS // 2**20} MiB")
    return text


def load(text: str, name: str) -> Runbook:
    """A runbook of recorded steps.

    Raises:
        UsageError: as :func:`read`, or it is one of intents.
    """
    found = read(text, name)
    if not isinstance(found, Runbook):
        raise UsageError(f"{name} holds intents, no recorded steps", hint="see: lumctl-runbook(7)")
    return found


def load_file(path: Path) -> Runbook:
    """A file with a runbook of recorded steps.

    Raises:
        UsageError: as :func:`load`.
    """
    return load(text_of(path), str(path))
