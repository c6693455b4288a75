"""The proof, before anything is written, that a plan leaves alone every circuit that it does not mean to change.

Plans are made so that this holds; a runbook may have been edited. Whatever its steps say, the cells decide.
"""

from collections.abc import Iterator, Mapping

from lumctl.change.circuits import circuits_before_and_after
from lumctl.change.plan import Do, Plan
from lumctl.devices.types import PucState
from lumctl.errors import RefusedError
from lumctl.fabric import trace
from lumctl.fabric.condition import mesh_of
from lumctl.inventory.wiring import Circuit
from lumctl.site import Site

States = Mapping[int, PucState]


def require_others_untouched(site: Site, plan: Plan) -> None:
    """Refuse a plan whose cells change a circuit that it does not replace, or whose light nobody would prove.

    Raises:
        RefusedError: it does; the circuit is named.
    """
    before, after = circuits_before_and_after(site, plan)
    kept = [circuit for name, circuit in before.items() if after.get(name) == circuit]
    for device, held, written in _pinned_changes(plan):
        watched = {
            name
            for step in plan.steps
            if step.do is Do.VERIFY
            for key in ("circuits", "kept")
            for name in step.data[key]
        }
        for circuit in kept:
            if circuit.device != device or not _way(site, circuit, held):
                continue
            if _way(site, circuit, held) != _way(site, circuit, {**held, **written}):
                raise RefusedError(
                    f"{plan.id} would change circuit {circuit.id} of {circuit.owner}, which it does not replace"
                )
            # A circuit that was not sound before the run that is taken back is put back, and cannot be proved.
            put_back = plan.undoes is not None and circuit.id in {c.id for c in plan.add}
            if circuit.id not in watched and not put_back:
                raise RefusedError(
                    f"{plan.id} writes {device} and does not verify afterwards that {circuit.id} still stands",
                    hint="name it under `kept` of a verify step",
                )


def _pinned_changes(plan: Plan) -> Iterator[tuple[str, States, States]]:
    """For each device that is written in part: its states before, and the cells that change."""
    writes: dict[str, dict[int, PucState]] = {}
    for step in plan.steps:
        if step.do is Do.PROGRAM:
            cells = {int(puc): PucState(mark) for puc, _, mark in step.data["changes"]}
            writes.setdefault(step.data["device"], {}).update(cells)
    for device, cells in writes.items():
        if device in plan.start.crosses:
            yield device, dict.fromkeys(plan.start.crosses[device], PucState.CROSS), cells


def _way(site: Site, circuit: Circuit, states: States) -> tuple[tuple[int, PucState], ...]:
    """The cells that a circuit runs through, with their states; empty where the states do not make it."""
    device = site.inventory.devices[circuit.device]
    if device.geometry is None:
        return ()
    found = trace(mesh_of(device), states, circuit.ports[0])
    return tuple(found.passes) if found.exit == circuit.ports[1] else ()
