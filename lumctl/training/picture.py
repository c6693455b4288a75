"""The picture of a recovery: its spans as bars on a time axis, the spans of a published recovery, and a caption."""

import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lumctl.errors import UsageError
from lumctl.fabric.drawing.colours import tint
from lumctl.fabric.drawing.image import painted, written
from lumctl.fabric.drawing.sheet import Group, Item, Label, Picture, PictureLine, polygon, straight, text_width
from lumctl.files import put
from lumctl.training.timeline import (
    MORPHLUX,
    BarRow,
    KnownBy,
    Timeline,
    TimeScale,
    Track,
    bar_rows,
    in_words,
    scale_for,
)

SIMULATED = "mesh, light, transponders, hosts and GPUs"
REAL = "processes and how they die, sockets, SSH, the plan with its journal, PyTorch with gloo on CPUs"
NOT_EXERCISED = "CUDA and NCCL, the locking of real transceivers, the settling of a real mesh, models of real size"

_T0 = {
    KnownBy.KILL: "t0 is the time of the kill.",
    KnownBy.DETECTION: "t0 is when the failure was detected: these times do not include the time before that.",
}


@dataclass(frozen=True, slots=True)
class About:
    """What a reader must know about a measurement; ``worst`` and ``heading`` are for medians of several recoveries."""

    machine: str
    date: str
    worst: Mapping[str, float] = field(default_factory=dict)
    """The latest time of each moment."""
    heading: str = ""
    """The heading of the measured bars; by default the cause of the failure."""


def _sentences(known_by: KnownBy) -> tuple[str, ...]:
    """The paragraphs of a picture's caption, of one or two sentences each."""
    return (
        f"{_T0[known_by]} The axis is linear up to its first mark and logarithmic from there.",
        f"Simulated: {SIMULATED}. Real: {REAL}.",
        f"Not exercised: {NOT_EXERCISED}.",
        f"Published: {MORPHLUX.source}: {MORPHLUX.conditions}. That is another job on other hardware.",
    )


def wrapped(text: str, room: float, size: float) -> Iterator[str]:
    """Break a text into lines of at most ``room``, unless a single word is longer."""
    line = ""
    for word in text.split():
        longer = f"{line} {word}" if line else word
        if line and text_width(longer, size) > room:
            yield line
            longer = word
        line = longer
    if line:
        yield line


def this_machine(cpu: Path = Path("/proc/cpuinfo")) -> str:
    """The machine as every measurement names it: usable cores, their model, system and Python."""
    cores = len(os.sched_getaffinity(0))
    model = _model(cpu) or platform.machine()
    noun = "core" if cores == 1 else "cores"
    return f"{cores} {noun} of {model}, {platform.system()} {platform.release()}, Python {platform.python_version()}"


def _model(cpu: Path) -> str:
    try:
        lines = cpu.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    named = (line.partition(":")[2] for line in lines if line.startswith("model name"))
    return " ".join(next(named, "").split())


INK, QUIET = "#1b232c", "#5c6873"
COLOURS: Mapping[Track, str] = {
    Track.JOB: INK,
    Track.SURVIVORS: "#e69f00",
    Track.SWAP: "#0072b2",
    Track.STATE: "#009e73",
}
"""Colours of the palette by Okabe and Ito, which colour-blind readers can tell apart."""

ROW, MAIN_ROW = 21.0, 27.0
"""Heights of a line with its bar."""

_SIZE, _MAIN_SIZE, _TICK = 12.0, 13.0, 11.0
_BAR, _MAIN_BAR = 10.9, 16.9  # no edge lies between two pixels, where rounding would make bars uneven
_LEAST = 2.0
"""The least width of a bar."""
_PLOT = 640.0
_GAP = 10.0
_SHORT = 4.0
_STRIP, _GRID = "#f1f4f7", "#dbe1e7"


@dataclass(frozen=True, slots=True)
class Sheet:
    """The horizontal layout: labels, the axis with the bars, and the notes behind the bars."""

    left: float
    axis_left: float
    scale: TimeScale

    @classmethod
    def for_rows(cls, left: float, rows: Sequence[BarRow], scale: TimeScale) -> "Sheet":
        """A sheet with labels from ``left`` on, with room for the longest label."""
        labels = max((text_width(row.label, _size(row)) for row in rows), default=0.0)
        return cls(left, left + labels + _GAP, scale)

    def x(self, seconds: float) -> float:
        """The position of a time."""
        return self.axis_left + _PLOT * self.scale.share(seconds)

    def right(self, rows: Sequence[BarRow]) -> float:
        """The right edge of all rows."""
        last_mark = self.x(self.scale.high_s) + text_width(in_words(self.scale.high_s), _TICK) / 2
        return max([last_mark, *(self.x(row.latest_s) + _GAP + text_width(row.note, _size(row)) for row in rows)])


def bar(sheet: Sheet, row: BarRow, y: float) -> Iterator[Item]:
    """A row at height ``y``: its label, its bar, a thin line to the worst end, and its note."""
    size, half = _size(row), (_MAIN_BAR if row.main else _BAR) / 2
    colour = COLOURS[row.track]
    yield Label((sheet.left, y), row.label, size, INK, centred=False, bold=row.main)
    start, end, far = sheet.x(row.starts_s), sheet.x(row.ends_s), sheet.x(row.latest_s)
    start = max(min(start, end - _LEAST), sheet.axis_left)
    end = max(end, start + _LEAST)
    corners = ((start, y - half), (end, y - half), (end, y + half), (start, y + half))
    yield polygon(corners, fill=colour)
    if far > end:
        yield PictureLine((end, y), (straight((end, y), (far, y)),), tint(colour), 2.4)
        yield PictureLine((far, y - half * 0.7), (straight((far, y - half * 0.7), (far, y + half * 0.7)),), colour, 1.6)
    look = INK if row.main else QUIET
    yield Label((max(end, far) + _GAP, y), row.note, size, look, centred=False, bold=row.main)


def grid(sheet: Sheet, top: float, bottom: float) -> Iterator[Item]:
    """The background of the bars: the linear strip, a line for each decade, and short lines between decades."""
    zero, first = sheet.x(0.0), sheet.x(sheet.scale.low_s)
    yield polygon(((zero, top), (first, top), (first, bottom), (zero, bottom)), fill=_STRIP)
    for seconds in sheet.scale.between():
        yield _upright(sheet.x(seconds), top, top + _SHORT)
        yield _upright(sheet.x(seconds), bottom - _SHORT, bottom)
    for seconds in (0.0, *sheet.scale.decades()):
        yield _upright(sheet.x(seconds), top, bottom)


def marks(sheet: Sheet, y: float) -> Iterator[Item]:
    """The times of the grid's lines."""
    yield Label((sheet.x(0.0), y), "t0", _TICK, QUIET)
    for decade in sheet.scale.decades():
        yield Label((sheet.x(decade), y), in_words(decade), _TICK, QUIET)


def _upright(x: float, top: float, bottom: float) -> PictureLine:
    return PictureLine((x, top), (straight((x, top), (x, bottom)),), _GRID, 1.0)


def _size(row: BarRow) -> float:
    return _MAIN_SIZE if row.main else _SIZE


_MARGIN = 28.0
_TITLE, _SUBTITLE, _HEADING, _CAPTION = 18.0, 12.5, 13.5, 12.0
_HEAD = 58.0
"""The height of title and subtitle."""
_NAME, _MARKS, _PAD, _BETWEEN = 26.0, 16.0, 5.0, 16.0
"""Heights: a block's name, the times of the axis, the space above and below bars, the space between blocks."""
_LINE = 17.0
_PAINTED = 2.0
"""Pixels of a PNG per unit of the sheet."""


def picture(measured: Timeline, about: About, *, title: str = "") -> Picture:
    """Lay the picture out. By default the title names the accelerator that failed and its replacement."""
    cause = f": {measured.cause}" if measured.cause else ""
    heading = about.heading or f"lumctl, measured{cause}"
    blocks = [
        (heading, bar_rows(measured, about.worst)),
        (f"published: {MORPHLUX.source}", bar_rows(MORPHLUX)),
    ]
    rows = [row for _, block in blocks for row in block]
    sheet = Sheet.for_rows(_MARGIN, rows, scale_for(max((row.latest_s for row in rows), default=0.0)))
    head = (
        Label((_MARGIN, _MARGIN + 8), title or _title(measured), _TITLE, INK, centred=False, bold=True),
        Label((_MARGIN, _MARGIN + 33), f"{about.machine}; {about.date}", _SUBTITLE, QUIET, centred=False),
    )
    drawn, bottom = _blocks(sheet, blocks, _MARGIN + _HEAD)
    right = max(sheet.right(rows), *(_MARGIN + text_width(label.text, label.size) for label in head))
    caption, lowest = _caption(_sentences(measured.known_by), right, bottom + 1.5 * _BETWEEN)
    return Picture(
        width=right + _MARGIN,
        height=lowest + _MARGIN - _LINE / 2,
        title=head[0].text,
        description="; ".join(row.words for row in rows),
        groups=(Group("heading", head), *drawn, Group("caption", caption)),
    )


def _blocks(sheet: Sheet, blocks: Sequence[tuple[str, tuple[BarRow, ...]]], top: float) -> tuple[list[Group], float]:
    """The named blocks of rows with the times of the axis above and below, and the height at which the blocks end."""
    groups: list[Group] = []
    y = top
    for at, (name, rows) in enumerate(blocks):
        label = Label((_MARGIN, y + _NAME / 2), name, _HEADING, INK, centred=False, bold=True)
        groups.append(Group("block", (label,)))
        y += _NAME
        if at == 0:
            groups.append(Group("marks", tuple(marks(sheet, y + _MARKS / 2))))
            y += _MARKS
        bars: list[Group] = []
        below = y + _PAD
        for row in rows:
            height = MAIN_ROW if row.main else ROW
            bars.append(Group("bar", tuple(bar(sheet, row, below + height / 2)), row.words))
            below += height
        groups += [Group("grid", tuple(grid(sheet, y, below + _PAD))), *bars]
        y = below + _PAD + _BETWEEN
    y -= _BETWEEN
    groups.append(Group("marks", tuple(marks(sheet, y + _MARKS / 2 + 2))))
    return groups, y + _MARKS


def _caption(paragraphs: Sequence[str], right: float, top: float) -> tuple[tuple[Label, ...], float]:
    """The caption under the axis, broken into lines, and the height at which it ends."""
    lines = [line for text in paragraphs for line in wrapped(text, right - _MARGIN, _CAPTION)]
    labels = tuple(
        Label((_MARGIN, top + at * _LINE), line, _CAPTION, QUIET, centred=False) for at, line in enumerate(lines)
    )
    return labels, top + len(lines) * _LINE


def _title(measured: Timeline) -> str:
    job = f"{measured.job}: " if measured.job else ""
    lost = ", ".join(measured.failed) or "a rank"
    if measured.replaced_by:
        return f"{job}{lost} lost, replaced by {', '.join(measured.replaced_by)}"
    return f"{job}{lost} lost and recovered"


SUFFIXES = (".svg", ".png")


def require_place(path: Path) -> None:
    """Check that a picture can be written to a path; call this before measuring.

    Raises:
        UsageError: the suffix is not in :data:`SUFFIXES`, or the folder cannot be written to.
    """
    _require_suffix(path)
    if not os.access(path.absolute().parent, os.W_OK | os.X_OK):
        raise UsageError(f"{path} cannot be written: folder {path.absolute().parent} does not exist or is not writable")


def _require_suffix(path: Path) -> None:
    if path.suffix.lower() not in SUFFIXES:
        raise UsageError(
            f"{path}: a picture cannot be written as {path.suffix or 'a file without a suffix'}",
            hint=f"use one of these suffixes: {', '.join(SUFFIXES)}",
        )


def save(path: Path, measured: Timeline, about: About, *, title: str = "") -> None:
    """Write the picture atomically, as SVG or PNG by its suffix.

    Raises:
        UsageError: the suffix is another, the file cannot be written, or Pillow, needed for PNG, is not installed.
    """
    _require_suffix(path)
    drawn = picture(measured, about, title=title)
    put(path, painted(drawn, _PAINTED) if path.suffix.lower() == ".png" else written(drawn).encode())
