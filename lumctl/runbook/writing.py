"""Runbooks as YAML text: cells and ranks are read across, not down, and a header says how to go on."""

from collections.abc import Mapping
from typing import Any

import yaml

from lumctl.printable import printable

_RECORDED = """\
# What was done, step by step, as the journal recorded it.
# Replay it on a simulator:  lumctl runbook replay {id} --on sim
# Replay it on the rack:     lumctl runbook replay {id} --on {rack}
# It may be edited and commented; give the file's path in place of the id, and check it first: lumctl runbook lint FILE
"""
_INTENDED = """\
# What to do, not how: every step is planned anew where it is done. Edit it, comment it, then
#   lumctl runbook lint FILE
#   lumctl runbook replay FILE --on sim
#   lumctl runbook replay FILE --on {rack}{sets}
"""


def dump(document: Mapping[str, Any]) -> str:
    """A runbook as YAML text."""
    if "intents" in document:
        sets = "".join(f" --set {name}=..." for name in document.get("parameters", {}))
        rack = document["rack"] if "${" not in str(document["rack"]) else "RACK"
        header = _INTENDED.format(rack=rack, sets=sets)
    else:
        header = _RECORDED.format(id=document["id"], rack=document["recorded"]["rack"])
    text = _yaml(document, allow_unicode=True)
    # PyYAML escapes control characters, but not those that override the direction of the text.
    return header + (text if printable(text, lines=True) == text else _yaml(document, allow_unicode=False))


def _yaml(document: Mapping[str, Any], *, allow_unicode: bool) -> str:
    return yaml.dump(plain(document), Dumper=_Dumper, sort_keys=False, allow_unicode=allow_unicode, width=120)


def plain(value: Any) -> Any:
    """Mappings, lists and scalars that know nothing of where they stood in a file."""
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
