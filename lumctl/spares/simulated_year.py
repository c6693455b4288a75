"""A year of failures and repairs, simulated: how long demands wait for spares under each sharing policy.

Failures are a Poisson process over all accelerators of a pool. Each is a demand for the spares of one group, which are
free again when the group is repaired. The same failures are given to every policy, so that differences are the
policies' own.
"""

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from random import Random
from statistics import fmean, stdev

from lumctl.spares.sharing import (
    Demand,
    FreeSpare,
    InvalidAnswer,
    Reserve,
    SharingPolicy,
    SharingQuestion,
    check_answer,
)
from lumctl.time_text import UNITS_S

YEAR_S = 365 * UNITS_S["d"]
_WEIGHTS = (1.0, 2.0, 4.0)
_LONGEST_JOB_S = 30 * UNITS_S["d"]
_CERTAIN = 2.0
"""How many standard errors a difference must have to be told."""


@dataclass(frozen=True, slots=True)
class SpareClass:
    """A class of spares: how many there are, and which share of all demands needs it or a later class."""

    name: str
    spares: int
    share: float


@dataclass(frozen=True, slots=True)
class YearModel:
    """What fails, and how it is repaired.

    A demand of a class can use the spares of this class and of those after it in ``classes``: common ones come first.
    ``mtbf_s`` is the mean time between failures of one accelerator. A failure takes a group of 1 to ``largest_group``
    accelerators, k of them with a probability in proportion to 1/k**2, and is repaired after a time between the two of
    ``repair_s``, each equally likely. All times are in seconds.
    """

    accelerators: int
    classes: tuple[SpareClass, ...]
    mtbf_s: float
    repair_s: tuple[float, float]
    largest_group: int = 8

    def usable_classes(self, name: str) -> tuple[str, ...]:
        """The classes whose spares a demand of this class can use."""
        names = [each.name for each in self.classes]
        return tuple(names[names.index(name) :])


@dataclass(frozen=True, slots=True)
class Failure:
    """A group of accelerators that fails ``at`` and works again at ``repaired_at``, and the job that it belongs to."""

    at: float
    accelerator_class: str
    size: int
    repaired_at: float
    weight: float
    remaining_s: float
    attained_s: float


def failures_of(model: YearModel, seed: int) -> list[Failure]:
    """The failures of a year, in order."""
    rng, at, found = Random(seed), 0.0, list[Failure]()  # noqa: S311 - a seed repeats a year
    sizes = range(1, model.largest_group + 1)
    names, shares = [each.name for each in model.classes], [each.share for each in model.classes]
    size_shares = [1 / size**2 for size in sizes]
    while (at := at + rng.expovariate(model.accelerators / model.mtbf_s)) < YEAR_S:
        found.append(
            Failure(
                at=at,
                accelerator_class=rng.choices(names, shares)[0],
                size=rng.choices(sizes, size_shares)[0],
                repaired_at=at + rng.uniform(*model.repair_s),
                weight=rng.choice(_WEIGHTS),
                remaining_s=rng.uniform(0, _LONGEST_JOB_S),
                attained_s=rng.uniform(0, _LONGEST_JOB_S),
            )
        )
    return found


@dataclass(frozen=True, slots=True)
class DemandWaits:
    """How the demands of one class fared in a year: how many there were, and how long each waited, in seconds.

    A demand that waits until its accelerators are repaired has waited until then. ``never`` were too large for the
    pool: they were told so at once and are not among the waits.
    """

    waits_s: tuple[float, ...]
    never: int

    @property
    def waited(self) -> float:
        """The share of demands that had to wait."""
        return sum(wait > 0 for wait in self.waits_s) / len(self.waits_s) if self.waits_s else 0.0

    @property
    def mean_s(self) -> float:
        """The mean wait of all demands, those that did not wait included."""
        return fmean(self.waits_s) if self.waits_s else 0.0


class _Year:
    """One year under one policy."""

    def __init__(self, model: YearModel, policy: SharingPolicy, reserve: Reserve, seed: int) -> None:
        self._model, self._policy, self._reserve, self._seed = model, policy, reserve, seed
        self._failures = failures_of(model, seed)
        # A spare of a later class can replace what every class before it needs as well.
        replaces = {each.name: number for number, each in enumerate(model.classes, 1)}
        self._free = {
            f"{each.name}-{number}": FreeSpare(f"{each.name}-{number}", each.name, replaces[each.name])
            for each in model.classes
            for number in range(each.spares)
        }
        self._used: dict[str, FreeSpare] = {}
        self._waiting: dict[str, int] = {}
        self._waits: dict[int, float] = {}
        self._asked = 0

    def run(self) -> dict[str, DemandWaits]:
        """By class, how its demands fared.

        Raises:
            ValueError: the policy's answer is nonsense.
        """
        events: list[tuple[float, int, int, tuple[str, ...]]] = []
        never = {number for number, failure in enumerate(self._failures) if not self._admitted(failure)}
        for number, failure in enumerate(self._failures):
            if number not in never:
                heapq.heappush(events, (failure.at, 0, number, ()))
                heapq.heappush(events, (failure.repaired_at, 1, number, ()))
        while events:
            at, kind, number, spares = heapq.heappop(events)
            failure, name = self._failures[number], f"demand-{number:04}"
            if kind == 0:
                self._waiting[name] = number
            elif self._waiting.pop(name, None) is not None:
                self._waits[number] = at - failure.at
            for spare in spares:
                self._free[spare] = self._used.pop(spare)
            for served, given in self._answer(at).items():
                done = self._waiting.pop(served)
                self._waits[done] = at - self._failures[done].at
                self._used |= {spare: self._free.pop(spare) for spare in given}
                heapq.heappush(events, (self._failures[done].repaired_at, 2, done, given))
        return {each.name: self._fared(each.name, never) for each in self._model.classes}

    def _admitted(self, failure: Failure) -> bool:
        """Whether the whole pool, less what is held back from this demand, could ever serve it."""
        classes = self._model.usable_classes(failure.accelerator_class)
        held = self._reserve.held if len(classes) > 1 else {}
        total = sum(max(e.spares - held.get(e.name, 0), 0) for e in self._model.classes if e.name in classes)
        return failure.size <= total

    def _answer(self, at: float) -> Mapping[str, tuple[str, ...]]:
        if not self._waiting or not self._free:
            return {}
        self._asked += 1
        demands = tuple(self._demand(name, number) for name, number in self._waiting.items())
        question = self._reserve.applied(
            SharingQuestion(at, demands, self._free, seed=self._seed * 1_000_003 + self._asked)
        )
        answer = check_answer(question, self._policy(question))
        if isinstance(answer, InvalidAnswer):
            raise ValueError(answer.text)  # noqa: TRY004 - not a type: an answer that cannot be followed
        return answer

    def _demand(self, name: str, number: int) -> Demand:
        failure = self._failures[number]
        classes = self._model.usable_classes(failure.accelerator_class)
        usable = [spare for spare, each in self._free.items() if each.accelerator_class in classes]
        # Which spare has the best light depends on where it stands, not on its class.
        Random(self._seed * 1_000_003 + number).shuffle(usable)  # noqa: S311 - a seed repeats a year
        return Demand(
            id=name,
            job=name,
            asked_at=failure.at,
            usable=(tuple(usable),) * failure.size,
            able=(frozenset(classes),) * failure.size,
            weight=failure.weight,
            remaining_s=failure.remaining_s,
            attained_s=failure.attained_s,
        )

    def _fared(self, name: str, never: set[int]) -> DemandWaits:
        mine = [number for number, failure in enumerate(self._failures) if failure.accelerator_class == name]
        waits = tuple(self._waits[number] for number in mine if number not in never)
        return DemandWaits(waits, sum(number in never for number in mine))


def year(model: YearModel, policy: SharingPolicy, seed: int, reserve: Reserve | None = None) -> dict[str, DemandWaits]:
    """How the demands of each class fare in one year under a policy.

    Raises:
        ValueError: the policy's answer is nonsense.
    """
    return _Year(model, policy, reserve or Reserve(), seed).run()


@dataclass(frozen=True, slots=True)
class WaitSummary:
    """How the demands of one class, or of all, fared in several years: means over the years.

    ``ratio`` is the mean wait divided by that under the policy it is compared with. It is ``None`` if the two do not
    differ by more than chance: by two standard errors of the difference within a year.
    """

    name: str
    demands: float
    waited: float
    mean_s: float
    never: float
    ratio: float | None


def compare_years(
    years: Sequence[Mapping[str, DemandWaits]], base: Sequence[Mapping[str, DemandWaits]]
) -> Iterator[WaitSummary]:
    """The classes and the sum of all, ``"all"``, over the years of a policy, beside the same years under another."""
    names = [*years[0], "all"]
    for name in names:
        mine, others = ([_of(each, name) for each in found] for found in (years, base))
        before, after = fmean(each.mean_s for each in others), fmean(each.mean_s for each in mine)
        gaps = [one.mean_s - other.mean_s for one, other in zip(mine, others, strict=True)]
        error = stdev(gaps) / sqrt(len(gaps)) if len(gaps) > 1 else 0.0
        # One year tells nothing of chance.
        differs = len(gaps) > 1 and abs(fmean(gaps)) > _CERTAIN * error and before > 0
        yield WaitSummary(
            name=name,
            demands=fmean(len(each.waits_s) for each in mine),
            waited=fmean(each.waited for each in mine),
            mean_s=after,
            never=fmean(each.never for each in mine),
            ratio=after / before if differs else None,
        )


def _of(found: Mapping[str, DemandWaits], name: str) -> DemandWaits:
    if name != "all":
        return found[name]
    return DemandWaits(
        tuple(wait for each in found.values() for wait in each.waits_s), sum(e.never for e in found.values())
    )
