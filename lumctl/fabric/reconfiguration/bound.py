"""How short a round trip can be at best, by 1-trees (Held and Karp).

A round trip is a tree on all places but one, and two ways from that one into the tree; the shortest of such figures is
no longer than the shortest round trip. Each place is charged a fee per way that meets it, such that all fees of a round
trip cancel: fees that push every place towards two ways make the bound better.
"""

from collections.abc import Sequence
from math import ceil

_ROUNDS = 400
_CALMER = 0.95
_PATIENCE = 5


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
