"""The example inventories can be commissioned, and every swap that they are made for can be routed."""

from dataclasses import dataclass
from functools import cache
from math import inf

import pytest

from lumctl.fabric import changes, circuit_losses, mesh, route
from lumctl.inventory.load import example, load_inventory
from lumctl.inventory.model import Role
from lumctl.inventory.wiring import circuits_of, initial_assignment

load = cache(load_inventory)


@dataclass(frozen=True)
class Fabric:
    """What an inventory's meshes hold under an assignment."""

    inventory: object
    assignment: dict
    states: dict

    def circuits(self, device):
        return [c for c in circuits_of(self.inventory, self.assignment) if c.a.device == device]

    def losses(self, device):
        return circuit_losses(self.inventory, self.states, self.circuits(device))

    def swapped(self, failed, spare):
        """The fabric after a swap that leaves all other circuits where they are; asserts that it does."""
        after = {
            job: tuple(spare if accelerator == failed else accelerator for accelerator in ranks)
            for job, ranks in self.assignment.items()
        }
        (device,) = {t.lane.device for t in self.inventory.transponders_of(failed)}
        moved = Fabric(self.inventory, after, self.states)
        old, new = self.circuits(device), moved.circuits(device)
        live = [c for c in new if c in old]
        held = programmed(self, device, [c.ports for c in new if c not in old], [c.ports for c in live])
        result = Fabric(self.inventory, after, {**self.states, device: held})
        before, losses = self.losses(device), result.losses(device)
        assert losses.keys() == {c.id for c in new}
        assert all(losses[c.id] == before[c.id] for c in live)
        return result


def programmed(fabric, device, wanted, live=()):
    geometry = fabric.inventory.devices[device].geometry
    held = fabric.states[device]
    return held | changes(held, route(mesh(geometry.columns, geometry.rows), wanted, states=held, live=live))


@cache
def commissioned(name):
    inventory = load(example(name))
    idle = Fabric(inventory, initial_assignment(inventory), {device: {} for device in inventory.devices})
    held = {device: programmed(idle, device, [c.ports for c in idle.circuits(device)]) for device in inventory.devices}
    return Fabric(inventory, idle.assignment, held)


def spare_for(inventory, accelerator):
    """The spare whose lanes meet the same mesh."""
    device = inventory.transponders_of(accelerator)[0].lane.device
    return next(
        a.id
        for a in inventory.accelerators.values()
        if a.role is Role.SPARE and inventory.transponders_of(a.id)[0].lane.device == device
    )


def workers(inventory):
    return [accelerator for job in inventory.jobs.values() for accelerator in job.ranks]


def worst_margin_db(fabric):
    """The least that any receiver gets above its sensitivity."""
    worst = inf
    for device in fabric.inventory.devices:
        losses = fabric.losses(device)
        for circuit in fabric.circuits(device):
            for receiver, sender in circuit.receivers:
                power = fabric.inventory.transponders[sender].tx_power_dbm - losses[circuit.id]
                worst = min(worst, power - fabric.inventory.transponders[receiver].rx_sensitivity_dbm)
    return worst


@pytest.mark.parametrize(("name", "count"), [("prototype", 6), ("rack64", 60), ("ring4", 4), ("ring8", 8)])
def test_all_job_circuits_are_routed_from_an_idle_mesh(name, count):
    fabric = commissioned(name)
    assert sum(len(fabric.losses(device)) for device in fabric.inventory.devices) == count
    assert worst_margin_db(fabric) > 8


@pytest.mark.parametrize("name", ["prototype", "rack64", "ring4", "ring8"])
def test_any_worker_is_swapped_for_the_spare_without_touching_another_circuit(name):
    fabric = commissioned(name)
    for failed in workers(fabric.inventory):
        after = fabric.swapped(failed, spare_for(fabric.inventory, failed))
        assert worst_margin_db(after) > 8


def test_rack64_a_repaired_accelerator_stands_in_for_any_other_of_its_rail():
    fabric = commissioned("rack64")
    rail = [a for a in workers(fabric.inventory) if a.endswith("-gpu0")]
    spare = spare_for(fabric.inventory, rail[0])
    for failed in rail:
        after = fabric.swapped(failed, spare)
        for second in rail:
            if second != failed:
                after.swapped(second, failed)


def test_rack64_two_jobs_fail_one_after_the_other_on_two_rails():
    fabric = commissioned("rack64")
    first, second = "h03-gpu1", "h12-gpu2"
    once = fabric.swapped(first, spare_for(fabric.inventory, first))
    twice = once.swapped(second, spare_for(fabric.inventory, second))
    assert worst_margin_db(twice) > 8
    assert once.states["rail2"] == fabric.states["rail2"]
    assert twice.states["rail1"] == once.states["rail1"]


@pytest.mark.parametrize(
    ("name", "first", "second"), [("prototype", "s1-gpu0", "s2-gpu0"), ("rack64", "h02-gpu3", "h15-gpu3")]
)
def test_after_a_rollback_another_swap_is_possible(name, first, second):
    fabric = commissioned(name)
    spare = spare_for(fabric.inventory, first)
    moved = fabric.swapped(first, spare)
    device = fabric.inventory.transponders_of(first)[0].lane.device
    undo = {puc: fabric.states[device].get(puc) for puc in moved.states[device]}
    restored = {puc: state for puc, state in (moved.states[device] | undo).items() if state is not None}
    assert restored == fabric.states[device]
    Fabric(fabric.inventory, fabric.assignment, {**fabric.states, device: restored}).swapped(second, spare)
