"""Lanes of an accelerator in another order than the inventory writes them, as part of who runs where.

Links use the lanes of an accelerator by number. Where a link leaves a dying lane for one that is free, the two change
their numbers: that order stands in the assignment beside the jobs, under a name of its own. An order without lanes is
the written one, and so is none at all.
"""

from collections.abc import Mapping

from lumctl.inventory.model import Inventory, Transponder

PREFIX = "lanes of "
"""What the name of an order begins with; no job's name can: there are blanks in it."""

Placed = Mapping[str, tuple[str, ...]]


def order_of(accelerator: str) -> str:
    """The name under which the order of its lanes stands in an assignment."""
    return f"{PREFIX}{accelerator}"


def is_order(name: str) -> bool:
    """Whether a name of an assignment is not a job's."""
    return name.startswith(PREFIX)


def orders_in(assignment: Placed) -> dict[str, tuple[str, ...]]:
    """The orders of an assignment, by accelerator; those that are as written are left out."""
    return {name.removeprefix(PREFIX): lanes for name, lanes in assignment.items() if lanes and is_order(name)}


def jobs_in(assignment: Placed) -> dict[str, tuple[str, ...]]:
    """The jobs of an assignment with the accelerator of each rank."""
    return {name: ranks for name, ranks in assignment.items() if not is_order(name)}


def lanes_in_order(inventory: Inventory, accelerator: str, orders: Placed) -> tuple[Transponder, ...]:
    """Lane 0, lane 1, ... of an accelerator. An order that does not fit the inventory (any more) is passed over."""
    written = inventory.transponders_of(accelerator)
    order = orders.get(accelerator)
    if not order or misfit(inventory, accelerator, order):
        return written
    return tuple(inventory.transponders[name] for name in order)


def misfit(inventory: Inventory, accelerator: str, order: tuple[str, ...]) -> str | None:
    """Why an order does not fit the inventory, or ``None``."""
    if accelerator not in inventory.accelerators:
        return f"{accelerator} is not in it"
    written = [lane.id for lane in inventory.transponders_of(accelerator)]
    if sorted(order) == sorted(written):
        return None
    return f"{accelerator} has the lanes {', '.join(written) or '(none)'}, the store orders {', '.join(order)}"


def placed_words(name: str) -> str:
    """What a name of an assignment tells, to follow ``where``: ``where JOB runs``."""
    return f"the {name} lead" if is_order(name) else f"{name} runs"


def moved_words(name: str) -> str:
    """That what a name of an assignment tells is not so any more."""
    return f"the {name} do not lead where they did" if is_order(name) else f"{name} does not run where it did"
