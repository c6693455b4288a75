"""After a repair, return each rank to the accelerator that the inventory gives it, if that is healthy again."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

from lumctl.change.plan import Candidate, Plan, Replacement
from lumctl.context import Context, Observation
from lumctl.devices.errors import DeviceError
from lumctl.errors import LumctlError, RefusedError
from lumctl.fabric import Unroutable
from lumctl.health.replaced_faults import lanes_to_light
from lumctl.inventory.model import Inventory
from lumctl.inventory.wiring import circuits_of
from lumctl.spares.fitness import unfit_reasons
from lumctl.spares.ledger import LedgerEntry, SpareState
from lumctl.swap.choice import SpareChoice
from lumctl.swap.draft import SwapDraft, certain_states
from lumctl.swap.fillers import require_startable
from lumctl.swap.lane_moves import LaneMoves, moves_home, orders_after
from lumctl.swap.light_paths import LightPaths, RerouteBudget, States, reroute_budgets
from lumctl.swap.path_routing import light_paths
from lumctl.swap.request import require_job
from lumctl.swap.silent_parts import silence_refusal

_NOBODY: Mapping[int, str] = {}
_OK = "it was read just now and is ok"


def plan_return(
    context: Context,
    job: str,
    *,
    may_move: int = 0,
    even_if_costly: bool = False,
    even_if_unproven: bool = False,
    seen: Observation | None = None,
) -> Plan:
    """Plan to move a job's ranks back to the accelerators of the inventory. Their replacements become spares again.

    Links that moved to another lane of their accelerator also return to the lane of the inventory. A rank whose
    accelerator is not ok, or is needed elsewhere, stays in place, as does a link whose lane is not ok: a warning
    gives the reason. So does a rank whose accelerator was replaced because of a fault of which no reading shows that it
    is gone, unless ``even_if_unproven``. ``may_move`` circuits of other jobs may make room if nothing else helps. A
    filler job that gave its spares up runs on them again, if they are free; so do those whose spares this return frees.

    Raises:
        UsageError: there is no such job.
        RefusedError: nothing can return, or (unless ``even_if_costly``) the job would stand still for longer than
            the inventory allows; the message gives the reason.
    """
    inventory = context.inventory
    if job in inventory.fillers:
        return _filler_return(context, job, seen or context.observe())
    require_job(inventory, job)
    states = certain_states(context, inventory.jobs[job].rack, [job])
    seen = seen or context.observe()
    now, written = seen.assignment[job], inventory.jobs[job].ranks
    away = {rank: home for rank, home in enumerate(written) if now[rank] != home}
    moves, ill_lanes = moves_home(seen, now)
    if not away and not moves and not ill_lanes:
        raise RefusedError(
            f"every rank of {job} runs where the inventory says: there is nothing to move back",
            hint=f"see the placement: lumctl job show {job} --target {context.target}",
        )
    notes = [f"the lanes of {accelerator} keep their order: {why}" for accelerator, why in ill_lanes.items()]
    may_stay = {home: list(_objections(seen, home, even_if_unproven=even_if_unproven)) for home in away.values()}
    stay, paths = _stay(seen, job, away, may_stay), LightPaths()
    while moves or len(stay) < len(away):
        back = {rank: home for rank, home in away.items() if rank not in stay}
        # A lane returns only if the rank stays on its accelerator; an accelerator that a rank leaves keeps its order.
        moves = tuple(move for move in moves if now.index(move.accelerator) not in back)
        try:
            paths = _paths(seen, states, job, back, moves, may_move)
            break
        except LumctlError as error:
            if moves:  # a link has light on either lane, so returning ranks is more important
                notes.append(f"the lanes of {moves[-1].accelerator} keep their order: {error.message}")
                moves = tuple(move for move in moves if move.accelerator != moves[-1].accelerator)
                continue
            # Let the last rank stay and try the rest again.
            last = max(back)
            stay = _stay(seen, job, away, may_stay, {**stay, last: f"{away[last]} has no route: {error.message}"})
    replacements = tuple(Replacement(job, r, now[r], home) for r, home in away.items() if r not in stay)
    notes = [*(f"rank {rank} stays on {now[rank]}: {why}" for rank, why in stay.items()), *notes]
    if not replacements and not moves:
        homes = list(away.values()) or list(ill_lanes)
        raise RefusedError(
            f"no rank of {job} can move back: {'; '.join(notes)}",
            hint=_after_repair(seen, job, homes[0]) if homes else None,
        )
    doubts = {r.rank: [fault.words for fault in seen.unproven(r.spare)] for r in replacements}
    said = {rank: "; ".join(("where the inventory places it", *(found or [_OK]))) for rank, found in doubts.items()}
    candidates = tuple(
        Candidate(now[r], home, chosen=r not in stay, reasons=(stay.get(r) or said[r],), rank=None if r in stay else 1)
        for r, home in away.items()
    )
    returned = [f"rank {r.rank} from {r.failed} to {r.spare}" for r in replacements] + [move.words for move in moves]
    why = tuple(f"{r.spare} takes rank {r.rank} back from {r.failed}: {said[r.rank]}" for r in replacements)
    notes += [word for found in doubts.values() for word in found]
    choice = SpareChoice(replacements, paths, candidates, why)
    rack = inventory.jobs[job].rack
    left = tuple(fault for r in replacements for fault in seen.faults_of(r.failed))
    title = f"{job}: return {', '.join(returned)}"
    plan = SwapDraft(title, rack, states, choice, tuple(notes), moves, faults=left).plan(context, seen)
    if not even_if_costly:
        _require_affordable(inventory, job, plan)
    return plan


def _filler_return(context: Context, name: str, seen: Observation) -> Plan:
    filler = seen.inventory.fillers[name]
    require_startable(seen, filler)
    states = certain_states(context, filler.rack, [])
    title = f"{name}: run again on {', '.join(filler.ranks)}"
    return SwapDraft(title, filler.rack, states, SpareChoice((), LightPaths(), ())).plan(context, seen)


def _require_affordable(inventory: Inventory, job: str, plan: Plan) -> None:
    """Refuse a return for which a job would stand still for longer than the sharing of spares allows.

    Raises:
        RefusedError: it would.
    """
    limit, ranks = inventory.sharing.return_cost_s, len(inventory.jobs[job].ranks)
    cost = plan.expected_seconds * ranks
    if limit is not None and cost > limit:
        raise RefusedError(
            f"{job} would stand still for {plan.expected_seconds:.1f} s on {ranks} accelerators to move back: "
            f"{cost:.0f} accelerator-seconds, more than the {limit:g} of sharing: return_cost_s",
            hint=f"to move it back nevertheless: lumctl swap plan {job} --back --even-if-costly",
        )


def return_refusals(
    context: Context, seen: Observation, entries: Iterable[LedgerEntry]
) -> dict[str, LumctlError | None]:
    """By job that could return to some repaired accelerators, why no return can be planned and applied now.

    ``None`` if one can.
    """
    jobs = dict.fromkeys(e.home[0] for e in entries if e.state is SpareState.REPAIRED and e.home)
    return {job: _refusal(context, seen, job) for job in jobs}


def _refusal(context: Context, seen: Observation, job: str) -> LumctlError | None:
    try:
        return silence_refusal(seen, plan_return(context, job, seen=seen))
    except (RefusedError, DeviceError) as refused:
        return refused


def _objections(seen: Observation, home: str, *, even_if_unproven: bool) -> Iterator[str]:
    for why in unfit_reasons(seen, home):
        yield why if why.startswith("its lane") else f"{home} {why}"
    yield from () if even_if_unproven else (fault.words for fault in seen.unproven(home))


def _after_repair(seen: Observation, job: str, home: str) -> str:
    """What to do if no rank can return."""
    back = f"lumctl swap plan {job} --back"
    if any(unfit_reasons(seen, home)):
        return f"see why: lumctl health explain {home}; once it is healthy again: {back}"
    if not (faults := seen.unproven(home)):
        return f"see its links: lumctl health explain {home}"
    shown = "; ".join(f"lumctl device set {lane} transmit=on" for lane in lanes_to_light(faults))
    light = f"light it after its repair, to show that it sends: {shown}; then: {back}; or " if shown else ""
    return f"{light}return to it although nothing shows that it is repaired: {back} --even-if-unproven"


def _stay(
    seen: Observation,
    job: str,
    away: Mapping[int, str],
    objections: Mapping[str, Sequence[str]],
    known: Mapping[int, str] = _NOBODY,
) -> dict[int, str]:
    """The ranks that cannot return, with reasons. A rank that stays may block the return of another.

    ``objections`` are those to each home itself.
    """
    stay = dict(known)
    ties = {home: {other.id for other in seen.inventory.tied_to(home)} for home in away.values()}
    for rank, home in away.items():
        for why in objections[home]:
            stay.setdefault(rank, why)
    while True:
        found = dict(stay)
        for rank, home in away.items():
            place = seen.place_of(home)
            blocked = place is not None and (place[0] != job or place[1] in found or place[1] not in away)
            if rank not in found and place is not None and blocked:
                found[rank] = f"{home} runs rank {place[1]} of {place[0]}"
            left = next((away[r] for r in found if away[r] in ties[home]), None)
            if rank not in found and left is not None:
                found[rank] = f"{home} is tied to {left}, which stays out of the job"
        if found == stay:
            return stay
        stay = found


def _paths(
    seen: Observation,
    states: Mapping[str, States],
    job: str,
    back: Mapping[int, str],
    moves: LaneMoves,
    may_move: int,
) -> LightPaths:
    ranks = [back.get(rank, accelerator) for rank, accelerator in enumerate(seen.assignment[job])]
    after = circuits_of(seen.inventory, {**seen.assignment, job: tuple(ranks), **orders_after(seen, moves)})
    *first, last = reroute_budgets(RerouteBudget(most_others=may_move), [job], seen)
    for reroutes in first:
        with suppress(Unroutable):
            return light_paths(seen.inventory, seen.circuits, after, states, reroutes=reroutes)
    return light_paths(seen.inventory, seen.circuits, after, states, reroutes=last)
