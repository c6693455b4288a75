"""The timeline of a recovery: its moments since the failure, the spans between moments, and bars for both."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from math import ceil, isfinite, log10
from types import MappingProxyType
from typing import Any

FAILURE, DETECTED, HELD, HEALTH, PLANNED = "failure", "detected", "held", "health", "planned"
CIRCUITS, VERIFIED, STATE, JOINED, STEP = "circuits", "verified", "state", "joined", "step"

TITLES: Mapping[str, str] = {
    FAILURE: "failure",
    DETECTED: "failure detected",
    HELD: "all survivors parked",
    HEALTH: "health of the accelerator read",
    PLANNED: "swap planned",
    CIRCUITS: "circuits programmed",
    VERIFIED: "every receiver proved",
    STATE: "state in the new worker",
    JOINED: "process group formed",
    STEP: "next step done",
}
"""The moments of a recovery. A recovery without a swap has no plan and no circuits."""


class Track(StrEnum):
    """Activities that run at the same time."""

    JOB = "job"
    SURVIVORS = "survivors"
    SWAP = "swap"
    STATE = "state"


class KnownBy(StrEnum):
    """The meaning of the failure time: the time of the kill, or only the time of the detection."""

    KILL = "kill"
    DETECTION = "detection"


@dataclass(frozen=True, slots=True)
class Moment:
    """An event, ``seconds`` after the failure."""

    name: str
    title: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Span:
    """An activity. Times are in seconds since the failure; ``until`` is the moment that ended it."""

    name: str
    title: str
    track: Track
    starts_s: float
    ends_s: float
    until: str


_SPANS = (  # name, title, track, moments (the span begins at the last of them), the moment that ends the span
    ("detect", "failure detected", Track.JOB, (FAILURE,), DETECTED),
    ("park", "survivors park", Track.SURVIVORS, (DETECTED,), HELD),
    ("wait", "survivors wait", Track.SURVIVORS, (DETECTED, HELD), JOINED),
    ("health", "health read", Track.SWAP, (DETECTED,), HEALTH),
    ("plan", "swap planned", Track.SWAP, (DETECTED, HEALTH), PLANNED),
    ("program", "circuits programmed", Track.SWAP, (DETECTED, PLANNED), CIRCUITS),
    ("verify", "every receiver proved", Track.SWAP, (DETECTED, PLANNED, CIRCUITS), VERIFIED),
    ("load", "state loaded", Track.STATE, (DETECTED, HELD), STATE),
    ("join", "process group formed", Track.JOB, (DETECTED, HELD, VERIFIED, STATE), JOINED),
    ("step", "step done again", Track.JOB, (DETECTED, JOINED), STEP),
)


@dataclass(frozen=True, slots=True)
class Timeline:
    """One recovery of a job. ``t0`` is the time of the failure in seconds since the epoch.

    ``failed`` and ``replaced_by`` are accelerators, pair by pair; ``run`` is the swap in the journal. Both are empty
    if the worker was restarted on its own accelerator.
    """

    t0: float
    known_by: KnownBy
    moments: tuple[Moment, ...]
    job: str = ""
    cause: str = ""
    failed: tuple[str, ...] = ()
    replaced_by: tuple[str, ...] = ()
    run: str | None = None

    def __post_init__(self) -> None:
        names = [moment.name for moment in self.moments]
        if len(set(names)) < len(names):
            raise ValueError(f"a moment occurs twice: {', '.join(names)}")
        for moment in self.moments:
            if not (isfinite(moment.seconds) and moment.seconds >= 0):
                raise ValueError(f"{moment.name} is {moment.seconds} s after the failure, expected 0 or more")

    @classmethod
    def since(cls, t0: float, known_by: KnownBy, times: Mapping[str, float], **about: Any) -> "Timeline":
        """From times in seconds since the epoch, by name; a name that :data:`TITLES` lacks is its own title.

        Clocks of two hosts may differ a little: a time earlier than the failure is set to the failure.
        """
        found = (Moment(name, TITLES.get(name, name), max(at - t0, 0.0)) for name, at in {FAILURE: t0, **times}.items())
        return cls(t0, known_by, in_order(found), **about)

    def at(self, name: str) -> float | None:
        """Seconds from the failure to a moment; ``None`` if the moment did not come."""
        return next((moment.seconds for moment in self.moments if moment.name == name), None)

    @property
    def failure_to_circuits_s(self) -> float | None:
        """Seconds from the failure until every receiver of the new circuits was verified."""
        return self.at(VERIFIED)

    @property
    def failure_to_step_s(self) -> float | None:
        """Seconds from the failure until the next step was done."""
        return self.at(STEP)

    def spans(self) -> tuple[Span, ...]:
        """The activities between the moments. Spans of different tracks run at the same time."""
        found = []
        for name, title, track, begins, ends in _SPANS:
            end = self.at(ends)
            if end is not None:
                known = (self.at(begin) for begin in begins)
                start = max((at for at in known if at is not None and at <= end), default=0.0)
                found.append(Span(name, title, track, start, end, ends))
        return tuple(found)

    def document(self) -> dict[str, Any]:
        """The timeline as data. Scripts rely on ``timeline`` and the two figures."""
        return {
            "job": self.job,
            "cause": self.cause,
            "failed": list(self.failed),
            "replaced_by": list(self.replaced_by),
            "run": self.run,
            "t0": self.t0,
            "t0_known_by": self.known_by.value,
            "failure_to_circuits_s": rounded(self.failure_to_circuits_s),
            "failure_to_step_s": rounded(self.failure_to_step_s),
            "timeline": [{"name": m.name, "title": m.title, "at_s": rounded(m.seconds)} for m in self.moments],
            "spans": [
                {
                    "name": span.name,
                    "title": span.title,
                    "lane": span.track.value,
                    "starts_s": rounded(span.starts_s),
                    "ends_s": rounded(span.ends_s),
                }
                for span in self.spans()
            ],
        }


def rounded(seconds: float | None) -> float | None:
    """Seconds to a tenth of a millisecond, as in documents."""
    return None if seconds is None else round(seconds, 4)


def in_order(moments: Iterable[Moment]) -> tuple[Moment, ...]:
    """Moments sorted by time; simultaneous ones are in the order of :data:`TITLES`."""
    places = {name: place for place, name in enumerate(TITLES)}
    return tuple(sorted(moments, key=lambda moment: (moment.seconds, places.get(moment.name, len(places)))))


def timeline_of(recovery: Mapping[str, Any], *, job: str = "", killed_at: float | None = None) -> Timeline:
    """The timeline of a recovery in the status of a job, counted from the kill if its time is known.

    ``recovery`` is one of the ``recoveries`` in the document of ``lumctl job status``; ``killed_at`` is in seconds
    since the epoch.
    """
    detected = float(recovery["at"])
    replaced = recovery["replaced_by"]
    times = {name: detected + after for name, after in recovery["marks"].items() if after is not None}
    return Timeline.since(
        detected if killed_at is None else killed_at,
        KnownBy.DETECTION if killed_at is None else KnownBy.KILL,
        {DETECTED: detected, **times},
        job=job,
        cause=recovery["cause"],
        failed=tuple(recovery["failed"]),
        replaced_by=tuple(replaced.values()),
        run=recovery["run"],
    )


_STRIP = 0.06
"""The share of the axis for the time before the first decade, which a logarithm cannot show down to zero."""
_MS = 1000


@dataclass(frozen=True, slots=True)
class TimeScale:
    """Linear from 0 to ``low_s``, logarithmic from there to ``high_s``; both are powers of ten."""

    low_s: float = 0.01
    high_s: float = 100.0

    def share(self, seconds: float) -> float:
        """The position of a time on the axis, from 0 to 1."""
        if seconds <= self.low_s:
            return _STRIP * max(seconds, 0.0) / self.low_s
        decades = log10(self.high_s / self.low_s)
        return min(_STRIP + (1 - _STRIP) * log10(seconds / self.low_s) / decades, 1.0)

    def decades(self) -> tuple[float, ...]:
        """The powers of ten on the axis, in seconds."""
        first, last = round(log10(self.low_s)), round(log10(self.high_s))
        return tuple(10.0**power for power in range(first, last + 1))

    def between(self) -> tuple[float, ...]:
        """The times between the decades: twice to nine times each power of ten."""
        return tuple(times * decade for decade in self.decades()[:-1] for times in range(2, 10))


def scale_for(latest_s: float) -> TimeScale:
    """An axis from 10 ms to 100 s, or longer if needed."""
    return TimeScale(high_s=max(100.0, 10.0 ** ceil(log10(max(latest_s, 1.0)))))


def in_words(seconds: float) -> str:
    """A time with three digits at most: ``0.4 ms``, ``38 ms``, ``142 ms``, ``1.13 s``, ``25.6 s``, ``140 s``."""
    if seconds < 0.9995:  # noqa: PLR2004 - what rounds to 1000 ms is shown in seconds
        number, unit = seconds * _MS, "ms"
        places = 1 if number < 9.95 else 0  # noqa: PLR2004 - likewise
    else:
        number, unit = seconds, "s"
        places = 2 if number < 9.995 else 1 if number < 99.95 else 0  # noqa: PLR2004 - likewise
    digits = f"{number:.{places}f}"
    return f"{digits.rstrip('0').rstrip('.') if places else digits} {unit}"


@dataclass(frozen=True, slots=True)
class Published:
    """A timeline from a paper: its activities follow one another."""

    source: str
    conditions: str
    moments: tuple[Moment, ...]
    tracks: tuple[Track, ...]
    failure_to_circuits_s: float
    failure_to_step_s: float

    def spans(self) -> tuple[Span, ...]:
        """The activities between the moments."""
        pairs = pairwise((Moment(FAILURE, FAILURE, 0.0), *self.moments))
        return tuple(
            Span(moment.name, moment.title, track, before.seconds, moment.seconds, moment.name)
            for (before, moment), track in zip(pairs, self.tracks, strict=True)
        )


MORPHLUX = Published(
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


@dataclass(frozen=True, slots=True)
class BarRow:
    """One bar with its label, in seconds since the failure; ``main`` marks the two figures.

    ``worst_s`` is the end of the slowest of several recoveries.
    """

    label: str
    track: Track
    starts_s: float
    ends_s: float
    worst_s: float | None = None
    main: bool = False

    @property
    def latest_s(self) -> float:
        """The latest time that the row shows."""
        return max(self.ends_s, self.worst_s or 0.0)

    @property
    def note(self) -> str:
        """The text behind the bar: its end, and its duration or its worst end."""
        if self.worst_s is not None:
            return f"{in_words(self.ends_s)} (worst {in_words(self.worst_s)})"
        if self.main or not self.starts_s:
            return in_words(self.ends_s)
        return f"{in_words(self.ends_s)} (took {in_words(self.ends_s - self.starts_s)})"

    @property
    def words(self) -> str:
        """The row as text, for readers who cannot see the bar."""
        worst = "" if self.worst_s is None else f", at worst until {in_words(self.worst_s)}"
        starts = in_words(self.starts_s) if self.starts_s else "the failure"
        return f"{self.label}: from {starts} until {in_words(self.ends_s)}{worst}"


def bar_rows(shown: Timeline | Published, worst: Mapping[str, float] = MappingProxyType({})) -> tuple[BarRow, ...]:
    """The two figures as rows, then the spans; ``worst``: the latest time of each moment in several recoveries."""
    figures = (
        ("failure to circuits verified", Track.SWAP, shown.failure_to_circuits_s, VERIFIED),
        ("failure to next step done", Track.JOB, shown.failure_to_step_s, STEP),
    )
    rows = [
        BarRow(label, track, 0.0, at, worst.get(name), main=True)
        for label, track, at, name in figures
        if at is not None
    ]
    spans = (BarRow(s.title, s.track, s.starts_s, s.ends_s, worst.get(s.until)) for s in shown.spans())
    return (*rows, *spans)


LEAST_WIDTH = 20
"""Bars on fewer columns are useless."""

_FULL, _THIN, _WORST = "█", "━", "─"
_ASCII = str.maketrans({_FULL: "#", _THIN: "=", _WORST: "-"})


def bar_text(row: BarRow, scale: TimeScale, width: int, *, ascii_only: bool = False) -> str:
    """The bar of a row on ``width`` columns, with a thin line to its worst end."""
    start, end, far = (_column(scale, seconds, width) for seconds in (row.starts_s, row.ends_s, row.latest_s))
    start = min(start, width - 1)
    end = max(end, start + 1)
    drawn = " " * start + (_FULL if row.main else _THIN) * (end - start) + _WORST * max(far - end, 0)
    return drawn.translate(_ASCII) if ascii_only else drawn


def axis_text(scale: TimeScale, width: int) -> str:
    """The times of the axis above the bars, ``t0 10ms  100ms ...``; times that do not fit are omitted."""
    first, *others = ((0, "t0"), *((_column(scale, d, width), in_words(d).replace(" ", "")) for d in scale.decades()))
    line = first[1].ljust(width)
    # The last one first: the end of the axis is labelled in any case.
    for at, words in (others[-1], *others[:-1]):
        start = min(max(at, len(first[1]) + 1), width - len(words))
        if not line[start - 1 : start + len(words) + 1].strip():
            line = line[:start] + words + line[start + len(words) :]
    return line.rstrip()


def _column(scale: TimeScale, seconds: float, width: int) -> int:
    return round(scale.share(seconds) * width)
