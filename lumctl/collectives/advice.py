"""Whether to use the schedule for a late rank instead of ring: the arithmetic, and what would have to change.

The gain is the mean time of ring over that of the schedule, waiting included, over the delays of all steps, because
short and long delays do not cancel. Its interval comes from resampled steps and costs. Steps are resampled in blocks,
because a rank that is late in one step is late in the next. The advice is "use" only if even the lower end of the
interval is a gain.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from statistics import median

from lumctl.collectives.arrivals import ArrivalStep, LateRank
from lumctl.collectives.cost import LinkCost, ScheduleCost, stragglar_cost
from lumctl.collectives.interval import Interval, of_samples
from lumctl.collectives.link_fit import LinkFit
from lumctl.quantity_text import bytes_text, seconds_text

SAMPLES = 1000
_NOTABLE = 0.99
"""Another algorithm is named if its time is below this share; large buffers take as long with ring."""
_FEWEST_SAMPLES, _MOST_RESAMPLED = 100, 10_000_000
"""Of a long log fewer samples are drawn, so that they have so many steps together."""


@dataclass(frozen=True, slots=True)
class Advice:
    """The advice for a number of ranks and a gap, which is the median delay.

    ``size_bytes`` is ``None`` if only the time of the collective is known, from a log. ``gain`` is ring's time over the
    schedule's, delay included: the schedule is faster above 1.
    """

    ranks: int
    size_bytes: float | None
    link: LinkCost
    cost: ScheduleCost
    gap_s: float
    gain: Interval
    late: LateRank | None

    @property
    def recommended(self) -> bool:
        """Whether the schedule is faster even at the lower end of the interval."""
        return self.gain.low > 1.0

    @property
    def break_even_s(self) -> float | None:
        """The gap from which on the schedule is faster; ``None`` if it never is."""
        return self.cost.break_even_s

    @property
    def halving_doubling_s(self) -> float | None:
        """The time of recursive halving and doubling after the last arrival; ``None`` without a power of two."""
        return self.link.halving_doubling_s(self.ranks, 1.0 if self.size_bytes is None else self.size_bytes)

    @property
    def most_share(self) -> float | None:
        """The share of the buffer up to which the gap is long enough; ``None`` if no buffer is small enough."""
        empty = stragglar_cost(self.ranks, 0.0, self.link)
        fixed_s = empty.before_s + empty.after_s - empty.ring_s
        if self.break_even_s is None or fixed_s >= self.gap_s or self.break_even_s <= self.gap_s:
            return None
        return (self.gap_s - fixed_s) / (self.break_even_s - fixed_s)


def advise(ranks: int, size_bytes: float, gap_s: float, links: LinkFit, late: LateRank | None = None) -> Advice:
    """The advice for one gap, and costs of links with their uncertainty."""
    cost = stragglar_cost(ranks, size_bytes, links.link)
    gains = [stragglar_cost(ranks, size_bytes, link).gain(gap_s) for link in links.samples]
    return Advice(ranks, size_bytes, links.link, cost, gap_s, of_samples(cost.gain(gap_s), gains), late)


def advise_from_log(
    steps: Sequence[ArrivalStep],
    late: LateRank,
    rng: Random,
    *,
    size_bytes: float | None = None,
    links: LinkFit | None = None,
    alpha_s: float = 0.0,
    waited_s: Sequence[float] | None = None,
) -> Advice:
    """The advice for the delays of a log.

    Without ``links`` the log's own collectives are taken as ring, which gives beta; ``alpha_s`` is assumed. Where a
    step has several collectives, ``waited_s`` is the most of its delay that is waited for in the all-reduce.
    """
    size = 1.0 if size_bytes is None else size_bytes  # then beta is the time of the whole buffer
    delays = [step.delay_s(late.rank) for step in steps]
    if waited_s is not None:
        delays = [min(pair) for pair in zip(delays, waited_s, strict=True)]
    times = [step.collective_s for step in steps]

    def cost(link: LinkCost | None, chosen: Sequence[int]) -> ScheduleCost:
        own = link or link_of_ring(late.ranks, size, median(times[at] for at in chosen), alpha_s)
        return stragglar_cost(late.ranks, size, own)

    def gain(found: ScheduleCost, chosen: Sequence[int]) -> float:
        waits = [delays[at] for at in chosen]
        return sum(wait + found.ring_s for wait in waits) / sum(map(found.total_s, waits))

    count = len(steps)
    length = max(round(count ** (1 / 3)), 1)
    gains = []
    for turn in range(max(min(SAMPLES, _MOST_RESAMPLED // count), _FEWEST_SAMPLES)):
        starts = rng.choices(range(count - length + 1), k=-(-count // length))
        chosen = [start + at for start in starts for at in range(length)]
        gains.append(gain(cost(links.sample(turn) if links else None, chosen), chosen))
    found = cost(links.link if links else None, range(count))
    link = links.link if links else link_of_ring(late.ranks, size, late.collective_s, alpha_s)
    interval = of_samples(gain(found, range(count)), gains)
    return Advice(late.ranks, size_bytes, link, found, median(delays), interval, late)


def link_of_ring(ranks: int, size_bytes: float, ring_s: float, alpha_s: float) -> LinkCost:
    """The cost at which ring needs ``ring_s`` seconds, with a given alpha."""
    rounds = 2 * (ranks - 1)
    alpha_s = min(alpha_s, ring_s / rounds)
    return LinkCost(alpha_s, (ring_s - rounds * alpha_s) * ranks / rounds / size_bytes)


def advice_lines(advice: Advice) -> list[str]:
    """The advice in sentences: what to do, the arithmetic, and what would have to change."""
    verdict = "use the schedule" if advice.recommended else "do not use the schedule"
    situation = f"with {advice.ranks} ranks and a gap of {seconds_text(advice.gap_s)}"
    return [f"{verdict}: {situation} it runs at {gain_text(advice.gain)}", *arithmetic_lines(advice)]


def gain_text(gain: Interval) -> str:
    """The gain of the whole with its interval, if it has one."""
    interval = "" if gain.low == gain.high else f" (95 %: {gain.low:.2f} to {gain.high:.2f})"
    return f"{gain.value:.2f} of ring's speed{interval}, the wait included"


def arithmetic_lines(advice: Advice) -> list[str]:
    """The arithmetic of an advice, and what would have to change, in sentences."""
    cost = advice.cost
    ring, before, after = map(seconds_text, (cost.ring_s, cost.before_s, cost.after_s))
    lines = [
        f"after the last arrival ring takes {ring} and the schedule {after}; it takes {before} before that arrival"
    ]
    doubling_s = advice.halving_doubling_s
    fastest_s = _NOTABLE * min(cost.ring_s, cost.total_s(advice.gap_s) - advice.gap_s)
    if doubling_s is not None and doubling_s < fastest_s:
        lines.append(f"recursive halving and doubling is faster than both here: {seconds_text(doubling_s)}")
    if advice.break_even_s is None:
        lines.append(
            f"no gap is long enough with {advice.ranks} ranks: even after the arrival it is not faster than ring"
        )
        return lines
    best = f"the best case is a gap of {before}, with {cost.best_gain:.3f} of ring's speed"
    lines.append(f"break-even gap: {seconds_text(advice.break_even_s)}; {best}")
    if not advice.recommended:
        lines.append(f"what would have to change: {', or '.join(_changes(advice, advice.break_even_s))}")
    return lines


def fit_line(links: LinkFit) -> str:
    """The fitted alpha and beta with their intervals, beta as bandwidth."""
    alpha, beta = links.alpha_s, links.beta_s
    bandwidth = [f"{bytes_text(1 / each)}/s" if each else "unlimited" for each in (beta.value, beta.high, beta.low)]
    return (
        f"fitted: alpha {seconds_text(alpha.value)} (95 %: {seconds_text(alpha.low)} to {seconds_text(alpha.high)}), "
        f"bandwidth {bandwidth[0]} (95 %: {bandwidth[1]} to {bandwidth[2]})"
    )


def _changes(advice: Advice, break_even_s: float) -> list[str]:
    """What would make the schedule worth it."""
    if advice.gain.value > 1.0:
        return ["a steadier gap or more measurements, for the lower end of the interval is no gain"]
    changes = [f"a gap above {seconds_text(break_even_s)} instead of {seconds_text(advice.gap_s)}"]
    share = advice.most_share
    if share is not None:
        size = "" if advice.size_bytes is None else f", {bytes_text(share * advice.size_bytes)}"
        changes.append(f"a buffer of at most {share:.0%} of this one{size}")
    if break_even_s <= advice.gap_s:
        changes = ["the same rank late in more of the steps, and by as much"]
    return changes


def late_rank_lines(late: LateRank) -> list[str]:
    """The late rank in sentences."""
    trend = late.trend_s
    steady = "no trend" if trend.low <= 0 <= trend.high else ("rising" if trend.value > 0 else "falling")
    by = "" if steady == "no trend" else f" by {seconds_text(abs(trend.value))} a step"
    share = f"{late.share.value:.0%}; 95 %: {late.share.low:.0%} to {late.share.high:.0%}"
    gap = f"gap: median {seconds_text(late.gap_median_s)}, 90th percentile {seconds_text(late.gap_p90_s)}"
    return [
        f"late rank: {late.rank}, last in {late.times_last} of {late.steps} steps ({share})",
        f"{gap}, {late.gap_share:.1%} of the collective's {seconds_text(late.collective_s)}; {steady}{by}",
    ]
