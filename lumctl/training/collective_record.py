"""The record of a job's collectives: when each rank entered and left those of the last steps, by its own clock.

The coordinator keeps it in memory and gives it to ``lumctl job stragglers``; when it ends, it leaves it in the job's
folder. Its size does not depend on how long the job runs.
"""

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, NamedTuple

MOST_TIMES = 16_384
"""A rank in a step counts as one, a size of all-reduce as two. While they are encoded, some 50 ms, the coordinator does
nothing else."""
MOST_STEPS = 2048
"""In all groups. Of two ranks, so many steps need up to 1 MB of memory per rank; of more ranks, less."""
LEAST_STEPS = 32
"""Of however many ranks and groups, so many steps are kept; they are enough to name a rank."""
MOST_SIZES = 4
"""Sizes of all-reduces of a step and group that are recorded: the smallest and the largest ones."""
MOST_INCOMPLETE = 4
"""Steps that some ranks have not reported yet: ranks are at most one step apart."""
WORLD = ""
"""The name of the group of all ranks."""


class AllReduce(NamedTuple):
    """An all-reduce of a step: which rank of the group was last, how long it needed, and how long the others waited."""

    size_bytes: float
    last: int
    seconds: float
    waited_s: float


@dataclass(frozen=True, slots=True)
class TrainingStepRecord:
    """One training step in one group; ``ranks`` are its ranks in the job, in the order of the times.

    ``generation`` is the process group in which it was done, ``at`` when it was complete (seconds since the epoch).
    ``all_reduces`` has one for each size that all ranks have measured.
    """

    group: str
    generation: int
    step: int
    at: float
    ranks: tuple[int, ...]
    entered: tuple[float, ...]
    left: tuple[float, ...]
    all_reduces: tuple[AllReduce, ...] = ()


class _OfRank(NamedTuple):
    """What a rank reports of a group in a step; ``all_reduces`` are seconds by bytes."""

    entered: float
    left: float
    all_reduces: dict[float, float]


class CollectiveRecord:
    """The newest steps. Noting what a rank reports costs a constant."""

    def __init__(self) -> None:
        self.accelerators: tuple[str, ...] = ()
        """The accelerator of each rank."""
        self._clocks: tuple[str, ...] = ()
        """The clock of each rank."""
        self._generation = 0
        self._complete: deque[TrainingStepRecord] = deque()
        self._times = 0
        self._incomplete: dict[int, dict[str, dict[int, _OfRank]]] = {}
        """What ranks have reported, by step and group."""
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
        for group, size, entered, left, *all_reduces in reported:
            seconds = {float(each): float(took) for each, took in all_reduces[:MOST_SIZES]}
            times = _OfRank(float(entered), float(left), seconds)
            if not (isinstance(group, str) and math.isfinite(times.entered) and times.entered < times.left < math.inf):
                raise ValueError(f"times of a collective: {group!r}, {entered!r}, {left!r}")
            if not all(0 < each < math.inf and 0 < took < math.inf for each, took in seconds.items()):
                raise ValueError(f"times of all-reduces: {all_reduces!r}")
            self._note(group, int(size), rank, step, times, at)

    def _note(self, group: str, size: int, rank: int, step: int, times: _OfRank, at: float) -> None:
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
        entered, left, all_reduces = zip(*(found[each] for each in ranks), strict=True)
        sizes = [size for size in all_reduces[0] if all(size in others for others in all_reduces)]
        measured = tuple(_all_reduce(size, [seconds[size] for seconds in all_reduces]) for size in sizes)
        self._complete.append(TrainingStepRecord(group, self._generation, step, at, ranks, entered, left, measured))
        self._times += _times_of(self._complete[-1])
        while self._is_full and abs(step - self._complete[0].step) >= LEAST_STEPS:
            self._times -= _times_of(self._complete.popleft())

    @property
    def _is_full(self) -> bool:
        return self._times > MOST_TIMES or len(self._complete) > MOST_STEPS

    def recorded(self) -> "RecordedCollectives":
        """The record as it is now, for another thread."""
        return RecordedCollectives(self.accelerators, self._clocks, tuple(self._complete))

    def document(self) -> dict[str, Any]:
        """The record as data."""
        steps = [
            [each.group, each.generation, each.step, each.at, each.ranks, each.entered, each.left, each.all_reduces]
            for each in self._complete
        ]
        return {"accelerators": self.accelerators, "clocks": self._clocks, "steps": steps}


def _all_reduce(size_bytes: float, seconds: Sequence[float]) -> AllReduce:
    """An all-reduce in which the ranks were for so long; the last one is there for the shortest time."""
    last, *others = sorted(range(len(seconds)), key=seconds.__getitem__)
    # The median, because ranks do not leave quite together.
    return AllReduce(size_bytes, last, seconds[last], median(seconds[each] for each in others) - seconds[last])


def _times_of(step: TrainingStepRecord) -> int:
    return len(step.ranks) + 2 * len(step.all_reduces)


@dataclass(frozen=True, slots=True)
class RecordedCollectives:
    """A record as read: the accelerator and the clock of each rank, and the steps, the oldest first."""

    accelerators: tuple[str, ...]
    clocks: tuple[str, ...]
    steps: tuple[TrainingStepRecord, ...]

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


def _step(row: Sequence[Any]) -> TrainingStepRecord:
    group, generation, step, at, ranks, entered, left, all_reduces = row
    times = tuple(map(float, entered)), tuple(map(float, left))
    sizes = tuple(AllReduce(float(size), int(last), float(s), float(waited)) for size, last, s, waited in all_reduces)
    return TrainingStepRecord(str(group), int(generation), int(step), float(at), tuple(map(int, ranks)), *times, sizes)
