"""The windows between the phases of a training step, by boundary and rank, and what the model says of such a step.

A profile belongs to the plan that permits the changes, and is kept after the end of the job. Each rank measures on its
own clock, so a window is that of one rank: from its last transfer in a phase to its need of the next one. The shortest
of the ranks is at most the time in which no rank needs light, which is what asking ahead can hide.
"""

import hashlib
import json
import math
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import fmean, median
from typing import Any, NamedTuple

from lumctl.inventory.model import Job
from lumctl.training.phase_model import ChangeMode, StepCost, StepTimes
from lumctl.training.phase_order import MOST_BOUNDARIES
from lumctl.training.protocol import printable_line

NEWEST = 64
"""So many of the newest times are kept of each boundary and rank: the job has chosen a mode by then."""
MOST_CROSSINGS = 4096
"""The most boundaries, each of one rank, that are kept."""
MOST_PROFILES = 8
"""The number of profiles that are kept, the newest."""
_TIMES = ("wait_s", "window_s", "change_s")
_USUAL = 0.5
"""A boundary belongs to the usual step if ranks cross it in at least this share of their steps."""

Profiles = dict[str, Mapping[str, Any]]
"""Documents of profiles by the plan that permitted the changes, the oldest first."""


def phases_digest(job: Job) -> str:
    """A short name of a job's phases: their links and their order."""
    written = json.dumps([job.order, [asdict(phase) for phase in job.phases]])
    return hashlib.sha256(written.encode()).hexdigest()[:16]


@dataclass(slots=True)
class _Newest:
    """The newest values, and how many there were."""

    count: int = 0
    values: "array[float]" = field(default_factory=lambda: array("f"))

    def add(self, value: Any) -> None:
        number = float(value)
        if not 0 <= number < math.inf:
            raise ValueError(value)
        self.count += 1
        self.values.append(number)
        if len(self.values) > NEWEST:
            self.values.pop(0)

    def document(self) -> dict[str, float] | None:
        if not self.values:
            return None
        in_order = sorted(self.values)
        p90 = in_order[math.ceil(0.9 * len(in_order)) - 1]
        return {"median": round(median(in_order), 7), "p90": round(p90, 7)}


class _Place(NamedTuple):
    position: int
    left: str
    entered: str
    rank: int


@dataclass(slots=True)
class _Crossings:
    mode: str = ""
    times: dict[str, _Newest] = field(default_factory=lambda: {name: _Newest() for name in _TIMES})


class PhaseProfiles:
    """The profiles of a job's permits. Bounded in permits, boundaries and times."""

    def __init__(self, phases: str) -> None:
        """``phases`` is the digest of the phases that the ranks use."""
        self._phases = phases
        self._earlier: Profiles = {}
        self.plan: str | None = None
        """The plan that permits the changes, or permitted the last ones."""
        self._crossings: dict[_Place, _Crossings] = {}
        self._steps: dict[int, dict[str, _Newest]] = {}

    def note(self, plan: str, rank: int, said: Mapping[str, Any]) -> None:
        """Take what a rank reports of a step.

        Raises:
            KeyError, TypeError, ValueError: it is malformed.
        """
        if plan != self.plan:
            self._earlier = dict(list(self.document().items())[1 - MOST_PROFILES :])
            self.plan, self._crossings, self._steps = plan, {}, {}
        step = self._steps.setdefault(rank, {name: _Newest() for name in ("step_s", "blocked_s", "wait_s")})
        for name, times in step.items():
            if name in said:
                times.add(said[name])
        for left, entered, mode, _, *more in said["boundaries"][:MOST_BOUNDARIES]:
            if more:
                position, *times = more
                place = _Place(int(position), printable_line(str(left)), printable_line(str(entered)), rank)
                self._cross(place, str(ChangeMode(mode)), dict(zip(_TIMES, times, strict=True)))

    def _cross(self, place: _Place, mode: str, times: Mapping[str, Any]) -> None:
        if (found := self._crossings.get(place)) is None:
            if len(self._crossings) >= MOST_CROSSINGS:
                return
            found = self._crossings[place] = _Crossings()
        found.mode = mode
        for name, value in times.items():
            if value is not None:
                found.times[name].add(value)

    def document(self) -> Profiles:
        """The profiles as data, by plan, the oldest first."""
        if self.plan is None:
            return dict(self._earlier)
        boundaries = [
            {**place._asdict(), "mode": found.mode, "steps": found.times["wait_s"].count}
            | {name: times.document() for name, times in found.times.items()}
            for place, found in sorted(self._crossings.items())
        ]
        ranks = [
            {"rank": rank, "steps": step["wait_s"].count} | {name: times.document() for name, times in step.items()}
            for rank, step in sorted(self._steps.items())
        ]
        return {**self._earlier, self.plan: {"phases": self._phases, "boundaries": boundaries, "ranks": ranks}}


def with_newest(earlier: Profiles, newest: Profiles) -> Profiles:
    """Profiles of earlier runs of a job and of the last one, of which the newest are kept."""
    found = {plan: each for plan, each in earlier.items() if plan not in newest} | newest
    return dict(list(found.items())[-MOST_PROFILES:])


@dataclass(frozen=True, slots=True)
class ModelledStep:
    """A profile's step in the model. ``costs`` lacks ahead while no windows are measured.

    ``measured_s`` is the step as it was, and ``change_s`` the mean change. Where computing was not measured, as over
    NCCL, ``is_split`` is false, and utilisation unknown.
    """

    measured_s: float
    change_s: float
    is_split: bool
    costs: Mapping[ChangeMode, StepCost]


def modelled(profile: Mapping[str, Any]) -> ModelledStep | None:
    """What the step of a profile costs in each mode, by medians; ``None`` if no step is complete in it.

    At each boundary the rank with the shortest wait waits for light alone, so these waits are the stall of the measured
    step. What others wait longer, they wait for other ranks, as they would on light that does not change.
    """
    steps_s = _medians(profile["ranks"], "step_s")
    usual = _usual(profile)
    if not steps_s or not usual:
        return None
    shortest = [{name: min(_medians(rows, name), default=None) for name in _TIMES} for rows in usual]
    stall_s = sum(each["wait_s"] or 0.0 for each in shortest)
    measured_s = median(steps_s)
    still_s = max(0.0, measured_s - stall_s)
    blocked_s = _medians(profile["ranks"], "blocked_s")
    exposed_s = median(blocked_s) + median(_medians(profile["ranks"], "wait_s")) - stall_s if blocked_s else 0.0
    exposed_s = min(max(0.0, exposed_s), still_s)
    windows = [each["window_s"] for each in shortest]
    step = StepTimes(still_s - exposed_s, exposed_s, tuple(each or 0.0 for each in windows))
    change_s = fmean(fmean(_medians(rows, "change_s") or [0.0]) for rows in usual)
    modes = [mode for mode in ChangeMode if mode is ChangeMode.ON_DEMAND or None not in windows]
    costs = {mode: step.cost(change_s, mode) for mode in modes}
    return ModelledStep(measured_s, change_s, bool(blocked_s), costs)


def _usual(profile: Mapping[str, Any]) -> list[list[Mapping[str, Any]]]:
    """The ranks' rows of each boundary of the usual step."""
    steps = {each["rank"]: each["steps"] for each in profile["ranks"]}
    found: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in profile["boundaries"]:
        if row["steps"] >= _USUAL * steps.get(row["rank"], 0):
            found.setdefault((row["position"], row["left"], row["entered"]), []).append(row)
    return list(found.values())


def _medians(rows: Sequence[Mapping[str, Any]], name: str) -> list[float]:
    return [row[name]["median"] for row in rows if row[name] is not None]
