"""Lower bounds of the changes in a round trip through configurations.

:func:`round_trip_bound` is that of Held and Karp, by 1-trees. A round trip is a tree on all places but one, and two
ways from that one into the tree; the shortest such figure is no longer than the shortest round trip. Each place charges
a fee for each way that meets it, and all fees of a round trip cancel: fees that push every place towards two ways make
the bound better.

:func:`three_in_a_row_bound` is sharper and needs a solver, which is an optional library: a linear program over three
configurations in a row. A stop costs what its two neighbours want differently and it leaves as it is, a leg what its
two ends want differently. What two in a row leave alone is not counted, so no round trip costs less. Stops and legs may
be split into fractions.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import ceil

from lumctl.fabric.research.highs import Column, program, run

_ROUNDS = 400
_CALMER = 0.95
_PATIENCE = 5
_TOLERANCE = 1e-5
Bits = tuple[int, int]
"""The PUCs that a configuration uses, and those of them in cross, as bits by PUC."""


def round_trip_bound(distances: Sequence[Sequence[int]], *, at_most: int) -> int:
    """No round trip through all places is shorter than this; ``at_most`` is the length of one that is known.

    ``distances`` are the same both ways, and there are at least three places.
    """
    count = len(distances)
    fees, step, best, waited = [0.0] * count, 2.0, 0.0, 0
    for _ in range(_ROUNDS):
        length, ways = _one_tree(distances, fees)
        bound = length - 2 * sum(fees)
        waited = 0 if bound > best else waited + 1
        best = max(best, bound)
        off = [met - 2 for met in ways]
        spread = sum(o * o for o in off)
        if not spread:
            break
        if waited >= _PATIENCE:
            step, waited = step * _CALMER, 0
        pace = step * max(at_most - bound, 1.0) / spread
        fees = [fee + pace * o for fee, o in zip(fees, off, strict=True)]
    return ceil(best - 1e-6)


def _one_tree(distances: Sequence[Sequence[int]], fees: Sequence[float]) -> tuple[float, list[int]]:
    """The length of the shortest 1-tree with its fees, and how many ways meet each place; place 0 is the one apart."""
    count = len(distances)
    ways = [0] * count
    length = 0.0
    nearest = {at: (distances[1][at] + fees[1] + fees[at], 1) for at in range(2, count)}
    while nearest:
        place = min(nearest, key=lambda at: nearest[at][0])
        cost, joined = nearest.pop(place)
        length += cost
        ways[place] += 1
        ways[joined] += 1
        for at, (known, _) in nearest.items():
            way = distances[place][at] + fees[place] + fees[at]
            if way < known:
                nearest[at] = (way, place)
    for cost, place in sorted((distances[0][at] + fees[0] + fees[at], at) for at in range(1, count))[:2]:
        length += cost
        ways[0] += 1
        ways[place] += 1
    return length, ways


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
