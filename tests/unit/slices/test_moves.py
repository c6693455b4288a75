"""Moves that make room for a larger box: what they promise is what the rack then has."""

from math import prod

import pytest
from fake_torus import RACK, FakeRack, state

from lumctl.inventory.load import example, load_inventory
from lumctl.inventory.model import Role
from lumctl.slices.allocation import ring_demand
from lumctl.slices.fragmentation import largest_slice
from lumctl.slices.moves import plan_moves
from lumctl.slices.release import plan_release


@pytest.fixture(scope="module")
def torus64():
    return load_inventory(example("torus64"))


@pytest.fixture
def rack(torus64):
    """Eight slices of eight arrived, and three of them left."""
    made = FakeRack(torus64)
    for number in range(6):
        made.carry_out(made.planned("2x2x2", f"s{number}"))
    for number in (1, 4):
        made.carry_out(plan_release(made, f"s{number}"))
    return made


def box(rack):
    return prod(largest_slice(state(rack).torus, ring_demand, contiguous=True) or (0,))


def test_each_move_can_be_made_and_the_promised_box_is_free_after_the_last(rack):
    found = plan_moves(rack, RACK, most=4)
    assert 1 <= len(found.plans) <= 4
    assert found == plan_moves(rack, RACK, most=4), "the same rack gives the same moves"
    before, ranks = box(rack), {job: len(ranks) for job, ranks in rack.placed.items()}
    assert prod(found.before) == before
    for plan in found.plans:
        own = plan.slices.slices[0]["job"]
        stay = {c.id: rack.observe().paths[c.id] for c in rack.observe().circuits if c.owner != own}
        rack.carry_out(plan)
        now = rack.observe().paths
        assert {name: now[name] for name in stay} == stay
        assert all(now[c.id] is not None for c in rack.observe().circuits)
    assert box(rack) == prod(found.after) > before
    assert {job: len(ranks) for job, ranks in rack.placed.items()} == ranks
    taken = [name for ranks in rack.placed.values() for name in ranks if name in rack.inventory.accelerators]
    assert all(rack.inventory.accelerators[name].role is not Role.SPARE for name in taken)


def test_there_is_nothing_to_propose_where_no_move_helps(torus64):
    rack = FakeRack(torus64)
    found = plan_moves(rack, RACK, most=4)
    assert (found.plans, found.before) == ((), found.after)
    assert plan_moves(rack, RACK, most=0).plans == ()
