"""Route circuits of a job around a component; every rank stays where it is."""

from collections.abc import Mapping, Sequence

from lumctl.change.plan import Plan
from lumctl.context import Context, Observation
from lumctl.errors import RefusedError, UsageError
from lumctl.inventory.wiring import circuits_of
from lumctl.swap.choice import SpareChoice
from lumctl.swap.draft import SwapDraft, certain_states, left_there
from lumctl.swap.lane_moves import (
    Avoided,
    LaneMoves,
    circuits_through,
    lane_choices,
    nothing_there,
    orders_after,
    parse_avoided,
    rack_of_avoided,
)
from lumctl.swap.light_paths import LightPaths, RerouteBudget, States, reroute_budgets
from lumctl.swap.path_routing import light_paths
from lumctl.swap.request import require_job


def plan_reroute(
    context: Context, job: str | None, avoid: Sequence[str], *, may_move: int = 0, seen: Observation | None = None
) -> Plan:
    """Plan to route the circuits of a job, or of all jobs of the rack, around components that are about to fail.

    A lane's circuits move to another lane of the same accelerator. If there is no path next to the present circuits,
    others of the same jobs make room; ``may_move`` circuits of other jobs do so as well.

    Raises:
        UsageError: a name is unknown, or the components are in several racks.
        RefusedError: no circuit of the job passes there, there is no other path, or an accelerator has no spare lane.
    """
    inventory = context.inventory
    if job is not None:
        require_job(inventory, job)
    avoided = parse_avoided(inventory, avoid)
    racks = sorted({rack_of_avoided(inventory, name) for name in avoided.named})
    if len(racks) > 1:
        raise UsageError(f"the components are in racks {', '.join(racks)}: a plan is for one rack")
    here = [each.name for each in inventory.jobs.values() if each.rack == racks[0]]
    if job is not None and job not in here:
        raise UsageError(f"{job} runs in rack {inventory.jobs[job].rack}, but {avoided.named[0]} is in {racks[0]}")
    jobs = [job] if job is not None else here
    states = certain_states(context, racks[0], jobs)
    seen = seen or context.observe()
    ways = list(lane_choices(seen, avoided, (), jobs))
    through = list(circuits_through(seen, states, avoided, jobs))
    leading = list(dict.fromkeys([*through, *(circuit for move in ways[0] for circuit in move.circuits)]))
    if not leading:
        raise nothing_there(seen, states, avoided, jobs)
    owners = {circuit.owner for circuit in seen.circuits if circuit.id in leading}
    reroutes = RerouteBudget(avoided.pucs, frozenset(through), most_others=may_move, avoid_fibres=avoided.fibres)
    moves, paths = _first_way(seen, states, ways, reroute_budgets(reroutes, owners, seen), leading, avoided)
    away = [f"move {move.words}" for move in moves]
    away += [f"route {', '.join(through)} around {', '.join(avoided.named)}"] if through else []
    title = f"{', '.join(sorted(owners))}: {'; '.join(away)}"
    passes = "passes" if len(leading) == 1 else "pass"
    why = (f"{', '.join(leading)} {passes} {', '.join(avoided.named)}; every rank stays where it is",)
    notes = left_there(seen, states, avoided, owners)
    return SwapDraft(title, racks[0], states, SpareChoice((), paths, (), why), notes, moves).plan(context, seen)


def _first_way(
    seen: Observation,
    states: Mapping[str, States],
    ways: Sequence[LaneMoves],
    wider: Sequence[RerouteBudget],
    leading: Sequence[str],
    avoided: Avoided,
) -> tuple[LaneMoves, LightPaths]:
    """The first choice of lanes that can be routed; a choice that moves no other circuit comes first.

    Raises:
        RefusedError: there is none; the message gives the reason of the last attempt.
    """
    refused: list[RefusedError] = []
    for reroutes in wider:
        for moves in ways:
            after = circuits_of(seen.inventory, {**seen.assignment, **orders_after(seen, moves)})
            try:
                return moves, light_paths(seen.inventory, seen.circuits, after, states, reroutes=reroutes)
            except RefusedError as error:
                refused.append(error)
    hint = _instead(seen, leading, avoided)
    raise RefusedError(
        f"{', '.join(leading)} cannot be routed around {', '.join(avoided.named)}: {refused[-1].message}", hint=hint
    ) from refused[-1]


def _instead(seen: Observation, leading: Sequence[str], avoided: Avoided) -> str:
    """The alternative to offer: replace an accelerator at an end of the first circuit."""
    lanes = seen.inventory.transponders
    circuit = next(circuit for circuit in seen.circuits if circuit.id == leading[0])
    ends = " or ".join(
        f"lumctl swap plan --failed {lanes[end.transponder].accelerator} --avoid {','.join(avoided.named)} "
        "--even-if-healthy"
        for end in (circuit.a, circuit.b)
    )
    return f"replace an accelerator at its end: {ends}"
