"""Whether a rank is late by more than chance: chance makes a rank of equal ranks the last one, too.

A rank is named if it is last in most steps, and if the mean of its arrivals is later than that of every other rank: by
Student's t, with the variance of all ranks, and by as much as is worth an operator's time. What makes a rank late in
one step often lasts for some, so many steps count as few blocks of neighbours.
"""

from collections.abc import Sequence
from itertools import pairwise
from math import sqrt
from statistics import fmean, median

from lumctl.collectives.arrivals import ArrivalStep

BLOCKS = 30
"""A rank late from one step on is named within so many steps."""
FEWEST_BLOCKS = 10
LEAST_SHARE = 0.01
"""Of the training step. Less costs less than one percent of the job's speed."""
LEAST_COLLECTIVE_SHARE = 0.05
"""Of the collective: ranks do not leave it quite together, as clocks of different machines are compared by."""
_DEVIATIONS = 4.75
"""One chance in a million at each look. Looks at thirty steps, one step apart, have nearly all steps in common."""


def named_rank(steps: Sequence[ArrivalStep]) -> int | None:
    """The rank that is steadily late; ``None`` if chance explains who is last, or there are too few steps to tell.

    All times must be of one clock.
    """
    blocks = _blocks(steps)
    if len(blocks) < FEWEST_BLOCKS or len(blocks[0]) < 2:  # noqa: PLR2004 - a collective needs a partner
        return None
    ranks = range(len(blocks[0]))
    means = [fmean(block[rank] for block in blocks) for rank in ranks]
    latest = max(ranks, key=means.__getitem__)
    lead = means[latest] - max(mean for rank, mean in enumerate(means) if rank != latest)
    squares = sum((block[rank] - means[rank]) ** 2 for block in blocks for rank in ranks)
    freedom = (len(blocks) - 1) * (len(means) - 1)
    error = sqrt(2 * squares / freedom / len(blocks))
    if 2 * sum(step.last == latest for step in steps) <= len(steps):
        return None
    least = LEAST_SHARE * step_s(steps), LEAST_COLLECTIVE_SHARE * median(step.collective_s for step in steps)
    return latest if lead > max(_student(freedom) * error, *least) else None


def step_s(steps: Sequence[ArrivalStep]) -> float:
    """The median time from one step to the next; 0 where a file tells only the times within collectives."""
    ends = [step.left_s[0] for step in steps]
    return max(median(after - before for before, after in pairwise(ends)), 0.0)


def recently_named(steps: Sequence[ArrivalStep]) -> int | None:
    """The rank that is late now, or was over all steps."""
    late_now = named_rank(steps[-BLOCKS:])
    return late_now if late_now is not None else named_rank(steps)


def _blocks(steps: Sequence[ArrivalStep]) -> list[list[float]]:
    """The mean arrivals in blocks of steps, each from the mean of all ranks."""
    size = max(len(steps) // BLOCKS, 1)
    means = [fmean(step.entered_s) for step in steps]
    relative = [[at - mean for at in step.entered_s] for step, mean in zip(steps, means, strict=True)]
    parts = [relative[at : at + size] for at in range(0, len(relative) - size + 1, size)]
    return [[fmean(each) for each in zip(*part, strict=True)] for part in parts]


def _student(freedom: int) -> float:
    """The quantile of Student's t that belongs to ``_DEVIATIONS``, to the first order."""
    z = _DEVIATIONS
    return z + (z**3 + z) / (4 * freedom)
