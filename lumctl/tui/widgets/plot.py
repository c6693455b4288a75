"""A plot of one reading over time, with its axes and its limits; pure."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text

from lumctl.store.packing import Point
from lumctl.tui.look.marks import QUIET_STYLE, STALE_STYLE
from lumctl.tui.views.readings import Limit, shown
from lumctl.tui.widgets.canvas import EMPTY, Scale, drawn, scale_of

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
