"""The order in which a rank uses the phases of light in a training step, and when it asks for the next one.

A *stretch* is a run of collectives in one phase; a *boundary* is the change from one stretch to the next. On demand, a
rank asks for a phase when it needs it. Ahead, it asks when the last collective of a stretch has ended, as the order of
the previous step says. The first steps of a group compare both at each boundary.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, NamedTuple

from lumctl.training.phase_model import ChangeMode

FIRST_COMPARED = 3
"""The steps before are not compared: they make groups, and the devices and caches settle."""
COMPARED = 5
"""The number of steps that are compared in each mode: first on demand, then ahead."""
DECIDED = FIRST_COMPARED + 2 * COMPARED
"""From this step of a group on, each boundary uses the faster mode."""
FEWEST_COMPARED = 3
"""With fewer waits in one of the modes, a boundary stays on demand."""
MOST_BOUNDARIES = 16
"""The most boundaries of a step that may be ahead and are reported."""


class Stretch(NamedTuple):
    """A run of collectives in one phase."""

    phase: str
    collectives: int


class Boundary(NamedTuple):
    """The change to the stretch at ``position`` of a step; at 0, from the last stretch of the step before."""

    position: int
    left: str
    entered: str


class Crossing(NamedTuple):
    """How a rank came into a phase; times in seconds.

    ``wait_s`` is from its need to the light, ``hidden_s`` the part of the change that asking ahead hid, ``window_s``
    the time from its last transfer in the phase before to its need (``None``: not measured), and ``change_s`` how long
    the devices took for the change.
    """

    mode: ChangeMode
    wait_s: float
    hidden_s: float = 0.0
    window_s: float | None = None
    change_s: float = 0.0


@dataclass(frozen=True, slots=True)
class ModeDecision:
    """The faster mode of a boundary. ``pays``: whether it is faster by more than the noise of the waits."""

    mode: ChangeMode
    pays: bool


def faster(on_demand_s: Sequence[float], ahead_s: Sequence[float]) -> ModeDecision:
    """Compare the waits for light at a boundary, in seconds, by their medians.

    A difference is noise if it is not greater than the median deviation from the median in both modes.
    """
    if min(len(on_demand_s), len(ahead_s)) < FEWEST_COMPARED:
        return ModeDecision(ChangeMode.ON_DEMAND, pays=False)
    gain = median(on_demand_s) - median(ahead_s)
    noise = max(_deviation(on_demand_s), _deviation(ahead_s))
    return ModeDecision(ChangeMode.AHEAD if gain > noise else ChangeMode.ON_DEMAND, pays=abs(gain) > noise)


def _deviation(values: Sequence[float]) -> float:
    middle = median(values)
    return median(abs(value - middle) for value in values)


@dataclass(slots=True)
class StepWaits:
    """The changes of phase that a rank waited for in a step; times in seconds.

    ``hidden_s`` is how long changes had been asked for before the rank needed them, without the time after the light
    was there.
    """

    changes: int = 0
    wait_s: float = 0.0
    hidden_s: float = 0.0
    worst_s: float = 0.0

    def add(self, wait_s: float, hidden_s: float) -> None:
        """Count one change."""
        self.changes += 1
        self.wait_s += wait_s
        self.hidden_s += hidden_s
        self.worst_s = max(self.worst_s, wait_s)


@dataclass(slots=True)
class PhaseOrder:
    """The stretches of the present step and of the one before. Collectives are counted over all steps of a group."""

    steps: int = 0
    """The number of steps that have ended."""
    _expected: tuple[Stretch, ...] = ()
    _seen: list[Stretch] = field(default_factory=list)
    _phase: str | None = None
    _began_at: int = 0
    """The number of collectives before the present stretch."""
    _waited: dict[tuple[Boundary, ChangeMode], list[float]] = field(default_factory=dict)
    _decided: dict[Boundary, ModeDecision] = field(default_factory=dict)
    _crossed: dict[Boundary, Crossing] = field(default_factory=dict)
    """The boundaries of the present step, and how each was crossed."""
    _waits: StepWaits = field(default_factory=StepWaits)

    def enter(self, phase: str, started: int, crossing: Crossing) -> None:
        """Note that a stretch begins after ``started`` collectives, and how this rank came into its light."""
        self._close(started)
        self._waits.add(crossing.wait_s, crossing.hidden_s)
        if self._phase is not None and self._phase != phase:
            self._cross(Boundary(len(self._seen), self._phase, phase), crossing)
        self._phase, self._began_at = phase, started

    def end_step(self, started: int) -> dict[str, Any]:
        """End a step after ``started`` collectives; return its record, as the field ``phases`` of ``stepped``."""
        self._close(started)
        self._expected, self._seen, self._began_at = tuple(self._seen), [], started
        found = self._record()
        self._crossed, self._waits = {}, StepWaits()
        self.steps += 1
        return found

    @property
    def next_request(self) -> tuple[int, str] | None:
        """After how many collectives to ask ahead for which phase; ``None`` to ask on demand."""
        position = len(self._seen)
        if self._phase is None or position >= len(self._expected) or self._expected[position].phase != self._phase:
            return None  # the order is another one than that of the last step
        following = (position + 1) % len(self._expected)
        boundary = Boundary(following, self._phase, self._expected[following].phase)
        if boundary.entered == self._phase or self.mode(boundary) is ChangeMode.ON_DEMAND:
            return None
        return self._began_at + self._expected[position].collectives, boundary.entered

    def mode(self, boundary: Boundary) -> ChangeMode:
        """When this rank asks for the light beyond a boundary, in the present step."""
        if boundary.position >= MOST_BOUNDARIES or self.steps < FIRST_COMPARED + COMPARED:
            return ChangeMode.ON_DEMAND
        if self.steps < DECIDED:
            return ChangeMode.AHEAD
        if boundary not in self._decided:
            both = (self._waited.get((boundary, mode), ()) for mode in (ChangeMode.ON_DEMAND, ChangeMode.AHEAD))
            self._decided[boundary] = faster(*both)
        return self._decided[boundary].mode

    def _close(self, started: int) -> None:
        """End the present stretch, if it had a collective."""
        if self._phase is not None and started > self._began_at:
            self._seen.append(Stretch(self._phase, started - self._began_at))

    def _cross(self, boundary: Boundary, crossing: Crossing) -> None:
        if boundary.position >= MOST_BOUNDARIES:
            return
        self._crossed[boundary] = crossing
        if FIRST_COMPARED <= self.steps < DECIDED:
            self._waited.setdefault((boundary, crossing.mode), []).append(crossing.wait_s)

    def _record(self) -> dict[str, Any]:
        waits = self._waits
        times = {"wait_s": waits.wait_s, "hidden_s": waits.hidden_s, "worst_s": waits.worst_s}
        rows = [self._row(boundary, crossing) for boundary, crossing in self._crossed.items()]
        return {"changes": waits.changes, **{name: round(s, 7) for name, s in times.items()}, "boundaries": rows}

    def _row(self, boundary: Boundary, crossing: Crossing) -> list[Any]:
        decided = self._decided.get(boundary)
        chosen = [crossing.mode.value, None if decided is None else decided.pays]
        window_s = None if crossing.window_s is None else round(crossing.window_s, 7)
        times = [round(crossing.wait_s, 7), window_s, round(crossing.change_s, 7)]
        return [boundary.left, boundary.entered, *chosen, boundary.position, *times]
