"""Published claims as data, and the verdict on each after a study was run."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class ClaimVerdict(StrEnum):
    """What a study says of a claim."""

    REPRODUCED = "reproduced"
    """Under every reading."""
    SOME_READINGS = "reproduced under some readings"
    BOUNDED_AWAY = "bounded away"
    """Under no reading, and bounds show that it cannot hold."""
    NOT_REPRODUCED = "not reproduced"
    """Under no reading, and no bound excludes it."""
    NOT_TESTABLE = "not testable here"


class ClaimBasis(StrEnum):
    """How the published number of a claim is known."""

    STATED = "stated"
    COMPUTED = "computed"
    """By us, from numbers that the source states."""
    INFERRED = "inferred"
    """From what the source says in words."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A published number. ``tolerance`` is how far a value may be from it, in the same unit.

    ``readings`` are what the number may count, of which cases, divided by what; by their names. If ``missing`` is
    given, it says what a test would need, and the claim is not tested.
    """

    id: str
    source: str
    words: str
    published: float
    unit: str
    tolerance: float
    readings: Mapping[str, str] = field(default_factory=dict)
    basis: ClaimBasis = ClaimBasis.STATED
    missing: str = ""


@dataclass(frozen=True, slots=True)
class ReadingValue:
    """The value of a claim under one reading.

    ``low`` and ``high`` are the ends of its range over what the source does not state; otherwise they are the value.
    ``least`` and ``most`` bound the value, whatever is not stated; ``None``: no bound is known.
    """

    value: float
    low: float
    high: float
    least: float | None = None
    most: float | None = None

    def holds(self, claim: Claim) -> bool:
        """Whether the published number is within the range, or within the tolerance of it."""
        return self.low - claim.tolerance <= claim.published <= self.high + claim.tolerance

    def excludes(self, claim: Claim) -> bool:
        """Whether the published number is beyond a bound by more than the tolerance."""
        too_large = self.most is not None and claim.published > self.most + claim.tolerance
        return too_large or (self.least is not None and claim.published < self.least - claim.tolerance)


def exact_value(value: float) -> ReadingValue:
    """A value that follows from what the source states: no other is possible."""
    return ReadingValue(value, value, value, value, value)


def found_value(value: float, *, least: float | None = None, most: float | None = None) -> ReadingValue:
    """A value that was found, with the bounds that are proved."""
    return ReadingValue(value, value, value, least, most)


def range_value(values: Collection[float], *, whole: bool = False) -> ReadingValue:
    """A range over something that the source does not state. ``whole``: nothing outside of it is possible."""
    low, high = min(values), max(values)
    return ReadingValue((low + high) / 2, low, high, low if whole else None, high if whole else None)


def verdict_of(claim: Claim, values: Mapping[str, ReadingValue]) -> ClaimVerdict | None:
    """The verdict on a claim by its value under each reading; ``None`` if a reading has no value.

    Raises:
        ValueError: a value is of no reading of the claim.
    """
    if strange := values.keys() - claim.readings.keys():
        raise ValueError(f"claim {claim.id} has no reading {', '.join(sorted(strange))}")
    if claim.missing:
        return ClaimVerdict.NOT_TESTABLE
    if values.keys() != claim.readings.keys() or not values:
        return None
    held = [each.holds(claim) for each in values.values()]
    if any(held):
        return ClaimVerdict.REPRODUCED if all(held) else ClaimVerdict.SOME_READINGS
    excluded = all(each.excludes(claim) for each in values.values())
    return ClaimVerdict.BOUNDED_AWAY if excluded else ClaimVerdict.NOT_REPRODUCED
