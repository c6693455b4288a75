"""Back after a repair: each rank returns to the accelerator that the inventory gives it, if that is well again."""

from collections.abc import Mapping

from lumctl.change.plan import Candidate, Plan, Replacement
from lumctl.errors import LumctlError, RefusedError
from lumctl.fabric import Unroutable
from lumctl.inventory.wiring import circuits_of
from lumctl.site import Observation, Site
from lumctl.swap.asked import require_job
from lumctl.swap.budgets import States
from lumctl.swap.choose import Choice
from lumctl.swap.fitness import ill
from lumctl.swap.lightpaths import Leeway, LightPaths, light_paths
from lumctl.swap.planning import Draft, certain_states


def plan_return(site: Site, job: str, *, seen: Observation | None = None) -> Plan:
    """Plan to return the ranks of a job to their written accelerators. What those were replaced by is spare again.

    A rank whose accelerator is not well, or is needed elsewhere, stays where it is: a warning says why.

    Raises:
        UsageError: there is no such job.
        RefusedError: no rank can return; the message says why.
    """
    inventory = site.inventory
    require_job(inventory, job)
    rack = inventory.jobs[job].rack
    states = certain_states(site, rack, [job])
    seen = seen or site.observe()
    now, written = seen.assignment[job], inventory.jobs[job].ranks
    away = {rank: home for rank, home in enumerate(written) if now[rank] != home}
    if not away:
        raise RefusedError(f"every rank of {job} runs where the inventory says: there is nothing to return")
    stay = _stay(seen, job, away)
    paths = LightPaths()
    while len(stay) < len(away):
        back = {rank: home for rank, home in away.items() if rank not in stay}
        try:
            paths = _paths(seen, states, job, back)
            break
        except LumctlError as error:
            # The last one is left where it is, and what remains is tried again.
            last = max(back)
            stay |= {last: f"{away[last]} has no light path: {error.message}"}
            stay |= _stay(seen, job, {r: home for r, home in back.items() if r != last})
    replacements = tuple(Replacement(job, r, now[r], home) for r, home in away.items() if r not in stay)
    if not replacements:
        raise RefusedError(
            f"no rank of {job} can return: "
            + "; ".join(f"rank {rank} stays on {now[rank]}: {why}" for rank, why in stay.items())
        )
    said = "where the inventory places it, and ok by a reading of this moment"
    candidates = tuple(
        Candidate(now[r], home, chosen=r not in stay, reasons=(stay.get(r, said),), rank=None if r in stay else 1)
        for r, home in away.items()
    )
    title = ", ".join(f"rank {r.rank} from {r.failed} to {r.spare}" for r in replacements)
    notes = tuple(f"rank {rank} stays on {now[rank]}: {why}" for rank, why in stay.items())
    why = tuple(f"{r.spare} takes rank {r.rank} back from {r.failed}: {said}" for r in replacements)
    return Draft(f"{job}: return {title}", rack, states, Choice(replacements, paths, candidates, why), notes).plan(
        site, seen
    )


def _stay(seen: Observation, job: str, away: Mapping[int, str]) -> dict[int, str]:
    """The ranks that cannot return, and why: one that stays may stand in the way of another."""
    stay: dict[int, str] = {}
    for rank, home in away.items():
        for why in ill(seen, home):
            stay.setdefault(rank, why if why.startswith("its lane") else f"{home} {why}")
    while True:
        found = dict(stay)
        for rank, home in away.items():
            place = seen.place_of(home)
            blocked = place is not None and (place[0] != job or place[1] in found or place[1] not in away)
            if rank not in found and place is not None and blocked:
                found[rank] = f"{home} runs rank {place[1]} of {place[0]}"
        if found == stay:
            return stay
        stay = found


def _paths(seen: Observation, states: Mapping[str, States], job: str, back: Mapping[int, str]) -> LightPaths:
    ranks = [back.get(rank, accelerator) for rank, accelerator in enumerate(seen.assignment[job])]
    after = circuits_of(seen.inventory, {**seen.assignment, job: tuple(ranks)})
    try:
        return light_paths(seen.inventory, seen.circuits, after, states)
    except Unroutable:
        movable = Leeway(movable=frozenset({job}))
        return light_paths(seen.inventory, seen.circuits, after, states, leeway=movable)
