"""Lanes in another order than the inventory writes them: which circuits they make, and orders that do not fit."""

import pytest

from lumctl.health.observation import place_of
from lumctl.inventory.load import example, load_inventory
from lumctl.inventory.wiring import circuits_of, initial_assignment, jobs_in, misfit, order_of, orders_in
from lumctl.runbook.inventory_check import odd_in_states

ORDER = ("s1-gpu0-b", "s1-gpu0-a")
NAME = order_of("s1-gpu0")


@pytest.fixture(scope="module")
def inventory():
    return load_inventory(example("prototype"))


def ends(inventory, placed):
    return {c.id: (c.a.transponder, c.b.transponder) for c in circuits_of(inventory, placed)}


def test_links_use_the_lanes_of_an_order_and_all_else_stays(inventory):
    placed = initial_assignment(inventory)
    ordered = {**placed, NAME: ORDER}
    before, after = ends(inventory, placed), ends(inventory, ordered)
    assert after["finetune/0-1:ab"] == (before["finetune/0-1:ab"][0], "s1-gpu0-b")
    assert before["finetune/2-0:ab"] == after["finetune/2-0:ab"]
    assert (jobs_in(ordered), orders_in(ordered)) == (placed, {"s1-gpu0": ORDER})
    assert ends(inventory, {**placed, NAME: ()}) == before
    assert place_of({NAME: ("s1-gpu0", "x")}, "s1-gpu0") is None


@pytest.mark.parametrize(
    ("accelerator", "order", "says"),
    [
        ("s1-gpu0", ("s1-gpu0-b",), "s1-gpu0 has the lanes s1-gpu0-a, s1-gpu0-b, but the store lists s1-gpu0-b"),
        ("s1-gpu0", ("s1-gpu0-b", "s1-gpu0-b"), "the store lists"),
        ("s9-gpu0", ORDER, "s9-gpu0 is not in it"),
        ("s1-gpu0", ORDER, None),
    ],
)
def test_an_order_that_does_not_fit_is_passed_over_and_named(inventory, accelerator, order, says):
    why = misfit(inventory, accelerator, order)
    assert why is says or (says in why)
    odd = list(odd_in_states({"start": {"assignment": {order_of(accelerator): list(order)}}}, inventory))
    assert bool(odd) is (says is not None)
    if says:
        placed = initial_assignment(inventory)
        assert ends(inventory, {**placed, order_of(accelerator): order}) == ends(inventory, placed)
