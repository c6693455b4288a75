"""A reading over time in a few characters: how high it was, column by column; a gap is a gap. Pure."""

import math
from collections.abc import Sequence

from lumctl.store.packed_hours import Point

BLOCKS = "▁▂▃▄▅▆▇█"
ASCII_STEPS = ".:-=+"
DARK = "x"
"""The sign for no light at all: lower than the lowest mark."""


def columns(points: Sequence[Point], start: float, end: float, width: int) -> list[Point | None]:
    """Time cut into so many equal columns, each with the least, the mean and the greatest of what falls into it.

    A point fills every column that it reaches into; a column that none reaches is ``None``.
    """
    step = (end - start) / width
    parts: list[list[Point]] = [[] for _ in range(width)]
    for point in points:
        first = math.floor((point.at - start) / step)
        last = math.ceil((point.at + point.span_s - start) / step)
        for column in range(max(first, 0), min(max(last, first + 1), width)):
            parts[column].append(point)
    return [_one(of_it, start + column * step, step) if of_it else None for column, of_it in enumerate(parts)]


def sparkline(points: Sequence[Point], now: float, *, seconds: float, width: int, ascii_only: bool = False) -> str:
    """The means of the last so many seconds, between their own least and greatest."""
    marks = ASCII_STEPS if ascii_only else BLOCKS
    means = [column.mean if column else math.nan for column in columns(points, now - seconds, now, width)]
    finite = [mean for mean in means if math.isfinite(mean)]
    low, high = (min(finite), max(finite)) if finite else (0.0, 0.0)
    return "".join(_mark(mean, low, high, marks) for mean in means)


def _mark(mean: float, low: float, high: float, marks: str) -> str:
    if math.isnan(mean):
        return " "
    if math.isinf(mean):
        return DARK
    if high == low:
        return marks[len(marks) // 2 - 1]
    return marks[round((mean - low) / (high - low) * (len(marks) - 1))]


def _one(points: list[Point], at: float, span_s: float) -> Point:
    lit = [point.mean for point in points if math.isfinite(point.mean)]
    mean = sum(lit) / len(lit) if lit else points[0].mean
    return Point(at, min(point.low for point in points), mean, max(point.high for point in points), span_s)
