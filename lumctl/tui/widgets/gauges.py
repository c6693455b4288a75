"""A reading in a few characters: its value as a bar with marks at its limits, and over time as a sparkline; pure."""

import math
from collections.abc import Iterable, Sequence

from rich.text import Text

from lumctl.store.packed_hours import Point
from lumctl.tui.look.marks import QUIET_STYLE, STALE_STYLE

_UNICODE, _ASCII = ("█", "░", "│", "▏"), ("#", ".", "|", ":")
"""The filled part, the empty part, a limit, and a beginning: more than nothing, but less than a character."""
BLOCKS = "▁▂▃▄▅▆▇█"
ASCII_STEPS = ".:-=+"
DARK = "x"
"""The sign for no light at all: lower than the lowest mark."""


def share_of(value: float, low: float, high: float) -> float:
    """The position of a value on a scale, from 0 to 1; no light at all is at its beginning."""
    return min(max((value - low) / (high - low), 0.0), 1.0) if high > low else 0.0


def gauge(share: float, limits: Iterable[float], width: int, *, ascii_only: bool, style: str = "") -> Text:
    """A bar that is filled up to ``share``; a limit is a position between 0 and 1, and has no mark at the end."""
    full, empty, mark, some = _ASCII if ascii_only else _UNICODE
    filled = round(share * width)
    cells = [(full, style)] * filled + [(empty, QUIET_STYLE)] * (width - filled)
    if share > 0 and not filled:
        cells[0] = (some, style)
    for limit in limits:
        if 0.0 < limit < 1.0:
            cells[round(limit * (width - 1))] = (mark, STALE_STYLE)
    return Text.assemble(*cells)


def columns(points: Sequence[Point], start: float, end: float, width: int) -> list[Point | None]:
    """Divide a time into ``width`` equal columns, each with the minimum, mean and maximum of the points in it.

    A point is in every column that it overlaps; a column without points is ``None``.
    """
    step = (end - start) / width
    parts: list[list[Point]] = [[] for _ in range(width)]
    for point in points:
        first = math.floor((point.at - start) / step)
        last = math.ceil((point.at + point.span_s - start) / step)
        # At least one column: a point may be shorter than a column, or have no length at all.
        for column in range(max(first, 0), min(max(last, first + 1), width)):
            parts[column].append(point)
    return [_one(of_it, start + column * step, step) if of_it else None for column, of_it in enumerate(parts)]


def sparkline(
    points: Sequence[Point],
    now: float,
    *,
    seconds: float,
    width: int,
    scale: tuple[float, float | None],
    ascii_only: bool = False,
) -> str:
    """The means of the last ``seconds``, on a scale that does not depend on them, so that lines compare.

    A scale without an end, such as that of a count, ends at the greatest mean.
    """
    marks = ASCII_STEPS if ascii_only else BLOCKS
    means = [column.mean if column else math.nan for column in columns(points, now - seconds, now, width)]
    low, high = scale
    if high is None:
        high = max((mean for mean in means if math.isfinite(mean)), default=low)
    return "".join(_mark(mean, low, high, marks) for mean in means)


def _mark(mean: float, low: float, high: float, marks: str) -> str:
    if math.isnan(mean):
        return " "
    if math.isinf(mean):
        return DARK
    return marks[round(share_of(mean, low, high) * (len(marks) - 1))]


def _one(points: list[Point], at: float, span_s: float) -> Point:
    # Times without light are left out: with one of them (minus infinity), the mean would be minus infinity.
    lit = [point.mean for point in points if math.isfinite(point.mean)]
    mean = sum(lit) / len(lit) if lit else points[0].mean
    return Point(at, min(point.low for point in points), mean, max(point.high for point in points), span_s)
