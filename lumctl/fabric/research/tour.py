"""Orders a set of configurations that are visited in repeated rounds, so that few PUCs change.

A configuration gives the states of some PUCs; the others stay as they are. So the changes on arrival at a configuration
depend not only on the one before: a PUC keeps the state of the last configuration that sets it. After the first round
every such PUC has been set, and all further rounds are equal ("settled"). The changes of a settled round are minimised.
They do not depend on the start or the direction of the round.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from math import ceil
from random import Random

from lumctl.devices.types import PucState
from lumctl.errors import UsageError
from lumctl.fabric.research.integer_program import Column, program, run

# The subgradient search for the bound: its number of rounds, the factor by which its step shrinks, and the number of
# rounds without a better bound after which it shrinks.
_ROUNDS = 400
_CALMER = 0.95
_PATIENCE = 5
_TOLERANCE = 1e-5
Bits = tuple[int, int]
"""The PUCs that a configuration uses, and the subset in cross, as bits by PUC."""


def round_trip_bound(distances: Sequence[Sequence[int]], *, at_most: int) -> int:
    """A lower bound of the length of a round trip through all places; ``at_most`` is the length of a known round trip.

    ``distances`` are symmetric, and there are at least three places.
    """
    count = len(distances)
    fees, step, best, waited = [0.0] * count, 2.0, 0.0, 0
    for _ in range(_ROUNDS):
        length, ways = _one_tree(distances, fees)
        bound = length - 2 * sum(fees)
        waited = 0 if bound > best else waited + 1
        best = max(best, bound)
        # As Held and Karp do: places with more than two ways become more expensive, ends become cheaper.
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
    """The length of the shortest 1-tree, fees included, and the degree of each place; place 0 is outside the tree."""
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
    """A lower bound of the changes in a settled round of at least three configurations; ``None`` if time ran out.

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


_EXACT = 8
"""Up to this many configurations, all orders are tried: at most 2,520."""
# Fixed, so that the same configurations always give the same order.
_SEED = 31
_TRIALS = 40_000

Order = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Tour:
    """An order, the PUCs that change on arrival at each configuration in a settled round, and a bound for all orders.

    ``first_round`` holds the changes of the first round, from the present states. No order has fewer than ``bound``
    changes in a settled round. ``optimal``: no order has fewer changes than this one.
    """

    order: Order
    changes: tuple[int, ...]
    first_round: int
    bound: int

    @property
    def per_round(self) -> int:
        """The PUCs that change in each settled round."""
        return sum(self.changes)

    @property
    def optimal(self) -> bool:
        """Whether it is proven that no order changes fewer PUCs in a round."""
        return self.per_round == self.bound

    @property
    def gap(self) -> float:
        """The largest share of the changes that a better order could save."""
        return 1 - self.bound / self.per_round if self.per_round else 0.0


@dataclass(frozen=True, slots=True)
class _Need:
    """The PUCs that a configuration uses, and the subset in cross, as bits by PUC."""

    used: int
    crossed: int


def tour(
    configurations: Sequence[Mapping[int, PucState]],
    *,
    states: Mapping[int, PucState],
    trials: int = _TRIALS,
    random: Random | None = None,
    relax_s: float = 0.0,
) -> Tour:
    """Find an order of the configurations that changes few PUCs in a round.

    A configuration is given as the PUCs that it uses, with their states. For up to eight configurations the order is
    optimal. For more it is the best of about ``trials`` orders: parts are reversed and moved (2-opt, Or-opt) until this
    does not help any more, and again after each of many random changes. The round starts where the fewest PUCs change
    from ``states``. With ``relax_s`` an optional solver may take that many seconds to improve the bound.

    Raises:
        UsageError: there are no configurations, or the solver is requested and not installed.
    """
    if not configurations:
        raise UsageError("there is no configuration to visit")
    needs = [_need(configuration) for configuration in configurations]
    exact = len(needs) <= _EXACT
    if exact:
        order = min(_all_orders(len(needs)), key=lambda order: _cost(needs, order))
    else:
        order = _improved(needs, _nearest_first(needs), trials, random or Random(_SEED))  # noqa: S311 - no secret
    held = _need(states).crossed
    order = _started_near(needs, order, held)
    first, held = _round(needs, order, held)
    settled, _ = _round(needs, order, held)
    bound = sum(settled) if exact else round_trip_bound(_distances(needs), at_most=sum(settled))
    if relax_s and not exact:
        bound = max(bound, three_in_a_row_bound([(need.used, need.crossed) for need in needs], relax_s) or 0)
    return Tour(order, settled, sum(first), bound)


def _need(configuration: Mapping[int, PucState]) -> _Need:
    used = sum(1 << puc for puc in configuration)
    return _Need(used, sum(1 << puc for puc, state in configuration.items() if state is PucState.CROSS))


def _round(needs: Sequence[_Need], order: Order, held: int) -> tuple[tuple[int, ...], int]:
    """The number of changes of one round on arrival at each configuration, and the PUCs in cross after the round."""
    changes = []
    for at in order:
        wrong = (held ^ needs[at].crossed) & needs[at].used
        changes.append(wrong.bit_count())
        held ^= wrong
    return tuple(changes), held


def _cost(needs: Sequence[_Need], order: Order) -> int:
    """The number of changes in a settled round."""
    held = 0
    for at in order:
        held = held & ~needs[at].used | needs[at].crossed
    return sum(_round(needs, order, held)[0])


def _distances(needs: Sequence[_Need]) -> list[list[int]]:
    """The least number of changes between two consecutive configurations: the PUCs that they set differently."""
    return [[((a.crossed ^ b.crossed) & a.used & b.used).bit_count() for b in needs] for a in needs]


def _all_orders(count: int) -> Iterator[Order]:
    """All round trips; those that differ only in start or direction appear once."""
    for rest in permutations(range(1, count)):
        if not rest or rest[0] <= rest[-1]:
            yield (0, *rest)


def _started_near(needs: Sequence[_Need], order: Order, held: int) -> Order:
    start = min(range(len(order)), key=lambda at: _round(needs, order[at : at + 1], held)[0])
    return (*order[start:], *order[:start])


def _nearest_first(needs: Sequence[_Need]) -> Order:
    """An order that goes from each configuration to the nearest remaining one, by the real changes."""
    order, left, held = [0], set(range(1, len(needs))), needs[0].crossed
    while left:
        following = min(left, key=lambda at: (_round(needs, (at,), held)[0], at))
        order.append(following)
        left.remove(following)
        held = _round(needs, (following,), held)[1]
    return tuple(order)


def _improved(needs: Sequence[_Need], order: Order, trials: int, random: Random) -> Order:
    """Improve an order to a local optimum; then repeatedly disturb and improve it, and keep what is not worse."""
    best, least, trials = _descended(needs, order, trials)
    while trials > 0:
        a, b, c = sorted(random.sample(range(1, len(order)), 3))
        # Two neighbouring parts change places (a double bridge): reversing one part does not undo that.
        disturbed = (*best[:a], *best[b:c], *best[a:b], *best[c:])
        found, cost, trials = _descended(needs, disturbed, trials)
        if cost <= least:
            best, least = found, cost
    return best


def _descended(needs: Sequence[_Need], order: Order, trials: int) -> tuple[Order, int, int]:
    """The local optimum that is reached from an order, its cost, and the number of trials that are left."""
    cost = _cost(needs, order)
    better = True
    while better and trials > 0:
        better = False
        for tried in _near(order):
            trials -= 1
            now = _cost(needs, tried)
            if now < cost:
                order, cost, better = tried, now, True
                break
            if trials <= 0:
                break
    return order, cost, trials


def _near(order: Order) -> Iterator[Order]:
    """The orders with one part reversed, or with up to three consecutive configurations moved."""
    for a, b in combinations(range(1, len(order) + 1), 2):
        yield (*order[:a], *reversed(order[a:b]), *order[b:])
    for size in (1, 2, 3):
        for a in range(len(order) - size + 1):
            stretch, rest = order[a : a + size], (*order[:a], *order[a + size :])
            for to in range(len(rest)):
                if to != a:
                    yield (*rest[:to], *stretch, *rest[to:])
