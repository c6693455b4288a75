"""Who gets what, jointly: every way to give each row a column of its own, the cheapest first.

Costs are whole numbers of any size, so that several criteria may stand in one number, the first in its highest digits.
The cheapest way is found by the Hungarian method, the others by Murty's: each way that was given is taken out by parts.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import heappop, heappush

Costs = Sequence[Sequence[int | None]]
"""By row what each column costs; ``None`` where it cannot be had. There are as many columns as rows, or more."""


def ascending(costs: Costs) -> Iterator[tuple[int, ...]]:
    """For each row the number of its column: all ways there are, the cheapest first, each once."""
    best = _cheapest(costs, {}, {})
    if best is None:
        return
    # What is left to look through: a total, a way, the rows that are fixed in it, and what each row must not have.
    left: list[tuple[int, tuple[int, ...], dict[int, int], dict[int, frozenset[int]]]] = []
    heappush(left, (*best, {}, {}))
    while left:
        _, way, fixed, barred = heappop(left)
        yield way
        for row, column in enumerate(way):
            if row in fixed:
                continue
            others = {**barred, row: barred.get(row, frozenset()) | {column}}
            found = _cheapest(costs, fixed, others)
            if found is not None:
                heappush(left, (*found, dict(fixed), others))
            fixed = {**fixed, row: column}


def largest(costs: Costs) -> dict[int, int]:
    """Columns for as many rows as possible, earlier rows first: what there is where not all can be served."""
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
    """The cheapest way that keeps what is fixed and leaves out what is barred; ``None`` if there is none."""
    rows, columns = len(costs), max((len(row) for row in costs), default=0)
    if columns < rows:
        return None
    dear = 1 + sum(max((cost for cost in row if cost is not None), default=0) for row in costs)

    def cost(row: int, column: int) -> int:
        said = costs[row][column]
        wrong = column != fixed.get(row, column) or column in barred.get(row, ())
        return dear if said is None or wrong else said

    way = _hungarian(rows, columns, cost)
    spent = [cost(row, column) for row, column in enumerate(way)]
    return None if dear in spent else (sum(spent), way)


def _hungarian(rows: int, columns: int, cost: Callable[[int, int], int]) -> tuple[int, ...]:
    """Add row by row along the shortest augmenting path; potentials keep reduced costs from falling below nought."""
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
        """Give one more row a column; rows that have one may be given another."""
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
        """Move the potentials so that the path's reduced costs are nought and no other falls below it."""
        self._of_row[row] += reached
        for column, far in settled.items():
            self._of_column[column] -= reached - far
            owner = self.row_of[column]
            if owner is not None:
                self._of_row[owner] += reached - far
