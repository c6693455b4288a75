"""Whether circuits have ways at all, by trying everything that matters.

Two ways are in each other's way exactly if some PUC is wanted in both states: those who meet on a waveguide part at a
PUC behind it, as no two circuits end at one port. So it is enough to try both states of a PUC that is fought over, and
then those of the next. Where a circuit has no way left even alone, a whole branch is done with.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from math import inf

from lumctl.fabric.geometry import Mesh, PortPair
from lumctl.fabric.search import Prices, Way, cheapest_way

_PRESSURE = 1.0
"""The price of wanting a PUC in the other state than another circuit does: it only decides what is tried first."""


class Undecided(Exception):  # noqa: N818 - it is no error of anybody's
    """The search was cut short: there may be ways or not."""


def exhaust(mesh: Mesh, demands: Sequence[PortPair], prices: Prices, *, nodes: int) -> list[Way] | None:
    """Ways for all demands that are not in each other's way; ``None`` proves that there are none.

    What has no finite price cannot be had. The ways are not the shortest ones.

    Raises:
        Undecided: more than ``nodes`` settings of PUCs would have to be looked at.
    """
    open_branches: list[tuple[list[float], list[Way]]] = [(prices.turn, [])]
    while open_branches:
        if nodes == 0:
            raise Undecided
        nodes -= 1
        turn, known = open_branches.pop()
        ways = _ways(mesh, demands, Prices(turn, prices.wire), known)
        if ways is None:
            continue
        wanted = Counter(passed for way in ways for passed in {(t >> 2) * 2 + k for t, k in way})
        fought = {passed for passed in wanted if passed ^ 1 in wanted}
        if not fought:
            return ways
        # The side that fewer want is given up last: it lies on the pile below the other.
        worst = max(sorted(fought), key=lambda passed: (min(wanted[passed], wanted[passed ^ 1]), wanted[passed]))
        for given_up in (worst, worst ^ 1):
            left = turn.copy()
            left[given_up] = inf
            open_branches.append((left, ways))
    return None


def _ways(mesh: Mesh, demands: Sequence[PortPair], prices: Prices, known: Sequence[Way]) -> list[Way] | None:
    """A way for each demand by itself, that of the branch above where it still can be had."""
    kept: Mapping[int, Way] = {
        at: way for at, way in enumerate(known) if all(prices.turn[(t >> 2) * 2 + k] < inf for t, k in way)
    }
    ways: list[Way] = []
    for at, demand in enumerate(demands):
        way = kept.get(at)
        if way is None:
            others = [*ways, *(other for later, other in kept.items() if later > at)]
            way = cheapest_way(mesh, demand, _charged(prices, others))
            if way is None:
                return None
        ways.append(way)
    return ways


def _charged(prices: Prices, ways: Sequence[Way]) -> Prices:
    turn = prices.turn.copy()
    for way in ways:
        for terminal, k in way:
            turn[(terminal >> 2) * 2 + 1 - k] += _PRESSURE
    return Prices(turn, prices.wire)
