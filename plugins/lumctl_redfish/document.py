"""What a controller says, as data that nobody vouches for: each value is taken only if it is of the kind it must be."""

import json
import math
from typing import Any

from lumctl.devices.http import one_line, same_origin_path

Json = dict[str, Any]


def parsed(data: bytes) -> Json | None:
    """The JSON object that some bytes are; ``None`` if they are anything else."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def at(document: object, *keys: str | int) -> object:
    """What lies at a path of keys and positions; ``None`` where there is nothing."""
    for key in keys:
        if isinstance(document, dict):
            document = document.get(key)
        elif isinstance(document, list) and isinstance(key, int) and key < len(document):
            document = document[key]
        else:
            return None
    return document


def items(document: object, *keys: str | int) -> list[Any]:
    """The list at a path; empty where there is none."""
    found = at(document, *keys)
    return found if isinstance(found, list) else []


def text(document: object, *keys: str | int) -> str:
    """The text at a path, as one line that is fit to be shown; empty where there is none."""
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
    """The path of the resource that a reference at a path of keys means."""
    return path_of(at(document, *keys, "@odata.id"))


def path_of(reference: object, origin: str = "") -> str | None:
    """The path that a reference or redirect means; ``None`` if it is none, or leads away from ``origin``."""
    return same_origin_path(reference, origin)


def complaint(document: object) -> str:
    """What an error document says, in the words of its extended information if it has any."""
    error = at(document, "error")
    said = [text(each, "Message") for each in items(error, "@Message.ExtendedInfo")]
    return next((each for each in said if each), "") or text(error, "message")
