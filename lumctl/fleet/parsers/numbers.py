"""Numbers out of cells such as ``81559 MiB``, ``-2 C``, ``16x`` or ``N/A``."""

import re

# The length is bounded because a mutilated answer may hold any number of digits, and an integer may not be infinite.
_LEADING_NUMBER = re.compile(r"\s*(-?[0-9]{1,18}(?:\.[0-9]{1,9})?)(?![0-9])")
_WHOLE_COUNT = re.compile(r"\s*([0-9]{1,20})\s*")
_MOST_COUNTED = 2**64 - 1


def leading_float(cell: str | None) -> float | None:
    """The number that a cell begins with, its unit left out; ``None`` for ``N/A`` and the like."""
    found = _LEADING_NUMBER.match(cell) if cell else None
    return float(found[1]) if found else None


def leading_int(cell: str | None) -> int | None:
    """The same, as a whole number."""
    found = _LEADING_NUMBER.match(cell) if cell else None
    return int(found[1].partition(".")[0]) if found else None


def whole_count(cell: str | None) -> int | None:
    """A counter of the kernel: digits and nothing else, of at most 64 bits."""
    found = _WHOLE_COUNT.fullmatch(cell) if cell else None
    count = int(found[1]) if found else _MOST_COUNTED + 1
    return count if count <= _MOST_COUNTED else None
