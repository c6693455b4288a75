"""Which rank is late for a collective, how late, and how steadily: from the times at which ranks enter and leave it.

The steps may come from a file or from a live recording. The clock of a step must be the same for all ranks; if only the
time that each rank spent in the collective is known, its ranks are taken to leave together.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from lumctl.collectives.interval import Interval, of_share, of_slope
from lumctl.errors import UsageError

FEWEST_STEPS = 5
_MOST_PAIRED = 400


@dataclass(frozen=True, slots=True)
class ArrivalStep:
    """One collective: when each rank entered and left it, in seconds; index is the rank. ``step`` is its number."""

    step: int
    entered_s: tuple[float, ...]
    left_s: tuple[float, ...]

    @property
    def last(self) -> int:
        """The rank that entered last."""
        return max(range(len(self.entered_s)), key=self.entered_s.__getitem__)

    @property
    def collective_s(self) -> float:
        """The time that the last rank needed: that of the collective itself."""
        return self.left_s[self.last] - self.entered_s[self.last]

    def delay_s(self, rank: int) -> float:
        """How long all others waited for a rank; 0 if another one was last."""
        return max(self.entered_s[rank] - max(self.entered_s[:rank] + self.entered_s[rank + 1 :]), 0.0)


@dataclass(frozen=True, slots=True)
class LateRank:
    """How late a rank is, such as the one that was last most often.

    ``share`` is the share of the steps in which it was last. ``gap_median_s`` and ``gap_p90_s`` are how long the others
    waited for it, ``trend_s`` how much that grows from step to step. ``collective_s`` is the median time of the
    collective itself.
    """

    rank: int
    ranks: int
    steps: int
    times_last: int
    share: Interval
    gap_median_s: float
    gap_p90_s: float
    collective_s: float
    trend_s: Interval

    @property
    def gap_share(self) -> float:
        """The median gap over the time of the collective."""
        return self.gap_median_s / self.collective_s


def late_rank(steps: Sequence[ArrivalStep]) -> LateRank:
    """Find the late rank of some steps.

    Raises:
        UsageError: there are fewer than five steps or two ranks, or the last rank of a step left before it entered.
    """
    if len(steps) < FEWEST_STEPS:
        raise UsageError(f"{len(steps)} steps are too few to name a late rank", hint=f"{FEWEST_STEPS} at least")
    ranks = len(steps[0].entered_s)
    if ranks < 2:  # noqa: PLR2004 - a collective needs a partner
        raise UsageError("a collective has at least two ranks")
    for step in steps:
        if step.collective_s <= 0:
            raise UsageError(f"step {step.step}: rank {step.last} left the collective before it entered")
    return lateness(steps, Counter(step.last for step in steps).most_common(1)[0][0])


def lateness(steps: Sequence[ArrivalStep], rank: int) -> LateRank:
    """How late one rank is, in steps that :func:`late_rank` accepts."""
    times_last = sum(step.last == rank for step in steps)
    gaps = sorted(step.delay_s(rank) for step in steps)
    stride = -(-len(steps) // _MOST_PAIRED)
    return LateRank(
        rank,
        len(steps[0].entered_s),
        len(steps),
        times_last,
        of_share(times_last, len(steps)),
        median(gaps),
        gaps[min(int(0.9 * len(gaps)), len(gaps) - 1)],
        median(step.collective_s for step in steps),
        of_slope([(at * stride, step.delay_s(rank)) for at, step in enumerate(steps[::stride])]),
    )
