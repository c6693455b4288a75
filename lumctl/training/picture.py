"""The picture of a recovery: its spans as bars on an axis of time, those of a published one below, and a caption."""

import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lumctl.errors import UsageError
from lumctl.fabric.drawing.colours import tint
from lumctl.fabric.drawing.image import painted, written
from lumctl.fabric.drawing.sheet import Group, Item, Label, Picture, PictureLine, polygon, straight, text_width
from lumctl.files import put
from lumctl.training.bars import (
    MORPHLUX,
    BarRow,
    Measured,
    Published,
    TimeScale,
    in_words,
    ours,
    scale_for,
    theirs,
    typical_of,
)
from lumctl.training.repeated_recoveries import RepeatedRecoveries
from lumctl.training.timeline import KnownBy, Track

SIMULATED = "mesh, light, transponders, hosts and GPUs"
REAL = "processes and their death, sockets, SSH, the plan with its journal, PyTorch with gloo on CPUs"
NOT_EXERCISED = "CUDA and NCCL, the locking of real transceivers, the settling of a real mesh, models of real size"

_T0 = {
    KnownBy.KILL: "t0 is the kill itself.",
    KnownBy.DETECTION: "t0 is when the failure was detected: what passed before that is in none of these times.",
}


@dataclass(frozen=True, slots=True)
class About:
    """What a reader has to know of a measurement. ``machine`` and ``date`` are written as they are."""

    machine: str
    date: str
    simulated: str = SIMULATED
    real: str = REAL
    not_exercised: str = NOT_EXERCISED

    def caption(self, known_by: KnownBy, published: Published | None) -> tuple[str, ...]:
        """The sentences under a picture, one a paragraph."""
        return tuple(self._caption(known_by, published))

    def _caption(self, known_by: KnownBy, published: Published | None) -> Iterator[str]:
        yield f"{_T0[known_by]} The axis is linear up to its first mark and logarithmic from there."
        if self.simulated:
            yield f"Simulated: {self.simulated}. Real: {self.real}."
        if self.not_exercised:
            yield f"Not exercised: {self.not_exercised}."
        if published:
            yield f"Published: {published.source}: {published.conditions}. It is another job on other hardware."


def wrapped(text: str, room: float, size: float) -> Iterator[str]:
    """Lines that fit the room, unless a single word is longer."""
    line = ""
    for word in text.split():
        longer = f"{line} {word}" if line else word
        if line and text_width(longer, size) > room:
            yield line
            longer = word
        line = longer
    if line:
        yield line


_CPU = Path("/proc/cpuinfo")


def this_machine(cpu: Path = _CPU) -> str:
    """Cores that this process may use, their model, system and Python: what a measurement has to name."""
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
    scale: TimeScale

    @classmethod
    def for_rows(cls, left: float, rows: Sequence[BarRow], scale: TimeScale) -> "Sheet":
        """A sheet whose labels begin at ``left`` and have the room that those of all rows need."""
        labels = max((text_width(row.label, _size(row)) for row in rows), default=0.0)
        return cls(left, left + labels + _GAP, scale)

    def x(self, seconds: float) -> float:
        """Where a time lies."""
        return self.axis_left + _PLOT * self.scale.share(seconds)

    def right(self, rows: Sequence[BarRow]) -> float:
        """Where all of it ends."""
        last_mark = self.x(self.scale.high_s) + text_width(in_words(self.scale.high_s), _TICK) / 2
        return max([last_mark, *(self.x(row.latest_s) + _GAP + text_width(row.note, _size(row)) for row in rows)])


def bar(sheet: Sheet, row: BarRow, y: float) -> Iterator[Item]:
    """A row at a height: its label, its bar, a thin line to the worst, and the times in words."""
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


def _upright(x: float, top: float, bottom: float) -> PictureLine:
    return PictureLine((x, top), (straight((x, top), (x, bottom)),), _GRID, 1.0)


def _size(row: BarRow) -> float:
    return _MAIN_SIZE if row.main else _SIZE


_MARGIN = 28.0
_TITLE, _SUBTITLE, _HEADING, _CAPTION = 18.0, 12.5, 13.5, 12.0
_HEAD = 58.0
"""The height of title and subtitle."""
_NAME, _MARKS, _PAD, _BETWEEN = 26.0, 16.0, 5.0, 16.0
"""Heights of a block's name, of the times of the axis, of the room above and below bars and of that between blocks."""
_LINE = 17.0
_PAINTED = 2.0
"""Pixels of a PNG to a unit of the sheet."""


def svg(measured: Measured, about: About, *, title: str = "", published: Published | None = MORPHLUX) -> str:
    """The picture as the text of an SVG file."""
    return written(picture(measured, about, title=title, published=published))


def png(measured: Measured, about: About, *, title: str = "", published: Published | None = MORPHLUX) -> bytes:
    """The picture as the bytes of a PNG file.

    Raises:
        UsageError: Pillow is not installed.
    """
    return painted(picture(measured, about, title=title, published=published), _PAINTED)


def picture(measured: Measured, about: About, *, title: str = "", published: Published | None = MORPHLUX) -> Picture:
    """Lay the picture out. Without a ``title`` it says what failed and what replaced it."""
    blocks = [(_measured(measured), ours(measured))]
    if published:
        blocks.append((f"published: {published.source}", theirs(published)))
    rows = [row for _, block in blocks for row in block]
    sheet = Sheet.for_rows(_MARGIN, rows, scale_for(max((row.latest_s for row in rows), default=0.0)))
    head = (
        Label((_MARGIN, _MARGIN + 8), title or _title(measured), _TITLE, INK, centred=False, bold=True),
        Label((_MARGIN, _MARGIN + 33), f"{about.machine}; {about.date}", _SUBTITLE, QUIET, centred=False),
    )
    drawn, bottom = _blocks(sheet, blocks, _MARGIN + _HEAD)
    right = max(sheet.right(rows), *(_MARGIN + text_width(label.text, label.size) for label in head))
    caption, lowest = _caption(about.caption(typical_of(measured).known_by, published), right, bottom + 1.5 * _BETWEEN)
    return Picture(
        width=right + _MARGIN,
        height=lowest + _MARGIN - _LINE / 2,
        title=head[0].text,
        description="; ".join(row.words for row in rows),
        groups=(Group("heading", head), *drawn, Group("caption", caption)),
    )


def _blocks(sheet: Sheet, blocks: Sequence[tuple[str, tuple[BarRow, ...]]], top: float) -> tuple[list[Group], float]:
    """The rows of each block under its name, the times of the axis above the first and below the last; and the end."""
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
    """The sentences under the axis, broken to fit, and where they end."""
    lines = [line for text in paragraphs for line in wrapped(text, right - _MARGIN, _CAPTION)]
    labels = tuple(
        Label((_MARGIN, top + at * _LINE), line, _CAPTION, QUIET, centred=False) for at, line in enumerate(lines)
    )
    return labels, top + len(lines) * _LINE


def _title(measured: Measured) -> str:
    typical = typical_of(measured)
    job = f"{typical.job}: " if typical.job else ""
    if isinstance(measured, RepeatedRecoveries):
        return f"{job}from a failure to the next step"
    lost = ", ".join(typical.failed) or "a rank"
    if typical.replaced_by:
        return f"{job}{lost} lost, replaced by {', '.join(typical.replaced_by)}"
    return f"{job}{lost} lost and back again"


def _measured(measured: Measured) -> str:
    if isinstance(measured, RepeatedRecoveries):
        return f"lumctl, measured: medians of {measured.runs} runs, thin lines to the worst"
    cause = f": {measured.cause}" if measured.cause else ""
    return f"lumctl, measured{cause}"


SUFFIXES = (".svg", ".png")


def require_place(path: Path) -> None:
    """Require a folder that can be written to, and a name by which the kind of picture is known.

    To be asked before anything is measured.

    Raises:
        UsageError: the name is none of :data:`SUFFIXES`, or the folder is not to be had.
    """
    _require_suffix(path)
    if not os.access(path.absolute().parent, os.W_OK | os.X_OK):
        raise UsageError(f"{path} cannot be written: no folder {path.absolute().parent} that you may write to")


def _require_suffix(path: Path) -> None:
    if path.suffix.lower() not in SUFFIXES:
        raise UsageError(
            f"{path}: a picture is not written as {path.suffix or 'a file without a suffix'}",
            hint=f"give it one of these: {', '.join(SUFFIXES)}",
        )


def save(
    path: Path, measured: Measured, about: About, *, title: str = "", published: Published | None = MORPHLUX
) -> None:
    """Write the picture, whole or not at all.

    Raises:
        UsageError: the name asks for something else, the file cannot be written, or PNG needs what is not installed.
    """
    _require_suffix(path)
    drawing = png if path.suffix.lower() == ".png" else svg
    drawn = drawing(measured, about, title=title, published=published)
    put(path, drawn if isinstance(drawn, bytes) else drawn.encode())
