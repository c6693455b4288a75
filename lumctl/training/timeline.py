"""The timeline of a recovery: what happened when, counted from the failure, and what ran beside what."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import isfinite
from typing import Any

from lumctl.errors import UsageError

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
"""The moments of a recovery. Where nothing is swapped there is no plan and are no circuits; the same for the others."""


class Track(StrEnum):
    """What runs beside each other."""

    JOB = "job"
    SURVIVORS = "survivors"
    SWAP = "swap"
    STATE = "state"


class KnownBy(StrEnum):
    """What the time of the failure is known by: the kill's own time, or no more than that of its detection."""

    KILL = "kill"
    DETECTION = "detection"


@dataclass(frozen=True, slots=True)
class Moment:
    """Something that happened once, so many ``seconds`` after the failure."""

    name: str
    title: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Span:
    """Something that took its time, in seconds since the failure; ``until`` is the moment that ended it."""

    name: str
    title: str
    track: Track
    starts_s: float
    ends_s: float
    until: str

    @property
    def seconds(self) -> float:
        """How long it took."""
        return self.ends_s - self.starts_s


_SPANS = (  # name, title, track, the moments of which the last one begins it, the one that ends it
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

    ``failed`` and ``replaced_by`` are accelerators, pair by pair; ``run`` is the swap in the journal. A worker that
    came up anew on its own accelerator is replaced by none, and there is no run.
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
            raise ValueError(f"a moment is there twice: {', '.join(names)}")
        for moment in self.moments:
            if not (isfinite(moment.seconds) and moment.seconds >= 0):
                raise ValueError(f"{moment.name} is {moment.seconds} s after the failure, expected 0 or more")

    @classmethod
    def since(cls, t0: float, known_by: KnownBy, times: Mapping[str, float], **about: Any) -> "Timeline":
        """From times in seconds since the epoch, by name; those that :data:`TITLES` lacks are called by their names.

        Clocks of two hosts may differ a little: what reads as earlier than the failure is put at the failure.
        """
        found = (Moment(name, TITLES.get(name, name), max(at - t0, 0.0)) for name, at in {FAILURE: t0, **times}.items())
        return cls(t0, known_by, in_order(found), **about)

    def at(self, name: str) -> float | None:
        """How many seconds after the failure a moment came; ``None`` if it did not."""
        return next((moment.seconds for moment in self.moments if moment.name == name), None)

    @property
    def failure_to_circuits_s(self) -> float | None:
        """Seconds from the failure until every receiver of the new circuits was proved."""
        return self.at(VERIFIED)

    @property
    def failure_to_step_s(self) -> float | None:
        """Seconds from the failure until the next step was done."""
        return self.at(STEP)

    def spans(self) -> tuple[Span, ...]:
        """What was done between the moments. Spans of different tracks run beside each other."""
        return tuple(self._spans())

    def _spans(self) -> Iterator[Span]:
        for name, title, track, begins, ends in _SPANS:
            end = self.at(ends)
            if end is not None:
                known = (self.at(begin) for begin in begins)
                start = max((at for at in known if at is not None and at <= end), default=0.0)
                yield Span(name, title, track, start, end, ends)

    def document(self) -> dict[str, Any]:
        """The timeline as data; ``timeline`` and the two figures are what scripts rely on."""
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
    """Seconds as documents have them: to a tenth of a millisecond."""
    return None if seconds is None else round(seconds, 4)


def in_order(moments: Iterable[Moment]) -> tuple[Moment, ...]:
    """Moments as they came; those of one time as they follow from each other."""
    places = {name: place for place, name in enumerate(TITLES)}
    return tuple(sorted(moments, key=lambda moment: (moment.seconds, places.get(moment.name, len(places)))))


def timeline_of(recovery: Mapping[str, Any], *, job: str = "", killed_at: float | None = None) -> Timeline:
    """The timeline of a recovery in the status of a job, counted from the kill where its time is known.

    ``recovery`` is one of the ``recoveries`` in the document of ``lumctl job status``; ``killed_at`` are seconds since
    the epoch.
    """
    seen = float(recovery["at"])
    replaced = recovery["replaced_by"]
    times = {name: seen + after for name, after in recovery["marks"].items() if after is not None}
    return Timeline.since(
        seen if killed_at is None else killed_at,
        KnownBy.DETECTION if killed_at is None else KnownBy.KILL,
        {DETECTED: seen, **times},
        job=job,
        cause=recovery["cause"],
        failed=tuple(recovery["failed"]),
        replaced_by=tuple(replaced.values()),
        run=recovery["run"],
    )


def from_document(document: Any) -> Timeline:
    """A timeline as :meth:`Timeline.document` wrote it; fields and moments that are not known are no error.

    Raises:
        UsageError: it is none.
    """
    try:
        moments = (Moment(str(m["name"]), str(m["title"]), float(m["at_s"])) for m in document["timeline"])
        return Timeline(
            float(document["t0"]),
            KnownBy(document["t0_known_by"]),
            in_order(moments),
            job=str(document["job"]),
            cause=str(document["cause"]),
            failed=tuple(map(str, document["failed"])),
            replaced_by=tuple(map(str, document["replaced_by"])),
            run=None if document["run"] is None else str(document["run"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        what = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else str(error)
        raise UsageError(
            f"this is no timeline of a recovery: {what}", hint="lumctl demo recover -o json prints one"
        ) from None
