"""Proof, before anything is written, that a plan changes no circuit other than those it names.

Circuit ids stay the same over a swap, so each circuit has its ends before the plan and its ends after it.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from lumctl.change.plan import Do, Plan, Step, from_document, programmed
from lumctl.context import Context
from lumctl.devices.types import PucState
from lumctl.errors import RefusedError, UsageError
from lumctl.fabric import trace
from lumctl.fabric.condition import mesh_of
from lumctl.inventory.wiring import Circuit, circuits_of, in_the_way, is_joined, own_cells

_TAKES = frozenset({Do.CHECK, Do.JOB, Do.TRANSMIT, Do.PROGRAM, Do.VERIFY, Do.CONFIRM, Do.ASSIGN, Do.SET})


def is_rollback(context: Context, plan: Plan) -> bool:
    """Whether a plan is a true rollback of a run in its rack's store: each step is the opposite of one of that run.

    The plan's own claim is not enough, because a plan is a file that anybody can write.

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
            lit = {(str(end["lane"]), True) for circuit in done.add for end in circuit.ends}  # after a cut blink
            return (step.data["transponder"], step.data["enabled"]) in switched | lit
        case Do.SET:
            meant = {(other.data["component"], other.data["setting"]) for other in of_kind}
            return (step.data["component"], step.data["setting"]) in meant
    return step.do in _TAKES


Circuits = Mapping[str, Circuit]


def circuits_before_and_after(context: Context, plan: Plan) -> tuple[Circuits, Circuits]:
    """Circuits by id, under the placement before a plan and under the one after it."""
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


States = Mapping[int, str]


def require_foreign_circuits_kept(context: Context, plan: Plan) -> None:
    """Refuse a plan whose cells change a circuit that it does not replace, or that would leave light unproved.

    Raises:
        RefusedError: such a circuit exists; the message names it.
    """
    before, after = circuits_before_and_after(context, plan)
    led_elsewhere = {c.id for c in plan.add if c.owner in plan.start.assignment} & {c.id for c in plan.remove}
    # Undoing a run removes the circuits that it programmed.
    taken = {c.id for c in plan.remove} - {c.id for c in plan.add} if is_rollback(context, plan) else set[str]()
    kept = [circuit for name, circuit in before.items() if after.get(name) == circuit and name not in taken]
    for device, held, written in _pinned_changes(context, plan):
        watched = {
            name
            for step in plan.steps
            if step.do is Do.VERIFY
            for key in ("circuits", "kept")
            for name in step.data[key]
        }
        for circuit in kept:
            if circuit.device != device or not way_of(context, circuit, held):
                continue
            stands = {**held, **written}
            if circuit.id in led_elsewhere:
                _require_led(context, plan, circuit, stands, watched)
                continue
            if way_of(context, circuit, held) != way_of(context, circuit, stands) or _is_taken(
                context, circuit, stands
            ):
                raise RefusedError(
                    f"{plan.id} would change circuit {circuit.id} of {circuit.owner}, which it does not replace",
                    hint="leave the cells of that circuit as they are",
                )
            # A circuit that was not sound before the run that is undone is put back, and cannot be proved.
            put_back = plan.undoes is not None and circuit.id in {c.id for c in plan.add}
            if circuit.id not in watched and not put_back:
                raise RefusedError(
                    f"{plan.id} would write {device} without a proof that circuit {circuit.id} still stands",
                    hint="name it under `kept` of a verify step",
                )


def _require_led(context: Context, plan: Plan, circuit: Circuit, stands: States, watched: Collection[str]) -> None:
    """A circuit that a plan moves to another path must exist afterwards, and be proved."""
    if not way_of(context, circuit, stands) or (circuit.id not in watched and plan.undoes is None):
        raise RefusedError(
            f"{plan.id} would lead circuit {circuit.id} of {circuit.owner} another way, and not "
            + ("prove that it stands afterwards" if way_of(context, circuit, stands) else "make that way"),
            hint="name it under `circuits` of a verify step, and write the cells of its new way",
        )


def _pinned_changes(context: Context, plan: Plan) -> Iterator[tuple[str, States, States]]:
    """For each partly written device: its states before, and the cells that change."""
    writes: dict[str, dict[int, str]] = {}
    for step in plan.steps:
        if step.do is Do.PROGRAM:
            cells = {int(puc): str(mark) for puc, _, mark in step.data["changes"]}
            writes.setdefault(step.data["device"], {}).update(cells)
    for device, cells in writes.items():
        held = plan.start.cells(device, own_cells(context.inventory, context.inventory.devices[device]))
        if held is not None:
            yield device, held, cells


def _is_taken(context: Context, circuit: Circuit, states: States) -> bool:
    """Whether a switch would have to disconnect a circuit because the plan joins one of its ports elsewhere."""
    if context.inventory.devices[circuit.device].geometry is not None:
        return False
    return in_the_way(states, min(circuit.ports), max(circuit.ports)) is not None


def way_of(context: Context, circuit: Circuit, states: States) -> tuple[tuple[int, str], ...]:
    """The cells that a circuit passes, with their states; empty if these states do not make the circuit."""
    device = context.inventory.devices[circuit.device]
    if device.geometry is None:
        ingress, egress = min(circuit.ports), max(circuit.ports)
        return ((ingress, str(egress)),) if is_joined(states, circuit.ports) else ()
    found = trace(mesh_of(device), {puc: PucState(mark) for puc, mark in states.items()}, circuit.ports[0])
    return tuple(found.passes) if found.exit == circuit.ports[1] else ()
