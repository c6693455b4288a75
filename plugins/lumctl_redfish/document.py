"""What a controller says, as data that nobody vouches for: each value is taken only if it is of the kind it must be."""

import json
import math
from typing import Any
from urllib.parse import urljoin, urlsplit

Json = dict[str, Any]

_MOST_TEXT = 200
_MOST_PATH = 1024


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
    if not isinstance(reference, str) or not 0 < len(reference) <= _MOST_PATH:
        return None
    if not all("!" <= each <= "~" for each in reference):
        return None
    try:
        there = urlsplit(urljoin(f"{origin}/", reference))
        home = urlsplit(origin)
    except ValueError:
        return None
    if (there.scheme, there.netloc) != (home.scheme, home.netloc) or not there.path.startswith("/"):
        return None
    return f"{there.path}?{there.query}" if there.query else there.path


def complaint(document: object) -> str:
    """What an error document says, in the words of its extended information if it has any."""
    error = at(document, "error")
    said = [text(each, "Message") for each in items(error, "@Message.ExtendedInfo")]
    return next((each for each in said if each), "") or text(error, "message")


def one_line(said: str) -> str:
    """Text without anything that could make it more than one line of an error."""
    line = " ".join("".join(each if each.isprintable() else " " for each in said[: 4 * _MOST_TEXT]).split())
    return line if len(line) <= _MOST_TEXT else f"{line[: _MOST_TEXT - 1]}…"
