"""How many spares a pool needs, from the probability that each of its accelerators is down. Numbers only, no I/O.

The accelerators of a pool are those of one class in one rack, spares included: any of them may fail. The number that
is down at once is a sum of independent units, so its distribution is their convolution (Poisson binomial if each unit
is one accelerator). It is exact for unequal probabilities, for accelerators that are tied, and for hosts that fail as a
whole.

The rule of this program is the smallest K with P(more than K down) <= 1 - availability. The published rule
(arXiv 2508.03674) is the smallest K with P(K or more down) <= 1 - availability, which is always one spare more.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, cycle
from math import expm1, log1p

from lumctl.errors import UsageError

YEAR_S = 365.25 * 86_400.0
NEGLIGIBLE = 1e-22
"""Smaller probabilities at the end of a distribution are dropped.

Each accelerator adds one entry, so 100,000 of them drop 1e-17 at most, less than ``1 - availability`` can be.
"""


@dataclass(frozen=True, slots=True)
class FailureUnit:
    """``size`` tied accelerators, each down with probability ``rate`` by its own fault: if one is, all are.

    ``part`` is the number of the part of its pool in which it is. If others that it is tied to are in another part,
    ``tied`` is the number of all of them; else 0.
    """

    size: int
    rate: float
    part: int = 0
    tied: int = 0

    @property
    def down(self) -> float:
        """The probability that the unit is down."""
        together = max(self.size, self.tied)
        return self.rate if together == 1 else -expm1(together * log1p(-self.rate))


@dataclass(frozen=True, slots=True)
class FailureGroup:
    """The accelerators of one host. With probability ``rate`` the whole host is down, and all of them with it."""

    units: tuple[FailureUnit, ...]
    rate: float = 0.0

    @property
    def size(self) -> int:
        """The number of its accelerators."""
        return sum(unit.size for unit in self.units)

    @property
    def any_down(self) -> float:
        """The probability that at least one of its accelerators is down."""
        return -expm1(log1p(-self.rate) + sum(unit.size * log1p(-unit.rate) for unit in self.units))


Groups = tuple[FailureGroup, ...]


def down_distribution(groups: Iterable[FailureGroup]) -> list[float]:
    """The distribution of the number of accelerators down at once: the probability of 0, 1, 2, ... of them.

    The end is cut off where :data:`NEGLIGIBLE` probabilities follow.
    """
    found = [1.0]
    for group in groups:
        own = found
        for unit in group.units:
            own = _mixed(own, own, unit.size, unit.down)
        found = _mixed(own, found, group.size, group.rate) if group.rate else own
    return found


def _mixed(up: list[float], base: list[float], size: int, down: float) -> list[float]:
    """The mixture of ``up`` with probability ``1 - down``, and of ``base`` with ``size`` more with ``down``."""
    stays = 1.0 - down
    length = max(len(up), len(base) + size)
    left = up + [0.0] * (length - len(up))
    right = [0.0] * size + base + [0.0] * (length - size - len(base))
    mixed = [stays * a + down * b for a, b in zip(left, right, strict=True)]
    while mixed[-1] < NEGLIGIBLE:
        mixed.pop()
    return mixed


def exceedance(distribution: Sequence[float]) -> list[float]:
    """P(more than K) for K = 0, 1, 2, ...; the last one is 0. Summed from the end, so small tails keep their digits."""
    from_end = list(accumulate(reversed(distribution), initial=0.0))[:-1]
    return [min(each, 1.0) for each in reversed(from_end)]


@dataclass(frozen=True, slots=True)
class PoolSize:
    """How many spares a pool needs for an availability.

    ``exact`` is the smallest number that is enough, ``published`` that of the published rule. ``server_eviction``
    replaces the whole server of a failed accelerator, ``rack_migration`` the whole rack. ``more_down[K]`` is the
    probability that more than K accelerators are down, ``waits_per_year[K]`` how many accelerators a year fail and find
    no free spare with K spares (a group is served whole or waits whole); it is empty if no repair time is known.
    """

    accelerators: int
    availability: float
    expected_down: float
    exact: int
    published: int
    server_eviction: int
    rack_migration: int
    more_down: tuple[float, ...]
    waits_per_year: tuple[float, ...]

    def probability_more_down(self, spares: int) -> float:
        """The probability that more accelerators are down than there are spares."""
        return self.more_down[spares] if spares < len(self.more_down) else 0.0

    def expected_waits_per_year(self, spares: int) -> float | None:
        """The expected waits per year with so many spares; ``None`` without a repair time."""
        if not self.waits_per_year:
            return None
        return self.waits_per_year[spares] if spares < len(self.waits_per_year) else 0.0


def size_pool(groups: Groups, availability: float, repair_s: float | None = None) -> PoolSize:
    """The number of spares for a pool of these groups, of which each outage lasts ``repair_s`` seconds on average.

    In the long run an accelerator with probability p of being down fails p / ``repair_s`` times a second, whatever the
    distribution of repairs. Summed over the states in which more than K are down, the failures that find no spare are
    E[down; down > K] / ``repair_s``.

    Raises:
        UsageError: the availability is not above 0 and below 1.
    """
    if not 0.0 < availability < 1.0:  # also refuses NaN
        raise UsageError(f"an availability of {availability:g} is not above 0 and below 1", hint="example: 0.999")
    allowed = 1.0 - availability
    distribution = down_distribution(groups)
    more_down = exceedance(distribution)
    exact = _smallest(more_down, allowed)
    servers = (FailureGroup((FailureUnit(1, group.any_down),)) for group in groups)
    evicted = _smallest(exceedance(down_distribution(servers)), allowed)
    largest = sorted((group.size for group in groups), reverse=True)
    accelerators = sum(largest)
    waits: list[float] = []
    if repair_s is not None:
        weighted = [count * each for count, each in enumerate(distribution)]
        from_end = list(accumulate(reversed(weighted), initial=0.0))[:-1]
        waits = [each / repair_s * YEAR_S for each in reversed(from_end)]
    return PoolSize(
        accelerators,
        availability,
        expected_down=sum(count * each for count, each in enumerate(distribution)),
        exact=exact,
        published=exact + 1,  # P(K or more) is P(more than K - 1), and P(0 or more) is 1
        server_eviction=sum(largest[:evicted]),
        rack_migration=accelerators if more_down[0] > allowed else 0,
        more_down=tuple(more_down),
        waits_per_year=tuple(waits),
    )


def _smallest(more_down: Sequence[float], allowed: float) -> int:
    return next(spares for spares, each in enumerate(more_down) if each <= allowed)


def even_groups(accelerators: int, per_host: int = 1) -> Groups:
    """Groups of ``per_host`` accelerators without faults; the last one may be smaller."""
    return resized((FailureGroup((FailureUnit(1, 0.0),) * per_host),), accelerators)


def resized(groups: Groups, accelerators: int) -> Groups:
    """Hosts like these, repeated or left out until they have so many accelerators; the last host may have fewer."""
    found: list[FailureGroup] = []
    left = accelerators
    for group in cycle(groups):
        if left <= 0:
            break
        units: list[FailureUnit] = []
        for unit in group.units:
            if left > 0:
                units.append(replace(unit, size=min(unit.size, left)))
                left -= units[-1].size
        found.append(replace(group, units=tuple(units)))
    return tuple(found)


def even_rates(count: int, low: float, high: float) -> list[float]:
    """Rates spread evenly from ``low`` to ``high``: the middles of so many equal ranges, as in a typical draw."""
    return [low + (high - low) * (at + 0.5) / count for at in range(count)]


def spread(groups: Groups, low: float, high: float) -> Groups:
    """The same groups, with rates of their units that are spread evenly from ``low`` to ``high``."""
    rates = iter(even_rates(sum(len(group.units) for group in groups), low, high))
    return tuple(
        replace(group, units=tuple(replace(unit, rate=next(rates)) for unit in group.units)) for group in groups
    )


def in_part(groups: Groups, part: int) -> Groups:
    """The units of one part of a pool, in their hosts; hosts without any are left out."""
    own = (replace(g, units=tuple(unit for unit in g.units if unit.part == part)) for g in groups)
    return tuple(group for group in own if group.units)


def with_rates(groups: Groups, change: Callable[[float], float]) -> Groups:
    """The same groups with every rate changed, those of hosts too."""
    return tuple(
        replace(
            group,
            rate=change(group.rate),
            units=tuple(replace(unit, rate=change(unit.rate)) for unit in group.units),
        )
        for group in groups
    )


def scaled(rate: float, factor: float) -> float:
    """The probability of being down if failures are ``factor`` times as frequent, or repairs take so much longer."""
    return rate * factor / (1.0 - rate + rate * factor)


def within(rate: float, repair_s: float, horizon_s: float) -> float:
    """The probability of being down ``horizon_s`` after a start at which everything is up.

    ``rate`` is that of the long run, which it approaches from below; times between failures and repairs are taken as
    exponential. If repairs take much longer than the horizon, no unit returns in time.
    """
    return rate * -expm1(-horizon_s / (repair_s * (1.0 - rate)))
