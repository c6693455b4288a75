"""Who is late in a job: the record of its collectives, or a log, judged; and what to do about it. No I/O."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain, groupby
from math import inf
from random import Random
from statistics import median

from lumctl.collectives.advice import Advice, advise_from_log
from lumctl.collectives.arrivals import FEWEST_STEPS, ArrivalStep, LateRank, lateness
from lumctl.collectives.link_fit import FEWEST, LinkFit, Measurement, fit_links
from lumctl.collectives.named_rank import BLOCKS, FEWEST_BLOCKS, LEAST_SHARE, recently_named, step_s
from lumctl.health.lateness import STRAGGLER
from lumctl.health.observation import Observation
from lumctl.health.states import Finding, State
from lumctl.training.clocks import ClockOffset, on_one_clock
from lumctl.training.collective_record import MOST_SIZES, WORLD, AllReduce, TrainingStepRecord

ADVISED_STEPS = 512
"""The newest steps, from which the gain of a schedule is estimated; more would take seconds."""
_NEWEST = 32
"""All-reduces of each size, to which alpha and beta are fitted; more would take seconds."""
_SEED = 0
"""Of the resampling, so that the same record gives the same advice."""


@dataclass(frozen=True, slots=True)
class GroupLateness:
    """The ranks of one group over some steps, by one clock; ``began`` and ``ended`` are seconds since the epoch.

    ``ranks`` are their numbers in the job; everything else counts them from 0. ``named`` is the one that is late by
    more than chance, ``schedule`` then the arithmetic of a schedule for it. ``sizes`` are the bytes of their
    all-reduces, the smallest first, and ``links`` the costs that were fitted to several sizes.
    """

    group: str
    ranks: tuple[int, ...]
    steps: tuple[ArrivalStep, ...]
    clocks: Mapping[str, ClockOffset]
    by_rank: tuple[LateRank, ...]
    named: int | None
    schedule: Advice | None
    sizes: tuple[float, ...] = ()
    links: LinkFit | None = None
    began: float | None = None
    ended: float | None = None

    @property
    def step_s(self) -> float:
        """The median time of a training step; 0 if a log does not tell it."""
        return step_s(self.steps)

    @property
    def late(self) -> LateRank | None:
        """How late the named rank is."""
        return None if self.named is None else self.by_rank[self.named]


@dataclass(frozen=True, slots=True)
class _GroupSteps:
    """The steps of one group by one clock, the all-reduces of each, and when the first and the last were complete."""

    group: str
    ranks: tuple[int, ...]
    steps: list[ArrivalStep]
    clocks: Mapping[str, ClockOffset]
    all_reduces: list[tuple[AllReduce, ...]]
    began: float
    ended: float


def _by_group(
    recorded: Iterable[TrainingStepRecord], clocks_of: Sequence[str], fewest: int, newest: int | None = None
) -> Iterator[_GroupSteps]:
    """Each group with at least ``fewest`` steps, and of these the ``newest``."""
    groups: dict[tuple[str, tuple[int, ...]], list[TrainingStepRecord]] = {}
    for step in recorded:
        groups.setdefault((step.group, step.ranks), []).append(step)
    for (group, ranks), everything in groups.items():
        steps = everything if newest is None else everything[-newest:]
        if len(steps) < fewest:
            continue
        aligned: list[ArrivalStep] = []
        clocks: Mapping[str, ClockOffset] = {}
        # A machine that was restarted in between has a clock that started later.
        for _, part in groupby(steps, key=lambda each: each.generation):
            arrivals = [ArrivalStep(each.step, each.entered, each.left) for each in part]
            more, clocks = on_one_clock(arrivals, [clocks_of[rank] for rank in ranks])
            aligned += more
        all_reduces = [each.all_reduces for each in steps]
        yield _GroupSteps(group, ranks, aligned, clocks, all_reduces, steps[0].at, steps[-1].at)


def lateness_of(recorded: Iterable[TrainingStepRecord], clocks_of: Sequence[str]) -> list[GroupLateness]:
    """The lateness in each group with enough steps, that of all ranks first; ``clocks_of`` names each rank's clock."""
    found = [
        replace(
            group_lateness(each.group, each.ranks, each.steps, each.clocks, each.all_reduces),
            began=each.began,
            ended=each.ended,
        )
        for each in _by_group(recorded, clocks_of, FEWEST_STEPS)
    ]
    return sorted(found, key=lambda each: (each.group != WORLD, each.group))


@dataclass(frozen=True, slots=True)
class GroupVerdict:
    """Which rank of a group is late by more than chance (its number in the job), if any, and what its wait costs.

    ``gap_s`` is the median time that the others wait for it in a training step of ``step_s``, over the newest 30.
    ``ended`` is when the newest step was complete (seconds since the epoch).
    """

    group: str
    named: int | None
    gap_s: float
    step_s: float
    ended: float


def verdicts_of(recorded: Iterable[TrainingStepRecord], clocks_of: Sequence[str]) -> list[GroupVerdict]:
    """Who is late in each group, by its newest steps; groups with too few steps to tell are left out.

    This is the part of :func:`lateness_of` that costs milliseconds.
    """
    found = []
    for each in _by_group(recorded, clocks_of, FEWEST_BLOCKS, ADVISED_STEPS):
        named, newest = recently_named(each.steps), each.steps[-BLOCKS:]
        gap_s, takes_s = 0.0 if named is None else median(step.delay_s(named) for step in newest), step_s(newest)
        # Over all steps a rank is named that is on time by now.
        rank = None if named is None or gap_s < LEAST_SHARE * takes_s else each.ranks[named]
        found.append(GroupVerdict(each.group, rank, gap_s, takes_s, each.ended))
    return found


def group_lateness(
    group: str,
    ranks: tuple[int, ...],
    steps: Sequence[ArrivalStep],
    clocks: Mapping[str, ClockOffset],
    all_reduces: Sequence[Sequence[AllReduce]] = (),
) -> GroupLateness:
    """The lateness in a group whose steps are by one clock; ``all_reduces`` are those of each step, if they are known.

    A schedule takes the place of the largest all-reduce, and is judged by the wait for a late rank in that one. Its
    costs are fitted to several sizes. With a single size alpha and beta cannot be told apart; then the collectives of
    a step count as one, whose alpha is 0.

    Raises:
        UsageError: there are too few steps or ranks, or a rank leaves before it enters.
    """
    by_rank, named = lateness(steps), recently_named(steps)
    measured = _measured(len(ranks), all_reduces)
    sizes, links, schedule = tuple(measured), None, None
    if named is not None:
        rng = Random(_SEED)  # noqa: S311 - no secret
        if len(sizes) > 1:
            links = fit_links([each for of_size in measured.values() for each in of_size], rng)
        newest = steps[-ADVISED_STEPS:]
        schedule = advise_from_log(
            newest,
            lateness(newest)[named],
            rng,
            size_bytes=sizes[-1] if links else None,
            links=links,
            waited_s=[_waited_s(each, sizes[-1], named) for each in all_reduces[-ADVISED_STEPS:]] if sizes else None,
        )
    return GroupLateness(group, ranks, tuple(steps), clocks, by_rank, named, schedule, sizes, links)


def _measured(ranks: int, all_reduces: Iterable[Iterable[AllReduce]]) -> dict[float, list[Measurement]]:
    """The newest all-reduces of each size, the smallest size first; a size that is measured seldom is left out."""
    found: dict[float, list[Measurement]] = {}
    for each in chain.from_iterable(all_reduces):
        found.setdefault(each.size_bytes, []).append(Measurement(ranks, each.size_bytes, each.seconds))
    sizes = sorted(size for size, measured in found.items() if len(measured) >= FEWEST)
    del sizes[1 : 1 - MOST_SIZES]
    return {size: found[size][-_NEWEST:] for size in sizes}


def _waited_s(all_reduces: Iterable[AllReduce], size_bytes: float, rank: int) -> float:
    """How long the others waited for a rank in an all-reduce of this size; without limit if it was not measured."""
    found = next((each for each in all_reduces if each.size_bytes == size_bytes), None)
    return inf if found is None else found.waited_s if found.last == rank else 0.0


class LateRankAction(StrEnum):
    """What to do about a late rank."""

    NOTHING = "nothing"
    LOOK = "look-at-host"
    SWAP = "swap"
    SCHEDULE = "use-schedule"
    WORKED_AROUND = "worked-around"
    """The ranks use a schedule already, whose times tell nothing about ring's."""


def causes_of(seen: Observation, accelerator: str) -> tuple[Finding, ...]:
    """What health finds on an accelerator, its lanes, their circuits and its host; notes too, but nothing unknown.

    That its rank is late is no cause.
    """
    report, inventory = seen.report, seen.inventory
    lanes = [lane.id for lane in inventory.transponders_of(accelerator)]
    host = inventory.accelerators[accelerator].host
    circuits = [each for each in report.circuits.values() if any(end.transponder in lanes for end in each.ends)]
    parts = [report.accelerators.get(accelerator), *map(report.links.get, lanes), *circuits, report.hosts.get(host)]
    return tuple(
        finding
        for part in parts
        if part is not None
        for finding in part.findings
        if finding.state is not State.UNKNOWN and finding.rule != STRAGGLER
    )


def act_of(group: GroupLateness, causes: Sequence[Finding], *, replaced: bool) -> LateRankAction:
    """What to do; ``replaced``: health advises a spare for the accelerator of the late rank.

    What makes a rank late is removed rather than worked around, unless it is unknown and a schedule saves at least half
    of the others' wait.
    """
    if group.named is None or group.schedule is None:
        return LateRankAction.NOTHING
    if replaced:
        return LateRankAction.SWAP
    gap_s, cost = group.schedule.gap_s, group.schedule.cost
    saved_s = gap_s + cost.ring_s - cost.total_s(gap_s)
    hides = not causes and group.schedule.recommended and saved_s >= gap_s / 2
    return LateRankAction.SCHEDULE if hides else LateRankAction.LOOK
