"""``grep -E`` on a simulated host: extended regular expressions, by the rules of POSIX where Python's differ."""

import re
from functools import lru_cache

_CLASSES = {
    "alnum": "A-Za-z0-9",
    "alpha": "A-Za-z",
    "blank": r" \t",
    "digit": "0-9",
    "lower": "a-z",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\s",
    "upper": "A-Z",
    "xdigit": "A-Fa-f0-9",
}
_BRACKETS = re.compile(r"\\.|\[(\^?)(\]?(?:\[:\w+:\]|[^\]])*)\]", re.DOTALL)
_IN_BRACKETS = re.compile(r"\[:(\w+):\]|[\\\[\]&~|]")


class BadPatternError(Exception):
    """Text that is no regular expression."""


def matching(pattern: str, text: str) -> str:
    """The lines of a text that match.

    Raises:
        BadPatternError: the pattern means nothing.
    """
    wanted = _compiled(pattern)
    return "".join(f"{line}\n" for line in text.removesuffix("\n").split("\n") if text and wanted.search(line))


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(_BRACKETS.sub(_bracket, pattern))
    except re.error as error:
        raise BadPatternError(str(error)) from None


def _bracket(found: re.Match[str]) -> str:
    """A bracket expression in Python's words. In POSIX a backslash within one is a backslash."""
    if found[2] is None:
        return found[0]
    return f"[{found[1]}{_IN_BRACKETS.sub(_in_bracket, found[2])}]"


def _in_bracket(found: re.Match[str]) -> str:
    if found[1] is None:
        return f"\\{found[0]}"
    if found[1] not in _CLASSES:
        raise BadPatternError(f"no class {found[1]}")
    return _CLASSES[found[1]]
