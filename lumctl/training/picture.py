"""A recovery as a picture: its spans as bars on an axis of time, and under them those of a published one."""

from collections.abc import Sequence

from lumctl.fabric.drawing.model import Group, Label, Picture, text_width
from lumctl.fabric.drawing.png import painted
from lumctl.fabric.drawing.svg import written
from lumctl.training.about import About, wrapped
from lumctl.training.bars import INK, MAIN_ROW, QUIET, ROW, Sheet, bar, grid, marks
from lumctl.training.published import MORPHLUX, Published
from lumctl.training.rows import Measured, Row, ours, theirs, typical_of
from lumctl.training.scale import scale_for
from lumctl.training.several import Several

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


def _blocks(sheet: Sheet, blocks: Sequence[tuple[str, tuple[Row, ...]]], top: float) -> tuple[list[Group], float]:
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
    if isinstance(measured, Several):
        return f"{job}from a failure to the next step"
    lost = ", ".join(typical.failed) or "a rank"
    if typical.replaced_by:
        return f"{job}{lost} lost, replaced by {', '.join(typical.replaced_by)}"
    return f"{job}{lost} lost and back again"


def _measured(measured: Measured) -> str:
    if isinstance(measured, Several):
        return f"lumctl, measured: medians of {measured.runs} runs, thin lines to the worst"
    cause = f": {measured.cause}" if measured.cause else ""
    return f"lumctl, measured{cause}"
