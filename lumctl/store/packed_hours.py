"""Pack the readings of one component in one hour into few bytes, the same on every machine, and unpack them. Pure."""

import math
import sys
import zlib
from array import array
from collections.abc import Mapping
from typing import NamedTuple

MINUTES = 60
HOUR_S = 3600
MINUTE_S = 60
_FORM = b"\x01"
"""The first byte of every packed hour: a change of the format changes it."""
_PLANES = 3


class Values(NamedTuple):
    """The minimum, mean and maximum of one minute; ``-inf`` is a value (no light), NaN means no value."""

    low: float
    mean: float
    high: float


class Point(NamedTuple):
    """The minimum, mean and maximum of the ``span_s`` seconds that begin at ``at`` (seconds since the epoch)."""

    at: float
    low: float
    mean: float
    high: float
    span_s: float = float(MINUTE_S)


Hour = Mapping[str, Mapping[int, Values]]
"""The readings of one component in one hour: by name, then by minute (0 to 59). A minute without reading is absent."""


def pack(hour: Hour) -> bytes:
    """Pack an hour into bytes. Each number is a 32-bit float, so counts are exact up to 16,777,216."""
    raw = bytearray()
    for name, minutes in hour.items():
        word = name.encode()
        numbers = array("f", [math.nan]) * (_PLANES * MINUTES)
        for minute, values in minutes.items():
            # All minimums are together, then all means, then all maximums: similar numbers in a row compress best.
            numbers[minute], numbers[MINUTES + minute], numbers[2 * MINUTES + minute] = values
        if sys.byteorder == "big":
            numbers.byteswap()
        raw += bytes([len(word)]) + word + numbers.tobytes()
    # Level 1: the hour of every component is packed again each minute.
    return _FORM + zlib.compress(raw, level=1)


def unpack(body: bytes) -> dict[str, dict[int, Values]]:
    """Unpack an hour.

    Raises:
        ValueError: the bytes are not a packed hour, or have an unknown format.
    """
    if body[:1] != _FORM:
        raise ValueError("not a packed hour of a known format")
    try:
        raw = zlib.decompress(body[1:])
    except zlib.error as error:
        raise ValueError(f"a packed hour is damaged: {error}") from error
    hour: dict[str, dict[int, Values]] = {}
    size, start = 4 * _PLANES * MINUTES, 0
    while start < len(raw):
        begin = start + 1 + raw[start]
        numbers = array("f")
        numbers.frombytes(raw[begin : begin + size])
        if len(numbers) != _PLANES * MINUTES:
            raise ValueError("a packed hour is truncated")
        if sys.byteorder == "big":
            numbers.byteswap()
        planes = zip(numbers[:MINUTES], numbers[MINUTES : 2 * MINUTES], numbers[2 * MINUTES :], strict=True)
        # A mean of NaN marks an absent minute; see pack.
        minutes = {minute: Values(*each) for minute, each in enumerate(planes) if not math.isnan(each[1])}
        hour[raw[start + 1 : begin].decode()] = minutes
        start = begin + size
    return hour


def merged(kept: Hour, new: Hour) -> dict[str, dict[int, Values]]:
    """Merge two parts of one hour. A minute that is in both was read in two parts; equal parts change nothing."""
    whole = {name: dict(minutes) for name, minutes in kept.items()}
    for name, minutes in new.items():
        known = whole.setdefault(name, {})
        for minute, values in minutes.items():
            known[minute] = both(known[minute], values) if minute in known else values
    return whole


def both(one: Values, other: Values) -> Values:
    """Merge two parts of one minute. If only one part had light, the mean is that part's mean."""
    means = [mean for mean in (one.mean, other.mean) if not math.isinf(mean)] or [one.mean]
    return Values(min(one.low, other.low), sum(means) / len(means), max(one.high, other.high))
