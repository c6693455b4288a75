"""Circuits led round what is dying: PUCs of a mesh, and lanes by their transponder or port."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from lumctl.devices.types import PucState
from lumctl.errors import RefusedError, UsageError
from lumctl.fabric import trace
from lumctl.fabric.condition import mesh_of
from lumctl.inventory.components import Part, find_component, lanes_at
from lumctl.inventory.model import Inventory
from lumctl.inventory.wiring import Circuit, jobs_in
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


def nothing_there(
    seen: Observation, states: Mapping[str, States], avoided: Avoided, jobs: Sequence[str]
) -> RefusedError:
    """What is said where no circuit of these jobs passes what is to be avoided."""
    others = [job for job in jobs_in(seen.assignment) if job not in jobs]
    there = list(circuits_through(seen, states, avoided, others))
    hint = "see the ways of all circuits: lumctl fabric show"
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
