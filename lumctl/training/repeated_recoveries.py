"""Several recoveries of one kind: the median and the worst of each moment."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from lumctl.training.timeline import STEP, VERIFIED, KnownBy, Moment, Timeline, in_order, rounded


@dataclass(frozen=True, slots=True)
class RepeatedRecoveries:
    """Recoveries of one kind. ``typical`` has the median of each moment, ``worst`` the latest of each."""

    timelines: tuple[Timeline, ...]
    typical: Timeline
    worst: dict[str, float]

    @property
    def runs(self) -> int:
        """How many there are."""
        return len(self.timelines)

    def reached(self, name: str) -> int:
        """In how many of them a moment came."""
        return sum(timeline.at(name) is not None for timeline in self.timelines)

    def document(self) -> dict[str, Any]:
        """As data: the medians where a single timeline has its values, the worst and the counts beside them."""
        typical = self.typical.document()
        moments = [
            {**moment, "worst_s": rounded(self.worst[moment["name"]]), "runs": self.reached(moment["name"])}
            for moment in typical["timeline"]
        ]
        return {
            "job": typical["job"],
            "cause": typical["cause"],
            "runs": self.runs,
            "recovered": self.reached(STEP),
            "t0_known_by": typical["t0_known_by"],
            "failure_to_circuits_s": typical["failure_to_circuits_s"],
            "failure_to_circuits_worst_s": rounded(self.worst.get(VERIFIED)),
            "failure_to_step_s": typical["failure_to_step_s"],
            "failure_to_step_worst_s": rounded(self.worst.get(STEP)),
            "timeline": moments,
            "spans": typical["spans"],
        }


def several(timelines: Sequence[Timeline]) -> RepeatedRecoveries:
    """Put recoveries together.

    A moment that some of them lack is taken from the others; :meth:`RepeatedRecoveries.reached` says from how many.
    If one of them knows the failure by its detection only, the failure of all counts from its detection.

    Raises:
        ValueError: there are none.
    """
    if not timelines:
        raise ValueError("no recovery to be put together")
    seconds: dict[str, list[float]] = {}
    titles: dict[str, str] = {}
    for timeline in timelines:
        for moment in timeline.moments:
            seconds.setdefault(moment.name, []).append(moment.seconds)
            titles[moment.name] = moment.title
    middle = in_order(Moment(name, titles[name], median(found)) for name, found in seconds.items())
    by_kill = all(timeline.known_by is KnownBy.KILL for timeline in timelines)
    typical = Timeline(
        min(timeline.t0 for timeline in timelines),
        KnownBy.KILL if by_kill else KnownBy.DETECTION,
        middle,
        job=_shared([timeline.job for timeline in timelines]),
        cause=_shared([timeline.cause for timeline in timelines]),
    )
    return RepeatedRecoveries(tuple(timelines), typical, {name: max(found) for name, found in seconds.items()})


def _shared(words: Sequence[str]) -> str:
    return ", ".join(dict.fromkeys(word for word in words if word))
