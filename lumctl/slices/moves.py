"""Propose moves of slices that make room: after them a larger box is free than before.

Every box of the torus is tried as the one to make free, the largest first: each slice that has an accelerator in it is
given another place outside it: a box, or scattered servers. Jobs of the inventory and spares are never moved.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from lumctl.change.plan import SLICE, Do, Plan, SliceFacts
from lumctl.context import Context, Observation
from lumctl.errors import LumctlError, UsageError
from lumctl.fabric import FabricStates
from lumctl.inventory.folded_names import fold
from lumctl.inventory.model import Inventory, Job
from lumctl.inventory.problems import nearest
from lumctl.inventory.slice_records import record_of, shape_of, slice_record, slices_in, torus_links, with_slices
from lumctl.inventory.wiring import Assignment, circuits_of, job_circuits, orders_in
from lumctl.jobs import without_hook
from lumctl.jobs.hooks import PAUSE, RESUME
from lumctl.printable import shape_text
from lumctl.slices.allocation import SliceDemand, SlicePlacement, ring_demand
from lumctl.slices.allocator import allocate
from lumctl.slices.boxes import boxes_in, find_box
from lumctl.slices.documents import port_rows
from lumctl.slices.fragmentation import largest_slice, shapes_in
from lumctl.slices.planning import fibres_by_circuit
from lumctl.slices.rack_state import RackState, rack_state
from lumctl.slices.request import tori_of
from lumctl.slices.torus import Coordinates, Extents, Torus
from lumctl.swap.draft import start_of, thin_margins, timed, with_timer
from lumctl.swap.light_paths import States
from lumctl.swap.path_routing import light_paths_along
from lumctl.swap.steps import StepList

_TRIED = 48
"""How many boxes of one shape are tried."""


@dataclass(frozen=True)
class Defragmentation:
    """Moves of slices in one rack, in their order, and the shape of the largest free box before and after them."""

    rack: str
    before: Extents | None
    after: Extents | None
    plans: tuple[Plan, ...] = ()


@dataclass(frozen=True)
class _Prospect:
    """A rack as it is, or as it will be once some plans have been carried out."""

    seen: Observation
    known: Mapping[str, States]

    def after(self, plan: Plan) -> "_Prospect":
        """The rack once this plan is carried out as well."""
        known = {device: dict(cells) for device, cells in self.known.items()}
        for change in plan.changes:
            known[change.device][change.puc] = change.after
        placed = dict(self.seen.assignment)
        for step in plan.steps:
            if step.do is Do.ASSIGN:
                placed |= {name: tuple(ranks) for name, ranks in step.data["assignment"].items()}
        return self._with(known, placed)

    def without(self, jobs: Iterable[str]) -> "_Prospect":
        """The rack if these slices had been released."""
        gone = {name: () for job in jobs for name in (job, shape_of(job))}
        return self._with(self.known, {**self.seen.assignment, **gone})

    def _with(self, known: Mapping[str, States], placed: Assignment) -> "_Prospect":
        placed = {name: ranks for name, ranks in placed.items() if ranks}
        inventory = with_slices(self.seen.inventory, placed)
        circuits, fabric = circuits_of(inventory, placed), FabricStates(inventory, known)
        paths = {circuit.id: fabric.path_of(circuit) for circuit in circuits}
        seen = replace(self.seen, inventory=inventory, assignment=placed, circuits=circuits, paths=paths)
        return _Prospect(seen, known)


def plan_moves_of(context: Context, racks: Sequence[str], *, most: int, seed: int = 0) -> list[Defragmentation]:
    """Moves in each of these racks, by default in every rack with a torus; see :func:`plan_moves`.

    Raises:
        UsageError: a rack is unknown or has no torus, or none has one.
    """
    tori = tori_of(context.inventory)
    for name in racks:
        if name not in tori:
            near = nearest(name, tori)
            known = f"did you mean {near}?" if near else f"racks that have one: {', '.join(tori)}"
            raise UsageError(f"{name!r} is no rack with a `torus:`", hint=known)
    context.assignment()
    seen = context.observe()
    return [plan_moves(context, rack, most=most, seed=seed, seen=seen) for rack in racks or tori]


def plan_moves(
    context: Context, rack: str, *, most: int, seed: int = 0, seen: Observation | None = None
) -> Defragmentation:
    """Plans for at most so many moves in a rack with a torus, after which the largest possible box is free.

    Each plan starts from the rack as the plans before it leave it. None is applied. ``seen`` is a fresh observation,
    if the caller has one.
    """
    context.assignment()
    seen = seen or context.observe()
    now = _Prospect(seen, {device: cells for device, cells in context.known_fabric(rack).items() if cells})
    torus = rack_state(seen, rack, context.known_cells).torus
    before = largest_slice(torus, ring_demand, contiguous=True)
    held = _held(context, now, rack)
    for shape, box in _larger_boxes(torus, before, held, most):
        plans, later = list[Plan](), now
        try:
            for job in dict.fromkeys(held[place] for place in sorted(box) if place in held):
                plans.append(_move(context, later, rack, job, box, seed))
                later = later.after(plans[-1])
        except LumctlError:
            continue  # a slice has no other place, or the meshes have no way to it
        torus = rack_state(later.seen, rack, context.known_cells).torus
        if find_box(torus, ring_demand(shape)).placement is not None:
            return Defragmentation(rack, before, largest_slice(torus, ring_demand, contiguous=True), tuple(plans))
    return Defragmentation(rack, before, before)


def _held(context: Context, now: _Prospect, rack: str) -> dict[Coordinates, str]:
    """The places that slices hold and that would be free without them, with the slice's name."""
    slices = [job.name for job in now.seen.inventory.jobs.values() if job.is_slice and job.rack == rack]
    state = rack_state(now.without(slices).seen, rack, context.known_cells)
    owner = {name: job for job in slices for name in now.seen.assignment[job]}
    free = ((place, state.accelerators[place]) for place in sorted(state.torus.free))
    return {place: owner[name] for place, name in free if name in owner}


def _larger_boxes(
    torus: Torus, now: Extents | None, held: Mapping[Coordinates, str], most: int
) -> Iterator[tuple[Extents, frozenset[Coordinates]]]:
    """Boxes larger than the largest free one that could be made free by so many moves.

    The largest come first, and of one shape those that fewer slices, and then fewer of their accelerators, are in.
    """
    least = prod(now) if now else 0
    for shape in shapes_in(torus):
        if prod(shape) <= least:
            return
        found: dict[frozenset[Coordinates], tuple[int, int]] = {}
        for box in map(frozenset, boxes_in(torus, SliceDemand(shape))):
            kept = box - torus.free
            if kept and all(place in held for place in kept):
                owners = {held[place] for place in kept}
                if len(owners) <= most:
                    found[box] = (len(owners), len(kept))
        for box in sorted(found, key=lambda each: (found[each], sorted(each)))[:_TRIED]:
            yield shape, box


def _move(context: Context, now: _Prospect, rack: str, job: str, box: frozenset[Coordinates], seed: int) -> Plan:
    """The plan that moves a slice to where it holds nothing of a box.

    Raises:
        LumctlError: there is no such place, or none was found.
    """
    slice_ = now.seen.inventory.jobs[job]
    state = rack_state(now.without([job]).seen, rack, context.known_cells)
    torus = replace(state.torus, free=state.torus.free - box)
    links = torus_links(slice_)
    x, y, z = (*links.shape, 1, 1)[:3]
    a, b, c = (*links.widths, 1, 1, 1)[:3]
    answer = allocate(torus, [ring_demand((x, y, z), (a, b, c))], seed=seed)
    if answer.placement is None:
        raise LumctlError(f"{job} has no other place: {'; '.join(answer.reasons)}")
    return _plan(context, now, state, slice_, answer.placement)


def _plan(context: Context, now: _Prospect, state: RackState, slice_: Job, placement: SlicePlacement) -> Plan:
    seen, rack, job = now.seen, state.rack, slice_.name
    before, links = seen.assignment[job], torus_links(slice_)
    after = tuple(state.accelerators[place] for place in placement.accelerators)
    record = slice_record(links.shape, after, links.widths)
    moved = slices_in(seen.inventory, {job: after, shape_of(job): record})[job]
    inventory: Inventory = replace(seen.inventory, jobs={**seen.inventory.jobs, job: moved})
    own = job_circuits(inventory, moved, after, orders_in(seen.assignment))
    others = [circuit for circuit in seen.circuits if circuit.owner != job]
    paths = light_paths_along(
        inventory, seen.circuits, (*others, *own), now.known, fibres_by_circuit(moved, placement, own)
    )
    steps, kept = StepList(inventory), [circuit.id for circuit in paths.keep]
    steps.check(
        [name for name in after if name not in before], kept=kept, replaced=[circuit.id for circuit in paths.remove]
    )
    steps.job(job, PAUSE)
    left = [lane.id for name in before if name not in after for lane in inventory.transponders_of(name)]
    for lane in left:
        steps.transmit(lane, enabled=False, required=False)
    for lane in dict.fromkeys(end.transponder for circuit in own for end in (circuit.a, circuit.b)):
        steps.transmit(lane, enabled=True, required=True)
    steps.program(paths.writes)
    steps.verify([circuit.id for circuit in paths.add], kept)
    steps.confirm(with_timer(context, paths))
    was = {job: before, shape_of(job): record_of(slice_)}
    steps.assign(was, {job: after, shape_of(job): record})
    steps.job(job, RESUME)
    listed, measured = timed(context.store(rack), steps.steps)
    form = "a box" if placement.contiguous else "scattered servers"
    text = shape_text(links.shape)
    return Plan(
        kind=SLICE,
        title=f"move {job} ({text}) to {form}",
        rack=rack,
        target=context.target,
        created_at=seen.at,
        inventory_digest=inventory.digest,
        start=start_of(was, now.known, paths, beside=seen.assignment),
        add=paths.add,
        remove=paths.remove,
        keep=paths.keep,
        changes=tuple(change for cells in paths.writes.values() for change in cells),
        steps=listed,
        warnings=(*thin_margins(context, paths), *without_hook(inventory, [job])),
        measured=measured,
        slices=SliceFacts(
            slices=({"job": job, "shape": text, "contiguous": placement.contiguous, "circuits": len(own)},),
            placement=tuple(
                {"job": job, "rank": rank, "accelerator": name, "host": inventory.accelerators[name].host}
                for rank, name in enumerate(after)
            ),
            bandwidth=tuple({"job": job, **row} for row in port_rows(inventory, moved)),
        ),
    ).sealed()


def moves_document(found: Defragmentation) -> dict[str, Any]:
    """The moves of a rack as a document."""
    return {
        "rack": found.rack,
        "largest_box": None if found.before is None else shape_text(found.before),
        "largest_box_after": None if found.after is None else shape_text(found.after),
        "moves": list(move_rows(found)),
    }


def move_rows(found: Defragmentation) -> Iterator[dict[str, Any]]:
    """One row for each move; the accelerators are folded."""
    for number, plan in enumerate(found.plans, 1):
        facts = plan.slices or SliceFacts()
        job = str(facts.slices[0]["job"])
        yield {
            "number": number,
            "plan": plan.id,
            "job": job,
            "shape": facts.slices[0]["shape"],
            "from": ", ".join(fold(sorted(plan.start.assignment[job]))),
            "to": ", ".join(fold(sorted(str(row["accelerator"]) for row in facts.placement))),
            "form": "box" if facts.slices[0]["contiguous"] else "scattered",
        }
