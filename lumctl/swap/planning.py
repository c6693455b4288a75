"""Plan the replacement of failed accelerators."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from lumctl.change.plan import Plan
from lumctl.context import Context, Observation
from lumctl.devices.errors import DeviceError
from lumctl.errors import LumctlError, RefusedError, UsageError
from lumctl.health.remedy import swap_command
from lumctl.inventory.model import Role
from lumctl.inventory.wiring import jobs_in
from lumctl.swap.choice import choose
from lumctl.swap.demand_queue import kept_spares
from lumctl.swap.draft import SwapDraft, certain_states, left_there
from lumctl.swap.explanations import no_attempt, nothing_frees
from lumctl.swap.failed_attempts import failed_attempt
from lumctl.swap.groups import serves_all, why_tied
from lumctl.swap.lane_moves import circuits_through, lane_choices, orders_after, parse_avoided
from lumctl.swap.light_paths import RerouteBudget
from lumctl.swap.ranking import FailedRank, Records, records_of
from lumctl.swap.request import parse_request, require_trouble
from lumctl.swap.restoration import plan_return
from lumctl.swap.silent_parts import silence_refusal
from lumctl.swap.spare_pool import spare_objections


def plan_swap(
    context: Context,
    job: str | None,
    failed: Sequence[str],
    spares: Sequence[str] = (),
    *,
    avoid: Sequence[str] = (),
    may_move: int = 0,
    even_if_healthy: bool = False,
    seen: Observation | None = None,
) -> Plan:
    """Plan the replacement of accelerators, or of all that run ranks on a host, by spares of the same rack.

    Without ``job`` the accelerators may run ranks of several jobs. ``spares`` gives one spare for each accelerator; by
    default the best spares are chosen, for all accelerators together. No new circuit uses a component to ``avoid``, and
    circuits of the jobs that use one are moved. ``may_move`` circuits of other jobs may make room if nothing else
    helps. ``seen`` is a fresh observation, if the caller has one.

    Raises:
        UsageError: a name is unknown, or this job does not use an accelerator. RefusedError: an accelerator is healthy,
            no spare is usable, or the state of a device is uncertain.
    """
    wanted = SwapOptions(tuple(avoid), may_move, even_if_healthy)
    # Without the named spares the plan may be refused too: its own hint, which is then passed on, is checked as well.
    attempt = partial(try_swap, context, wanted, checks_hints=bool(spares))
    return _planned(context, job, failed, spares, options=wanted, seen=seen, attempt=attempt)


@dataclass(frozen=True)
class SwapOptions:
    """The options of a swap that also apply to the commands that its refusal proposes."""

    avoid: tuple[str, ...] = ()
    may_move: int = 0
    even_if_healthy: bool = False

    def command(self, failed: Iterable[str]) -> str:
        """The command that replaces some accelerators with these options."""
        more = f" --may-move {self.may_move}" if self.may_move else ""
        return f"{swap_command(failed, self.avoid)}{more}{' --even-if-healthy' if self.even_if_healthy else ''}"


def try_swap(
    context: Context,
    options: SwapOptions,
    seen: Observation,
    failed: Sequence[str],
    *,
    checks_hints: bool = False,
    may_move: int = 0,
) -> str | LumctlError:
    """The command that replaces some accelerators by any spares, or why it could not be planned and applied now.

    ``checks_hints``: the refusal proposes only commands that work. If ``may_move`` circuits of other jobs may make
    room, the command allows as many as the plan moves.
    """
    allowed = replace(options, may_move=max(may_move, options.may_move))
    again = partial(try_swap, context, options) if checks_hints else _no_attempt
    try:
        plan = _planned(context, None, failed, options=allowed, seen=seen, attempt=again)
    except (RefusedError, UsageError, DeviceError) as refused:  # that a store cannot be read is no refusal
        return refused
    if (silent := silence_refusal(seen, plan)) is not None:
        return silent
    if may_move:
        jobs = {each.job for each in plan.replacements}
        moved = {circuit.id for circuit in plan.add} & {each.id for each in plan.remove if each.owner not in jobs}
        allowed = replace(options, may_move=len(moved))
    return allowed.command(failed)


def freeing_return(context: Context, seen: Observation, failed: Sequence[str]) -> str:
    """The commands that return ranks home, so that spares for some accelerators become free, and then replace these.

    The return is planned here; empty if none frees what they need.
    """
    jobs = seen.inventory.jobs
    for job, ranks in jobs_in(seen.assignment).items():
        if job not in jobs or ranks == jobs[job].ranks:
            continue
        try:
            plan = plan_return(context, job, seen=seen)
        except LumctlError:
            continue
        home = {each.rank: each.spare for each in plan.replacements}
        moved = {job: tuple(home.get(rank, accelerator) for rank, accelerator in enumerate(ranks))}
        after = replace(seen, assignment={**seen.assignment, **moved})
        left = [name for name in failed if after.place_of(name) is not None]
        if home and silence_refusal(seen, plan) is None and _each_has_a_spare(after, left):
            back = ", ".join(f"rank {each.rank} of {each.job} to {each.spare}" for each in plan.replacements)
            then = f"; then: {swap_command(left, ())}" if left else ""
            return f"return {back}: lumctl swap plan {job} --back{then}"
    return ""


def _each_has_a_spare(seen: Observation, failed: Sequence[str]) -> bool:
    failures = [FailedRank(*place, name) for name in failed if (place := seen.place_of(name)) is not None]
    spares = [name for name in seen.inventory.accelerators if seen.role_of(name) is Role.SPARE]
    return serves_all([[s for s in spares if not any(spare_objections(seen, each, s, failed))] for each in failures])


def _no_attempt(_seen: Observation, failed: Sequence[str], **_options: int) -> LumctlError:
    return no_attempt(failed)


def _planned(
    context: Context,
    job: str | None,
    failed: Sequence[str],
    spares: Sequence[str] = (),
    *,
    options: SwapOptions,
    seen: Observation | None,
    attempt: Callable[..., str | LumctlError],
) -> Plan:
    asked = parse_request(context.inventory, context.assignment(), job, failed, spares)
    avoided = parse_avoided(context.inventory, options.avoid)
    states = certain_states(context, asked.rack, asked.jobs)
    seen = seen or context.observe()
    has_trouble = True
    try:
        require_trouble(seen, asked)
    except RefusedError:
        if not options.even_if_healthy:
            raise
        has_trouble = False
    failures = [FailedRank(*place, name) for name in asked.failed if (place := seen.place_of(name)) is not None]
    kept = {} if spares else kept_spares(context.store(asked.rack), seen, asked.rack, failures)
    moves = next(lane_choices(seen, avoided, asked.failed, asked.jobs))
    choice = choose(
        seen,
        states,
        asked.failed,
        spares,
        records=_records(context, seen, asked.rack),
        reroutes=RerouteBudget(
            avoided.pucs,
            frozenset(circuits_through(seen, states, avoided, asked.jobs)),
            most_others=options.may_move,
            avoid_fibres=avoided.fibres,
        ),
        avoid_lanes=avoided.lanes,
        orders=orders_after(seen, moves),
        kept=kept,
        attempt=partial(attempt, seen),
        freed_by=nothing_frees if attempt is _no_attempt else partial(freeing_return, context, seen),
    )
    pairs = ", ".join(f"{r.failed} by {r.spare}" for r in choice.replacements)
    hosts = dict.fromkeys(context.inventory.accelerators[name].host for name in asked.failed)
    tried = failed_attempt(context, seen, asked.failed)
    may_fail = tried is not None and not set(tried.pucs) & set(options.avoid)
    again = [f"{tried.words}; a plan around it: lumctl status --target {context.target}"] if tried and may_fail else []
    notes = (*again, *filter(None, map(seen.life_signs, hosts)), *left_there(seen, states, avoided, asked.jobs))
    choice = replace(choice, why=(*why_tied(context.inventory, asked.tied), *choice.why))
    title = f"{', '.join(asked.jobs)}: replace {pairs}"
    faults = tuple(
        fault
        for name in asked.failed
        if seen.in_trouble(name) or context.inventory.accelerators[name].host in asked.hosts
        for fault in seen.faults_of(name)
    )
    draft = SwapDraft(title, asked.rack, states, choice, notes, moves, even_if_healthy=not has_trouble, faults=faults)
    return draft.plan(context, seen)


def _records(context: Context, seen: Observation, rack: str) -> Records:
    spares = [a for a in context.inventory.accelerators.values() if a.rack == rack and seen.role_of(a.id) is Role.SPARE]
    return records_of(context.store(rack), context.inventory, spares, seen.at)
