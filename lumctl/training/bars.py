"""Bars on an axis of time, as parts of a picture."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lumctl.fabric.drawing.colours import tint
from lumctl.fabric.drawing.model import Item, Label, Line, polygon, straight, text_width
from lumctl.training.rows import Row
from lumctl.training.scale import Scale, in_words
from lumctl.training.timeline import Lane

INK, QUIET = "#1b232c", "#5c6873"
COLOURS: Mapping[Lane, str] = {
    Lane.JOB: INK,
    Lane.SURVIVORS: "#e69f00",
    Lane.SWAP: "#0072b2",
    Lane.STATE: "#009e73",
}
"""Of Okabe and Ito: they stay apart for colour-blind eyes, and each bar has its label."""

ROW, MAIN_ROW = 21.0, 27.0
"""Heights of a line with its bar."""

_SIZE, _MAIN_SIZE, _TICK = 12.0, 13.0, 11.0
_BAR, _MAIN_BAR = 10.9, 16.9  # no edge falls on the border of two pixels, where rounding would make it uneven
_LEAST = 2.0
"""The width of a bar for what took no time to speak of."""
_PLOT = 640.0
_GAP = 10.0
_SHORT = 4.0
_STRIP, _GRID = "#f1f4f7", "#dbe1e7"


@dataclass(frozen=True, slots=True)
class Sheet:
    """Where bars lie from left to right: labels, then the axis, then room for what stands behind the longest bars."""

    left: float
    axis_left: float
    scale: Scale

    @classmethod
    def for_rows(cls, left: float, rows: Sequence[Row], scale: Scale) -> "Sheet":
        """A sheet whose labels begin at ``left`` and have the room that those of all rows need."""
        labels = max((text_width(row.label, _size(row)) for row in rows), default=0.0)
        return cls(left, left + labels + _GAP, scale)

    def x(self, seconds: float) -> float:
        """Where a time lies."""
        return self.axis_left + _PLOT * self.scale.share(seconds)

    def right(self, rows: Sequence[Row]) -> float:
        """Where all of it ends."""
        last_mark = self.x(self.scale.high_s) + text_width(in_words(self.scale.high_s), _TICK) / 2
        return max([last_mark, *(self.x(row.latest_s) + _GAP + text_width(row.note, _size(row)) for row in rows)])


def bar(sheet: Sheet, row: Row, y: float) -> Iterator[Item]:
    """A row at a height: its label, its bar, a thin line to the worst, and the times in words."""
    size, half = _size(row), (_MAIN_BAR if row.main else _BAR) / 2
    colour = COLOURS[row.lane]
    yield Label((sheet.left, y), row.label, size, INK, centred=False, bold=row.main)
    start, end, far = sheet.x(row.starts_s), sheet.x(row.ends_s), sheet.x(row.latest_s)
    start = max(min(start, end - _LEAST), sheet.axis_left)
    end = max(end, start + _LEAST)
    corners = ((start, y - half), (end, y - half), (end, y + half), (start, y + half))
    yield polygon(corners, fill=colour)
    if far > end:
        yield Line((end, y), (straight((end, y), (far, y)),), tint(colour), 2.4)
        yield Line((far, y - half * 0.7), (straight((far, y - half * 0.7), (far, y + half * 0.7)),), colour, 1.6)
    look = INK if row.main else QUIET
    yield Label((max(end, far) + _GAP, y), row.note, size, look, centred=False, bold=row.main)


def grid(sheet: Sheet, top: float, bottom: float) -> Iterator[Item]:
    """What lies under bars: the linear strip, a line for each decade, and short ones between these."""
    zero, first = sheet.x(0.0), sheet.x(sheet.scale.low_s)
    yield polygon(((zero, top), (first, top), (first, bottom), (zero, bottom)), fill=_STRIP)
    for seconds in sheet.scale.between():
        yield _upright(sheet.x(seconds), top, top + _SHORT)
        yield _upright(sheet.x(seconds), bottom - _SHORT, bottom)
    for seconds in (0.0, *sheet.scale.decades()):
        yield _upright(sheet.x(seconds), top, bottom)


def marks(sheet: Sheet, y: float) -> Iterator[Item]:
    """The times at the lines of the grid."""
    yield Label((sheet.x(0.0), y), "t0", _TICK, QUIET)
    for decade in sheet.scale.decades():
        yield Label((sheet.x(decade), y), in_words(decade), _TICK, QUIET)


def _upright(x: float, top: float, bottom: float) -> Line:
    return Line((x, top), (straight((x, top), (x, bottom)),), _GRID, 1.0)


def _size(row: Row) -> float:
    return _MAIN_SIZE if row.main else _SIZE
