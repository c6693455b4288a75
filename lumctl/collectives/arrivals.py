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
    lasts = _lasts(steps)
    return _lateness(steps, lasts, Counter(lasts).most_common(1)[0][0])


def lateness(steps: Sequence[ArrivalStep]) -> tuple[LateRank, ...]:
    """How late each rank is. Raises as :func:`late_rank` does."""
    lasts = _lasts(steps)
    return tuple(_lateness(steps, lasts, rank) for rank in range(len(steps[0].entered_s)))


def _lasts(steps: Sequence[ArrivalStep]) -> list[int]:
    """The last rank of each step; see :func:`late_rank`."""
    if len(steps) < FEWEST_STEPS:
        raise UsageError(f"{len(steps)} steps are too few to name a late rank", hint=f"{FEWEST_STEPS} at least")
    if len(steps[0].entered_s) < 2:  # noqa: PLR2004 - a collective needs a partner
        raise UsageError("a collective has at least two ranks")
    lasts = [step.last for step in steps]
    for step, last in zip(steps, lasts, strict=True):
        if step.left_s[last] <= step.entered_s[last]:
            raise UsageError(f"step {step.step}: rank {last} left the collective before it entered")
    return lasts


def _lateness(steps: Sequence[ArrivalStep], lasts: Sequence[int], rank: int) -> LateRank:
    delays = [step.delay_s(rank) if last == rank else 0.0 for step, last in zip(steps, lasts, strict=True)]
    times_last, gaps = lasts.count(rank), sorted(delays)
    stride = -(-len(steps) // _MOST_PAIRED)
    return LateRank(
        rank,
        len(steps[0].entered_s),
        len(steps),
        times_last,
        of_share(times_last, len(steps)),
        median(gaps),
        gaps[min(int(0.9 * len(gaps)), len(gaps) - 1)],
        median(step.left_s[last] - step.entered_s[last] for step, last in zip(steps, lasts, strict=True)),
        of_slope([(at * stride, delay) for at, delay in enumerate(delays[::stride])]),
    )
