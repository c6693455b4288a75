"""The permission to change the light of a job between its phases: each phase is proved, then one plan permits all."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

from lumctl.change.concurrency import all_of
from lumctl.change.engine import Progress, apply
from lumctl.change.plan import PHASES, Plan, PlannedPhase, Start, from_document, permit_of, to_document
from lumctl.context import Context
from lumctl.errors import RefusedError
from lumctl.fabric import FabricStates
from lumctl.health.observation import Observation
from lumctl.inventory.model import Evidence, Job
from lumctl.inventory.phase_records import lit_phase, phase_of, phase_permit, without_permits
from lumctl.inventory.wiring import FREE, Circuit, job_circuits, orders_in
from lumctl.swap.draft import certain_states, start_of
from lumctl.swap.light_paths import LightPaths, States, planned_circuits
from lumctl.swap.steps import StepList
from lumctl.training.phase_control import Rail, RankPath, rails_of
from lumctl.training.phase_pairs import Pair
from lumctl.training.phases import PhaseLight, job_phases, plan_phase


@dataclass(frozen=True, slots=True)
class PermitCircuit:
    """A circuit of a phase and the ranks that it joins; ``blinks``: only blinking transmitters can prove it."""

    phase: str
    ranks: Pair
    circuit: Circuit
    blinks: bool


@dataclass(frozen=True, slots=True)
class PhasePermit:
    """What a running job may do with light: the plan that permits it, its rails, and the phase that has light now."""

    plan: str
    rails: tuple[Rail, ...]
    lit: str
    circuits: tuple[PermitCircuit, ...] = ()
    name: str = ""
    """The name of the permit on record."""
    proved: frozenset[str] = field(default=frozenset(), compare=False)
    """The phases that were proved when it was obtained."""

    def of_rail(self, rail: int, phase: str) -> tuple[PermitCircuit, ...]:
        """The circuits that a phase lights on a rail."""
        pairs = self.rails[rail].pairs.get(phase, frozenset())
        return tuple(each for each in self.circuits if each.phase == phase and each.ranks in pairs)

    @property
    def single(self) -> dict[str, frozenset[Pair]]:
        """By phase, the pairs of ranks that exactly one circuit joins."""
        counts = Counter((each.phase, each.ranks) for each in self.circuits)
        found = {phase: [pair for pair in pairs if counts[phase, pair] == 1] for phase, pairs in self.pairs.items()}
        return {phase: frozenset(pairs) for phase, pairs in found.items()}

    @property
    def pairs(self) -> dict[str, list[tuple[int, int]]]:
        """By phase, the pairs of ranks that it connects."""
        found: dict[str, set[tuple[int, int]]] = {}
        for rail in self.rails:
            for phase, pairs in rail.pairs.items():
                found.setdefault(phase, set()).update(pairs)
        return {phase: sorted(pairs) for phase, pairs in found.items()}


def obtain_permit(
    context: Context, job: str, who: str, say: Progress = lambda _line: None, *, again: bool = False
) -> PhasePermit:
    """The permit of a job to change its phases: a new one, for which each phase is proved first, or the one in force.

    With ``again``, each phase is proved in any case.

    Raises:
        RefusedError: the rack has no gateway, or a phase cannot have light now.
        RunError: the light of a phase was not proved; it is undone.
    """
    found = context.inventory.jobs[job]
    require_gateway(context, found)
    with suppress(RefusedError):  # then each phase is proved
        rest(context, job)
    proved: tuple[str, ...] = ()
    if again or (plan := permitted(context, job)) is None:
        proved = _prove_each(context, found, who, say)
        plan = plan_phases(context, job)
        context.store(plan.rack).runs.save_plan(to_document(plan))
        apply(context, plan, who=who)
        say(f"{plan.id} permits {job} to change between its phases: {', '.join(phase.name for phase in plan.phases)}")
    lit = lit_phase(found, context.assignment()).name
    circuits = _circuits(context, found)
    return PhasePermit(plan.id, _rails(circuits, plan), lit, circuits, plan.permit, frozenset(proved))


def rest(context: Context, job: str) -> None:
    """Give the devices of a job the phase on record, if a permit is in force by which another may have light.

    Raises:
        DeviceError: a device did not confirm it.
        RefusedError: the plan that permits it is not in the store.
    """
    if phase_permit(job, context.assignment()) is None:
        return
    found = context.inventory.jobs[job]
    if (plan := _plan_on_record(context, found)) is None:
        raise RefusedError(f"the store has no plan for the permit of {job}: which phase has light is not certain")
    lit = lit_phase(found, context.assignment()).name
    devices = dict.fromkeys(device for phase in plan.phases for device in phase.cells)
    gateway = context.devices.phases(found.rack)
    all_of([partial(gateway.light, job, plan.id, device, lit) for device in devices], most=len(devices))


def end_permit(context: Context, job: str, who: str) -> None:
    """End the permit of a job that does not run any more: its light rests, and stays as it is.

    Raises:
        DeviceError: a device did not confirm the phase on record.
        RefusedError: the record cannot be changed now.
    """
    rest(context, job)
    found, placed = context.inventory.jobs[job], context.assignment()
    if not (after := without_permits(placed, [job])):
        return
    steps = StepList(context.inventory)
    before = {name: placed[name] for name in after}
    steps.assign(before, after)
    plan = Plan(
        kind=PHASES,
        title=f"{job}: end the changes between its phases",
        rack=found.rack,
        target=context.target,
        created_at=context.now(),
        inventory_digest=context.inventory.digest,
        start=Start(before),
        steps=tuple(steps.steps),
    ).sealed()
    context.store(plan.rack).runs.save_plan(to_document(plan))
    apply(context, plan, who=who)


def permitted(context: Context, job: str) -> Plan | None:
    """The plan that permits a job to change its phases now; ``None`` if there is none."""
    plan = _plan_on_record(context, context.inventory.jobs[job])
    return plan if plan is not None and plan.inventory_digest == context.inventory.digest else None


def _plan_on_record(context: Context, job: Job) -> Plan | None:
    """The plan whose permit a job has on record, made from this inventory or from an earlier version of it."""
    if (permit := phase_permit(job.name, context.assignment())) is None:
        return None
    plans = (from_document(r.plan) for r in context.store(job.rack).runs.all() if r.plan.get("kind") == PHASES)
    return next((plan for plan in plans if plan.permit == permit), None)  # the newest first


def plan_phases(context: Context, job: str) -> Plan:
    """Plan to permit a job to change its light between its phases: it writes no light, and states all that may be lit.

    Raises:
        RefusedError: a phase cannot have light now, or a change between two phases would touch another circuit.
    """
    found = context.inventory.jobs[job]
    states = certain_states(context, found.rack, [job])
    seen = context.observe()
    made = job_phases(seen, found, states)
    for phase in made.phases:
        _require_possible(job, phase)
    cells = _changing_cells(phase.states for phase in made.phases)
    phases = tuple(
        PlannedPhase(phase.name, {d: {c: phase.states[d].get(c, FREE) for c in own} for d, own in cells.items()})
        for phase in made.phases
    )
    _require_own(seen, found, states, phases)
    lit = [circuit for circuit in seen.circuits if circuit.owner == job]
    kept = planned_circuits(context.inventory, lit, states)
    steps = StepList(context.inventory)
    steps.check([], kept=[circuit.id for circuit in lit], replaced=[])
    steps.verify([circuit.id for circuit in lit], [])
    record = {phase_of(job): (made.lit, permit_of(phases, seen.at))}
    before = {name: seen.assignment.get(name, ()) for name in record}
    steps.assign(before, record)
    pinned = {job: seen.assignment[job], **before}
    return Plan(
        kind=PHASES,
        title=f"{job}: permit changes between the phases {', '.join(phase.name for phase in phases)}",
        rack=found.rack,
        target=context.target,
        created_at=seen.at,
        inventory_digest=context.inventory.digest,
        start=start_of(pinned, states, LightPaths(keep=kept), beside=seen.assignment),
        keep=kept,
        phases=phases,
        steps=tuple(steps.steps),
        why=("each phase was lit and proved before; the job may select these states while it runs",),
    ).sealed()


def require_gateway(context: Context, job: Job) -> None:
    """Require that a gateway drives the devices of the job's rack.

    Raises:
        RefusedError: this program drives them itself, which is too slow to change light in a training step.
    """
    if not context.is_gated(job.rack):
        on_rack = context.target == "rack"
        aimed = "" if on_rack else f" --target {context.target}"
        named = ", or in the rack's `gateway:` in the inventory" if on_rack else ""
        raise RefusedError(
            f"job {job.name} changes light in each training step, which only a gateway of rack {job.rack} may do",
            hint=f"start it: lumctl gateway run {job.rack}{aimed}; then name its socket in $LUMCTL_GATEWAY{named}",
        )


def _prove_each(context: Context, job: Job, who: str, say: Progress) -> tuple[str, ...]:
    """Give each phase light in turn by a run that proves it, and return them.

    The one that has light now was proved when it was lit; it is proved again if it is the first of several.
    """
    lit, last = lit_phase(job, context.assignment()).name, job.order[0]
    others = [each.name for each in job.phases if each.name not in {lit, last}]
    names = (*others, last) if others or lit != last else ()
    for name in names:
        plan = plan_phase(context, job.name, name)
        context.store(plan.rack).runs.save_plan(to_document(plan))
        apply(context, plan, who=who)
        say(f"phase {name} of {job.name} is proved")
    return names


def _require_possible(job: str, phase: PhaseLight) -> None:
    if phase.is_possible:
        return
    why = phase.obstacle or "; ".join(phase.doubts)
    raise RefusedError(f"phase {phase.name} of {job} cannot have light: {why}", hint=f"see: lumctl job phases {job}")


def _changing_cells(phases: Iterable[Mapping[str, States]]) -> dict[str, list[int]]:
    """By device, the cells whose states differ between two phases."""
    seen: dict[str, dict[int, set[str]]] = {}
    states = list(phases)
    for device in dict.fromkeys(device for each in states for device in each):
        cells = dict.fromkeys(cell for each in states for cell in each.get(device, {}))
        seen[device] = {cell: {each.get(device, {}).get(cell, FREE) for each in states} for cell in cells}
    changing = {device: sorted(c for c, values in of_d.items() if len(values) > 1) for device, of_d in seen.items()}
    return {device: cells for device, cells in changing.items() if cells}


def _require_own(seen: Observation, job: Job, states: Mapping[str, States], phases: Sequence[PlannedPhase]) -> None:
    """Require that no state of the plan gives a circuit of another job another path, or none."""
    others = [circuit for circuit in seen.circuits if circuit.owner != job.name]
    now = FabricStates(seen.inventory, states)
    for phase in phases:
        then = now.with_changed({device: dict(cells) for device, cells in phase.cells.items()})
        for circuit in others:
            if _is_moved(circuit, now, then):
                raise RefusedError(
                    f"phase {phase.name} of {job.name} would change circuit {circuit.id} of {circuit.owner}",
                    hint=f"see: lumctl job phases {job.name}",
                )


def _is_moved(circuit: Circuit, now: FabricStates, then: FabricStates) -> bool:
    was = now.path_of(circuit)
    return was is not None and (then.path_of(circuit) != was or now.cells_of(was) != then.cells_of(was))


def _circuits(context: Context, job: Job) -> tuple[PermitCircuit, ...]:
    """The circuits of all phases of a job where it runs now."""
    inventory, placed = context.inventory, context.assignment()
    ranks, orders = placed[job.name], orders_in(placed)
    found: list[PermitCircuit] = []
    for phase in job.phases:
        for circuit in job_circuits(inventory, job.in_phase(phase), ranks, orders):
            a, b = (inventory.transponders[end.transponder].accelerator for end in (circuit.a, circuit.b))
            one, other = sorted((ranks.index(a), ranks.index(b)))
            blinks = any(
                inventory.transponders[receiver].verify[0] is not Evidence.LLDP for receiver, _ in circuit.receivers
            )
            found.append(PermitCircuit(phase.name, (one, other), circuit, blinks))
    return tuple(found)


def _rails(circuits: Sequence[PermitCircuit], plan: Plan) -> tuple[Rail, ...]:
    """The rails of a job, with the devices that change between its phases."""
    changing = plan.phases[0].cells
    found = rails_of([RankPath(each.phase, each.ranks, each.circuit.devices) for each in circuits])
    return tuple(replace(rail, devices=tuple(d for d in rail.devices if d in changing)) for rail in found)
