"""Proof, before anything is written, that a plan changes only the circuits that it lists.

A circuit keeps its id across a swap but its ends may change, so its ends before and after the plan are compared.
"""

from collections.abc import Collection, Mapping
from typing import Any

from lumctl.change.plan import Do, Plan, Step, from_document, programmed
from lumctl.context import Context
from lumctl.errors import RefusedError, UsageError
from lumctl.fabric import FabricStates, LightPath
from lumctl.inventory.wiring import Circuit, circuits_of, in_the_way, own_cells

_TAKES = frozenset({Do.CHECK, Do.JOB, Do.TRANSMIT, Do.PROGRAM, Do.VERIFY, Do.CONFIRM, Do.ASSIGN, Do.SET})


def is_rollback(context: Context, plan: Plan) -> bool:
    """Whether a plan is a true rollback of a run in its rack's store: each step is the opposite of one of that run.

    The plan's own claim is not enough, because anyone can write a plan's file.

    Raises:
        StoreError: the store cannot be read.
    """
    if plan.undoes is None or plan.replacements:
        return False
    try:
        run = context.store(plan.rack).runs.get(plan.undoes)
        done = from_document(run.plan)
    except UsageError:
        return False
    if (run.rack, run.target) != (plan.rack, plan.target):
        return False
    return all(_is_opposite(step, done) for step in plan.steps)


def _is_opposite(step: Step, done: Plan) -> bool:
    of_kind = [other for other in done.steps if other.do is step.do]
    match step.do:
        case Do.PROGRAM:
            written = {(c.device, c.puc, c.after, c.before) for c in programmed(of_kind)}
            return all((c.device, c.puc, c.before, c.after) in written for c in programmed([step]))
        case Do.ASSIGN:
            before = [placed_by(other.data["before"]) for other in of_kind]
            back = placed_by(step.data["assignment"])
            return all(any(each.get(job) == ranks for each in before) for job, ranks in back.items())
        case Do.TRANSMIT:
            switched = {(other.data["transponder"], not other.data["enabled"]) for other in of_kind}
            lit = {(str(end["lane"]), True) for circuit in done.add for end in circuit.ends}  # an interrupted blink
            return (step.data["transponder"], step.data["enabled"]) in switched | lit
        case Do.SET:
            # Values are not compared: the earlier value comes from the run's journal, not from its plan.
            meant = {(other.data["component"], other.data["setting"]) for other in of_kind}
            return (step.data["component"], step.data["setting"]) in meant
    return step.do in _TAKES


Circuits = Mapping[str, Circuit]


def circuits_before_and_after(context: Context, plan: Plan) -> tuple[Circuits, Circuits]:
    """Circuits by id, for the placement before a plan and for the placement after it."""
    whole = {**context.assignment(sound=False), **plan.start.assignment}
    after = dict(whole)
    for step in plan.steps:
        if step.do is Do.ASSIGN:
            after |= placed_by(step.data["assignment"])
    return _by_id(context, whole), _by_id(context, after)


def _by_id(context: Context, placed: Mapping[str, tuple[str, ...]]) -> Circuits:
    return {circuit.id: circuit for circuit in circuits_of(context.inventory, placed)}


def placed_by(assignment: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """The placement that a step records."""
    return {job: tuple(accelerators) for job, accelerators in assignment.items()}


def require_foreign_circuits_kept(context: Context, plan: Plan) -> None:
    """Refuse a plan that changes a circuit that it does not replace, or that leaves a changed circuit without a proof.

    Only circuits on devices that the plan writes are checked.

    Raises:
        RefusedError: there is such a circuit; the message names it.
    """
    before, after = circuits_before_and_after(context, plan)
    # A kept circuit that the plan both removes and adds takes another path between the same ends.
    led_elsewhere = {c.id for c in plan.add if c.owner in plan.start.assignment} & {c.id for c in plan.remove}
    # Undoing a run removes the circuits that it programmed.
    taken = {c.id for c in plan.remove} - {c.id for c in plan.add} if is_rollback(context, plan) else set[str]()
    kept = [circuit for name, circuit in before.items() if after.get(name) == circuit and name not in taken]
    written, held = _pinned_changes(context, plan)
    stands = held.with_changed(written)
    watched = {
        name for step in plan.steps if step.do is Do.VERIFY for key in ("circuits", "kept") for name in step.data[key]
    }
    for circuit in kept if written else ():
        path = held.path_of(circuit)
        touched = [segment.device for segment in path.segments if segment.device in written] if path else []
        if path is None or not touched:
            continue
        if circuit.id in led_elsewhere:
            _require_led(plan, circuit, stands, watched)
            continue
        if is_changed(circuit, held, stands) or _is_taken(context, path, stands):
            raise RefusedError(
                f"{plan.id} would change circuit {circuit.id} of {circuit.owner}, but replaces nothing in that job",
                hint="leave the cells of that circuit unchanged",
            )
        # A circuit that was not sound before the undone run is restored, but cannot be proved.
        put_back = plan.undoes is not None and circuit.id in {c.id for c in plan.add}
        if circuit.id not in watched and not put_back:
            raise RefusedError(
                f"{plan.id} would write {touched[0]} without a proof that circuit {circuit.id} still works",
                hint="list the circuit under `kept` of a verify step",
            )


def _require_led(plan: Plan, circuit: Circuit, stands: FabricStates, watched: Collection[str]) -> None:
    """Require that a circuit which a plan moves to another path exists afterwards and is proved."""
    is_made = stands.path_of(circuit) is not None
    if not is_made or (circuit.id not in watched and plan.undoes is None):
        raise RefusedError(
            f"{plan.id} would reroute circuit {circuit.id} of {circuit.owner}, and does not "
            + ("prove afterwards that it works" if is_made else "program its new route"),
            hint="list it under `circuits` of a verify step, and write the cells of its new route",
        )


def _pinned_changes(context: Context, plan: Plan) -> tuple[dict[str, dict[int, str]], FabricStates]:
    """The changed cells of each device whose earlier states the plan holds, and the states of the fabric before it.

    Devices of which all cells are written are omitted: their earlier states are unknown, and their circuits are lost
    anyway.
    """
    writes = plan.writes
    pinned: dict[str, dict[int, str]] = {}
    for device in writes:
        held = plan.start.cells(device, own_cells(context.inventory, context.inventory.devices[device]))
        if held is not None:
            pinned[device] = held
    written = {device: cells for device, cells in writes.items() if device in pinned}
    # Devices that are not written matter only to circuits that come from another device.
    beside = context.known_fabric(plan.rack) if pinned and context.inventory.fibres else {}
    others = {device: cells for device, cells in beside.items() if device not in writes}
    return written, FabricStates(context.inventory, {**others, **pinned})


def states_after(context: Context, plan: Plan) -> FabricStates:
    """The states of the fabric that a plan leaves behind; the store's record for what the plan neither pins nor writes.

    The states that the plan pins are those of its planning, so a plan that was applied long ago leaves the same.
    """
    before = _pinned_changes(context, plan)[1].cells
    return FabricStates(context.inventory, {**context.known_fabric(plan.rack), **before}).with_changed(plan.writes)


def _is_taken(context: Context, path: LightPath, stands: FabricStates) -> bool:
    """Whether a switch would have to disconnect a circuit because the plan connects one of its ports elsewhere."""
    return any(
        in_the_way(stands.cells[segment.device], min(segment.ports), max(segment.ports)) is not None
        for segment in path.segments
        if context.inventory.devices[segment.device].geometry is None
    )


def is_changed(circuit: Circuit, before: FabricStates, after: FabricStates) -> bool:
    """Whether a change gives a circuit another path or no path, or alters a cell on its path.

    A circuit without a path before the change counts as changed.
    """
    was, now = before.path_of(circuit), after.path_of(circuit)
    return was != now or was is None or now is None or before.cells_of(was) != after.cells_of(now)
