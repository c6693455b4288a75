"""A plot of one reading over time, with its axes and its limits; pure."""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.text import Text

from lumctl.store.packed_hours import Point
from lumctl.tui.look.marks import QUIET_STYLE, STALE_STYLE
from lumctl.tui.views.readings import Limit, shown
from lumctl.tui.widgets.sparkline import columns

_DOTS = ((0x40, 0x04, 0x02, 0x01), (0x80, 0x20, 0x10, 0x08))
"""The bits of a Braille character: left and right, each from the bottom up."""
_BRAILLE = 0x2800
EMPTY = " "


@dataclass(frozen=True, slots=True)
class Scale:
    """The bottom and the top of the scale, and the distance of its marks.

    With ``dark`` the bottom means no light at all.
    """

    low: float
    high: float
    step: float
    dark: bool = False

    def share(self, value: float) -> float:
        """The position of a value, from 0 (bottom) to 1 (top)."""
        return 0.0 if value == -math.inf else min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)

    def ticks(self) -> Iterator[float]:
        """The values that are marked."""
        for number in range(round((self.high - self.low) / self.step) + 1):
            yield round(self.low + number * self.step, 10)


def scale_of(points: Sequence[Point], limits: Sequence[float], rows: int) -> Scale:
    """A scale that holds all points and limits and begins and ends at round values."""
    values = [value for point in points for value in (point.low, point.high) if math.isfinite(value)]
    values += limits
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    if low == high:
        around = max(abs(low) * 0.1, 0.5)
        low, high = (max(low - around, 0.0) if low >= 0 else low - around), high + around
    step = _round_step((high - low) / max(rows // 3, 1))
    low, high = math.floor(low / step) * step, math.ceil(high / step) * step
    dark = any(point.low == -math.inf for point in points)
    return Scale(low - step if dark else low, high, step, dark)


def drawn(
    points: Sequence[Point], start: float, end: float, scale: Scale, size: tuple[int, int], *, ascii_only: bool
) -> list[list[str]]:
    """Rows of characters, the top one first; each column reaches from the least to the greatest of its time.

    ``size`` is width and height in characters. Neighbouring columns touch; a gap is a gap.
    """
    width, height = size
    across, down = (1, 1) if ascii_only else (2, 4)
    bits = [[0] * width for _ in range(height)]
    marks = [[EMPTY] * width for _ in range(height)]
    before: Point | None = None
    for number, column in enumerate(columns(points, start, end, width * across)):
        if column is not None:
            low = min(column.low, before.mean) if before else column.low
            high = max(column.high, before.mean) if before else column.high
            top = height * down - 1
            for dot in range(round(scale.share(low) * top), round(scale.share(high) * top) + 1):
                row = height - 1 - dot // down
                bits[row][number // across] |= _DOTS[number % across][dot % down]
                marks[row][number // across] = ":"
            marks[height - 1 - round(scale.share(column.mean) * top) // down][number // across] = "*"
        before = column
    if ascii_only:
        return marks
    return [[chr(_BRAILLE + cell) if cell else EMPTY for cell in row] for row in bits]


def _round_step(least: float) -> float:
    """The least of 1, 2, 5, 10, ... that is no smaller."""
    size: float = 10.0 ** math.floor(math.log10(least))
    return next(factor * size for factor in (1, 2, 5, 10) if factor * size >= least * (1 - 1e-9))


LABELS = 9
"""How many characters the values on the left take, with the axis."""
LEAST_WIDTH, LEAST_HEIGHT = 10, 3


@dataclass(frozen=True, slots=True)
class Zoom:
    """How much time is shown: in words, in seconds, how far apart the marks are, and how their times are written."""

    words: str
    seconds: float
    tick_s: int
    form: str


ZOOMS = (
    Zoom("5 min", 300, 60, "%H:%M"),
    Zoom("15 min", 900, 180, "%H:%M"),
    Zoom("1 h", 3600, 600, "%H:%M"),
    Zoom("6 h", 6 * 3600, 3600, "%H:%M"),
    Zoom("1 d", 86_400, 4 * 3600, "%H:%M"),
    Zoom("7 d", 7 * 86_400, 86_400, "%a %d"),
)


def plot(
    points: Sequence[Point],
    end: float,
    zoom: Zoom,
    limits: Sequence[Limit],
    unit: str,
    size: tuple[int, int],
    *,
    ascii_only: bool = False,
) -> Text:
    """Points up to ``end`` (seconds since the epoch) in so many columns and lines; a limit is a line with its words."""
    start = end - zoom.seconds
    width, height = max(size[0] - LABELS, LEAST_WIDTH), max(size[1] - 2, LEAST_HEIGHT)
    seen = [point for point in points if point.at + point.span_s > start and point.at <= end]
    scale = scale_of(seen, [limit.value for limit in limits], height)
    cells = drawn(seen, start, end, scale, (width, height), ascii_only=ascii_only)
    styles = [[""] * width for _ in range(height)]
    for limit in limits:
        words = f" {limit.words} {shown(limit.value, unit)}"
        _draw_limit(cells, styles, _row(scale, limit.value, height), words, ascii_only=ascii_only)
    labels = {_row(scale, value, height): f"{value:.6g}" for value in scale.ticks()}
    if scale.dark:
        labels[height - 1] = "dark"
    text = Text(no_wrap=True)
    axis = "|" if ascii_only else "│"
    for row in range(height):
        text.append(f"{labels.get(row, ''):>{LABELS - 2}} {axis}", style=QUIET_STYLE)
        for mark, style in zip(cells[row], styles[row], strict=True):
            text.append(mark, style=style)
        text.append("\n")
    _draw_times(text, start, zoom, width, ascii_only=ascii_only)
    return text


def _row(scale: Scale, value: float, height: int) -> int:
    """The line of a value, counted from the top, as the points are drawn."""
    return height - 1 - math.floor(round(scale.share(value) * (height * 4 - 1)) / 4)


def _draw_limit(cells: list[list[str]], styles: list[list[str]], row: int, words: str, *, ascii_only: bool) -> None:
    line, width = ("-" if ascii_only else "─"), len(cells[row])
    for column in range(width):
        if cells[row][column] == EMPTY:
            cells[row][column], styles[row][column] = line, STALE_STYLE
    for column, mark in enumerate(words[-width:], start=max(width - len(words), 0)):
        cells[row][column], styles[row][column] = mark, STALE_STYLE


def _draw_times(text: Text, start: float, zoom: Zoom, width: int, *, ascii_only: bool) -> None:
    """The axis of time, with a mark at each round time and its clock time (of this machine) below it."""
    corner, line, tick = ("+", "-", "+") if ascii_only else ("└", "─", "┬")
    marks, words = [line] * width, [EMPTY] * (width + LABELS)
    offset = time.localtime(start).tm_gmtoff
    first = math.ceil((start + offset) / zoom.tick_s) * zoom.tick_s - offset
    free = 0
    for number in range(int(zoom.seconds // zoom.tick_s) + 1):
        at = first + number * zoom.tick_s
        column = math.floor((at - start) / zoom.seconds * width)
        if column >= width:
            break
        marks[column] = tick
        word = time.strftime(zoom.form, time.localtime(at))
        begin = column + LABELS - len(word) // 2
        if begin >= free and begin + len(word) <= len(words):
            words[begin : begin + len(word)] = word
            free = begin + len(word) + 1
    text.append(f"{corner:>{LABELS}}{''.join(marks)}\n{''.join(words).rstrip()}", style=QUIET_STYLE)
