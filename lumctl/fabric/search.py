"""The cheapest way of one circuit through a mesh, by A*: the search that routing, rearrangement and proofs share."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from heapq import heappop, heappush
from math import inf

from lumctl.errors import RefusedError
from lumctl.fabric.geometry import FREE, Mesh, PortPair

Step = tuple[int, int]
"""A terminal at which a way enters a PUC, and the turn it takes there: 0 as in bar, 1 as in cross."""

Way = tuple[Step, ...]


@dataclass(frozen=True)
class Prices:
    """What a way costs: ``turn[2 * puc + turn]`` for passing a PUC, ``wire[t]`` for coming in at terminal ``t``.

    ``inf`` is forbidden. Passing a PUC costs at least 1 and coming in at least 0: the search relies on it.
    """

    turn: list[float]
    wire: list[float]

    def pass_costs(self, puc: int, more: float) -> None:
        """Make a PUC dearer, in whichever state."""
        self.turn[2 * puc] += more
        self.turn[2 * puc + 1] += more

    def copy(self) -> "Prices":
        """The same prices, to be changed freely."""
        return Prices(self.turn.copy(), self.wire.copy())


def cheapest_way(mesh: Mesh, demand: PortPair, prices: Prices) -> Way | None:
    """The cheapest way between two ports, ``None`` if there is none; among equals always the same one.

    It never turns back in a PUC. It may still want one PUC in both states or one waveguide both ways: that is left to
    the negotiation, so that ``None`` is proof.
    """
    start, goal = mesh.ports[demand[0]], mesh.ports[demand[1]]
    found = cheapest_path(mesh.peers, start, goal, prices, pucs_ahead(mesh, goal))
    return None if found is None else found[1]


def cheapest_path(
    peers: Sequence[int],
    start: int,
    goal: int,
    prices: Prices,
    ahead: Sequence[float],
) -> tuple[float, Way] | None:
    """The cost of the cheapest way from terminal to terminal, and the way; ``None`` if there is none.

    ``ahead`` is for each terminal at least what light that enters there still pays up to ``goal``, ``inf`` where it
    cannot get there at all.
    """
    turn_price, wire_price = prices.turn, prices.wire
    best = {start: 0.0}
    came: dict[int, Step] = {}
    queue = [(ahead[start], ahead[start], start)]
    settled: set[int] = set()
    while queue:
        _, _, terminal = heappop(queue)
        if terminal == goal:
            return best[goal], _walked_back(came, start, goal)
        if terminal in settled:
            continue
        settled.add(terminal)
        so_far, first = best[terminal], terminal >> 1 & -2
        for turn in (0, 1):
            out = terminal ^ (2 + turn)
            cost = so_far + turn_price[first + turn]
            if out == goal:
                entered, left = goal, 0.0
            else:
                entered = peers[out]
                if entered == FREE:
                    continue
                cost += wire_price[entered]
                left = ahead[entered]
            if cost < best.get(entered, inf):
                best[entered] = cost
                came[entered] = (terminal, turn)
                heappush(queue, (cost + left, left, entered))
    return None


def _walked_back(came: dict[int, Step], start: int, goal: int) -> Way:
    steps = [came[goal]]
    while steps[-1][0] != start:
        steps.append(came[steps[-1][0]])
    return tuple(reversed(steps))


@lru_cache(maxsize=256)
def pucs_ahead(mesh: Mesh, goal: int) -> tuple[float, ...]:
    """For light that comes in at each terminal of an idle mesh, the fewest PUCs it passes before it leaves at ``goal``.

    A way of light can be walked backwards, so one search from the goal answers for all terminals.
    """
    ahead = [inf] * len(mesh.peers)
    seen = {goal}
    frontier, distance = {goal}, 0.0
    while frontier:
        distance += 1
        outs = {terminal ^ turn for terminal in frontier for turn in (2, 3)}
        for out in outs:
            ahead[out] = min(ahead[out], distance)
        frontier = {mesh.peers[out] for out in outs} - seen - {FREE}
        seen |= frontier
    return tuple(ahead)


def wires_of(mesh: Mesh, way: Way) -> Iterator[int]:
    """The waveguides between the PUCs of a way, each by the lower of its two terminals."""
    return (min(terminal, mesh.peers[terminal]) for terminal, _ in way[1:])


class InconsistentFabricError(RefusedError):
    """A circuit said to be live is not what the states of the mesh really make."""


class Unroutable(RefusedError):  # noqa: N818 - the word that operators and callers use for it
    """Some circuits were not found a way. ``proven``: there is none; else the router gave up looking."""

    def __init__(self, demands: tuple[PortPair, ...], message: str, *, proven: bool, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.demands = demands
        self.proven = proven


def named(demands: Iterable[PortPair]) -> str:
    """Demands as they are written on the command line: ``3:17, 4:9``."""
    return ", ".join(f"{a}:{b}" for a, b in demands)


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
