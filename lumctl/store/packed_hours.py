"""The readings of one component in one hour as bytes, and back: small, and the same on every machine. Pure."""

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
    """The minimum, mean and maximum of one minute; ``-inf`` is a value (no light), NaN is none."""

    low: float
    mean: float
    high: float


class Point(NamedTuple):
    """Readings of ``span_s`` seconds from ``at`` (seconds since the epoch) on: the least, the mean, the greatest."""

    at: float
    low: float
    mean: float
    high: float
    span_s: float = float(MINUTE_S)


Hour = Mapping[str, Mapping[int, Values]]
"""The readings of one component in one hour: by name, then by minute (0 to 59). A minute without reading is absent."""


def pack(hour: Hour) -> bytes:
    """An hour as bytes. Each number is a float of 32 bits, so that counts are exact up to 16,777,216."""
    raw = bytearray()
    for name, minutes in hour.items():
        word = name.encode()
        numbers = array("f", [math.nan]) * (_PLANES * MINUTES)
        for minute, values in minutes.items():
            # All least values lie together, and so on: alike beside alike is packed best.
            numbers[minute], numbers[MINUTES + minute], numbers[2 * MINUTES + minute] = values
        if sys.byteorder == "big":
            numbers.byteswap()
        raw += bytes([len(word)]) + word + numbers.tobytes()
    return _FORM + zlib.compress(raw, level=1)


def unpack(body: bytes) -> dict[str, dict[int, Values]]:
    """The hour that was packed.

    Raises:
        ValueError: these bytes are no packed hour, or one of a form that is not known here.
    """
    if body[:1] != _FORM:
        raise ValueError("not a packed hour of a known form")
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
            raise ValueError("a packed hour is cut short")
        if sys.byteorder == "big":
            numbers.byteswap()
        planes = zip(numbers[:MINUTES], numbers[MINUTES : 2 * MINUTES], numbers[2 * MINUTES :], strict=True)
        minutes = {minute: Values(*each) for minute, each in enumerate(planes) if not math.isnan(each[1])}
        hour[raw[start + 1 : begin].decode()] = minutes
        start = begin + size
    return hour


def merged(kept: Hour, new: Hour) -> dict[str, dict[int, Values]]:
    """Merge two parts of one minute or hour. A minute in both was read in two parts; equal parts change nothing."""
    whole = {name: dict(minutes) for name, minutes in kept.items()}
    for name, minutes in new.items():
        known = whole.setdefault(name, {})
        for minute, values in minutes.items():
            known[minute] = both(known[minute], values) if minute in known else values
    return whole


def both(one: Values, other: Values) -> Values:
    """Two parts of one minute as one; the mean is that of the part that had light, if the other had none."""
    means = [mean for mean in (one.mean, other.mean) if not math.isinf(mean)] or [one.mean]
    return Values(min(one.low, other.low), sum(means) / len(means), max(one.high, other.high))
