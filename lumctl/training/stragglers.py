"""Who is late in a job: the record of its collectives, or a log, judged; and what to do about it. No I/O."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from random import Random

from lumctl.collectives.advice import Advice, advise_from_log
from lumctl.collectives.arrivals import FEWEST_STEPS, ArrivalStep, LateRank, lateness
from lumctl.collectives.clocks import ClockOffset, on_one_clock
from lumctl.collectives.named_rank import recently_named, step_s
from lumctl.health.observation import Observation
from lumctl.health.states import Finding, State
from lumctl.training.collective_record import WORLD, RecordedStep

ADVISED_STEPS = 512
"""The newest steps, from which the gain of a schedule is estimated; more would take seconds."""
_SEED = 0
"""Of the resampling, so that the same record gives the same advice."""


@dataclass(frozen=True, slots=True)
class GroupLateness:
    """The ranks of one group over some steps, by one clock; ``began`` and ``ended`` are seconds since the epoch.

    ``ranks`` are their numbers in the job; everything else counts them from 0. ``named`` is the one that is late by
    more than chance, ``schedule`` then the arithmetic of a schedule for it.
    """

    group: str
    ranks: tuple[int, ...]
    steps: tuple[ArrivalStep, ...]
    clocks: Mapping[str, ClockOffset]
    by_rank: tuple[LateRank, ...]
    named: int | None
    schedule: Advice | None
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


def lateness_of(recorded: Iterable[RecordedStep], clocks_of: Sequence[str]) -> list[GroupLateness]:
    """The lateness in each group with enough steps, that of all ranks first; ``clocks_of`` names each rank's clock."""
    groups: dict[tuple[str, tuple[int, ...]], list[RecordedStep]] = {}
    for step in recorded:
        groups.setdefault((step.group, step.ranks), []).append(step)
    found = []
    for (group, ranks), steps in groups.items():
        if len(steps) < FEWEST_STEPS:
            continue
        aligned: list[ArrivalStep] = []
        clocks: Mapping[str, ClockOffset] = {}
        # A machine that was restarted in between has a clock that started later.
        for _, part in groupby(steps, key=lambda each: each.generation):
            arrivals = [ArrivalStep(each.step, each.entered, each.left) for each in part]
            more, clocks = on_one_clock(arrivals, [clocks_of[rank] for rank in ranks])
            aligned += more
        found.append(group_lateness(group, ranks, aligned, clocks, steps[0].at, steps[-1].at))
    return sorted(found, key=lambda each: (each.group != WORLD, each.group))


def group_lateness(
    group: str,
    ranks: tuple[int, ...],
    steps: Sequence[ArrivalStep],
    clocks: Mapping[str, ClockOffset],
    began: float | None = None,
    ended: float | None = None,
) -> GroupLateness:
    """The lateness in a group whose steps are by one clock.

    Raises:
        UsageError: there are too few steps or ranks, or a rank leaves before it enters.
    """
    by_rank = lateness(steps)
    named, schedule = recently_named(steps), None
    if named is not None:
        newest = steps[-ADVISED_STEPS:]
        rng = Random(_SEED)  # noqa: S311 - no secret
        schedule = advise_from_log(newest, lateness(newest)[named], rng)
    return GroupLateness(group, ranks, tuple(steps), clocks, by_rank, named, schedule, began, ended)


class Act(StrEnum):
    """What to do about a late rank."""

    NOTHING = "nothing"
    LOOK = "look-at-host"
    SWAP = "swap"
    SCHEDULE = "use-schedule"
    WORKED_AROUND = "worked-around"
    """The ranks use a schedule already, whose times tell nothing about ring's."""


def causes_of(seen: Observation, accelerator: str) -> tuple[Finding, ...]:
    """What health finds on an accelerator, its lanes, their circuits and its host; notes too, but nothing unknown."""
    report, inventory = seen.report, seen.inventory
    lanes = [lane.id for lane in inventory.transponders_of(accelerator)]
    host = inventory.accelerators[accelerator].host
    circuits = [each for each in report.circuits.values() if any(end.transponder in lanes for end in each.ends)]
    parts = [report.accelerators.get(accelerator), *map(report.links.get, lanes), *circuits, report.hosts.get(host)]
    return tuple(
        finding for part in parts if part is not None for finding in part.findings if finding.state is not State.UNKNOWN
    )


def act_of(group: GroupLateness, causes: Sequence[Finding], *, replaced: bool) -> Act:
    """What to do; ``replaced``: health advises a spare for the accelerator of the late rank.

    What makes a rank late is removed rather than worked around, unless it is unknown and a schedule saves at least half
    of the others' wait.
    """
    if group.named is None or group.schedule is None:
        return Act.NOTHING
    if replaced:
        return Act.SWAP
    gap_s, cost = group.schedule.gap_s, group.schedule.cost
    saved_s = gap_s + cost.ring_s - cost.total_s(gap_s)
    hides = not causes and group.schedule.recommended and saved_s >= gap_s / 2
    return Act.SCHEDULE if hides else Act.LOOK
