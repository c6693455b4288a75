"""Which circuits a plan means: ids stay the same over a swap, so each has an end before it and one after it."""

from collections.abc import Mapping
from typing import Any

from lumctl.change.plan import Do, Plan
from lumctl.inventory.wiring import Circuit, circuits_of
from lumctl.site import Site

Circuits = Mapping[str, Circuit]


def circuits_before_and_after(site: Site, plan: Plan) -> tuple[Circuits, Circuits]:
    """The circuits by id, under the placement that a plan starts from and under the one that it leads to."""
    whole = {**site.assignment(sound=False), **plan.start.assignment}
    after = dict(whole)
    for step in plan.steps:
        if step.do is Do.ASSIGN:
            after |= placed_by(step.data["assignment"])
    return _by_id(site, whole), _by_id(site, after)


def _by_id(site: Site, placed: Mapping[str, tuple[str, ...]]) -> Circuits:
    return {circuit.id: circuit for circuit in circuits_of(site.inventory, placed)}


def placed_by(assignment: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """A placement as written in a step."""
    return {job: tuple(accelerators) for job, accelerators in assignment.items()}
