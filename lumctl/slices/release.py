"""Plan the release of slices: their circuits go dark, and what only they used is free again."""

from collections.abc import Mapping, Sequence

from lumctl.change.plan import SLICE, Plan, PlannedChange, SliceFacts
from lumctl.context import Context
from lumctl.devices.types import PucState
from lumctl.errors import UsageError
from lumctl.fabric import FabricStates, condition_of
from lumctl.inventory.model import DeviceKind, Inventory, Job
from lumctl.inventory.problems import nearest
from lumctl.inventory.slice_records import record_of, shape_of
from lumctl.inventory.wiring import FREE, Circuit, circuits_of
from lumctl.jobs import without_hook
from lumctl.jobs.hooks import PAUSE
from lumctl.swap.draft import start_of, timed, with_timer
from lumctl.swap.light_paths import LightPaths, States, planned_circuits
from lumctl.swap.steps import StepList


def find_slice(inventory: Inventory, name: str) -> Job:
    """A slice by its name.

    Raises:
        UsageError: no slice has that name.
    """
    slices = {job.name: job for job in inventory.jobs.values() if job.is_slice}
    if name in slices:
        return slices[name]
    if name in inventory.jobs:
        raise UsageError(f"{name} is a job of {inventory.path}, not a slice", hint="see: lumctl slice list")
    near = nearest(name, slices)
    if near:
        known = f"did you mean {near}?"
    else:
        known = f"the slices are: {', '.join(slices)}" if slices else "place one: lumctl slice plan SHAPE --job NAME"
    raise UsageError(f"there is no slice {name!r}", hint=known)


def plan_release(context: Context, name: str, *, force: bool = False) -> Plan:
    """Plan to release a slice: pause its job, darken its transmitters, and free its accelerators and fibres.

    PUCs that no circuit passes any more return to bar. With ``force`` the job is not paused.

    Raises:
        UsageError: there is no such slice.
    """
    placed = context.assignment()
    job = find_slice(context.inventory, name)
    inventory, rack, ranks = context.inventory, job.rack, placed[name]
    record = record_of(job)
    circuits = circuits_of(inventory, placed)
    own = [circuit for circuit in circuits if circuit.owner == name]
    known = {device: cells for device, cells in context.known_fabric(rack).items() if cells}
    others = [c for c in circuits if c.owner != name and inventory.jobs[c.owner].rack == rack]
    writes = _freed(inventory, known, own, others)
    fabric = FabricStates(inventory, known)
    stay = [c for c in others if (path := fabric.path_of(c)) is not None and not writes.keys().isdisjoint(path.devices)]
    paths = LightPaths(
        remove=planned_circuits(inventory, own, known), keep=planned_circuits(inventory, stay, known), writes=writes
    )
    steps, kept = StepList(inventory), [circuit.id for circuit in stay]
    steps.check([], kept=kept, replaced=[circuit.id for circuit in own])
    if not force:
        steps.job(name, PAUSE)
    for lane in dict.fromkeys(end.transponder for circuit in own for end in (circuit.a, circuit.b)):
        steps.transmit(lane, enabled=False, required=False)  # a host that is gone must not keep the others' fibres
    steps.program(writes)
    if writes:
        steps.verify([], kept)
    steps.confirm(with_timer(context, paths))
    before = {name: ranks, shape_of(name): record}
    steps.assign(before, dict.fromkeys(before, ()))
    listed, measured = timed(context.store(rack), steps.steps)
    facts = {"job": name, "shape": record[0], "circuits": len(own)}
    return Plan(
        kind=SLICE,
        title=f"release {name} ({record[0]})",
        rack=rack,
        target=context.target,
        created_at=context.now(),
        inventory_digest=inventory.digest,
        start=start_of(before, known, paths, beside=placed),
        remove=paths.remove,
        keep=paths.keep,
        changes=tuple(change for cells in writes.values() for change in cells),
        steps=listed,
        warnings=() if force else without_hook(inventory, [name]),
        why=(f"{len(ranks)} accelerators become free",),
        measured=measured,
        slices=SliceFacts(slices=(facts,)),
    ).sealed()


def _freed(
    inventory: Inventory, known: Mapping[str, States], own: Sequence[Circuit], others: Sequence[Circuit]
) -> dict[str, tuple[PlannedChange, ...]]:
    """The cells to write: joins of the slice's circuits, and PUCs in cross that no other circuit passes.

    As long as the path of another circuit is not known, only PUCs on the slice's own paths are written.
    """
    fabric = FabricStates(inventory, known)
    mine = [path for circuit in own if (path := fabric.path_of(circuit)) is not None]
    theirs = [fabric.path_of(circuit) for circuit in others]
    live = {(part.device, puc) for path in theirs if path for part in path.segments for puc in part.pucs}
    on_mine = {(part.device, puc) for path in mine for part in path.segments for puc in part.pucs}
    all_known = all(path is not None for path in theirs)
    writes: dict[str, tuple[PlannedChange, ...]] = {}
    for name, cells in known.items():
        device = inventory.devices[name]
        if device.kind is DeviceKind.SWITCH:
            joined = {port for path in mine for part in path.segments if part.device == name for port in part.ports}
            changed = {at: FREE for at, to in cells.items() if to != FREE and at in joined and int(to) in joined}
        else:
            stuck = condition_of(device).stuck
            changed = {
                puc: str(PucState.BAR)
                for puc, state in cells.items()
                if state == PucState.CROSS
                and puc not in stuck
                and (name, puc) not in live
                and (all_known or (name, puc) in on_mine)
            }
        if changed:
            writes[name] = tuple(PlannedChange(name, cell, cells[cell], to) for cell, to in sorted(changed.items()))
    return writes
