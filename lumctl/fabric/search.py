"""The cheapest way of one circuit through a mesh, by A*: the search that routing, rearrangement and proofs share."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from heapq import heappop, heappush
from math import inf

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
