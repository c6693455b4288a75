"""The bars of a recovery: the rows that are shown, an axis of time for them, and the bars in characters."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, log10

from lumctl.training.repeated_recoveries import RepeatedRecoveries
from lumctl.training.timeline import STEP, VERIFIED, Moment, Span, Timeline, Track

_STRIP = 0.06
"""The share of the axis that shows the time before its first decade, which no logarithm reaches."""
_MS = 1000


@dataclass(frozen=True, slots=True)
class TimeScale:
    """Linear from 0 to ``low_s``, logarithmic from there to ``high_s``; both are powers of ten."""

    low_s: float = 0.01
    high_s: float = 100.0

    def share(self, seconds: float) -> float:
        """Where a time lies, from 0 to 1."""
        if seconds <= self.low_s:
            return _STRIP * max(seconds, 0.0) / self.low_s
        decades = log10(self.high_s / self.low_s)
        return min(_STRIP + (1 - _STRIP) * log10(seconds / self.low_s) / decades, 1.0)

    def decades(self) -> tuple[float, ...]:
        """The powers of ten on it, in seconds."""
        first, last = round(log10(self.low_s)), round(log10(self.high_s))
        return tuple(10.0**power for power in range(first, last + 1))

    def between(self) -> tuple[float, ...]:
        """Twice to nine times each power of ten."""
        return tuple(times * decade for decade in self.decades()[:-1] for times in range(2, 10))


def scale_for(latest_s: float) -> TimeScale:
    """An axis from 10 ms to 100 s, or further if that is not enough."""
    return TimeScale(high_s=max(100.0, 10.0 ** ceil(log10(max(latest_s, 1.0)))))


def in_words(seconds: float) -> str:
    """A time to three digits at most: ``0.4 ms``, ``38 ms``, ``142 ms``, ``1.13 s``, ``25.6 s``, ``140 s``."""
    if seconds < 0.9995:  # noqa: PLR2004 - what would be rounded to 1000 ms is a second
        number, unit = seconds * _MS, "ms"
        places = 1 if number < 9.95 else 0  # noqa: PLR2004 - likewise
    else:
        number, unit = seconds, "s"
        places = 2 if number < 9.995 else 1 if number < 99.95 else 0  # noqa: PLR2004 - likewise
    digits = f"{number:.{places}f}"
    return f"{digits.rstrip('0').rstrip('.') if places else digits} {unit}"


@dataclass(frozen=True, slots=True)
class Published:
    """A timeline from a paper: one thing after the other, none beside another."""

    name: str
    source: str
    conditions: str
    moments: tuple[Moment, ...]
    tracks: tuple[Track, ...]
    failure_to_circuits_s: float
    failure_to_step_s: float

    def spans(self) -> tuple[Span, ...]:
        """What was done between the moments."""
        return tuple(self._spans())

    def _spans(self) -> Iterator[Span]:
        starts = Moment("failure", "failure", 0.0)
        for (before, moment), track in zip(pairwise((starts, *self.moments)), self.tracks, strict=True):
            yield Span(moment.name, moment.title, track, before.seconds, moment.seconds, moment.name)


MORPHLUX = Published(
    name="Morphlux",
    source="Morphlux, figure 8c (arXiv 2508.03674v3)",
    conditions="real light and real GPUs, one in each of four servers; the job starts cold again from a checkpoint",
    moments=(
        Moment("circuits", "circuits set, job relaunched", 1.1),
        Moment("group", "NCCL synchronised", 4.5),
        Moment("data", "data set tokenised", 14.5),
        Moment("model", "model loaded", 16.6),
        Moment("step", "first iteration done", 25.6),
    ),
    tracks=(Track.SWAP, Track.JOB, Track.STATE, Track.STATE, Track.JOB),
    failure_to_circuits_s=1.1,
    failure_to_step_s=25.6,
)


Measured = Timeline | RepeatedRecoveries


@dataclass(frozen=True, slots=True)
class BarRow:
    """One bar with its label, in seconds since the failure; ``main`` for the figures that count.

    ``worst_s`` is the end of the slowest of several runs.
    """

    label: str
    track: Track
    starts_s: float
    ends_s: float
    worst_s: float | None = None
    main: bool = False

    @property
    def latest_s(self) -> float:
        """How far it reaches."""
        return max(self.ends_s, self.worst_s or 0.0)

    @property
    def note(self) -> str:
        """What stands behind the bar: its end, and how long it took or how late it was at worst."""
        if self.worst_s is not None:
            return f"{in_words(self.ends_s)} (worst {in_words(self.worst_s)})"
        if self.main or not self.starts_s:
            return in_words(self.ends_s)
        return f"{in_words(self.ends_s)} (took {in_words(self.ends_s - self.starts_s)})"

    @property
    def words(self) -> str:
        """All of it in a sentence, for who cannot see the bar."""
        worst = "" if self.worst_s is None else f", at worst until {in_words(self.worst_s)}"
        starts = in_words(self.starts_s) if self.starts_s else "the failure"
        return f"{self.label}: from {starts} until {in_words(self.ends_s)}{worst}"


def ours(measured: Measured) -> tuple[BarRow, ...]:
    """The rows of what was measured."""
    return tuple(_ours(measured))


def theirs(published: Published) -> tuple[BarRow, ...]:
    """The rows of what was published."""
    figures = _figures(published.failure_to_circuits_s, published.failure_to_step_s, {})
    spans = (BarRow(span.title, span.track, span.starts_s, span.ends_s) for span in published.spans())
    return (*figures, *spans)


def _ours(measured: Measured) -> Iterator[BarRow]:
    typical = typical_of(measured)
    worst = measured.worst if isinstance(measured, RepeatedRecoveries) else {}
    yield from _figures(typical.failure_to_circuits_s, typical.failure_to_step_s, worst)
    for span in typical.spans():
        yield BarRow(span.title, span.track, span.starts_s, span.ends_s, worst.get(span.until))


def typical_of(measured: Measured) -> Timeline:
    """The one timeline, or the medians of several."""
    return measured.typical if isinstance(measured, RepeatedRecoveries) else measured


def _figures(circuits_s: float | None, step_s: float | None, worst: Mapping[str, float]) -> Iterator[BarRow]:
    if circuits_s is not None:
        yield BarRow("failure to circuits verified", Track.SWAP, 0.0, circuits_s, worst.get(VERIFIED), main=True)
    if step_s is not None:
        yield BarRow("failure to next step done", Track.JOB, 0.0, step_s, worst.get(STEP), main=True)


LEAST_WIDTH = 20
"""On fewer columns a bar tells nothing."""

_FULL, _THIN, _WORST = "█", "━", "─"
_ASCII = str.maketrans({_FULL: "#", _THIN: "=", _WORST: "-"})


def bar_text(row: BarRow, scale: TimeScale, width: int, *, ascii_only: bool = False) -> str:
    """A row's bar on so many columns, and a thin line to its worst."""
    start, end, far = (_column(scale, seconds, width) for seconds in (row.starts_s, row.ends_s, row.latest_s))
    start = min(start, width - 1)
    end = max(end, start + 1)
    drawn = " " * start + (_FULL if row.main else _THIN) * (end - start) + _WORST * max(far - end, 0)
    return drawn.translate(_ASCII) if ascii_only else drawn


def axis_text(scale: TimeScale, width: int) -> str:
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


def _column(scale: TimeScale, seconds: float, width: int) -> int:
    return round(scale.share(seconds) * width)
