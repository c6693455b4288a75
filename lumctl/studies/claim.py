"""Published claims as data, and the verdict on each after a study was run."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median


class Verdict(StrEnum):
    """What a study says of a claim."""

    REPRODUCED = "reproduced"
    """Under every reading."""
    SOME_READINGS = "reproduced under some readings"
    BOUNDED_AWAY = "bounded away"
    """Under no reading, and a bound shows that it cannot hold."""
    NOT_REPRODUCED = "not reproduced"
    """Under no reading, and no bound excludes it."""
    NOT_TESTABLE = "not testable here"


@dataclass(frozen=True, slots=True)
class Claim:
    """A published number. ``tolerance`` is how far a value may be from it, in the same unit.

    If ``missing`` is given, it says what a test would need, and the claim is not tested.
    """

    id: str
    source: str
    words: str
    published: float
    unit: str
    tolerance: float
    missing: str = ""


@dataclass(frozen=True, slots=True)
class ClaimReading:
    """The value of a claim under one reading: what ``words`` count, of which cases, divided by what.

    ``low`` and ``high`` are the ends of its 95 % interval, or of its range over what the source does not state; without
    either they are the value. ``least`` and ``most`` are what the value can be under this reading, whatever is not
    stated; ``None``: no bound is known.
    """

    words: str
    value: float
    low: float
    high: float
    least: float | None = None
    most: float | None = None

    def holds(self, claim: Claim) -> bool:
        """Whether the published number is within the interval, or within the tolerance of it."""
        return self.low - claim.tolerance <= claim.published <= self.high + claim.tolerance

    def excludes(self, claim: Claim) -> bool:
        """Whether the published number is beyond a bound by more than the tolerance."""
        too_large = self.most is not None and claim.published > self.most + claim.tolerance
        return too_large or (self.least is not None and claim.published < self.least - claim.tolerance)


def exactly(words: str, value: float, *, most: float | None = None) -> ClaimReading:
    """A reading whose value is computed without chance, from numbers that the source states.

    No other value is possible, so it is its own bound. ``most`` is the bound of all cases, if ``value`` is one of them.
    """
    return ClaimReading(words, value, value, value, value if most is None else None, value if most is None else most)


def over(words: str, values: Sequence[float]) -> ClaimReading:
    """A reading that leaves open which of some values is meant; their median stands for them."""
    return ClaimReading(words, median(values), min(values), max(values))


def verdict_of(claim: Claim, readings: Sequence[ClaimReading]) -> Verdict:
    """The verdict on a claim, by its value under each reading."""
    if claim.missing or not readings:
        return Verdict.NOT_TESTABLE
    held = [each.holds(claim) for each in readings]
    if any(held):
        return Verdict.REPRODUCED if all(held) else Verdict.SOME_READINGS
    return Verdict.BOUNDED_AWAY if all(each.excludes(claim) for each in readings) else Verdict.NOT_REPRODUCED
