"""Circuits of a job led round a component, with every rank where it is."""

from collections.abc import Sequence

from lumctl.change.plan import Plan
from lumctl.errors import RefusedError, UsageError
from lumctl.fabric import Unroutable
from lumctl.inventory.components import find_component
from lumctl.inventory.wiring import circuits_of
from lumctl.site import Observation, Site
from lumctl.swap.asked import require_job
from lumctl.swap.avoiding import (
    circuits_through,
    nothing_there,
    require_lanes_left,
    understand_avoided,
)
from lumctl.swap.choose import Choice
from lumctl.swap.lightpaths import Leeway, light_paths
from lumctl.swap.planning import Draft, certain_states, left_there


def plan_reroute(site: Site, job: str | None, avoid: Sequence[str], *, seen: Observation | None = None) -> Plan:
    """Plan to lead the circuits of a job, or of all jobs of the rack, round components that are about to fail.

    Where there is no way beside the circuits that stand, others of the same jobs make room.

    Raises:
        UsageError: a name is unknown, or the components are in several racks.
        RefusedError: nothing of the job runs there, there is no other way, or a link needs that very lane.
    """
    inventory = site.inventory
    if job is not None:
        require_job(inventory, job)
    avoided = understand_avoided(inventory, avoid)
    racks = sorted({find_component(inventory, name).rack for name in avoided.named})
    if len(racks) > 1:
        raise UsageError(f"the components are in racks {', '.join(racks)}: a plan is of one rack")
    here = [each.name for each in inventory.jobs.values() if each.rack == racks[0]]
    if job is not None and job not in here:
        raise UsageError(f"{job} runs in rack {inventory.jobs[job].rack}, {avoided.named[0]} is in {racks[0]}")
    jobs = [job] if job is not None else here
    states = certain_states(site, racks[0], jobs)
    seen = seen or site.observe()
    require_lanes_left(seen, avoided, (), jobs)
    through = list(circuits_through(seen, states, avoided, jobs))
    if not through:
        raise nothing_there(seen, states, avoided, jobs)
    owners = {circuit.owner for circuit in seen.circuits if circuit.id in through}
    leeway = Leeway(avoided.pucs, frozenset(through))
    after = circuits_of(inventory, seen.assignment)
    try:
        try:
            paths = light_paths(inventory, seen.circuits, after, states, leeway=leeway)
        except Unroutable:
            crowded = Leeway(avoided.pucs, frozenset(through), frozenset(owners))
            paths = light_paths(inventory, seen.circuits, after, states, leeway=crowded)
    except RefusedError as error:
        raise RefusedError(
            f"{', '.join(through)} cannot be led round {', '.join(avoided.named)}: {error.message}",
            hint="replace an accelerator at its end: lumctl swap plan --failed ACCELERATOR --avoid "
            f"{','.join(avoided.named)}",
        ) from error
    title = f"{', '.join(sorted(owners))}: lead {', '.join(through)} round {', '.join(avoided.named)}"
    why = (f"{', '.join(through)} pass {', '.join(avoided.named)}; every rank stays where it is",)
    notes = left_there(seen, states, avoided, owners)
    return Draft(title, racks[0], states, Choice((), paths, (), why), notes).plan(site, seen)
