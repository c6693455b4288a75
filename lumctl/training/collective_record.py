"""The record of a job's collectives: when each rank entered and left those of the last steps, by its own clock.

The coordinator keeps it in memory and gives it to ``lumctl job stragglers``; when it ends, it leaves it in the job's
folder. Its size does not depend on how long the job runs.
"""

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MOST_TIMES = 16_384
"""Steps times ranks: 2,048 steps of 8 ranks. While they are encoded, some 50 ms, the coordinator does nothing else."""
LEAST_STEPS = 32
"""Of however many ranks and groups, so many steps are kept; they are enough to name a rank."""
MOST_INCOMPLETE = 4
"""Steps that some ranks have not reported yet: ranks are at most one step apart."""
WORLD = ""
"""The name of the group of all ranks."""


@dataclass(frozen=True, slots=True)
class RecordedStep:
    """One training step in one group; ``ranks`` are its ranks in the job, in the order of the times.

    ``generation`` is the process group in which it was done, ``at`` when it was complete (seconds since the epoch).
    """

    group: str
    generation: int
    step: int
    at: float
    ranks: tuple[int, ...]
    entered: tuple[float, ...]
    left: tuple[float, ...]


class CollectiveRecord:
    """The newest steps. Noting what a rank reports costs a constant."""

    def __init__(self) -> None:
        self.accelerators: tuple[str, ...] = ()
        """The accelerator of each rank."""
        self._clocks: tuple[str, ...] = ()
        """The clock of each rank."""
        self._generation = 0
        self._complete: deque[RecordedStep] = deque()
        self._times = 0
        self._incomplete: dict[int, dict[str, dict[int, tuple[float, float]]]] = {}
        """The times of the ranks, by step and group."""
        self._begun: set[str] = set()
        """The groups of which a step is complete; the first one of each warms up."""

    def begin(self, generation: int, accelerators: Sequence[str], clocks: Sequence[str]) -> None:
        """Begin with another process group; if ranks have moved, what is recorded belongs to others."""
        if tuple(accelerators) != self.accelerators:
            self.accelerators = tuple(accelerators)
            self._complete.clear()
            self._times = 0
        self._generation, self._clocks = generation, tuple(clocks)
        self._incomplete.clear()
        self._begun.clear()

    def note(self, rank: int, step: int, reported: Sequence[Any], at: float) -> None:
        """Note the times that a rank reports for a step.

        Raises:
            TypeError, ValueError: they are malformed.
        """
        for group, size, entered, left in reported:
            times = float(entered), float(left)
            if not (isinstance(group, str) and math.isfinite(times[0]) and times[0] < times[1] < math.inf):
                raise ValueError(f"times of a collective: {group!r}, {entered!r}, {left!r}")
            self._note(group, int(size), rank, step, times, at)

    def _note(self, group: str, size: int, rank: int, step: int, times: tuple[float, float], at: float) -> None:
        groups = self._incomplete.setdefault(step, {})
        if len(self._incomplete) > MOST_INCOMPLETE:
            del self._incomplete[next(iter(self._incomplete))]  # a rank that does not report it has no times
        found = groups.setdefault(group, {})
        found[rank] = times
        if len(found) < size:
            return
        del groups[group]
        if group not in self._begun:
            self._begun.add(group)
            return
        ranks = tuple(sorted(found))
        entered, left = zip(*(found[each] for each in ranks), strict=True)
        self._complete.append(RecordedStep(group, self._generation, step, at, ranks, entered, left))
        self._times += size
        while self._times > MOST_TIMES and abs(step - self._complete[0].step) >= LEAST_STEPS:
            self._times -= len(self._complete.popleft().ranks)

    def document(self) -> dict[str, Any]:
        """The record as data."""
        steps = [
            [each.group, each.generation, each.step, each.at, each.ranks, each.entered, each.left]
            for each in self._complete
        ]
        return {"accelerators": self.accelerators, "clocks": self._clocks, "steps": steps}


@dataclass(frozen=True, slots=True)
class RecordedCollectives:
    """A record as read: the accelerator and the clock of each rank, and the steps, the oldest first."""

    accelerators: tuple[str, ...]
    clocks: tuple[str, ...]
    steps: tuple[RecordedStep, ...]

    @classmethod
    def read(cls, document: Mapping[str, Any] | None) -> "RecordedCollectives | None":
        """Read a record's document; ``None`` if it is none, or of another version."""
        try:
            if document is None:
                return None
            places = tuple(map(str, document["accelerators"])), tuple(map(str, document["clocks"]))
            return cls(*places, tuple(map(_step, document["steps"])))
        except (LookupError, TypeError, ValueError):
            return None


def _step(row: Sequence[Any]) -> RecordedStep:
    group, generation, step, at, ranks, entered, left = row
    times = tuple(map(float, entered)), tuple(map(float, left))
    return RecordedStep(str(group), int(generation), int(step), float(at), tuple(map(int, ranks)), *times)
