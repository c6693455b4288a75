"""The decisions of a swap as a plan: its steps with their expected times, its start, and its warnings."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from lumctl.change.plan import Do, Plan, Start, Step
from lumctl.change.preconditions import uncertain
from lumctl.context import Context, Observation
from lumctl.devices.types import Capability
from lumctl.health.replaced_faults import ReplacedFault
from lumctl.health.states import HARMLESS, Finding
from lumctl.inventory.phase_records import phases_among, without_permits
from lumctl.inventory.slice_records import slices_among
from lumctl.inventory.wiring import Assignment, job_circuits, jobs_in
from lumctl.jobs import without_hook
from lumctl.jobs.hooks import PAUSE, RESUME
from lumctl.store import Store
from lumctl.swap.choice import SpareChoice
from lumctl.swap.fillers import filler_changes
from lumctl.swap.lane_moves import (
    Avoided,
    LaneMoves,
    circuits_through,
    orders_after,
)
from lumctl.swap.light_paths import LightPaths, States
from lumctl.swap.silent_parts import reason_of, silent_devices, silent_hosts, until_answered
from lumctl.swap.steps import StepList

_ENTRIES = 120
"""How many of the latest journal entries are read: those of about six runs."""
_FEWEST = 3
"""The fewest runs whose median is used."""


@dataclass(frozen=True)
class SwapDraft:
    """The decisions of a swap, before they become steps. ``notes`` are warnings besides those about light.

    The ``moves`` reroute circuits to other lanes of accelerators that stay in place. ``phases`` are the records of the
    phases that get light.
    """

    title: str
    rack: str
    states: Mapping[str, States]
    choice: SpareChoice
    notes: tuple[str, ...] = ()
    moves: LaneMoves = ()
    even_if_healthy: bool = False
    faults: tuple[ReplacedFault, ...] = ()
    phases: Assignment = field(default_factory=dict)

    def plan(self, context: Context, seen: Observation) -> Plan:
        """The plan: check, darken and light, program, verify, confirm, record."""
        choice, paths = self.choice, self.choice.paths
        jobs = dict.fromkeys(r.job for r in choice.replacements)
        before = {job: seen.assignment[job] for job in jobs}
        takes = {(each.job, each.rank): each.spare for each in choice.replacements}
        after = {
            job: tuple(takes.get((job, rank), accelerator) for rank, accelerator in enumerate(ranks))
            for job, ranks in before.items()
        }
        # A permit states the light paths of a job, which change now.
        moved = dict.fromkeys([*jobs, *(circuit.owner for circuit in (*paths.remove, *paths.add))])
        permits = without_permits(seen.assignment, moved)
        orders = {**orders_after(seen, self.moves), **permits, **self.phases}
        standing = {name: seen.assignment.get(name, ()) for name in orders}
        fillers = filler_changes(seen, takes.values(), after)
        filler_records = fillers.records
        steps = StepList(context.inventory)
        kept = [c.id for c in paths.keep]
        steps.check([r.spare for r in choice.replacements], kept=kept, replaced=[c.id for c in paths.remove])
        # Before any transmitter is switched: a job must hold before its light goes out. Fillers first: if one cannot
        # be paused, no other job has been disturbed.
        steps.jobs([*fillers.stopped, *moved], PAUSE)
        # In a return, ranks may trade places: what one of them leaves, another takes.
        busy = {lane.id for r in choice.replacements for lane in context.inventory.transponders_of(r.spare)}
        for replacement in choice.replacements:
            # A dead accelerator's host may be gone altogether; then there is nothing left to darken.
            for lane in context.inventory.transponders_of(replacement.failed):
                if lane.id not in busy:
                    steps.transmit(lane.id, enabled=False, required=False)
            for lane in context.inventory.transponders_of(replacement.spare):
                steps.transmit(lane.id, enabled=True, required=True)
        for move in self.moves:
            # Nothing uses the failing lane any more, and it may not even accept the command.
            steps.transmit(move.leaves, enabled=False, required=False)
            steps.transmit(move.takes, enabled=True, required=True)
        steps.program(paths.writes)
        steps.verify([c.id for c in paths.add], kept)
        steps.confirm(with_timer(context, paths))
        # Last: the record must not show ranks on spares whose light is not proved.
        earlier = {name: seen.assignment.get(name, ()) for name in filler_records}
        if before or orders or earlier:
            steps.assign({**before, **standing, **earlier}, {**after, **orders, **filler_records})
        steps.jobs([*moved, *fillers.started], RESUME)
        listed, measured = timed(context.store(self.rack), steps.steps)
        owners = dict.fromkeys([*jobs, *(circuit.owner for circuit in paths.add)])
        pinned = {job: seen.assignment[job] for job in owners} | phases_among(seen.assignment, owners)
        pinned |= standing | earlier
        written = silent_devices(seen, [device for device, cells in paths.writes.items() if cells])
        needed = silent_hosts(seen, paths.add)
        silent = [*written, *needed]
        return Plan(
            kind="swap",
            title=self.title,
            rack=self.rack,
            target=context.target,
            created_at=seen.at,
            inventory_digest=context.inventory.digest,
            start=start_of(pinned, self.states, paths, beside=seen.assignment),
            replacements=choice.replacements,
            candidates=choice.candidates,
            add=paths.add,
            remove=paths.remove,
            keep=paths.keep,
            changes=tuple(change for cells in paths.writes.values() for change in cells),
            steps=listed,
            warnings=(
                *self.notes,
                *(_silence(each, "the plan writes it") for each in written),
                *(_silence(each, "the light of a new circuit cannot be proved without it") for each in needed),
                *_moves(paths),
                *thin_margins(context, paths),
                *without_hook(context.inventory, moved),
            ),
            why=(*choice.why, *_why_lanes(seen, self.moves), *fillers.why()),
            measured=measured,
            even_if_healthy=self.even_if_healthy,
            unanswered=tuple(each.component for each in silent),
            faults=self.faults,
        ).sealed()


def left_there(
    seen: Observation, states: Mapping[str, States], avoided: Avoided, jobs: Collection[str]
) -> tuple[str, ...]:
    """A note for each circuit of another job that passes a component to avoid: it stays."""
    others = [job for job in jobs_in(seen.assignment) if job not in jobs]
    return tuple(
        f"circuit {name} also passes it and stays: it belongs to another job"
        for name in circuits_through(seen, states, avoided, others)
    )


def certain_states(context: Context, rack: str, jobs: Collection[str]) -> dict[str, States]:
    """The states of each mesh and switch of a rack; those of devices that carry a phase of these jobs must be certain.

    Raises:
        RefusedError: the states of such a device are not certain, for example because a run was interrupted while it
            wrote to the device.
    """
    inventory, placed = context.inventory, context.assignment()
    phases = ((each, placed[job]) for job in jobs for each in inventory.jobs[job].in_phases())
    carrying = {d for job, ranks in phases for c in job_circuits(inventory, job, ranks) for d in c.devices}
    states: dict[str, States] = {}
    for device in inventory.devices.values():
        if device.rack == rack and device.kind.carries_light:
            states[device.id] = context.known_cells(device.id)
            if device.id in carrying and not states[device.id]:
                raise uncertain(context, rack, device.id)
    return states


def start_of(assignment: Assignment, states: Mapping[str, States], paths: LightPaths, *, beside: Assignment) -> Start:
    """The start that a plan requires: a placement, and the states of devices that it writes or its circuits pass.

    The slices ``beside`` it whose circuits it changes or keeps belong to it: no inventory says where they run.
    """
    owners = dict.fromkeys(circuit.owner for circuit in (*paths.add, *paths.remove, *paths.keep))
    placed = slices_among(beside, owners) | {job: tuple(ranks) for job, ranks in assignment.items()}
    passed = (device for circuit in (*paths.add, *paths.keep) for device in circuit.devices)
    devices = dict.fromkeys([*paths.writes, *passed])
    return Start.of(placed, {device: states[device] for device in devices if states.get(device)})


def with_timer(context: Context, paths: LightPaths) -> list[str]:
    """The written devices that revert by themselves unless confirmed."""
    return [
        device
        for device, cells in paths.writes.items()
        if cells and Capability.CONFIRM_TIMER in context.devices.changing(device).capabilities
    ]


def _why_lanes(seen: Observation, moves: LaneMoves) -> Iterator[str]:
    for move in moves:
        state = seen.report.links[move.takes].state
        well = "" if state in HARMLESS else f", and is {state}"
        names = ", ".join(move.circuits)
        leaves = "leaves" if len(move.circuits) == 1 else "leave"
        yield f"{names} {leaves} {move.leaves} for {move.takes}, which is free on {move.accelerator}{well}"


def _silence(silent: Finding, need: str) -> str:
    name = silent.component
    why = f"{name} did not answer when this plan was made ({reason_of(silent)})"
    return f"{why}, and {need}: it cannot be applied {until_answered([name])}"


def _moves(paths: LightPaths) -> tuple[str, ...]:
    owners = {circuit.id: circuit.owner for circuit in paths.remove}
    return tuple(
        f"circuit {name} of {owners[name]} is rerouted to make room: it is dark meanwhile"
        for name in sorted(paths.moved)
    )


def thin_margins(context: Context, paths: LightPaths) -> tuple[str, ...]:
    """A warning for each new circuit whose light is expected to arrive with less margin than health requires."""
    margin = context.inventory.thresholds.rx_margin_db
    thin = []
    for circuit in paths.add:
        needed = max(context.inventory.transponders[str(end["lane"])].rx_sensitivity_dbm for end in circuit.ends)
        if circuit.expected_rx_dbm is not None and circuit.expected_rx_dbm < needed + margin:
            thin.append(
                f"circuit {circuit.id} is expected to arrive with {circuit.expected_rx_dbm:.1f} dBm, less than "
                f"{margin:g} dB above the {needed:.1f} dBm that its receiver needs"
            )
    return tuple(thin)


def timed(store: Store, steps: Sequence[Step]) -> tuple[tuple[Step, ...], Mapping[str, int]]:
    """The steps, with the median of earlier runs as their expected time; and by step, the number of those runs.

    A step with fewer than ``_FEWEST`` earlier runs keeps its given time.
    """
    seen = _lately(store)
    times = {step.id: seen.get(_like(step.do.value, step.title), []) for step in steps}
    known = {name: found for name, found in times.items() if len(found) >= _FEWEST}
    listed = tuple(
        replace(step, expected_seconds=round(median(known[step.id]), 4)) if step.id in known else step for step in steps
    )
    return listed, {name: len(found) for name, found in known.items()}


def _lately(store: Store) -> Mapping[tuple[str, str], list[float]]:
    """By kind of step (and device, if it writes one), the seconds that finished steps took in the latest runs.

    A run counts once for each kind, with its longest step.
    """
    begun: dict[tuple[str, str], tuple[float, tuple[str, str]]] = {}
    taken: dict[tuple[tuple[str, str], str], float] = {}
    for entry in store.journal.latest(_ENTRIES):
        at = (entry.run, entry.step)
        if entry.kind == "intent" and "title" in entry.data:
            begun[at] = (entry.at, _like(str(entry.data.get("do")), str(entry.data["title"])))
        elif entry.kind == "outcome" and entry.data.get("done") and at in begun:
            started, like = begun[at]
            took = entry.seconds if entry.seconds is not None else entry.at - started
            if took >= 0:  # negative if the clock was set back and the entry does not record its seconds
                taken[like, entry.run] = max(taken.get((like, entry.run), 0.0), took)
    found: dict[tuple[str, str], list[float]] = {}
    for (like, _), seconds in taken.items():
        found.setdefault(like, []).append(seconds)
    return found


def _like(do: str, title: str) -> tuple[str, str]:
    """The key of comparable steps: their kind and, for steps that write a device, that device."""
    return do, title.rpartition(" of ")[2] if do == Do.PROGRAM else ""
