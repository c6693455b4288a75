"""Accelerators that are tied inside a host: they are replaced together, by spares that are tied as well."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush, merge
from itertools import product

from lumctl.health.observation import place_of
from lumctl.inventory.model import Inventory
from lumctl.inventory.sharing import SpareHosts
from lumctl.inventory.wiring import Assignment
from lumctl.swap.constraints import constraints_of, host_sets, rows_by_hosts

Costs = Sequence[Sequence[int | None]]
"""By row, the cost of each column; ``None`` if the row cannot use it. Fewer columns than rows allow no assignment."""


def assignments_by_cost(costs: Costs) -> Iterator[tuple[int, ...]]:
    """Every assignment of columns to rows, once and cheapest first; each gives the number of the column by row."""
    best = _cheapest(costs, {}, {})
    if best is None:
        return
    # Assignments to yield and expand: the total cost, the assignment, its fixed rows, and each row's barred columns.
    # No two assignments in the heap are equal, so comparing its entries never reaches the mappings.
    left: list[tuple[int, tuple[int, ...], dict[int, int], dict[int, frozenset[int]]]] = []
    heappush(left, (*best, {}, {}))
    while left:
        _, way, fixed, barred = heappop(left)
        yield way
        # Murty's method: each new entry bars one pair of this assignment and fixes the pairs of the rows before it.
        # So each other assignment belongs to exactly one entry.
        for row, column in enumerate(way):
            if row in fixed:
                continue
            others = {**barred, row: barred.get(row, frozenset()) | {column}}
            found = _cheapest(costs, fixed, others)
            if found is not None:
                heappush(left, (*found, dict(fixed), others))
            fixed = {**fixed, row: column}


def largest(costs: Costs) -> dict[int, int]:
    """Columns by row for as many rows as possible, earlier rows first; for costs that cannot give each row a column."""
    taken: dict[int, int] = {}

    def place(row: int, tried: set[int]) -> bool:
        for column, cost in enumerate(costs[row]):
            if cost is None or column in tried:
                continue
            tried.add(column)
            if column not in taken or place(taken[column], tried):
                taken[column] = row
                return True
        return False

    for row in range(len(costs)):
        place(row, set())
    return {row: column for column, row in taken.items()}


def _cheapest(
    costs: Costs, fixed: Mapping[int, int], barred: Mapping[int, frozenset[int]]
) -> tuple[int, tuple[int, ...]] | None:
    """The cheapest assignment that contains the fixed pairs and none of the barred ones; ``None`` if there is none."""
    rows, columns = len(costs), max((len(row) for row in costs), default=0)
    if columns < rows:
        return None
    # Dearer than any whole assignment: it appears in the cheapest one only if there is no other.
    dear = 1 + sum(max((cost for cost in row if cost is not None), default=0) for row in costs)

    def cost(row: int, column: int) -> int:
        said = costs[row][column]
        wrong = column != fixed.get(row, column) or column in barred.get(row, ())
        return dear if said is None or wrong else said

    way = _hungarian(rows, columns, cost)
    spent = [cost(row, column) for row, column in enumerate(way)]
    return None if dear in spent else (sum(spent), way)


def _hungarian(rows: int, columns: int, cost: Callable[[int, int], int]) -> tuple[int, ...]:
    """A cheapest assignment by the Hungarian method: the column of each row.

    Rows are added one by one along the shortest augmenting path. Potentials keep reduced costs from becoming negative.
    """
    table = _Table(rows, columns, cost)
    for row in range(rows):
        table.add(row)
    column_of = {row: column for column, row in enumerate(table.row_of) if row is not None}
    return tuple(column_of[row] for row in range(rows))


class _Table:
    def __init__(self, rows: int, columns: int, cost: Callable[[int, int], int]) -> None:
        self.row_of: list[int | None] = [None] * columns
        self._cost = cost
        self._of_row, self._of_column = [0] * rows, [0] * columns

    def add(self, row: int) -> None:
        """Assign a column to one more row; rows that have a column may get another."""
        far: dict[int, int] = {}
        came: dict[int, int | None] = {}
        settled: dict[int, int] = {}
        at: int | None = None
        reached, here = 0, row
        while True:
            for column in range(len(self.row_of)):
                ahead = reached + self._cost(here, column) - self._of_row[here] - self._of_column[column]
                if column not in settled and ahead < far.get(column, ahead + 1):
                    far[column], came[column] = ahead, at
            at = min((column for column in far if column not in settled), key=lambda column: (far[column], column))
            reached = settled[at] = far[at]
            owner = self.row_of[at]
            if owner is None:
                break
            here = owner
        self._settle(row, settled, reached)
        while at is not None:
            before = came[at]
            self.row_of[at] = row if before is None else self.row_of[before]
            at = before

    def _settle(self, row: int, settled: Mapping[int, int], reached: int) -> None:
        """Move the potentials so that the path's reduced costs are zero and no other becomes negative."""
        self._of_row[row] += reached
        for column, far in settled.items():
            self._of_column[column] -= reached - far
            owner = self.row_of[column]
            if owner is not None:
                self._of_row[owner] += reached - far


def with_tied(inventory: Inventory, placed: Assignment, names: Sequence[str]) -> dict[str, str | None]:
    """The given accelerators, with ``None``, and those tied to them that run ranks, with the one they are tied to."""
    found: dict[str, str | None] = {}
    for name in names:
        found[name] = None
        for other in inventory.tied_to(name):
            if other.id not in names and other.id not in found and place_of(placed, other.id):
                found[other.id] = name
    return found


def why_tied(inventory: Inventory, tied: Mapping[str, str]) -> Iterator[str]:
    """Why accelerators that were not named are replaced, a line for each."""
    for accelerator, to in tied.items():
        yield f"{accelerator} is also replaced: it is tied to {to} ({inventory.accelerators[to].tied})"


def is_broken_up(inventory: Inventory, failed: str, spare: str) -> bool:
    """Whether a spare would leave its tied group to replace an accelerator that is not tied."""
    return inventory.accelerators[failed].tied is None and inventory.accelerators[spare].tied is not None


def apart_from(inventory: Inventory, failed: str, spare: str, chosen: Mapping[str, str]) -> str:
    """The spare chosen for an accelerator that is tied to the failed one, if this spare is not tied to that spare.

    Empty if it is, or if the spare chosen for the failed accelerator is not tied at all.
    """
    if inventory.accelerators[chosen[failed]].tied in {None, inventory.accelerators[spare].tied}:
        return ""
    return next((chosen[other.id] for other in inventory.tied_to(failed) if other.id in chosen), "")


def group_choices(
    inventory: Inventory, failed: Sequence[str], jobs: Sequence[str], spares: Sequence[str], costs: Costs
) -> Iterator[tuple[int, ...]]:
    """As :func:`assignments_by_cost`, but tied accelerators get spares of one tied group, and hosts fit the jobs.

    If no group of spares is large enough for tied accelerators, they get any spares. ``jobs`` are those of the failed
    accelerators; what they require of the hosts of their spares has no such way out.
    """
    tied = _rows_by_tie(inventory, failed)
    groups = _rows_by_tie(inventory, spares).values()
    bound = [(at, fits) for at in tied.values() if len(at) > 1 and (fits := _large_enough(groups, at))]
    hosts = host_sets(inventory, spares).values()
    bound += [(at, _large_enough(hosts, at)) for at in rows_by_hosts(inventory, jobs, SpareHosts.SAME)]
    tables = [_restricted(costs, [at for at, _ in bound], sets) for sets in product(*(fits for _, fits in bound))]

    def total(way: tuple[int, ...]) -> int:
        return sum(costs[row][column] or 0 for row, column in enumerate(way))

    apart = rows_by_hosts(inventory, jobs, SpareHosts.DIFFERENT)
    for way in merge(*(assignments_by_cost(table) for table in tables), key=total):
        on = [inventory.accelerators[spares[column]].host for column in way]
        if all(len({on[row] for row in at}) == len(at) for at in apart):
            yield way


def on_fitting_hosts(inventory: Inventory, job: str, usable: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """For each of some failures of a job the spares among ``usable`` whose hosts fit together; none if too few do.

    On the same host: those of the host with the fewest spares that can serve all failures. On different hosts: one
    spare of each host.
    """
    wanted = constraints_of(inventory, job).hosts
    if wanted is SpareHosts.ANY or len(usable) == 1:
        return [tuple(row) for row in usable]
    spares = list(dict.fromkeys(spare for row in usable for spare in row))
    hosts = {host: {spares[column] for column in columns} for host, columns in host_sets(inventory, spares).items()}
    if wanted is SpareHosts.SAME:
        fitting = [names for names in hosts.values() if serves_all([names & set(row) for row in usable])]
        chosen = min(fitting, key=len, default=set[str]())
    else:
        # Of a host the one that most failures could use; the order of the spares decides between equals.
        chosen = set()
        for names in hosts.values():
            of_host = [spare for spare in spares if spare in names]
            chosen.add(max(of_host, key=lambda spare: sum(spare in row for row in usable)))
    return [tuple(spare for spare in row if spare in chosen) for row in usable]


def serves_all(usable: Sequence[Collection[str]]) -> bool:
    """Whether each of some failures can have a spare of its own."""
    spares = list(dict.fromkeys(spare for row in usable for spare in row))
    return len(largest([[0 if spare in row else None for spare in spares] for row in usable])) == len(usable)


def _rows_by_tie(inventory: Inventory, accelerators: Sequence[str]) -> dict[str, list[int]]:
    """The places of tied accelerators in a sequence, by the name of what ties them."""
    found: dict[str, list[int]] = {}
    for at, accelerator in enumerate(accelerators):
        if (tie := inventory.accelerators[accelerator].tied) is not None:
            found.setdefault(tie, []).append(at)
    return found


def _large_enough(groups: Iterable[Collection[int]], rows: Sequence[int]) -> list[Collection[int]]:
    return [group for group in groups if len(group) >= len(rows)]


def _restricted(costs: Costs, rows: Sequence[Sequence[int]], columns: Sequence[Collection[int]]) -> Costs:
    """The costs, where each of these groups of rows may have no other columns than those given for it."""
    only: dict[int, set[int]] = {}
    for at, group in zip(rows, columns, strict=True):
        for row in at:
            only[row] = only.get(row, set(group)) & set(group)
    return [
        [cost if row not in only or column in only[row] else None for column, cost in enumerate(line)]
        for row, line in enumerate(costs)
    ]
