"""How far clocks are apart, from the times at which ranks enter and leave collectives.

Nobody leaves a collective before the last has entered it. So each rank's leaving bounds the clocks of all others, and
theirs bound its own: from both sides. Within these bounds the ranks are taken to leave together.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from lumctl.collectives.arrivals import ArrivalStep

STEPS = 64
"""Clocks drift: an offset holds for so many steps."""


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """What to add to the times of a clock to get those of the first rank's, and the most that it may be wrong by.

    Where a script asks for a result long after it was there, the bounds may contradict each other; ``error_s`` then is
    by how much.
    """

    offset_s: float
    error_s: float


def clock_offsets(steps: Sequence[ArrivalStep], clocks: Sequence[str]) -> dict[str, ClockOffset]:
    """The offset of each clock over at least one step; ``clocks`` names the clock of each rank."""
    ranks_of: dict[str, list[int]] = {}
    for rank, clock in enumerate(clocks):
        ranks_of.setdefault(clock, []).append(rank)
    first = ranks_of[clocks[0]]
    return {clock: _offset(steps, first, ranks) if ranks is not first else _NONE for clock, ranks in ranks_of.items()}


_NONE = ClockOffset(0.0, 0.0)


def _offset(steps: Sequence[ArrivalStep], first: Sequence[int], other: Sequence[int]) -> ClockOffset:
    lows, highs, together = [], [], []
    for step in steps:
        entered, left = step.entered_s, step.left_s
        lows.append(max(entered[rank] for rank in first) - min(left[rank] for rank in other))
        highs.append(min(left[rank] for rank in first) - max(entered[rank] for rank in other))
        together.append(median(left[rank] for rank in first) - median(left[rank] for rank in other))
    low, high = sorted((max(lows), min(highs)))
    offset = min(max(median(together), low), high)
    return ClockOffset(offset, max(high - offset, offset - low))


def on_one_clock(
    steps: Sequence[ArrivalStep], clocks: Sequence[str]
) -> tuple[list[ArrivalStep], Mapping[str, ClockOffset]]:
    """The steps by the clock of the first rank; and the offsets of all clocks over the newest steps."""
    found: list[ArrivalStep] = []
    offsets: dict[str, ClockOffset] = {}
    cuts = list(range(0, max(len(steps) - STEPS // 2, 1), STEPS))  # the last part is not short, or the only one
    for begin, end in zip(cuts, [*cuts[1:], len(steps)], strict=True):
        part = steps[begin:end]
        if part:
            offsets = clock_offsets(part, clocks)
            added = [offsets[clock].offset_s for clock in clocks]
            found += [_moved(step, added) for step in part]
    return found, offsets


def _moved(step: ArrivalStep, added: Sequence[float]) -> ArrivalStep:
    entered = tuple(at + more for at, more in zip(step.entered_s, added, strict=True))
    return ArrivalStep(step.step, entered, tuple(at + more for at, more in zip(step.left_s, added, strict=True)))
