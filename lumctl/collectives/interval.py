"""An estimate with its 95 % interval."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist

Z = NormalDist().inv_cdf(0.975)
"""The quantile of the normal distribution for 95 %."""


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate, and the ends of its 95 % interval."""

    value: float
    low: float
    high: float


def of_samples(value: float, samples: Sequence[float]) -> Interval:
    """The interval that leaves out 2.5 % of the samples at each end; without samples, the value alone."""
    if not samples:
        return Interval(value, value, value)
    ordered = sorted(samples)
    cut = int(0.025 * len(ordered))
    return Interval(value, min(ordered[cut], value), max(ordered[-1 - cut], value))


def of_share(hits: int, tries: int) -> Interval:
    """A share with its Wilson interval; tries are taken as independent."""
    share = hits / tries
    scale = 1 + Z * Z / tries
    middle = (share + Z * Z / (2 * tries)) / scale
    half = Z / scale * sqrt(share * (1 - share) / tries + Z * Z / (4 * tries * tries))
    return Interval(share, max(middle - half, 0.0), min(middle + half, 1.0))


def of_slope(points: Sequence[tuple[float, float]]) -> Interval:
    """The median of the slopes between all pairs of points (Theil and Sen), with Kendall's interval.

    All x differ. It needs two points, and costs their number squared.
    """
    slopes = sorted((b[1] - a[1]) / (b[0] - a[0]) for at, a in enumerate(points) for b in points[at + 1 :])
    count, pairs = len(points), len(slopes)
    spread = Z * sqrt(count * (count - 1) * (2 * count + 5) / 18)
    low, high = max(int((pairs - spread) / 2), 0), min(int((pairs + spread) / 2), pairs - 1)
    middle = (slopes[(pairs - 1) // 2] + slopes[pairs // 2]) / 2
    return Interval(middle, slopes[low], slopes[high])
