"""The time of an all-reduce in the alpha-beta model, and what a schedule for a late rank gains over ring.

A round costs alpha seconds, and beta seconds for each byte of the largest send. With a delay D of one rank, an
all-reduce that waits costs D + T. One for a late rank has two parts, of which the first overlaps the delay:
max(D, T_before) + T_after. Gains are ratios of speeds: above 1 the schedule is faster than ring.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from lumctl.collectives.schedule import Schedule
from lumctl.collectives.stragglar import lower_bound


@dataclass(frozen=True, slots=True)
class LinkCost:
    """``alpha_s``: seconds of a message, whatever its size; ``beta_s``: seconds of a byte."""

    alpha_s: float
    beta_s: float

    def rounds_s(self, rounds: int, round_bytes: float) -> float:
        """The seconds of rounds in which the largest send has so many bytes."""
        return rounds * (self.alpha_s + round_bytes * self.beta_s)

    def ring_s(self, ranks: int, size_bytes: float) -> float:
        """The seconds of an all-reduce by ring."""
        return self.rounds_s(2 * (ranks - 1), size_bytes / ranks)

    def halving_doubling_s(self, ranks: int, size_bytes: float) -> float | None:
        """The seconds by recursive halving and doubling; ``None`` if ``ranks`` is no power of two."""
        if ranks & (ranks - 1):
            return None
        return 2 * (ranks.bit_length() - 1) * self.alpha_s + 2 * (ranks - 1) / ranks * size_bytes * self.beta_s


@dataclass(frozen=True, slots=True)
class ScheduleCost:
    """The seconds of a schedule before and after the late rank's arrival, beside ring on the same links."""

    before_s: float
    after_s: float
    ring_s: float

    @property
    def gain_after(self) -> float:
        """Ring's time over the time after the arrival."""
        return self.ring_s / self.after_s

    def total_s(self, delay_s: float) -> float:
        """The time from when the other ranks begin to the end."""
        return max(delay_s, self.before_s) + self.after_s

    def gain(self, delay_s: float) -> float:
        """The gain of the whole, delay included."""
        return (delay_s + self.ring_s) / self.total_s(delay_s)

    @property
    def best_gain(self) -> float:
        """The gain at the best delay, which is :attr:`before_s`: no delay gains more, if any gains at all."""
        return max(self.gain(self.before_s), self.gain(0.0))

    @property
    def break_even_s(self) -> float | None:
        """The delay from which on the schedule is faster than ring; ``None`` if no delay is long enough."""
        if self.after_s >= self.ring_s:
            return None
        return max(self.before_s + self.after_s - self.ring_s, 0.0)


def cost_of(schedule: Schedule, size_bytes: float, link: LinkCost) -> ScheduleCost:
    """The cost of a schedule for a buffer of ``size_bytes``; the part before the arrival is a ring reduce-scatter."""
    before = 0 if schedule.straggler is None else schedule.ranks - 2
    return cost_of_rounds(schedule.ranks, schedule.chunks, [1] * before, schedule.chunks_per_round, size_bytes, link)


def cost_of_rounds(
    ranks: int, chunks: int, before: Sequence[int], after: Sequence[int], size_bytes: float, link: LinkCost
) -> ScheduleCost:
    """The cost of rounds, given as the most chunks that a rank sends in each of them."""
    chunk_bytes = size_bytes / chunks
    before_s, after_s = (sum(link.rounds_s(1, count * chunk_bytes) for count in part) for part in (before, after))
    return ScheduleCost(before_s, after_s, link.ring_s(ranks, size_bytes))


def stragglar_cost(ranks: int, size_bytes: float, link: LinkCost) -> ScheduleCost:
    """The cost of the schedule in the fewest rounds, without building it."""
    chunk_bytes = size_bytes / (ranks - 1)
    return ScheduleCost(
        link.rounds_s(ranks - 2, chunk_bytes),
        link.rounds_s(lower_bound(ranks), chunk_bytes),
        link.ring_s(ranks, size_bytes),
    )
