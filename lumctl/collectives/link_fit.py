"""Alpha and beta from measured all-reduces: a fit that outliers do not spoil, with intervals.

Ring needs x alpha + y beta seconds with x = 2 (n - 1) and y = 2 (n - 1) / n bytes. Errors are taken as relative, so
that small collectives, which alone show alpha, count as much as large ones. The fit starts from the median slope of
seconds / y over x / y, and then weighs each measurement by its residual (Tukey's biweight). Neither is below 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from statistics import median
from typing import NamedTuple

from lumctl.collectives.cost import LinkCost
from lumctl.collectives.interval import Interval, of_samples, of_slope
from lumctl.errors import UsageError

SAMPLES = 400
_MOST_PAIRED = 200
"""More measurements than that are thinned out for the start of the fit, which costs their number squared."""
_BIWEIGHT = 4.685
"""Tukey's constant: 95 % efficiency if the errors are normal."""
_PER_DEVIATION = 1.4826
"""The standard deviation of normal errors, over their median absolute deviation."""
_LEAST_DEVIATION = 1e-6
_TURNS = 20
FEWEST = 4


class Measurement(NamedTuple):
    """An all-reduce by ring of ``size_bytes`` over ``ranks`` ranks, all of which were there, in ``seconds``."""

    ranks: int
    size_bytes: float
    seconds: float

    @property
    def coefficients(self) -> tuple[float, float]:
        """The factors of alpha and beta."""
        rounds = 2 * (self.ranks - 1)
        return float(rounds), rounds / self.ranks * self.size_bytes


@dataclass(frozen=True, slots=True)
class LinkFit:
    """The fitted cost, and fits of resampled measurements, which show how certain it is."""

    link: LinkCost
    samples: tuple[LinkCost, ...] = ()

    def sample(self, number: int) -> LinkCost:
        """One of the samples, again from the first after the last; without samples, the cost itself."""
        return self.samples[number % len(self.samples)] if self.samples else self.link

    @property
    def alpha_s(self) -> Interval:
        """Alpha with its interval."""
        return of_samples(self.link.alpha_s, [each.alpha_s for each in self.samples])

    @property
    def beta_s(self) -> Interval:
        """Beta with its interval."""
        return of_samples(self.link.beta_s, [each.beta_s for each in self.samples])


def fit_links(measurements: Sequence[Measurement], rng: Random) -> LinkFit:
    """Fit alpha and beta.

    Raises:
        UsageError: there are fewer than four measurements, or all have one size, which cannot tell alpha from beta.
    """
    if len(measurements) < FEWEST:
        raise UsageError(f"{len(measurements)} measured collectives are too few", hint=f"{FEWEST} at least")
    if len({(each.ranks, each.size_bytes) for each in measurements}) == 1:
        raise UsageError("all measured collectives have one size", hint="measure a small and a large size too")
    link = _fitted(measurements, _start(measurements))
    samples = (_fitted(rng.choices(measurements, k=len(measurements)), link) for _ in range(SAMPLES))
    return LinkFit(link, tuple(samples))


def _start(measurements: Sequence[Measurement]) -> LinkCost:
    scaled = sorted((x / y, each.seconds / y) for each in measurements for x, y in [each.coefficients])
    thinned = scaled[:: -(-len(scaled) // _MOST_PAIRED)]
    groups: dict[float, list[float]] = {}
    for x, seconds in thinned:
        groups.setdefault(x, []).append(seconds)
    points = [(x, median(group)) for x, group in groups.items()]
    alpha_s = max(of_slope(points).value, 0.0)
    return LinkCost(alpha_s, max(median(y - alpha_s * x for x, y in points), 0.0))


def _fitted(measurements: Sequence[Measurement], start: LinkCost) -> LinkCost:
    """The fit with Tukey's weights, from a start."""
    alpha_s, beta_s = start.alpha_s, start.beta_s
    rows = [(x / each.seconds, y / each.seconds) for each in measurements for x, y in [each.coefficients]]
    for _ in range(_TURNS):
        residuals = [1.0 - x * alpha_s - y * beta_s for x, y in rows]
        limit = _BIWEIGHT * max(_PER_DEVIATION * median(map(abs, residuals)), _LEAST_DEVIATION)
        weights = [(1 - (r / limit) ** 2) ** 2 if abs(r) < limit else 0.0 for r in residuals]
        before = alpha_s, beta_s
        alpha_s, beta_s = _least_squares(rows, weights) or before
        if abs(alpha_s - before[0]) <= 1e-9 * before[0] and abs(beta_s - before[1]) <= 1e-9 * before[1]:
            break
    return LinkCost(alpha_s, beta_s)


def _least_squares(rows: Sequence[tuple[float, float]], weights: Sequence[float]) -> tuple[float, float] | None:
    """Weighted least squares of 1 = x a + y b with a, b >= 0; ``None`` if the rows do not determine both."""
    xx = sum(w * x * x for (x, _), w in zip(rows, weights, strict=True))
    xy = sum(w * x * y for (x, y), w in zip(rows, weights, strict=True))
    yy = sum(w * y * y for (_, y), w in zip(rows, weights, strict=True))
    x1 = sum(w * x for (x, _), w in zip(rows, weights, strict=True))
    y1 = sum(w * y for (_, y), w in zip(rows, weights, strict=True))
    determinant = xx * yy - xy * xy
    if determinant <= 1e-12 * xx * yy:
        return None
    a, b = (x1 * yy - y1 * xy) / determinant, (y1 * xx - x1 * xy) / determinant
    if a < 0:
        return 0.0, y1 / yy
    return (x1 / xx, 0.0) if b < 0 else (a, b)
