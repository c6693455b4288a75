"""Slices on a simulated torus: planned, placed, and followed through the meshes."""

from lumctl.change import apply
from lumctl.fabric import FabricStates
from lumctl.inventory.wiring import circuits_of
from lumctl.slices.planning import plan_slice
from lumctl.slices.request import SliceRequest, read_shapes


def planned(rack, shape, job, **asked):
    return plan_slice(rack.context, SliceRequest(read_shapes(shape), (job,), (), **asked))


def placed(rack, shape, job, **asked):
    plan = planned(rack, shape, job, **asked)
    result = apply(rack.context, plan)
    assert len(result.verified) == sum(2 if circuit.direction == "duplex" else 1 for circuit in plan.add)
    return plan, result


def paths(rack):
    """The path of each circuit by the states of the meshes themselves."""
    states, inventory = FabricStates(rack.inventory, rack.cells()), rack.context.inventory
    return {c.id: states.path_of(c) for c in circuits_of(inventory, rack.context.assignment())}
