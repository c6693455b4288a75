"""Runbooks as YAML text: written for people to read, read back with the parameters filled in."""

from collections.abc import Mapping
from pathlib import Path
from shlex import quote
from typing import Any

import yaml

from lumctl.errors import UsageError
from lumctl.inventory.positions import MarkedDict, read_yaml
from lumctl.inventory.problems import Problems
from lumctl.printable import printable
from lumctl.runbook.document import SCHEMA, Runbook, parse
from lumctl.runbook.intents import IntentRunbook, parse_intents
from lumctl.runbook.parameters import parameters_of, valued

AnyRunbook = Runbook | IntentRunbook
_MOST_CHARACTERS = 32 * 1024 * 1024
_RECORDED = """\
# What was done, step by step, as the journal recorded it.
# Replay it on a simulator:  lumctl runbook replay {id}{inventory} --target sim{on_rack}
# It may be edited and commented; give the file's path in place of the id, and check it first:
#   lumctl runbook lint FILE{inventory}
"""
_ON_RACK = "\n# Replay it on the rack:     lumctl runbook replay {id}{inventory} --target rack"
_INTENDED = """\
# What to do, not how: every step is planned again where it is done. Edit it, comment it, then
#   lumctl runbook lint FILE
#   lumctl runbook replay FILE --target sim
#   lumctl runbook replay FILE --target rack{sets}
"""


def read(text: str, name: str, given: Mapping[str, str] | None = None) -> AnyRunbook:
    """A runbook of recorded steps or of intents; ``given`` are values of its parameters.

    Raises:
        UsageError: the text is not YAML, not a runbook, or a part of it is invalid.
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
        UsageError: a part of it is invalid.
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
    """The content of a file.

    Raises:
        UsageError: the file cannot be read, or is larger than a runbook can be.
    """
    try:
        with path.open(encoding="utf-8") as file:
            # One more than allowed, so that a larger file is noticed and not read to its end.
            text = file.read(_MOST_CHARACTERS + 1)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if len(text) > _MOST_CHARACTERS:
        raise UsageError(f"{path} is larger than {_MOST_CHARACTERS // 2**20} MiB")
    return text


def load(text: str, name: str) -> Runbook:
    """A runbook of recorded steps.

    Raises:
        UsageError: as :func:`read`, or it is a runbook of intents.
    """
    found = read(text, name)
    if not isinstance(found, Runbook):
        raise UsageError(f"{name} contains intents, not recorded steps", hint="see: lumctl-runbook(7)")
    return found


def load_file(path: Path) -> Runbook:
    """A file with a runbook of recorded steps.

    Raises:
        UsageError: as :func:`load`.
    """
    return load(text_of(path), str(path))


def dump(document: Mapping[str, Any]) -> str:
    """A runbook as YAML text."""
    if "intents" in document:
        sets = "".join(f" --set {name}=..." for name in document.get("parameters", {}))
        rack = document["rack"] if "${" not in str(document["rack"]) else "RACK"
        header = _INTENDED.format(rack=rack, sets=sets)
    else:
        of = {"id": document["id"], "inventory": f" -i {quote(document['recorded']['inventory']['path'])}"}
        on_rack = _ON_RACK.format(**of) if document["recorded"]["target"] == "rack" else ""
        header = _RECORDED.format(**of, on_rack=on_rack)
    text = _yaml(document, allow_unicode=True)
    # PyYAML escapes control characters, but not those that override the direction of the text.
    return header + (text if printable(text, lines=True) == text else _yaml(document, allow_unicode=False))


def _yaml(document: Mapping[str, Any], *, allow_unicode: bool) -> str:
    return yaml.dump(plain(document), Dumper=_Dumper, sort_keys=False, allow_unicode=allow_unicode, width=120)


def plain(value: Any) -> Any:
    """Mappings, lists and scalars without their lines and columns in a file."""
    if isinstance(value, Mapping):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return value


class _Dumper(yaml.SafeDumper):
    """Safe YAML with lists of plain values on one line."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - two equal lists are written out twice
        return True


def _represent_list(dumper: yaml.SafeDumper, data: list[Any]) -> yaml.Node:
    flat = not any(isinstance(item, dict) for item in data)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", data, flow_style=flat)


_Dumper.add_representer(list, _represent_list)
