"""The cheapest way of one circuit at given prices of the waveguides: the linear relaxation asks it again and again."""

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from math import inf

from lumctl.fabric.exact.graph import Graph, Way
from lumctl.fabric.geometry import FREE


@dataclass(frozen=True, slots=True)
class Search:
    """A demand, and for each terminal how many PUCs light that enters there still has to pass: A*'s estimate."""

    graph: Graph
    start: int
    goal: int
    left: tuple[float, ...]

    @property
    def shortest(self) -> float:
        """The PUCs passed by the shortest way when no other circuit is there; ``inf`` if there is none."""
        return self.left[self.start]


def search(graph: Graph, demand: int) -> Search:
    """Prepare the search for one demand of the graph."""
    start, goal = graph.demands[demand]
    back = graph.costs(goal, [0.0] * graph.wires)
    left = [min((1 + back[at ^ turn] for turn in turns), default=inf) for at, turns in enumerate(graph.turns)]
    if not graph.turns[goal]:  # a blocked port lets nothing out, though a way back into the mesh begins there
        left = [inf] * len(left)
    return Search(graph, start, goal, tuple(left))


def cheapest(search: Search, prices: Sequence[float]) -> tuple[float, Way]:
    """The cost of the cheapest way, and the way: 1 for each PUC passed and the price of each waveguide.

    The way may use a waveguide twice: that is left to who sets the prices, so that no way is cheaper than told. The
    demand must have a way.
    """
    graph, goal, left = search.graph, search.goal, search.left
    peers, wire, turns = graph.mesh.peers, graph.wire, graph.turns
    best = {search.start: 0.0}
    came: dict[int, int] = {}
    queue = [(left[search.start], left[search.start], search.start)]
    settled: set[int] = set()
    while True:
        cost, _, terminal = heappop(queue)
        if terminal == goal:
            return cost, _walked_back(came, search.start, goal)
        if terminal in settled:
            continue
        settled.add(terminal)
        for turn in turns[terminal]:
            entered = peers[terminal ^ turn]
            if terminal ^ turn == goal:
                entered, price, ahead = goal, 0.0, 0.0
            elif entered == FREE or left[entered] == inf:
                continue
            else:
                price, ahead = prices[wire[entered]], left[entered]
            reached = best[terminal] + 1 + price
            if reached < best.get(entered, inf):
                best[entered] = reached
                came[entered] = terminal
                heappush(queue, (reached + ahead, ahead, entered))


def _walked_back(came: dict[int, int], start: int, goal: int) -> Way:
    way = [came[goal]]
    while way[-1] != start:
        way.append(came[way[-1]])
    return tuple(reversed(way))
