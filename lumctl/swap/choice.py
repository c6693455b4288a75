"""Choose the spares that replace failed accelerators, all together, and explain why the others were not chosen.

First each pair of a failed accelerator and a spare is scored on its own (:mod:`lumctl.swap.ranking`). Then whole
choices are tried in the order of their total score, until one is found whose light paths can all be routed together.
With one failure, this is the best spare. With several failures, each gets a spare if any choice serves all of them.
Present circuits make room only if no choice works without that.
"""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from types import MappingProxyType

from lumctl.change.plan import Candidate, Replacement
from lumctl.context import Observation
from lumctl.errors import LumctlError, RefusedError, UsageError
from lumctl.fabric import Unroutable
from lumctl.inventory.model import Role
from lumctl.inventory.wiring import Assignment, Circuit, circuits_of, job_circuits, links_of_all_phases, orders_in
from lumctl.swap.constraints import loss_objection
from lumctl.swap.explanations import (
    NOT_NAMED,
    Considered,
    FreedBy,
    ReplacementPlanner,
    candidates_of,
    no_attempt,
    no_fitting_hosts,
    no_joint_way,
    none_usable,
    nothing_frees,
    reasons_why,
)
from lumctl.swap.groups import apart_from, group_choices, largest
from lumctl.swap.light_paths import NO_REROUTES, LightPaths, RerouteBudget, States, reroute_budgets
from lumctl.swap.path_routing import light_paths
from lumctl.swap.ranking import UNKNOWN, FailedRank, Records, objections, score

MOST_CHOICES = 500
"""How many whole choices are routed before the search ends."""
PATIENCE_S = 20.0
_AS_THEY_ARE: Assignment = {}


@dataclass(frozen=True)
class SpareChoice:
    """The chosen replacements, the light paths that they need, every candidate with its reasons, and why in words."""

    replacements: tuple[Replacement, ...]
    paths: LightPaths
    candidates: tuple[Candidate, ...]
    why: tuple[str, ...] = ()


def choose(  # noqa: PLR0913 - what is seen, what failed, and what may be done about it
    seen: Observation,
    states: Mapping[str, States],
    failed: Sequence[str],
    named: Sequence[str] = (),
    *,
    records: Records | None = None,
    reroutes: RerouteBudget = NO_REROUTES,
    avoid_lanes: Collection[str] = (),
    orders: Assignment = _AS_THEY_ARE,
    kept: Mapping[str, str] = MappingProxyType({}),
    attempt: ReplacementPlanner = no_attempt,
    freed_by: FreedBy = nothing_frees,
    clock: Callable[[], float] = time.monotonic,
) -> SpareChoice:
    """Choose a spare for each of some accelerators that run ranks of jobs, all in one rack.

    ``named`` are the spares that the operator requires, in the order of ``failed``; the same rules apply to them, but
    they may be reserved. ``records`` are the fault records of the spares, by id. ``orders`` of lanes become active with
    the choice. ``kept`` are spares that others get, by id with the reason; unless they are named, they are not used.
    ``attempt`` checks the commands that a refusal proposes, and ``freed_by`` finds commands that free a spare.

    Raises:
        RefusedError: there is no usable choice; the message gives the reason for each spare.
    """
    failures = [FailedRank(*_placed(seen, accelerator), accelerator) for accelerator in failed]
    search = _Search(
        _Given(seen, states, records or {}, avoid_lanes, orders, kept, attempt, freed_by), failures, named, clock
    )
    wider = reroute_budgets(reroutes, {failure.job for failure in failures}, seen)
    for each in wider[:-1]:
        with suppress(_CrowdedError):
            return search.run(each)
    return search.run(wider[-1], last=True)


@dataclass(frozen=True)
class _Given:
    seen: Observation
    states: Mapping[str, States]
    records: Records
    avoid_lanes: Collection[str]
    orders: Assignment
    kept: Mapping[str, str]
    attempt: ReplacementPlanner
    freed_by: FreedBy


class _CrowdedError(Exception):
    """No choice was found, but there may be one if present circuits make room."""


def _placed(seen: Observation, accelerator: str) -> tuple[str, int]:
    place = seen.place_of(accelerator)
    if place is None:
        raise UsageError(f"{accelerator} runs no rank of any job")
    return place


class _Search:
    def __init__(
        self, given: _Given, failures: list[FailedRank], named: Sequence[str], clock: Callable[[], float]
    ) -> None:
        self._seen, self._states, self._failures = given.seen, given.states, failures
        self._named, self._records, self._avoid, self._clock = named, given.records, given.avoid_lanes, clock
        self._orders, self._kept, self._attempt = given.orders, given.kept, given.attempt
        self._freed_by = given.freed_by
        seen = given.seen
        self._gone = {failure.accelerator for failure in failures}
        rack = seen.inventory.accelerators[failures[0].accelerator].rack
        spares = [a for a in seen.inventory.accelerators.values() if seen.role_of(a.id) is Role.SPARE]
        # Spares of other racks are considered only if this rack has none, so that the refusal can name them.
        self._spares = [a.id for a in spares if a.rack == rack] or [a.id for a in spares]
        self._columns = list(dict.fromkeys(named)) if named else self._spares

    def run(self, reroutes: RerouteBudget, *, last: bool = False) -> SpareChoice:
        """The first choice of spares whose light can be routed.

        Raises:
            _CrowdedError: none was found, present circuits may be the reason, and this is not the ``last`` budget.
            RefusedError: none was found.
        """
        table = [[self._considered(f, spare, reroutes) for spare in self._columns] for f in self._failures]
        costs = [[None if cell.score is None else cell.score.cost for cell in row] for row in table]
        tried, refusals = 0, list[LumctlError]()
        started = self._clock()
        failed, jobs = [f.accelerator for f in self._failures], [f.job for f in self._failures]
        for way in group_choices(self._seen.inventory, failed, jobs, self._columns, costs):
            cells = [row[column] for row, column in zip(table, way, strict=True)]
            # A single failure was routed when it was considered.
            paths = cells[0].paths if len(cells) == 1 else self._together([c.spare for c in cells], reroutes)
            if isinstance(paths, LightPaths):
                return self._choice(table, cells, paths)
            tried += 1
            if isinstance(paths, LumctlError):
                refusals.append(paths)
            if tried >= MOST_CHOICES or self._clock() - started > PATIENCE_S:
                self._require_no_room(table, refusals, last=last)
                raise no_joint_way(self._failures, refusals, tried, self._attempt, cut=True)
        self._require_no_room(table, refusals, last=last)
        if refusals:
            raise no_joint_way(self._failures, refusals, tried, self._attempt, cut=False)
        served = largest(costs)
        if len(served) == len(costs):
            raise no_fitting_hosts(self._seen, self._failures)
        raise none_usable(self._seen, self._failures, table, served, self._attempt, self._freed_by)

    @staticmethod
    def _require_no_room(table: list[list[Considered]], refusals: list[LumctlError], *, last: bool) -> None:
        """Require that a wider budget would not help: this is the ``last`` one, or present circuits do not block it.

        Raises:
            _CrowdedError: a wider budget might help.
        """
        unrouted = any(isinstance(error, Unroutable) for error in refusals)
        if not last and (unrouted or any(cell.crowded for row in table for cell in row)):
            raise _CrowdedError

    def _choice(self, table: list[list[Considered]], cells: list[Considered], paths: LightPaths) -> SpareChoice:
        chosen = {failure.accelerator: cell.spare for failure, cell in zip(self._failures, cells, strict=True)}
        inventory = self._seen.inventory
        table = [
            [replace(c, apart_from=apart_from(inventory, c.failed, c.spare, chosen)) for c in row] for row in table
        ]
        return SpareChoice(
            tuple(Replacement(f.job, f.rank, f.accelerator, chosen[f.accelerator]) for f in self._failures),
            paths,
            tuple(candidate for row in table for candidate in candidates_of(row, chosen)),
            tuple(line for row in table for line in reasons_why(row, chosen, named=bool(self._named))),
        )

    def _considered(self, failure: FailedRank, spare: str, reroutes: RerouteBudget) -> Considered:
        """Judge a spare for one failure, with the light paths that it needs if the other failures have no circuits."""
        insisted = bool(self._named)
        if insisted and self._named[self._failures.index(failure)] != spare:
            return Considered(failure.accelerator, spare, NOT_NAMED)
        for objection in objections(self._seen, failure, spare, named=insisted, avoid=self._avoid, gone=self._gone):
            return Considered(failure.accelerator, spare, objection)
        if not insisted and spare in self._kept:
            return Considered(failure.accelerator, spare, self._kept[spare], kept=True)
        paths: LightPaths | None = None
        crowded = False
        try:
            paths = self._alone(failure, spare, reroutes)
        except Unroutable as error:
            crowded = True
            # Not proved, so the light may still be routed together with that of the other failures.
            if error.proven or len(self._failures) == 1:
                return Considered(failure.accelerator, spare, error.message, crowded=True)
        except LumctlError as error:
            # Here the other failed ranks are still at their old accelerators; with its spare, a link may be possible.
            if len(self._failures) == 1 or (isinstance(error, UsageError) and not self._joined_to_another(failure)):
                return Considered(failure.accelerator, spare, error.message)
        inventory = self._seen.inventory
        old, new = inventory.accelerators[failure.accelerator], inventory.accelerators[spare]
        record = self._records.get(spare, UNKNOWN)
        weighed = score(self._seen, failure.job, old, new, record, paths)
        return Considered(failure.accelerator, spare, "", weighed, paths, record, crowded=crowded)

    def _alone(self, failure: FailedRank, spare: str, reroutes: RerouteBudget) -> LightPaths:
        others = self._gone - {failure.accelerator}
        of_others = [self._seen.inventory.transponders_of(accelerator) for accelerator in others]
        lanes = frozenset(lane.id for lanes in of_others for lane in lanes)
        paths = self._paths({failure.accelerator: spare}, reroutes, without=lanes)
        # With other failures, the routes of all together decide.
        if not others and (lossy := loss_objection(self._seen.inventory, paths)) is not None:
            raise RefusedError(lossy)
        return paths

    def _together(self, spares: list[str], reroutes: RerouteBudget) -> LightPaths | LumctlError:
        placed = dict(zip((failure.accelerator for failure in self._failures), spares, strict=True))
        try:
            paths = self._paths(placed, reroutes)
        except LumctlError as error:
            return error
        lossy = loss_objection(self._seen.inventory, paths)
        return paths if lossy is None else RefusedError(lossy)

    def _paths(
        self, placed: Mapping[str, str], reroutes: RerouteBudget, without: frozenset[str] = frozenset()
    ) -> LightPaths:
        """The light paths after a choice, of circuits ``without`` some lanes. Each phase of a job must have some."""
        first, *_ = [
            light_paths(
                self._seen.inventory,
                self._seen.circuits,
                [each for each in after if without.isdisjoint({each.a.transponder, each.b.transponder})],
                self._states,
                reroutes=reroutes,
            )
            for after in self._after(placed)
        ]
        return first

    def _after(self, placed: Mapping[str, str]) -> Iterator[tuple[Circuit, ...]]:
        """The circuits after a choice: with the links that the jobs have now, then with those of each other phase."""
        assignment, inventory = self._seen.assignment, self._seen.inventory
        moved = {job: tuple(placed.get(a, a) for a in ranks) for job, ranks in assignment.items()}
        after = circuits_of(inventory, {**moved, **self._orders})
        yield after
        for job in (inventory.jobs[name] for name in dict.fromkeys(failure.job for failure in self._failures)):
            orders = orders_in({**assignment, **self._orders})
            for phase in job.phases:
                if phase.links != job.links:
                    circuits = job_circuits(inventory, job.in_phase(phase), moved[job.name], orders)
                    yield (*(each for each in after if each.owner != job.name), *circuits)

    def _joined_to_another(self, failure: FailedRank) -> bool:
        """Whether a link joins a failed rank to another failed one: only their two spares together decide the path."""
        ranks = {other.rank for other in self._failures if other.job == failure.job and other != failure}
        links = links_of_all_phases(self._seen.inventory.jobs[failure.job])
        return any({link.a_rank, link.b_rank} & ranks for link in links if failure.rank in {link.a_rank, link.b_rank})
