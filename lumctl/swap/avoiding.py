"""Circuits led round what is dying: PUCs of a mesh, and lanes by their transponder or port."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from lumctl.devices.types import PucState
from lumctl.errors import RefusedError, UsageError
from lumctl.fabric import trace
from lumctl.fabric.condition import mesh_of
from lumctl.inventory.components import Part, find_component, lanes_at
from lumctl.inventory.model import Inventory
from lumctl.inventory.wiring import Circuit, job_links
from lumctl.site import Observation
from lumctl.swap.budgets import States


@dataclass(frozen=True)
class Avoided:
    """What no circuit may use: PUCs by device, and lanes. ``named`` is how all of it was written."""

    named: tuple[str, ...] = ()
    pucs: Mapping[str, frozenset[int]] = field(default_factory=dict)
    lanes: tuple[str, ...] = ()


def understand_avoided(inventory: Inventory, names: Sequence[str]) -> Avoided:
    """What the names mean: MESH/puc/N, DEVICE/port/N, or a transponder.

    Raises:
        UsageError: there is no such component, or it is nothing that a circuit could be led round.
    """
    pucs: dict[str, set[int]] = {}
    lanes: list[str] = []
    for name in names:
        found = find_component(inventory, name)
        if found.part is Part.PUC:
            pucs.setdefault(str(found.device), set()).add(found.number)
        elif found.part is Part.TRANSPONDER:
            lanes.append(found.id)
        elif found.part is Part.PORT:
            here = lanes_at(inventory, str(found.device)).get(found.number, ())
            if not here:
                raise UsageError(f"no lane meets {found.id}: no circuit of ours ends there")
            lanes += [lane.id for lane, _ in here]
        else:
            raise UsageError(
                f"circuits cannot be led round {found.id}: all that it carries would be lost",
                hint="name a PUC (MESH/puc/N), a port (DEVICE/port/N) or a transponder",
            )
    return Avoided(tuple(names), {device: frozenset(cells) for device, cells in pucs.items()}, tuple(lanes))


def circuits_through(
    seen: Observation, states: Mapping[str, States], avoided: Avoided, jobs: Collection[str]
) -> Iterator[str]:
    """The circuits of these jobs that pass a PUC to avoid."""
    for circuit in seen.circuits:
        cells = avoided.pucs.get(circuit.device)
        if cells and circuit.owner in jobs and cells & _passed(seen.inventory, states, circuit):
            yield circuit.id


def require_lanes_left(seen: Observation, avoided: Avoided, replaced: Collection[str], jobs: Collection[str]) -> None:
    """Refuse to avoid a lane that a link of these jobs needs, unless its accelerator is replaced.

    Raises:
        RefusedError: one is needed; the message says by which link, and what can be done.
    """
    inventory = seen.inventory
    for name in avoided.lanes:
        lane = inventory.transponders[name]
        place = seen.place_of(lane.accelerator)
        using = [circuit.id for circuit in seen.circuits if name in {circuit.a.transponder, circuit.b.transponder}]
        if not using or lane.accelerator in replaced or place is None or place[0] not in jobs:
            continue
        lanes = inventory.transponders_of(lane.accelerator)
        needed = {
            number
            for link in job_links(inventory.jobs[place[0]])
            for rank, number in ((link.a_rank, link.a_lane), (link.b_rank, link.b_lane))
            if rank == place[1]
        }
        free = [
            other.id
            for number, other in enumerate(lanes)
            if number not in needed and other.id not in avoided.lanes and other.lane.device == lane.lane.device
        ]
        what = (
            f"{name} carries {', '.join(using)}, and which lane of an accelerator a link uses is fixed by their order"
        )
        if free:
            raise RefusedError(
                f"{what} in {inventory.path}; {lane.accelerator} has a free lane, {free[0]}",
                hint=f"write {free[0]} before {name} there, then: lumctl fabric apply; or replace the accelerator: "
                f"lumctl swap plan --failed {lane.accelerator} --avoid {name}",
            )
        raise RefusedError(
            f"{what}; {lane.accelerator} has no lane to spare",
            hint=f"replace the accelerator: lumctl swap plan --failed {lane.accelerator} --avoid {name} "
            "--even-if-healthy",
        )


def nothing_there(
    seen: Observation, states: Mapping[str, States], avoided: Avoided, jobs: Sequence[str]
) -> RefusedError:
    """What is said where no circuit of these jobs passes what is to be avoided."""
    others = [job for job in seen.assignment if job not in jobs]
    there = list(circuits_through(seen, states, avoided, others))
    hint = None
    if there:
        owners = {circuit.owner for circuit in seen.circuits if circuit.id in there}
        hint = f"{', '.join(there)} does; lumctl swap plan {min(owners)} --avoid {','.join(avoided.named)}"
    return RefusedError(
        f"no circuit of {', '.join(jobs)} passes {', '.join(avoided.named)}: nothing to move", hint=hint
    )


def _passed(inventory: Inventory, states: Mapping[str, States], circuit: Circuit) -> frozenset[int]:
    device, held = inventory.devices[circuit.device], states.get(circuit.device)
    if device.geometry is None or not held:
        return frozenset()
    found = trace(mesh_of(device), {puc: PucState(mark) for puc, mark in held.items()}, circuit.ports[0])
    return frozenset(found.pucs)
