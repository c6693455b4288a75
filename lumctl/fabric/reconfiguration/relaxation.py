"""A sharper bound of a round trip: a linear program that looks at three configurations in a row.

Each configuration stands between two others. A stop costs what the two want differently and it leaves as it is, a leg
what its two ends want differently; what is left alone by two in a row is not counted, so no round trip costs less.
Stops and legs may be split into fractions. A solver is needed: an extra.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import ceil

from lumctl.fabric.exact.highs import Column, program, run

_TOLERANCE = 1e-5

Bits = tuple[int, int]
"""The PUCs that a configuration uses, and those of them in cross, as bits by PUC."""


def three_in_a_row_bound(needs: Sequence[Bits], seconds: float) -> int | None:
    """No settled round changes fewer PUCs than this; ``None`` if the time ran out. At least three configurations.

    Raises:
        UsageError: the solver is not installed.
    """
    count = len(needs)
    once = [(1.0, 1.0)] * count
    agree = [(0.0, 0.0)] * (count * count)
    solver = program([*once, *agree], [*_legs(needs), *_stops(needs)], whole=False)
    if run(solver, seconds) != "optimal":
        return None
    return ceil(solver.getInfo().objective_function_value - _TOLERANCE)


def _legs(needs: Sequence[Bits]) -> Iterator[Column]:
    count = len(needs)
    for a, b in combinations(range(count), 2):
        cost = _differences(needs[a], needs[b]).bit_count()
        yield float(cost), [(count + a * count + b, -1.0), (count + b * count + a, -1.0)]


def _stops(needs: Sequence[Bits]) -> Iterator[Column]:
    count = len(needs)
    for at in range(count):
        row = count + at * count
        for a, b in combinations([other for other in range(count) if other != at], 2):
            cost = (_differences(needs[a], needs[b]) & ~needs[at][0]).bit_count()
            yield float(cost), [(at, 1.0), (row + a, 1.0), (row + b, 1.0)]


def _differences(one: Bits, other: Bits) -> int:
    return (one[1] ^ other[1]) & one[0] & other[0]
