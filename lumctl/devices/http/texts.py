"""Texts and paths in answers, treated as untrusted data."""

import json
from typing import Any
from urllib.parse import urljoin, urlsplit

from lumctl import printable

_MOST_TEXT = 200
_MOST_PATH = 1024
_ERROR_KEYS = ("message", "detail", "error", "title", "description", "reason")


def parsed(data: bytes) -> Any:
    """Parse bytes as JSON.

    Raises:
        ValueError: they are not JSON.
    """
    try:
        return json.loads(data)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def error_text(body: bytes) -> str:
    """The message in the body of an error: the text under ``message``, ``detail``, ``error`` or the like; else ""."""
    try:
        found = parsed(body)
    except ValueError:
        return ""
    for _ in range(3):  # {"errors": [{"error": {"message": "..."}}]} is as deep as it gets
        if isinstance(found, list):
            found = found[0] if found else None
        if not isinstance(found, dict):
            break
        found = next((found[key] for key in (*_ERROR_KEYS, "errors") if found.get(key)), None)
    return one_line(found) if isinstance(found, str) else ""


def one_line(said: str) -> str:
    """Text reduced to one printable line of at most 200 characters."""
    # Cut first: a device may put megabytes into one text.
    return printable.one_line(
        "".join(each if each.isprintable() else " " for each in said[: 4 * _MOST_TEXT + 1]), _MOST_TEXT
    )


def is_path(path: str) -> bool:
    """Whether this is valid as the path of a request."""
    # A space or a line break in a path would end the request's first line.
    return 0 < len(path) <= _MOST_PATH and path.startswith("/") and all("!" <= each <= "~" for each in path)


def same_origin_path(reference: object, origin: str = "") -> str | None:
    """The path that a reference or redirect leads to; ``None`` if invalid or outside ``origin``."""
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
