"""Numbers out of cells such as ``81559 MiB``, ``-2 C``, ``16x`` or ``N/A``."""

import re

# The length is bounded because a mutilated answer may hold any number of digits, and an integer may not be infinite.
_LEADING_NUMBER = re.compile(r"\s*(-?[0-9]{1,18}(?:\.[0-9]{1,9})?)(?![0-9])")


def leading_float(cell: str | None) -> float | None:
    """The number that a cell begins with, its unit left out; ``None`` for ``N/A`` and the like."""
    found = _LEADING_NUMBER.match(cell) if cell else None
    return float(found[1]) if found else None


def leading_int(cell: str | None) -> int | None:
    """The same, as a whole number."""
    found = _LEADING_NUMBER.match(cell) if cell else None
    return int(found[1].partition(".")[0]) if found else None
