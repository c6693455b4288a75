"""Durations as operators write them: ``90s``, ``30m``, ``2h``, ``1d``."""

import re

from lumctl.errors import UsageError

UNITS_S = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
LONGEST_S = 3650 * 86_400.0
_LENGTH = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)([smhd])")


def length_s(text: str) -> float:
    """A duration in seconds.

    Raises:
        UsageError: it is not a valid duration, or longer than ten years.
    """
    found = _LENGTH.fullmatch(text.strip().lower())
    seconds = float(found[1]) * UNITS_S[found[2]] if found else 0.0
    if not 0 < seconds <= LONGEST_S:
        raise UsageError(f"{text!r} is not a valid duration", hint="examples: 90s, 30m, 2h, 1d; at most 3650d")
    return seconds


def length_text(seconds: float) -> str:
    """A duration in the largest unit that divides it, such as ``2h``; whole seconds at least."""
    whole = max(1, round(seconds))
    unit = next(unit for unit in ("d", "h", "m", "s") if whole % UNITS_S[unit] == 0)
    return f"{whole // int(UNITS_S[unit])}{unit}"
