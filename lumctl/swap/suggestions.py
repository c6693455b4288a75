"""The command that repairs what fails now: it is planned before it is suggested, so that it is not refused."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from lumctl.context import Context, Observation
from lumctl.devices.types import Capability, PucState
from lumctl.errors import RefusedError, UsageError
from lumctl.health.remedy import Remedy, swap_command
from lumctl.inventory.components import find_component
from lumctl.inventory.wiring import jobs_in
from lumctl.swap.light_paths import light_paths
from lumctl.swap.planning import plan_swap
from lumctl.swap.reroute import plan_reroute

_SHOWN = 4


def suggested_command(context: Context, seen: Observation, remedies: Sequence[Remedy]) -> str:
    """One command that plans all these repairs; if there is none, the reason and what to try.

    If light cannot be routed around a PUC (a port may have only one), an accelerator at the end of the light replaces
    the PUC in the command. The first command that can be planned is returned, otherwise the one that health suggests.
    """
    failed = tuple(dict.fromkeys(accelerator for remedy in remedies for accelerator in remedy.replace))
    avoid = tuple(dict.fromkeys(puc for remedy in remedies for puc in remedy.avoid))
    if not avoid:
        return swap_command(failed, ())
    # A mesh that reads back a different state than written is refused: first the inventory must declare the stuck PUC.
    read_back = not failed and _reads_back(context, avoid[0])
    ends = [] if failed else [(accelerator,) for accelerator in _ends(seen, remedies)]
    for replaced in [] if read_back else [failed, *ends]:
        healthy = replaced != failed
        if _can_be_planned(context, seen, replaced, avoid, healthy=healthy):
            return f"{swap_command(replaced, avoid)}{' --even-if-healthy' if healthy else ''}"
    if not failed and len(avoid) == 1:
        return _as_it_stands(context, seen, avoid[0])
    # Nothing does without all of them at once: each attempt is proved by light, and undone if none comes.
    attempts = [swap_command((), (puc,)) for puc in avoid if _can_be_planned(context, seen, (), (puc,))]
    attempts += [swap_command(failed, ())] if failed else []
    return (
        f"no way is found without {', '.join((*failed, *avoid))} together, and no reading tells at which of them the "
        f"light is lost; each attempt is undone if no light comes by it: {'; '.join(attempts) or 'none can be planned'}"
    )


def _can_be_planned(
    context: Context, seen: Observation, replaced: Sequence[str], avoid: Sequence[str], *, healthy: bool = False
) -> bool:
    with suppress(RefusedError):
        if replaced:
            plan_swap(context, None, replaced, avoid=avoid, even_if_healthy=healthy, seen=seen)
        else:
            plan_reroute(context, None, avoid, seen=seen)
        return True
    return False


def _reads_back(context: Context, puc: str) -> bool:
    device = str(find_component(context.inventory, puc).device)
    return Capability.READ_STATES in context.devices.changing(device).capabilities


def _as_it_stands(context: Context, seen: Observation, puc: str) -> str:
    """What to do about a PUC that light cannot be routed around: use it in the state that it really has."""
    inventory, found = seen.inventory, find_component(seen.inventory, puc)
    device = inventory.devices[str(found.device)]
    stands = "bar" if context.known_cells(device.id).get(found.number) == PucState.CROSS else "cross"
    stuck = replace(device, stuck={**device.stuck, found.number: stands})
    here = tuple(circuit for circuit in seen.circuits if circuit.device == device.id)
    try:
        known = replace(inventory, devices={**inventory.devices, device.id: stuck})
        light_paths(known, (), here, {device.id: {}}, rewrite=frozenset({device.id}))
    except RefusedError:
        return f"no way was found round {puc} or through it as it stands: replace {device.id}, or have it repaired"
    entry = f"`stuck: {{{found.number}: {stands}}}` to {device.id} in {inventory.path}"
    return f"{puc} stands in {stands} and was written otherwise; add {entry}, then: lumctl fabric apply --rewrite"


def _ends(seen: Observation, remedies: Sequence[Remedy]) -> list[str]:
    """The accelerators at the ends of the circuits that these causes touch."""
    touched = {name for remedy in remedies for name in remedy.components}
    lanes = [end.transponder for c in seen.circuits if c.id in touched for end in (c.a, c.b)]
    return list(dict.fromkeys(seen.inventory.transponders[lane].accelerator for lane in lanes))


def nothing_named(context: Context, seen: Observation, job: str | None) -> UsageError:
    """The message if no component was named: the causes that health found, and the command that repairs them.

    If nothing in the rack repairs them, the message names the manual repair.
    """
    of_job = [remedy for remedy in seen.remedies if job is None or _concerns(seen, remedy, job)]
    if repairable := [remedy for remedy in of_job if remedy.command]:
        command = suggested_command(context, seen, repairable)
        return UsageError(f"no failed accelerator was named; {_causes(repairable)}", hint=command)
    if of_job and any(remedy.by_hand for remedy in of_job):
        words = "; ".join(f"{remedy.cause}: {remedy.by_hand}" for remedy in of_job[:_SHOWN])
        pucs = [puc for remedy in of_job for puc in remedy.suspects]
        if pucs and _can_be_planned(context, seen, (), pucs):
            words += f"; or try {swap_command((), pucs)}, which is undone if no light comes by it"
        return UsageError(f"no swap repairs what fails now: {_causes(of_job)}", hint=words)
    ranks = {job: seen.assignment[job]} if job else jobs_in(seen.assignment)
    ill = [a for accelerators in ranks.values() for a in accelerators if seen.in_trouble(a)]
    if not ill:
        whose = job or "the jobs' accelerators"
        return UsageError(
            f"no failed accelerator was named, and all of {whose} were read just now and are ok",
            hint="to replace one all the same: lumctl swap plan --failed ACCELERATOR --even-if-healthy",
        )
    more = f" and {len(ill) - _SHOWN} more" if len(ill) > _SHOWN else ""
    told = ", ".join(f"{a} ({seen.report.accelerators[a].state})" for a in ill[:_SHOWN])
    return UsageError(f"no failed accelerator was named; not ok now: {told}{more}", hint=swap_command(ill, ()))


def _concerns(seen: Observation, remedy: Remedy, job: str) -> bool:
    """Whether a cause touches an accelerator or a circuit of a job."""
    circuits = [circuit.id for circuit in seen.circuits if circuit.owner == job]
    return any(name in {*seen.assignment[job], *circuits} for name in (*remedy.components, *remedy.replace))


def _causes(remedies: Sequence[Remedy]) -> str:
    more = f"; and {len(remedies) - _SHOWN} more" if len(remedies) > _SHOWN else ""
    told = (
        f"{remedy.cause} is the cause of {remedy.evidence}"
        if not remedy.evidence.startswith(f"{remedy.cause}: ")
        else f"{remedy.cause} is {remedy.state}: {remedy.evidence.removeprefix(f'{remedy.cause}: ')}"
        for remedy in remedies[:_SHOWN]
    )
    return "; ".join(told) + more
