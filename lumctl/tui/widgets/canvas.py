"""Points over time as characters, without axes: Braille dots, two by four in a character, or plain ASCII. Pure."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lumctl.store.packing import Point
from lumctl.tui.widgets.sparkline import columns

_DOTS = ((0x40, 0x04, 0x02, 0x01), (0x80, 0x20, 0x10, 0x08))
"""The bits of a Braille character: left and right, each from the bottom up."""
_BRAILLE = 0x2800
EMPTY = " "


@dataclass(frozen=True, slots=True)
class Scale:
    """What lies at the bottom and at the top, and how far apart the marks between them are.

    With ``dark`` the bottom stands for no light at all.
    """

    low: float
    high: float
    step: float
    dark: bool = False

    def share(self, value: float) -> float:
        """Where a value lies, from 0 (bottom) to 1 (top)."""
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
