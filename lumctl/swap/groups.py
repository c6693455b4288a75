"""Accelerators that are tied inside a host: they are replaced together, by spares that are tied as well."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from heapq import merge
from itertools import product

from lumctl.health.states import State
from lumctl.inventory.model import Inventory
from lumctl.inventory.wiring import Assignment
from lumctl.site import Observation
from lumctl.site.observation import place_of
from lumctl.swap.assignment_problem import Costs, ascending


def with_tied(inventory: Inventory, placed: Assignment, names: Sequence[str]) -> dict[str, str | None]:
    """The accelerators named, each before those that are tied to it and run ranks; of the latter to whom they are."""
    found: dict[str, str | None] = {}
    for name in names:
        found[name] = None
        for other in inventory.tied_to(name):
            if other.id not in names and other.id not in found and place_of(placed, other.id):
                found[other.id] = name
    return found


def why_tied(inventory: Inventory, tied: Mapping[str, str]) -> Iterator[str]:
    """Why accelerators are replaced that nobody named."""
    for accelerator, to in tied.items():
        yield f"{accelerator} is replaced too: it is tied to {to} ({inventory.accelerators[to].tied})"


def ill_tie(seen: Observation, spare: str, gone: Collection[str]) -> str | None:
    """Why a spare is no good because of one that it is tied to, or ``None``."""
    for other in seen.inventory.tied_to(spare):
        if other.id in gone:
            return f"is tied to {other.id}, which is replaced"
        if seen.report.accelerators[other.id].state is State.FAILED:
            return f"is tied to {other.id}, which is failed"
    return None


def is_broken_up(inventory: Inventory, failed: str, spare: str) -> bool:
    """Whether a spare would leave the group that it is tied to for one that is tied to nobody."""
    return inventory.accelerators[failed].tied is None and inventory.accelerators[spare].tied is not None


def apart_from(inventory: Inventory, failed: str, spare: str, chosen: Mapping[str, str]) -> str:
    """The spare chosen for one that is tied to a failed one, and to which this spare is not tied; or nothing."""
    if inventory.accelerators[chosen[failed]].tied in {None, inventory.accelerators[spare].tied}:
        return ""
    return next((chosen[other.id] for other in inventory.tied_to(failed) if other.id in chosen), "")


def ways(inventory: Inventory, failed: Sequence[str], spares: Sequence[str], costs: Costs) -> Iterator[tuple[int, ...]]:
    """As :func:`~lumctl.swap.assignment_problem.ascending`, but those that are tied get spares of one group.

    Where the rack has no group of spares that is large enough they get any.
    """
    rows: dict[str, list[int]] = {}
    for row, accelerator in enumerate(failed):
        if (tie := inventory.accelerators[accelerator].tied) is not None:
            rows.setdefault(tie, []).append(row)
    columns: dict[str, set[int]] = {}
    for column, spare in enumerate(spares):
        if (tie := inventory.accelerators[spare].tied) is not None:
            columns.setdefault(tie, set()).add(column)
    fits = {tie: [group for group in columns.values() if len(group) >= len(at)] for tie, at in rows.items()}
    bound = [tie for tie, at in rows.items() if len(at) > 1 and fits[tie]]
    if not bound:
        yield from ascending(costs)
        return
    tables = [
        _restricted(costs, {row: group for tie, group in zip(bound, groups, strict=True) for row in rows[tie]})
        for groups in product(*(fits[tie] for tie in bound))
    ]

    def total(way: tuple[int, ...]) -> int:
        return sum(costs[row][column] or 0 for row, column in enumerate(way))

    yield from merge(*(ascending(table) for table in tables), key=total)


def _restricted(costs: Costs, only: Mapping[int, set[int]]) -> Costs:
    """The costs, with rows that may have some columns only."""
    return [
        [cost if row not in only or column in only[row] else None for column, cost in enumerate(line)]
        for row, line in enumerate(costs)
    ]
