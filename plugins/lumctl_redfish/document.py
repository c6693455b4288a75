"""A controller's JSON documents: access to their values, and what those of a system say of its power.

Documents are untrusted: a value of the wrong type counts as absent.
"""

import json
import math
from dataclasses import dataclass
from typing import Any

from lumctl.devices.http import one_line, same_origin_path

Json = dict[str, Any]


def parsed(data: bytes) -> Json | None:
    """Parse bytes as a JSON object; ``None`` if they are anything else."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def at(document: object, *keys: str | int) -> object:
    """The value at a path of keys and positions; ``None`` if there is none."""
    for key in keys:
        if isinstance(document, dict):
            document = document.get(key)
        elif isinstance(document, list) and isinstance(key, int) and key < len(document):
            document = document[key]
        else:
            return None
    return document


def items(document: object, *keys: str | int) -> list[Any]:
    """The list at a path; empty if there is none."""
    found = at(document, *keys)
    return found if isinstance(found, list) else []


def text(document: object, *keys: str | int) -> str:
    """The text at a path, as one printable line; empty if there is none."""
    found = at(document, *keys)
    return one_line(found) if isinstance(found, str) else ""


def number(document: object, *keys: str | int) -> float | None:
    """The number at a path."""
    found = at(document, *keys)
    if isinstance(found, bool) or not isinstance(found, (int, float)):
        return None
    try:
        return float(found) if math.isfinite(found) else None
    except OverflowError:
        return None


def link(document: object, *keys: str | int) -> str | None:
    """The resource path of the reference at a path of keys."""
    return path_of(at(document, *keys, "@odata.id"))


def path_of(reference: object, origin: str = "") -> str | None:
    """The path of a reference or redirect; ``None`` if it is not a reference, or is outside ``origin``."""
    return same_origin_path(reference, origin)


def complaint(document: object) -> str:
    """The message of an error document, from its extended information if it has any."""
    error = at(document, "error")
    said = [text(each, "Message") for each in items(error, "@Message.ExtendedInfo")]
    return next((each for each in said if each), "") or text(error, "message")


ON_WORDS = ("On", "ForceOn")
OFF_WORDS = ("GracefulShutdown",)
OFF_AT_ONCE_WORDS = ("ForceOff",)
RESTART_WORDS = ("ForceRestart", "PowerCycle")
HEADED = {True: "PoweringOn", False: "PoweringOff"}
"""The state of a system that is switching on (``True``) or off (``False``)."""

_RESET = "#ComputerSystem.Reset"
_PARAMETER = "ResetType"


@dataclass(frozen=True, slots=True)
class Reset:
    """The action that switches and restarts a system: its path, and its reset types, ``None`` if not stated."""

    path: str
    words: frozenset[str] | None
    info: str | None

    def word(self, wanted: tuple[str, ...]) -> str | None:
        """The first wanted reset type that the controller accepts; the first of all if it does not state its types."""
        if self.words is None:
            return wanted[0]
        return next((word for word in wanted if word in self.words), None)


def state_of(system: object) -> str:
    """The controller's own word for the power state."""
    return text(system, "PowerState")


def is_on(system: object) -> bool | None:
    """Whether the system is on; ``None`` while it is neither on nor off, or does not say."""
    return {"On": True, "Off": False}.get(state_of(system))


def health_of(system: object) -> str:
    """The controller's own word for the health of the system with all its parts, or else of the system alone."""
    return text(system, "Status", "HealthRollup") or text(system, "Status", "Health")


def model_of(system: object) -> str:
    """Maker and model."""
    maker, model = text(system, "Manufacturer"), text(system, "Model")
    return model if model.startswith(maker) else f"{maker} {model}".strip()


def reset_of(system: object) -> Reset | None:
    """The reset action; ``None`` if the system has none."""
    action = at(system, "Actions", _RESET)
    path = path_of(at(action, "target"))
    if path is None:
        return None
    stated = items(action, f"{_PARAMETER}@Redfish.AllowableValues")
    return Reset(path, _words(stated), path_of(at(action, "@Redfish.ActionInfo")))


def words_of_info(info: object) -> frozenset[str] | None:
    """The reset types that a separate document with the action's parameters states."""
    for parameter in items(info, "Parameters"):
        if text(parameter, "Name") == _PARAMETER:
            return _words(items(parameter, "AllowableValues"))
    return None


def watts_of_power(power: object, system: str, *, alone: bool) -> float | None:
    """The power draw of one system in a chassis' Power document; ``alone``: the chassis has no other system."""
    controls = items(power, "PowerControl")
    related = [each for each in controls if system in map(link, items(each, "RelatedItem"))]
    if not related and alone:
        related = controls
    return next((watts for each in related if (watts := number(each, "PowerConsumedWatts")) is not None), None)


def next_page(collection: object) -> str | None:
    """The path of a collection's next page; ``None`` at its end."""
    return path_of(at(collection, "Members@odata.nextLink"))


def _words(stated: list[object]) -> frozenset[str] | None:
    return frozenset(word for word in stated if isinstance(word, str)) or None
