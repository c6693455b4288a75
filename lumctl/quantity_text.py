"""Times, sizes and bandwidths as operators write them, from nanoseconds to seconds and from bytes to terabytes."""

import math
import re

from lumctl.errors import UsageError

_TIMES_S = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
_SIZES = {"": 1, "b": 1} | {
    f"{prefix}{unit}".lower(): base**power
    for power, prefix in enumerate("KMGT", 1)
    for unit, base in (("B", 1000), ("iB", 1024))
}
_NUMBER = re.compile(r"([0-9]{1,15}(?:\.[0-9]{0,9})?(?:[eE][-+]?[0-9]{1,2})?) ?([A-Za-zµ]*)(/s)?")


def read_time_s(text: str, option: str) -> float:
    """Parse a time into seconds: ``7ms``, ``250us``, ``0.5s``.

    Raises:
        UsageError: it is not a time with its unit; the message begins with ``option``.
    """
    found = _NUMBER.fullmatch(text.strip())
    if found is None or found[3] or found[2] not in _TIMES_S:
        raise UsageError(f"{option}: {text!r} is not a time", hint="examples: 7ms, 250us, 0.5s")
    return float(found[1]) * _TIMES_S[found[2]]


def read_bytes(text: str, option: str) -> float:
    """Parse a size above 0: ``4096``, ``256MiB``, ``1GB``.

    Raises:
        UsageError: it is not a size; the message begins with ``option``.
    """
    size = _size(text, per_second=False)
    if size is None:
        raise UsageError(f"{option}: {text!r} is not a size above 0", hint="examples: 4096, 256MiB, 1GB")
    return size


def read_bandwidth(text: str, option: str) -> float:
    """Parse a bandwidth into bytes per second: ``300GB/s``.

    Raises:
        UsageError: it is not a bandwidth; the message begins with ``option``.
    """
    size = _size(text, per_second=True)
    if size is None:
        raise UsageError(f"{option}: {text!r} is not a bandwidth above 0", hint="example: 300GB/s")
    return size


def _size(text: str, *, per_second: bool) -> float | None:
    found = _NUMBER.fullmatch(text.strip())
    if found is None or bool(found[3]) != per_second or found[2].lower() not in _SIZES:
        return None
    return float(found[1]) * _SIZES[found[2].lower()] or None


def seconds_text(seconds: float) -> str:
    """A time with two or three digits and a fitting unit."""
    for unit, factor in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if abs(seconds) >= factor:
            return f"{_digits(seconds / factor)} {unit}"
    return f"{_digits(seconds / 1e-9)} ns" if seconds else "0 s"


def bytes_text(size: float) -> str:
    """A size with two or three digits and a decimal unit."""
    for unit, factor in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= factor:
            return f"{_digits(size / factor)} {unit}"
    return f"{size:.0f} B"


def _digits(value: float) -> str:
    decimals = max(1 - math.floor(math.log10(abs(value))), 0)
    return f"{value:.{min(decimals, 2)}f}"
