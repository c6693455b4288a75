"""The command that repairs the present faults: it is planned before it is suggested, so that it is not refused."""

from collections.abc import Sequence
from dataclasses import replace

from lumctl.context import Context, Observation
from lumctl.devices.errors import DeviceError
from lumctl.devices.types import Capability, PucState
from lumctl.errors import LumctlError, RefusedError, UsageError
from lumctl.health.remedy import Remedy, swap_command
from lumctl.health.states import ComponentHealth, State
from lumctl.inventory.components import find_component
from lumctl.inventory.wiring import jobs_in
from lumctl.swap.failed_attempts import failed_attempt
from lumctl.swap.path_routing import light_paths
from lumctl.swap.planning import SwapOptions, freeing_return, try_swap
from lumctl.swap.reroute import plan_reroute
from lumctl.swap.silent_parts import SilenceError, silence_refusal
from lumctl.swap.spare_pool import certainly_lost, lost_by

_SHOWN = 4


def suggested_command(context: Context, seen: Observation, remedies: Sequence[Remedy]) -> str | LumctlError:
    """One command that plans all these repairs; if there is none, the reason and what to try.

    If light cannot be routed around a PUC (a port may have only one), the command also replaces an accelerator at an
    end of the circuit. The first command that can be planned is returned.
    """
    failed = tuple(dict.fromkeys(accelerator for remedy in remedies for accelerator in remedy.replace))
    avoid = tuple(dict.fromkeys(puc for remedy in remedies for puc in remedy.avoid))
    if not avoid:
        return planned_command(context, seen, failed)
    # A mesh that reads back a different state than written is refused: first the inventory must declare the stuck PUC.
    read_back = not failed and avoid[0] not in seen.inventory.fibres and _reads_back(context, avoid[0])
    ends = [] if failed else [(accelerator,) for accelerator in _ends(seen, remedies)]
    for replaced in [] if read_back else [failed, *ends]:
        command = planned_command(context, seen, replaced, avoid, healthy=replaced != failed)
        if isinstance(command, str):
            return command
    if not failed and len(avoid) == 1:
        if avoid[0] in seen.inventory.fibres:
            return RefusedError(f"no route was found that avoids {avoid[0]}: repair or replace it")
        return RefusedError(_as_it_stands(context, seen, avoid[0]))
    # No plan avoids all of them at once. Each attempt is proved by light, and undone if none arrives.
    tried = [planned_command(context, seen, (), (puc,)) for puc in avoid]
    tried += [planned_command(context, seen, failed)] if failed else []
    return RefusedError(
        f"no route is found without {', '.join((*failed, *avoid))} together, and no reading shows at which of them "
        "the light is lost; each attempt is undone if no light arrives: "
        f"{'; '.join(each for each in tried if isinstance(each, str)) or 'none can be planned'}"
    )


def planned_command(
    context: Context, seen: Observation, failed: Sequence[str], avoid: Sequence[str] = (), *, healthy: bool = False
) -> str | LumctlError:
    """The command that replaces some accelerators and avoids some parts, or why it cannot be planned and applied now.

    Everything that offers a swap asks this first. Devices are not asked; ``seen`` says which of them do not answer.
    """
    if failed:
        if not avoid and (around := _around_the_stuck(context, seen, failed)):
            return around
        found = try_swap(context, SwapOptions(tuple(avoid), even_if_healthy=healthy), seen, failed, checks_hints=True)
        return found if avoid else _beside_the_silent(context, seen, failed, found)
    try:
        refused = silence_refusal(seen, plan_reroute(context, None, avoid, seen=seen))
    except (RefusedError, UsageError, DeviceError) as error:
        return error
    return swap_command((), avoid) if refused is None else refused


def _around_the_stuck(context: Context, seen: Observation, failed: Sequence[str]) -> str:
    """After a swap that was rolled back at PUCs that may be stuck: the command that avoids one of them, if one can."""
    attempt = failed_attempt(context, seen, failed)
    for puc in attempt.pucs if attempt is not None else ():
        found = try_swap(context, SwapOptions((puc,)), seen, failed)
        if isinstance(found, str):
            return found
    return ""


def _beside_the_silent(
    context: Context, seen: Observation, failed: Sequence[str], found: str | LumctlError
) -> str | LumctlError:
    """The same, but neighbours that are silent or dark are replaced in the same plan if that is possible."""
    if not isinstance(found, SilenceError) or not found.accelerators:
        return found
    together = try_swap(context, SwapOptions(), seen, [*failed, *found.accelerators])
    return together if isinstance(together, str) else found


def swap_obstacle(
    context: Context, seen: Observation, failed: Sequence[str], *, even_if_healthy: bool = False
) -> LumctlError | None:
    """Why no swap of these accelerators can be planned and applied now; ``None`` if one can."""
    attempt = failed_attempt(context, seen, failed)
    if attempt is not None and (around := _around_the_stuck(context, seen, failed)):
        return attempt.refusal(around)
    found = try_swap(context, SwapOptions(even_if_healthy=even_if_healthy), seen, failed, checks_hints=True)
    return None if isinstance(found, str) else found


def way_to_free(context: Context, seen: Observation, remedy: Remedy) -> str:
    """The commands that free spares for what a remedy lacks them for; empty if there are none."""
    lost = [name for name in dict.fromkeys(lost_by(seen, remedy)) if seen.place_of(name) is not None]
    return freeing_return(context, seen, lost) if lost else ""


def obstacle_words(context: Context, seen: Observation, failed: Sequence[str]) -> str:
    """:func:`swap_obstacle` with what to do about it, in words; empty if there is none."""
    refused = swap_obstacle(context, seen, failed)
    return "" if refused is None else _words(refused)


def _words(refused: LumctlError) -> str:
    return "; ".join(filter(None, (refused.message, refused.hint)))


def _command_or_words(found: str | LumctlError) -> str:
    return found if isinstance(found, str) else f"no swap can be planned now: {_words(found)}"


def _reads_back(context: Context, puc: str) -> bool:
    device = str(find_component(context.inventory, puc).device)
    return Capability.READ_STATES in context.devices.changing(device).capabilities


def _as_it_stands(context: Context, seen: Observation, puc: str) -> str:
    """Advice for a PUC that light cannot be routed around: use it in the state that it really has."""
    inventory, found = seen.inventory, find_component(seen.inventory, puc)
    device = inventory.devices[str(found.device)]
    stands = "bar" if context.known_cells(device.id).get(found.number) == PucState.CROSS else "cross"
    stuck = replace(device, stuck={**device.stuck, found.number: stands})
    states = {**context.known_fabric(device.rack), device.id: {}}
    here = tuple(circuit for circuit in seen.circuits if circuit.a.device in states)
    try:
        known = replace(inventory, devices={**inventory.devices, device.id: stuck})
        light_paths(known, here, here, states, rewrite=frozenset({device.id}))
    except RefusedError:
        return (
            f"no route was found around {puc} or through it in its present state: replace {device.id}, or have it "
            "repaired"
        )
    entry = f"`stuck: {{{found.number}: {stands}}}` to {device.id} in {inventory.path}"
    return f"{puc} is in {stands}, but was written otherwise; add {entry}, then: lumctl fabric apply --rewrite"


def _ends(seen: Observation, remedies: Sequence[Remedy]) -> list[str]:
    """The accelerators at the ends of the circuits that these causes affect."""
    touched = {name for remedy in remedies for name in remedy.components}
    lanes = [end.transponder for c in seen.circuits if c.id in touched for end in (c.a, c.b)]
    return list(dict.fromkeys(seen.inventory.transponders[lane].accelerator for lane in lanes))


def the_one_to_replace(context: Context, seen: Observation, job: str | None) -> Remedy | None:
    """The only fault (of a job, if one is given) that a spare certainly repairs; ``None`` if there is no fault.

    Raises:
        UsageError: several faults could be meant; the message gives the commands.
        RefusedError: no spare repairs the faults; the message says what does.
    """
    of_job = _remedies(seen, job)
    planned = [remedy for remedy in of_job if remedy.command]
    # Both lanes of a lost card are two faults with one repair.
    if len({remedy.command for remedy in planned}) == 1:
        only = planned[0]
        if only.replace and only.certain and not only.avoid:
            return only
    if not of_job and not _not_ok(seen, job):
        return None
    raise nothing_named(context, seen, job)


def nothing_named(context: Context, seen: Observation, job: str | None) -> UsageError | RefusedError:
    """The message if no component was named: the causes that health found, and the command that repairs them.

    If nothing in the rack repairs them, the message names the manual repair.
    """
    of_job = _remedies(seen, job)
    if repairable := [remedy for remedy in of_job if remedy.command]:
        hint = _commands(context, seen, repairable)
        return UsageError(f"no failed accelerator was given; {causes_text(repairable)}", hint=hint)
    if of_job and any(remedy.by_hand for remedy in of_job):
        words = "; ".join(f"{remedy.cause}: {remedy.by_hand}" for remedy in of_job[:_SHOWN])
        pucs = [puc for remedy in of_job for puc in remedy.suspects]
        if pucs and isinstance(command := planned_command(context, seen, (), pucs), str):
            words += f"; or try {command}, which is undone if no light arrives"
        if lost := [name for name in dict.fromkeys(certainly_lost(seen)) if seen.place_of(name) is not None]:
            words += f"; or {frees}" if (frees := freeing_return(context, seen, lost)) else ""
            words += f"; to wait for a spare: {swap_command(lost, ())} --queue"
        return RefusedError(f"no swap repairs the present faults: {causes_text(of_job)}", hint=words)
    ill = _not_ok(seen, job)
    if not ill:
        whose = job or "the jobs' accelerators"
        return UsageError(
            f"no failed accelerator was given, and all of {whose} were read just now and are ok",
            hint="to replace one nevertheless: lumctl swap plan --failed ACCELERATOR --even-if-healthy",
        )
    more = f" and {len(ill) - _SHOWN} more" if len(ill) > _SHOWN else ""
    parts = [_part_not_ok(seen, accelerator) for accelerator in ill]
    told = ", ".join(f"{part.id} ({part.state})" for part in parts[:_SHOWN])
    if all(part.state is State.UNKNOWN for part in parts):
        replacing = planned_command(context, seen, ill[:1])
        nevertheless = f"; to replace one nevertheless: {replacing}" if isinstance(replacing, str) else ""
        hint = f"see why: lumctl health explain {parts[0].id}{nevertheless}"
    else:
        hint = _command_or_words(planned_command(context, seen, ill))
    return UsageError(f"no failed accelerator was given; not ok now: {told}{more}", hint=hint)


def _commands(context: Context, seen: Observation, repairable: Sequence[Remedy]) -> str:
    """The commands that plan these repairs one at a time or together, those that work; if none does, the reason."""
    different = list({remedy.command: remedy for remedy in repairable}.values())
    each = [suggested_command(context, seen, [remedy]) for remedy in different[:_SHOWN]]
    together = suggested_command(context, seen, repairable)
    alone = [found for found in dict.fromkeys(each) if isinstance(found, str) and found != together]
    if not alone:
        return _command_or_words(together if isinstance(together, str) or len(each) > 1 else each[0])
    more = f"; and {len(different) - _SHOWN} more" if len(different) > _SHOWN else ""
    whole = f"; or together: {together}" if isinstance(together, str) else ""
    if len(alone) == 1 and not more and not whole:
        return f"only one of them can be planned now: {alone[0]}"
    return f"{'one at a time' if whole else 'one of them'}: {'; '.join(alone)}{more}{whole}"


def _remedies(seen: Observation, job: str | None) -> list[Remedy]:
    return [remedy for remedy in seen.remedies if job is None or _concerns(seen, remedy, job)]


def _not_ok(seen: Observation, job: str | None) -> list[str]:
    """The accelerators in use, of a job if one is named, that are not read as ok."""
    ranks = {job: seen.assignment[job]} if job else jobs_in(seen.assignment)
    return [a for accelerators in ranks.values() for a in accelerators if seen.in_trouble(a)]


def _part_not_ok(seen: Observation, accelerator: str) -> ComponentHealth:
    """What is not ok of an accelerator: itself, or else its first lane without a reading."""
    own = seen.report.accelerators[accelerator]
    lanes = (seen.report.links[lane.id] for lane in seen.inventory.transponders_of(accelerator))
    return next((lane for lane in lanes if lane.state is State.UNKNOWN), own) if own.state is State.OK else own


def _concerns(seen: Observation, remedy: Remedy, job: str) -> bool:
    """Whether a cause affects an accelerator or a circuit of a job."""
    circuits = [circuit.id for circuit in seen.circuits if circuit.owner == job]
    return any(name in {*seen.assignment[job], *circuits} for name in (*remedy.components, *remedy.replace))


def causes_text(remedies: Sequence[Remedy]) -> str:
    """The causes of some remedies, each with its state and its evidence."""
    more = f"; and {len(remedies) - _SHOWN} more" if len(remedies) > _SHOWN else ""
    told = (
        f"{remedy.cause} is the cause of {remedy.evidence}"
        if not remedy.evidence.startswith(f"{remedy.cause}: ")
        else f"{remedy.cause} is {remedy.state}: {remedy.evidence.removeprefix(f'{remedy.cause}: ')}"
        for remedy in remedies[:_SHOWN]
    )
    return "; ".join(told) + more
