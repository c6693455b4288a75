"""What the values in a step's data must look like."""

from collections.abc import Mapping
from typing import Any

from lumctl.change.plan import Do

FORMS: Mapping[Do, Mapping[str, str]] = {
    Do.CHECK: {"healthy": "names", "kept": "names", "replaced": "names"},
    Do.TRANSMIT: {"transponder": "name", "enabled": "flag"},
    Do.PROGRAM: {"device": "name", "changes": "list"},
    Do.VERIFY: {"circuits": "names", "kept": "names"},
    Do.CONFIRM: {"devices": "names"},
    Do.ASSIGN: {"assignment": "placement", "before": "placement"},
    Do.SET: {"component": "name", "setting": "name", "before": "any", "after": "any", "disturbs": "names"},
}
"""The keys of each step's data with the form of their values; steps that are not here may have any."""

_EXPECTED = {
    "name": "a name",
    "names": "a list of names",
    "flag": "true or false",
    "list": "a list",
    "placement": "a mapping from jobs to lists of accelerators",
}


def form_of(form: str, value: Any) -> str | None:
    """What was expected, if a value has not the form; ``None`` if it has."""
    return None if _has(form, value) else _EXPECTED[form]


def _has(form: str, value: Any) -> bool:
    match form:
        case "name":
            return isinstance(value, str)
        case "names":
            return isinstance(value, list) and all(isinstance(item, str) for item in value)
        case "flag":
            return isinstance(value, bool)
        case "list":
            return isinstance(value, list)
        case "placement":
            return isinstance(value, dict) and all(_has("names", ranks) for ranks in value.values())
    return True
