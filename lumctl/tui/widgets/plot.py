"""A plot of readings over time, with its axes, limits and events; pure."""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from string import ascii_uppercase

from rich.text import Text

from lumctl.printable import printable
from lumctl.store.packed_hours import Point
from lumctl.tui.look.circuit_styles import style_name
from lumctl.tui.look.marks import QUIET_STYLE, STALE_STYLE, STATE_STYLES, clock
from lumctl.tui.views.plot_curves import Curve, PlotEvent
from lumctl.tui.views.readings import shown
from lumctl.tui.widgets.gauges import columns

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
        # Room on both sides of a constant reading, but none below 0 for one that is never negative.
        around = max(abs(low) * 0.1, 0.5)
        low, high = (max(low - around, 0.0) if low >= 0 else low - around), high + around
    step = _round_step((high - low) / max(rows // 3, 1))
    low, high = math.floor(low / step) * step, math.ceil(high / step) * step
    # No light has no place on a scale in dBm: it gets a step of its own below the lowest power.
    dark = any(point.low == -math.inf for point in points)
    return Scale(low - step if dark else low, high, step, dark)


def drawn(
    points: Sequence[Point], start: float, end: float, scale: Scale, size: tuple[int, int], *, ascii_only: bool
) -> list[list[str]]:
    """The points drawn as rows of characters, the top row first; a column spans the minimum to the maximum of its time.

    ``size`` is width and height in characters. Neighbouring columns touch; a time without readings stays empty.
    """
    width, height = size
    across, down = (1, 1) if ascii_only else (2, 4)
    bits = [[0] * width for _ in range(height)]
    marks = [[EMPTY] * width for _ in range(height)]
    before: Point | None = None
    for number, column in enumerate(columns(points, start, end, width * across)):
        if column is not None:
            # Each column reaches to the mean of the one before, so that the curve has no gaps where it is steep.
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
    """The smallest step of 1, 2 or 5 times a power of ten that is at least ``least``."""
    # 1e-9 allows for rounding: a power of ten may come out a hair below ``least``.
    size: float = 10.0 ** math.floor(math.log10(least))
    return next(factor * size for factor in (1, 2, 5, 10) if factor * size >= least * (1 - 1e-9))


LABELS = 9
"""The width of the values on the left with the axis, in characters."""
LEAST_WIDTH, LEAST_HEIGHT = 10, 3
MOST_EVENTS = 3
"""How many events are listed below the plot; the axis marks all."""
_LETTER_EACH = 24
"""How many columns apart the letters of a curve are."""


@dataclass(frozen=True, slots=True)
class Zoom:
    """How much time a plot shows, in words and in seconds; the distance of the marks, and the format of their times."""

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
    curves: Sequence[Curve],
    end: float,
    zoom: Zoom,
    unit: str,
    size: tuple[int, int],
    *,
    events: Sequence[PlotEvent] = (),
    ascii_only: bool = False,
) -> Text:
    """Curves up to ``end`` (seconds since the epoch); a limit is a line with its words, an event a digit on the axis.

    ``size`` is width and height in characters. One curve shows the least and the greatest of each moment; of several
    each shows its mean, and bears its letter.
    """
    start = end - zoom.seconds
    events = [event for event in events if start < event.at <= end]
    below = 2 + min(len(events), MOST_EVENTS)
    width, height = max(size[0] - LABELS, LEAST_WIDTH), max(size[1] - below, LEAST_HEIGHT)
    seen = [[p for p in curve.points if p.at + p.span_s > start and p.at <= end] for curve in curves]
    limits = tuple(dict.fromkeys(limit for curve in curves for limit in curve.limits))
    if len(curves) > 1:
        seen = [[Point(p.at, p.mean, p.mean, p.mean, p.span_s) for p in points] for points in seen]
    scale = scale_of([point for points in seen for point in points], [limit.value for limit in limits], height)
    grid = _Grid(width, height, ascii_only=ascii_only)
    for number, points in enumerate(seen):
        cells = drawn(points, start, end, scale, (width, height), ascii_only=ascii_only)
        grid.add(cells, number if len(curves) > 1 else None)
    columns_of_events = [min(math.floor((event.at - start) / zoom.seconds * width), width - 1) for event in events]
    for column in columns_of_events:
        grid.add_upright(column)
    for limit in limits:
        grid.add_limit(_row(scale, limit.value, height), f" {limit.words} {shown(limit.value, unit)}")
    labels = {_row(scale, value, height): f"{value:.6g}" for value in scale.ticks()}
    if scale.dark:
        labels[height - 1] = "dark"
    text = Text(no_wrap=True)
    axis = "|" if ascii_only else "│"
    for row in range(height):
        text.append(f"{labels.get(row, ''):>{LABELS - 2}} {axis}", style=QUIET_STYLE)
        for mark, style in zip(grid.cells[row], grid.styles[row], strict=True):
            text.append(mark, style=style)
        text.append("\n")
    _draw_times(text, start, zoom, width, columns_of_events, ascii_only=ascii_only)
    _list_events(text, events, end, width + LABELS)
    return text


def letter_of(number: int) -> str:
    """The letter of a curve, where there are several."""
    return ascii_uppercase[number]


def curve_style(number: int) -> str:
    """The style of a curve, where there are several."""
    return style_name(f"circuit:{number}")


class _Grid:
    """The cells of a plot with their styles; earlier items are on top, but letters are always visible."""

    def __init__(self, width: int, height: int, *, ascii_only: bool) -> None:
        self.cells = [[EMPTY] * width for _ in range(height)]
        self.styles = [[""] * width for _ in range(height)]
        self._ascii_only = ascii_only

    def add(self, cells: list[list[str]], number: int | None) -> None:
        """Add a curve; with a number it has its style, and its letter again and again."""
        style = "" if number is None else curve_style(number)
        for row, line in enumerate(cells):
            for column, mark in enumerate(line):
                if mark == EMPTY:
                    continue
                before = self.cells[row][column]
                if number is not None and self._ascii_only:
                    mark = letter_of(number)  # noqa: PLW2901 - the letter is the mark
                if before == EMPTY:
                    self.cells[row][column], self.styles[row][column] = mark, style
                # The dots of both curves, in the colour of the first: a cell has one colour.
                elif ord(before) >= _BRAILLE and ord(mark) >= _BRAILLE:
                    self.cells[row][column] = chr(ord(before) | ord(mark))
        if number is not None:
            # Each curve's letters begin further right, so that those of curves close to each other stay apart.
            for column in range(_LETTER_EACH // 2 + number * 2, len(cells[0]), _LETTER_EACH):
                if rows := [row for row in range(len(cells)) if cells[row][column] != EMPTY]:
                    self.cells[rows[0]][column], self.styles[rows[0]][column] = letter_of(number), style

    def add_limit(self, row: int, words: str) -> None:
        """Add a line across, with its words at the right."""
        line, width = ("-" if self._ascii_only else "─"), len(self.cells[row])
        for column in range(width):
            if self.cells[row][column] == EMPTY:
                self.cells[row][column], self.styles[row][column] = line, STALE_STYLE
        for column, mark in enumerate(words[-width:], start=max(width - len(words), 0)):
            self.cells[row][column], self.styles[row][column] = mark, STALE_STYLE

    def add_upright(self, column: int) -> None:
        """Add a line from top to bottom behind everything."""
        for row in range(len(self.cells)):
            if self.cells[row][column] == EMPTY:
                self.cells[row][column] = "!" if self._ascii_only else "┊"
                self.styles[row][column] = STALE_STYLE


def _list_events(text: Text, events: Sequence[PlotEvent], now: float, width: int) -> None:
    """The newest events, each with the digit that marks it on the axis."""
    for number, event in list(enumerate(events, start=1))[-MOST_EVENTS:]:
        text.append(f"\n{_digit(number)} {clock(event.at, now)} ", style=QUIET_STYLE)
        words, room = printable(event.text), max(width - 3 - len(clock(event.at, now)), 4)
        text.append(words if len(words) <= room else f"{words[: room - 3]}...", style=STATE_STYLES[event.state])


def _digit(number: int) -> str:
    return str(number % 10)


def _row(scale: Scale, value: float, height: int) -> int:
    """The line in which a value is drawn, counted from the top."""
    # Rounded to a Braille dot, as the curves are: else a limit could be a line away from a curve that touches it.
    return height - 1 - math.floor(round(scale.share(value) * (height * 4 - 1)) / 4)


def _draw_times(text: Text, start: float, zoom: Zoom, width: int, events: Sequence[int], *, ascii_only: bool) -> None:
    """The axis of time, with a mark at each round time and its clock time (of this machine) below it.

    ``events`` are columns, each of which gets a digit.
    """
    corner, line, tick = ("+", "-", "+") if ascii_only else ("└", "─", "┬")
    marks, words = [line] * width, [EMPTY] * (width + LABELS)
    # The marks are round in local time. If the clock changes within the span, those after it are an hour off.
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
    for number, column in enumerate(events, start=1):
        marks[column] = _digit(number)
    text.append(f"{corner:>{LABELS}}{''.join(marks)}\n{''.join(words).rstrip()}", style=QUIET_STYLE)
