"""Moments, ages and durations as every command prints and reads them.

A moment is a time with its zone, mostly followed by its age: how long ago it was. A duration is ``90s`` or ``2h``.

Text for people has the reader's own zone (``2026-11-26 18:05:13+01:00 (3m ago)``), documents have ISO 8601 with zone
(``2026-11-26T18:05:13.250+01:00``). Every option that takes a time accepts both.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from lumctl.errors import UsageError

UNITS_S = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
LONGEST_S = 3650 * 86_400.0
_LENGTH = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)([smhd])")
_LARGEST = {"s": 100.0, "m": 100.0, "h": 48.0}
"""Longer ages are shown in the next unit."""
_EXACT_S = 10.0
"""Shorter ages are shown with a decimal, so that 0.4 s and 3 s differ."""


def moment_text(at: float) -> str:
    """A moment (seconds since the epoch) to the second, in the reader's zone, with its offset from UTC."""
    return _local(at).isoformat(sep=" ", timespec="seconds")


def iso_text(at: float) -> str:
    """A moment for a document: ISO 8601 with zone, to the millisecond."""
    return _local(at).isoformat(timespec="milliseconds")


def iso_or_none(at: float | None) -> str | None:
    """:func:`iso_text` of a moment that may be unknown."""
    return None if at is None else iso_text(at)


def iso_times(value: Any, *keys: str) -> Any:
    """A document in which every number under one of these keys, at any depth, is replaced by its :func:`iso_text`."""
    if isinstance(value, Mapping):
        return {
            key: iso_text(item) if key in keys and isinstance(item, int | float) else iso_times(item, *keys)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [iso_times(item, *keys) for item in value]
    return value


def seconds_of(iso: str) -> float:
    """The moment that :func:`iso_text` wrote, in seconds since the epoch."""
    return datetime.fromisoformat(iso).timestamp()


def age_text(seconds: float) -> str:
    """An age in its largest fitting unit, in few characters: ``0.4s``, ``95s``, ``12m``, ``30h``, ``4d``."""
    seconds = max(seconds, 0.0)
    if seconds < _EXACT_S:
        return f"{seconds:.1f}s"
    unit = next((unit for unit, largest in _LARGEST.items() if seconds < largest * UNITS_S[unit]), "d")
    return f"{int(seconds / UNITS_S[unit])}{unit}"


def ago_text(at: float, now: float) -> str:
    """How far a moment is from now: ``3m ago``, ``in 2h``."""
    return f"{age_text(now - at)} ago" if at <= now else f"in {age_text(at - now)}"


def moment_with_age(at: float, now: float) -> str:
    """A moment and how far it is from now: ``2026-11-26 18:05:13+01:00 (3m ago)``."""
    return f"{moment_text(at)} ({ago_text(at, now)})"


def _local(at: float) -> datetime:
    return datetime.fromtimestamp(at, tz=UTC).astimezone()


def length_s(text: str) -> float:
    """A duration in seconds.

    Raises:
        UsageError: the text is not a valid duration, or the duration is longer than ten years.
    """
    found = _LENGTH.fullmatch(text.strip().lower())
    seconds = float(found[1]) * UNITS_S[found[2]] if found else 0.0
    if not 0 < seconds <= LONGEST_S:
        raise UsageError(f"{text!r} is not a valid duration", hint="examples: 90s, 30m, 2h, 1d; at most 3650d")
    return seconds


def length_text(seconds: float) -> str:
    """A duration in the largest unit that divides it, such as ``2h``, rounded to whole seconds and at least 1 s."""
    whole = max(1, round(seconds))
    unit = next(unit for unit in ("d", "h", "m", "s") if whole % UNITS_S[unit] == 0)
    return f"{whole // int(UNITS_S[unit])}{unit}"
