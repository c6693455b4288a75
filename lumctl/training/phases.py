"""The phases of a job's training step in light: the circuits of each, and what changes between any two of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from lumctl.change.plan import Plan, PlannedCircuit
from lumctl.context import Context
from lumctl.errors import RefusedError
from lumctl.fabric import FabricStates
from lumctl.health.observation import Observation
from lumctl.health.states import State
from lumctl.inventory.model import Inventory, Job
from lumctl.inventory.phase_records import lit_phase, phase_of
from lumctl.inventory.problems import require_known
from lumctl.inventory.wiring import FREE, Circuit, circuits_of, job_circuits, orders_in
from lumctl.swap.choice import SpareChoice
from lumctl.swap.draft import SwapDraft, certain_states
from lumctl.swap.light_paths import LightPaths, States, planned_circuits
from lumctl.swap.path_routing import light_paths

_CARRYING = frozenset({State.OK, State.DISABLED, State.DEGRADED})
"""The states of a lane that carries light, or would if it were used. A failed one may only be in the dark."""


@dataclass(frozen=True, slots=True)
class PhaseLight:
    """A phase on the devices as they are now.

    ``states`` are those of each device while the phase lasts. They are empty if the phase has no light, for which
    ``obstacle`` is the reason, or if the states of its devices are not certain. ``doubts`` are the devices and lanes
    that may keep it dark, each with its state.
    """

    name: str
    circuits: tuple[PlannedCircuit, ...] = ()
    states: Mapping[str, States] = field(default_factory=dict)
    obstacle: str | None = None
    doubts: tuple[str, ...] = ()

    @property
    def is_possible(self) -> bool | None:
        """Whether the phase can have light; ``None`` if that is not certain."""
        if self.obstacle is not None:
            return False
        return None if self.doubts else True


@dataclass(frozen=True, slots=True)
class PhaseChange:
    """What changes between two phases: by device, the number of PUCs, or of connections that a switch makes.

    Devices change at the same time, so ``settling_s`` is the longest settling time of one.
    """

    between: tuple[str, str]
    cells: Mapping[str, int]
    settling_s: float


@dataclass(frozen=True, slots=True)
class JobPhases:
    """The phases of a job, in the order of the inventory, and the change between each two that can have light.

    ``lit`` is the one that should have it now.
    """

    job: Job
    lit: str
    phases: tuple[PhaseLight, ...]
    changes: tuple[PhaseChange, ...]

    @property
    def in_order(self) -> tuple[PhaseChange | None, ...]:
        """The change at each boundary of a training step, the last of which leads to the next step.

        It is ``None`` between phases of which one has no light. A boundary without a change of phase is left out.
        """
        order = self.job.order
        pairs = [frozenset(pair) for pair in zip(order, (*order[1:], order[0]), strict=True) if pair[0] != pair[1]]
        known = {frozenset(change.between): change for change in self.changes}
        return tuple(known.get(pair) for pair in pairs)


def job_phases(seen: Observation, job: Job, known: Mapping[str, States]) -> JobPhases:
    """The phases of a job where it runs now; circuits of other jobs keep their paths.

    ``known`` are the states of each mesh and switch of its rack, empty where they are not certain.
    """
    orders, ranks = orders_in(seen.assignment), seen.assignment[job.name]
    circuits = {each.name: job_circuits(seen.inventory, job.in_phase(each), ranks, orders) for each in job.phases}
    fabric = FabricStates(seen.inventory, known)
    others = [circuit for circuit in seen.circuits if circuit.owner != job.name]
    # Whichever phase the devices carry now gives way.
    lit_now = dict.fromkeys(each for of_phase in circuits.values() for each in of_phase if fabric.path_of(each))
    phases = tuple(_light(seen, name, own, (*others, *lit_now), known) for name, own in circuits.items())
    possible = [phase for phase in phases if phase.states]
    lit = lit_phase(job, seen.assignment).name
    return JobPhases(job, lit, phases, tuple(_change(seen.inventory, *pair) for pair in combinations(possible, 2)))


def plan_phase(context: Context, job: str, phase: str) -> Plan:
    """Plan to give the circuits of another phase of a job light, and to take it from those of the present one.

    Each new circuit is proved, and the store records the phase; from then on it is the one that the job should have.

    Raises:
        UsageError: the job has no such phase.
        RefusedError: the phase has light already, or cannot have it; the message says why.
    """
    found = context.inventory.jobs[job]
    require_known("phase", [phase], [each.name for each in found.phases], f"job {job}")
    states = certain_states(context, found.rack, [job])
    seen = context.observe()
    if lit_phase(found, seen.assignment).name == phase:
        raise RefusedError(
            f"phase {phase} of {job} is the one that should have light",
            hint=f"if it has none: lumctl fabric apply; see lumctl job phases {job}",
        )
    record = {phase_of(job): () if phase == found.order[0] else (phase,)}
    after = circuits_of(seen.inventory, {**seen.assignment, **record})
    paths = light_paths(seen.inventory, seen.circuits, after, states)
    title = f"{job}: give phase {phase} light"
    return SwapDraft(title, found.rack, states, SpareChoice((), paths, ()), phases=record).plan(context, seen)


def _light(
    seen: Observation, phase: str, circuits: Sequence[Circuit], present: Sequence[Circuit], known: Mapping[str, States]
) -> PhaseLight:
    inventory = seen.inventory
    uncertain = [device for device in dict.fromkeys(d for c in circuits for d in c.devices) if not known.get(device)]
    if uncertain:
        return PhaseLight(phase, doubts=tuple(f"the states of {device} are not certain" for device in uncertain))
    others = [each for each in present if each.owner != circuits[0].owner]
    try:
        paths = light_paths(inventory, present, (*others, *circuits), known)
    except RefusedError as error:
        return PhaseLight(phase, obstacle=error.message)
    states = _after(known, paths)
    lanes = dict.fromkeys(end.transponder for circuit in circuits for end in (circuit.a, circuit.b))
    links = {lane: seen.report.links[lane].state for lane in lanes}
    doubts = tuple(f"{lane} is {state}" for lane, state in links.items() if state not in _CARRYING)
    return PhaseLight(phase, planned_circuits(inventory, circuits, states), states, doubts=doubts)


def _after(known: Mapping[str, States], paths: LightPaths) -> Mapping[str, States]:
    return {
        device: {**states, **{each.puc: each.after for each in paths.writes.get(device, ())}}
        for device, states in known.items()
    }


def _changed(one: States, other: States) -> int:
    """How many cells change, in the direction in which more do; a switch need not be told to free a port."""
    return max(
        sum(state not in {FREE, before.get(cell)} for cell, state in after.items())
        for before, after in ((one, other), (other, one))
    )


def _change(inventory: Inventory, one: PhaseLight, other: PhaseLight) -> PhaseChange:
    counts = {device: _changed(states, other.states[device]) for device, states in one.states.items()}
    cells = {device: count for device, count in counts.items() if count}
    settling_s = max((inventory.devices[device].settle_ms for device in cells), default=0.0) / 1000
    return PhaseChange((one.name, other.name), cells, settling_s)
