"""From a failed accelerator to a plan that can be read, kept and applied."""

from collections.abc import Mapping, Sequence

from lumctl.change.plan import Plan, Start
from lumctl.change.preconditions import uncertain
from lumctl.devices.types import Capability
from lumctl.errors import RefusedError, UsageError
from lumctl.health.states import State
from lumctl.inventory.hints import nearest
from lumctl.inventory.wiring import Assignment, job_circuits
from lumctl.site import Observation, Site
from lumctl.swap.choose import choose
from lumctl.swap.lightpaths import LightPaths, States
from lumctl.swap.steps import StepList


def plan_swap(
    site: Site,
    job: str,
    failed: Sequence[str],
    spares: Sequence[str] = (),
    *,
    even_if_healthy: bool = False,
    seen: Observation | None = None,
) -> Plan:
    """Plan the replacement of a job's accelerators by spares of the same rack.

    ``spares`` names one for each of ``failed``; without it the best are chosen. ``seen`` is a fresh observation, if
    the caller has one.

    Raises:
        UsageError: a name is unknown, or an accelerator does not work in this job.
        RefusedError: an accelerator is well, no spare is usable, or what a device holds is not certain.
    """
    _require_names(site, job, failed, spares)
    states = certain_states(site, job)
    seen = seen or site.observe()
    if not even_if_healthy:
        _require_trouble(seen, failed)
    choice = choose(seen, states, job, failed, spares)
    after = list(seen.assignment[job])
    for replacement in choice.replacements:
        after[replacement.rank] = replacement.spare
    pairs = ", ".join(f"{r.failed} by {r.spare}" for r in choice.replacements)
    steps = StepList(site.inventory)
    kept = [c.id for c in choice.paths.keep]
    new = [c.id for c in choice.paths.add]
    steps.check([r.spare for r in choice.replacements], kept=kept, replaced=[c.id for c in choice.paths.remove])
    for replacement in choice.replacements:
        # A dead accelerator's host may be gone altogether; then there is nothing left to darken.
        for lane in site.inventory.transponders_of(replacement.failed):
            steps.transmit(lane.id, enabled=False, required=False)
        for lane in site.inventory.transponders_of(replacement.spare):
            steps.transmit(lane.id, enabled=True, required=True)
    steps.program(choice.paths.writes)
    steps.verify(new, kept)
    steps.confirm(with_timer(site, choice.paths))
    steps.assign({job: seen.assignment[job]}, {job: after})
    return Plan(
        kind="swap",
        title=f"{job}: replace {pairs}",
        rack=site.inventory.jobs[job].rack,
        target=site.target,
        created_at=seen.at,
        inventory_digest=site.inventory.digest,
        start=start_of({job: seen.assignment[job]}, states, choice.paths),
        replacements=choice.replacements,
        candidates=choice.candidates,
        add=choice.paths.add,
        remove=choice.paths.remove,
        keep=choice.paths.keep,
        changes=tuple(change for cells in choice.paths.writes.values() for change in cells),
        steps=tuple(steps.steps),
        warnings=_thin_margins(site, choice.paths),
    ).sealed()


def certain_states(site: Site, job: str) -> dict[str, States]:
    """What each mesh and switch of a job's rack holds; those that carry the job must be certain.

    Raises:
        RefusedError: one was never programmed from this store, or a run was cut while it wrote.
    """
    rack = site.inventory.jobs[job].rack
    carrying = {c.device for c in job_circuits(site.inventory, site.inventory.jobs[job], site.assignment()[job])}
    states: dict[str, States] = {}
    for device in site.inventory.devices.values():
        if device.rack == rack and device.kind.carries_light:
            states[device.id] = site.known_cells(device.id)
            if device.id in carrying and not states[device.id]:
                raise uncertain(site, rack, device.id)
    return states


def start_of(assignment: Assignment, states: Mapping[str, States], paths: LightPaths) -> Start:
    """What a plan pins: the placement it changes, and what the devices that it writes hold."""
    placed = {job: tuple(ranks) for job, ranks in assignment.items()}
    return Start.of(placed, {device: states[device] for device in paths.writes if states.get(device)})


def with_timer(site: Site, paths: LightPaths) -> list[str]:
    """The written devices that revert by themselves unless confirmed."""
    return [
        device
        for device, cells in paths.writes.items()
        if cells and Capability.CONFIRM_TIMER in site.devices.changing(device).capabilities
    ]


def _require_names(site: Site, job: str, failed: Sequence[str], spares: Sequence[str]) -> None:
    inventory = site.inventory
    if job not in inventory.jobs:
        raise UsageError(_unknown("job", job, inventory.jobs))
    if not failed:
        raise UsageError("no failed accelerator was named", hint="--failed ACCELERATOR[,ACCELERATOR...]")
    for accelerator in (*failed, *spares):
        if accelerator not in inventory.accelerators:
            raise UsageError(_unknown("accelerator", accelerator, inventory.accelerators))
    placed = site.assignment()[job]
    for accelerator in failed:
        if accelerator not in placed:
            raise UsageError(f"{accelerator} does not work in {job}", hint=f"see: lumctl job show {job}")
    if len(set(failed)) != len(failed):
        raise UsageError("an accelerator is named twice after --failed")
    if spares and len(spares) != len(failed):
        raise UsageError(f"{len(failed)} accelerators failed, but {len(spares)} spares are named")


def _unknown(what: str, word: str, known: Mapping[str, object]) -> str:
    near = nearest(word, known)
    return f"no {what} {word!r} in the inventory" + (f"; did you mean {near!r}?" if near else "")


def _require_trouble(seen: Observation, failed: Sequence[str]) -> None:
    """A process that died is not a GPU that died: no spare is spent on an accelerator that is well."""
    for accelerator in failed:
        lanes = [seen.report.links[lane.id].state for lane in seen.inventory.transponders_of(accelerator)]
        if seen.report.accelerators[accelerator].state is State.OK and all(lane is State.OK for lane in lanes):
            raise RefusedError(
                f"{accelerator} is ok by a reading of this moment: the job can restart on it in place",
                hint="to replace it all the same, add --even-if-healthy",
            )


def _thin_margins(site: Site, paths: LightPaths) -> tuple[str, ...]:
    margin = site.inventory.thresholds.rx_margin_db
    thin = []
    for circuit in paths.add:
        needed = max(site.inventory.transponders[str(end["lane"])].rx_sensitivity_dbm for end in circuit.ends)
        if circuit.expected_rx_dbm is not None and circuit.expected_rx_dbm < needed + margin:
            thin.append(
                f"circuit {circuit.id} is expected at {circuit.expected_rx_dbm:.1f} dBm, less than {margin:g} dB above "
                f"its receiver's {needed:.1f} dBm"
            )
    return tuple(thin)
