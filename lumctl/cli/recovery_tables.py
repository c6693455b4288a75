"""What is printed of a recovery, or of several: the two figures, and the spans with their bars."""

import shutil
import sys
from collections.abc import Sequence

from lumctl.cli.output import Column, Output, OutputFormat
from lumctl.training.bars import (
    LEAST_WIDTH,
    MORPHLUX,
    BarRow,
    Measured,
    Published,
    TimeScale,
    axis_text,
    bar_text,
    in_words,
    ours,
    scale_for,
    theirs,
    typical_of,
)
from lumctl.training.repeated_recoveries import RepeatedRecoveries
from lumctl.training.timeline import STEP, VERIFIED

_MOST_WIDTH = 72
_PIPE_WIDTH = 120
_SPACES = 4
"""What a table on a terminal puts beside a column, at most."""


def print_recovery(out: Output, measured: Measured, published: Published | None = MORPHLUX) -> None:
    """Print a recovery, or the medians and worst of several, and a published one under it.

    Bars are drawn on a terminal and with ``-o wide``; a pipe gets the columns alone.
    """
    for line in figure_lines(measured, published):
        out.text(line)
    blocks = [("measured", _spans(ours(measured)))]
    if published:
        blocks.append((f"published: {published.source}", _spans(theirs(published))))
    rows = [row for _, block in blocks for row in block]
    scale = scale_for(max((row.latest_s for row in rows), default=0.0))
    with_worst = isinstance(measured, RepeatedRecoveries)
    width = _width(out, rows, with_worst=with_worst)
    for name, block in blocks:
        out.text()
        if not sys.stdout.isatty():
            out.text(name)
        cells = [_cells(row, scale, width, ascii_only=out.plain_glyphs) for row in block]
        out.table(_columns(scale, width, with_worst=with_worst), cells, title=name)


def figure_lines(measured: Measured, published: Published | None = MORPHLUX) -> tuple[str, ...]:
    """The two figures that are told of every recovery, each with the published one behind it."""
    typical = typical_of(measured)
    known = typical.known_by.value
    figures = (
        ("circuits verified", typical.failure_to_circuits_s, VERIFIED, "failure_to_circuits_s"),
        ("next step done", typical.failure_to_step_s, STEP, "failure_to_step_s"),
    )
    lines = []
    for words, seconds, name, field in figures:
        told = "-" if seconds is None else in_words(seconds)
        if isinstance(measured, RepeatedRecoveries) and seconds is not None:
            told = f"{told} in the median, {in_words(measured.worst[name])} at worst, of {measured.reached(name)} runs"
        beside = f" (published: {in_words(getattr(published, field))})" if published else ""
        lines.append(f"failure -> {words}: {told}{beside}")
    return (*lines, f"the failure is known by its {known}")


def _spans(rows: Sequence[BarRow]) -> list[BarRow]:
    """The rows without the figures, which have lines of their own."""
    return [row for row in rows if not row.main]


def _columns(scale: TimeScale, width: int, *, with_worst: bool) -> list[Column]:
    worst = [Column("WORST", "worst", right=True)] if with_worst else []
    bars = [Column(axis_text(scale, width), "bar")] if width else []
    spans = [Column("WHAT", "what"), Column("FROM", "from", right=True), Column("UNTIL", "until", right=True)]
    return [*spans, *worst, *bars]


def _cells(row: BarRow, scale: TimeScale, width: int, *, ascii_only: bool) -> dict[str, str]:
    return {
        "what": row.label,
        "from": in_words(row.starts_s),
        "until": in_words(row.ends_s),
        "worst": "" if row.worst_s is None else in_words(row.worst_s),
        "bar": bar_text(row, scale, width, ascii_only=ascii_only) if width else "",
    }


def _width(out: Output, rows: Sequence[BarRow], *, with_worst: bool) -> int:
    """The columns that are left for bars; 0 where they are not wanted or too few."""
    on_terminal = sys.stdout.isatty()
    if not on_terminal and out.format is not OutputFormat.WIDE:
        return 0
    columns = shutil.get_terminal_size((_PIPE_WIDTH, 0)).columns if on_terminal else _PIPE_WIDTH
    times = [[in_words(at) for at in (row.starts_s, row.ends_s, row.worst_s or 0.0)] for row in rows]
    shown = 3 if with_worst else 2
    widths = (max([len("UNTIL"), *(len(words[at]) for words in times)]) for at in range(shown))
    taken = max([len("WHAT"), *(len(row.label) for row in rows)]) + sum(widths)
    left = columns - taken - _SPACES * (shown + 2)
    return min(left, _MOST_WIDTH) if left >= LEAST_WIDTH else 0
