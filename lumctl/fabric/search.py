"""Finds the cheapest path of one circuit through a mesh, by A*; routing, rearrangement and proofs use it."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from heapq import heappop, heappush
from math import inf

from lumctl.devices.types import PucState
from lumctl.errors import RefusedError
from lumctl.fabric.geometry import FREE, Mesh, Pass, PortPair

Step = tuple[int, int]
"""A terminal at which a path enters a PUC, and the turn it takes there: 0 as in bar, 1 as in cross."""

Way = tuple[Step, ...]

Passes = tuple[Pass, ...]
"""The PUCs of a way in their order, each with the state that it needs."""


@dataclass(frozen=True)
class Prices:
    """The prices of a path: ``turn[2 * puc + turn]`` for passing a PUC, ``wire[t]`` for entering at terminal ``t``.

    ``inf`` means forbidden. Passing a PUC costs at least 1 and entering at least 0: the search relies on this.
    """

    turn: list[float]
    wire: list[float]

    def pass_costs(self, puc: int, more: float) -> None:
        """Raise the price of a PUC in both states by ``more``."""
        self.turn[2 * puc] += more
        self.turn[2 * puc + 1] += more

    def copy(self) -> "Prices":
        """A copy of the prices, which may be changed."""
        return Prices(self.turn.copy(), self.wire.copy())


def other_turn(puc: int, state: PucState) -> int:
    """The index in :class:`Prices` of the price of passing a PUC in the other state."""
    return 2 * puc + (1 if state is PucState.BAR else 0)


def passes_of(way: Way) -> Passes:
    """A path as PUCs, each with the state that it needs."""
    return tuple((terminal >> 2, PucState.CROSS if turn else PucState.BAR) for terminal, turn in way)


def cheapest_way(mesh: Mesh, demand: PortPair, prices: Prices) -> Way | None:
    """The cheapest path between two ports, ``None`` if there is none; among equals always the same one.

    The path never turns back in a PUC. It may need one PUC in both states, or one waveguide in both directions: the
    negotiation resolves this, so ``None`` is a proof.
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
    """The cost of the cheapest path from terminal to terminal, and that path; ``None`` if there is none.

    ``ahead`` gives for each terminal a lower bound of the cost from entering there to ``goal``; ``inf`` if light cannot
    reach ``goal`` from there.
    """
    turn_price, wire_price = prices.turn, prices.wire
    best = {start: 0.0}
    came: dict[int, Step] = {}
    # Among equal sums the way nearest to the goal goes first, then the lower terminal: the same on every machine.
    queue = [(ahead[start], ahead[start], start)]
    settled: set[int] = set()
    while queue:
        _, _, terminal = heappop(queue)
        if terminal == goal:
            return best[goal], walked_back(came, start, goal)
        if terminal in settled:
            continue
        settled.add(terminal)
        # The index of the PUC's first price: 2 * puc.
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


def walked_back(came: Mapping[int, Step], start: int, goal: int) -> Way:
    """The steps from start to goal, from the step with which each terminal was reached."""
    steps = [came[goal]]
    while steps[-1][0] != start:
        steps.append(came[steps[-1][0]])
    return tuple(reversed(steps))


@lru_cache(maxsize=256)
def pucs_ahead(mesh: Mesh, goal: int) -> tuple[float, ...]:
    """For each terminal of an idle mesh, the fewest PUCs that light entering there passes before it leaves at ``goal``.

    Every path of light is reversible, so one search from the goal serves all terminals.
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
    """The waveguides between the PUCs of a path, each by the lower of its two terminals."""
    return (min(terminal, mesh.peers[terminal]) for terminal, _ in way[1:])


class InconsistentFabricError(RefusedError):
    """The states of the mesh do not form a circuit that is given as live."""


NO_ROUTE_HINT = "try other ports, or fewer circuits at once"


class Unroutable(RefusedError):  # noqa: N818 - the word that operators and callers use for it
    """No path was found for some circuits. ``proven``: there is none; otherwise the router gave up."""

    def __init__(self, demands: tuple[PortPair, ...], message: str, *, proven: bool, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.demands = demands
        self.proven = proven


def named(demands: Iterable[PortPair]) -> str:
    """Demands in the form of the command line: ``3:17, 4:9``."""
    return ", ".join(f"{a}:{b}" for a, b in demands)


_PRESSURE = 1.0
"""The price of using a PUC in another state than another circuit does; it only decides what is tried first."""


class Undecided(Exception):  # noqa: N818 - not an error
    """The search ended early: paths may exist or not."""


def endless() -> float:
    """The seconds that are left to a search without a time limit."""
    return inf


def exhaust(
    mesh: Mesh, demands: Sequence[PortPair], prices: Prices, *, nodes: int, left: Callable[[], float] = endless
) -> list[Way] | None:
    """Paths for all demands that do not block each other; ``None`` proves that there are none.

    Places with an infinite price are not used. The paths are not the shortest ones.

    Raises:
        Undecided: more than ``nodes`` settings of PUCs would have to be tried, or no seconds are ``left``.
    """
    open_branches: list[tuple[list[float], list[Way]]] = [(prices.turn, [])]
    while open_branches:
        if nodes == 0 or left() <= 0:
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
        # The branch that forbids the more wanted state is explored last: it is lower on the stack.
        worst = max(sorted(fought), key=lambda passed: (min(wanted[passed], wanted[passed ^ 1]), wanted[passed]))
        for given_up in (worst, worst ^ 1):
            without = turn.copy()
            without[given_up] = inf
            open_branches.append((without, ways))
    return None


def _ways(mesh: Mesh, demands: Sequence[PortPair], prices: Prices, known: Sequence[Way]) -> list[Way] | None:
    """A path for each demand by itself; the path in the parent branch if that is still allowed."""
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
