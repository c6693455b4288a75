"""The bars of a recovery in characters, for a terminal."""

from lumctl.training.rows import Row
from lumctl.training.scale import Scale, in_words

LEAST_WIDTH = 20
"""On fewer columns a bar tells nothing."""

_FULL, _THIN, _WORST = "█", "━", "─"
_ASCII = str.maketrans({_FULL: "#", _THIN: "=", _WORST: "-"})


def bar_text(row: Row, scale: Scale, width: int, *, ascii_only: bool = False) -> str:
    """A row's bar on so many columns, and a thin line to its worst."""
    start, end, far = (_column(scale, seconds, width) for seconds in (row.starts_s, row.ends_s, row.latest_s))
    start = min(start, width - 1)
    end = max(end, start + 1)
    drawn = " " * start + (_FULL if row.main else _THIN) * (end - start) + _WORST * max(far - end, 0)
    return drawn.translate(_ASCII) if ascii_only else drawn


def axis_text(scale: Scale, width: int) -> str:
    """The times of the axis over the columns of the bars: ``t0 10ms  100ms ...``. The last one ends with them.

    Those for which there is no room are left out.
    """
    first, *others = ((0, "t0"), *((_column(scale, d, width), in_words(d).replace(" ", "")) for d in scale.decades()))
    line = first[1].ljust(width)
    for at, words in (others[-1], *others[:-1]):
        start = min(max(at, len(first[1]) + 1), width - len(words))
        if not line[start - 1 : start + len(words) + 1].strip():
            line = line[:start] + words + line[start + len(words) :]
    return line.rstrip()


def _column(scale: Scale, seconds: float, width: int) -> int:
    return round(scale.share(seconds) * width)
