"""The room for circuits between servers if no edge may carry more than a level, and the routing of circuits in it."""

from collections import deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import heappop, heappush

from lumctl.slices.torus import Torus

UNREACHABLE = 1_000
"""The distance of two servers that no edges with room join: more than any way is long."""
_ROUNDS = 12
"""How often circuits on edges that are too full are routed again before a placement is abandoned."""
_PRICE = 0.6
"""What a circuit more than an edge has room for adds to the edge's price, in each round."""

Wants = Sequence[tuple[int, int, int]]
"""Circuits to route: two servers, and how many circuits between them."""
PairCosts = list[list[int]]
"""For any two servers, how many fibres the circuits between them need."""
Ways = list[list[tuple[int, ...]]]
"""For each want, the edges of each of its circuits, from the first server on."""


@dataclass(frozen=True)
class FibreGraph:
    """Servers and edges by number, in the order of the torus; ``room[e]`` circuits can be added to edge ``e``."""

    ends: tuple[tuple[int, int], ...]
    room: tuple[int, ...]
    servers: int

    @cached_property
    def near(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """For each server, its edges that have room and the server at the other end."""
        found: list[list[tuple[int, int]]] = [[] for _ in range(self.servers)]
        for edge, (a, b) in enumerate(self.ends):
            if self.room[edge]:
                found[a].append((edge, b))
                found[b].append((edge, a))
        return tuple(map(tuple, found))

    @cached_property
    def room_at(self) -> tuple[int, ...]:
        """For each server, the room of its edges together."""
        return tuple(sum(self.room[edge] for edge, _ in near) for near in self.near)

    @cached_property
    def direct(self) -> dict[tuple[int, int], tuple[int, ...]]:
        """The edges with room between two servers, in both orders of the servers."""
        found: dict[tuple[int, int], tuple[int, ...]] = {}
        for server, near in enumerate(self.near):
            for edge, other in near:
                found[server, other] = (*found.get((server, other), ()), edge)
        return found

    @cached_property
    def distances(self) -> tuple[tuple[int, ...], ...]:
        """The fewest edges with room between any two servers; :data:`UNREACHABLE` if there is no way."""
        return tuple(map(self._distances_from, range(self.servers)))

    def _distances_from(self, start: int) -> tuple[int, ...]:
        found = [UNREACHABLE] * self.servers
        found[start] = 0
        queue = deque([start])
        while queue:
            here = queue.popleft()
            for _, other in self.near[here]:
                if found[other] == UNREACHABLE:
                    found[other] = found[here] + 1
                    queue.append(other)
        return tuple(found)

    def hop_costs(self, count: int) -> PairCosts:
        """The fibres that ``count`` circuits between any two servers need about: as many ways of the fewest edges.

        Where edges between neighbours have too little room, the other circuits are taken to go around three edges.
        """
        rows = [[count * hops for hops in row] for row in self.distances]
        for (a, b), edges in self.direct.items():
            direct = sum(self.room[edge] for edge in edges)
            rows[a][b] = count + 2 * max(0, count - direct)
        return rows

    def flow_costs(self, counts: Collection[int]) -> dict[int, PairCosts]:
        """The fewest fibres for so many circuits between any two servers if these are alone, by minimum-cost flows.

        :data:`UNREACHABLE` if the room does not suffice for them. No placement needs fewer, whatever else it routes.
        """
        rows: dict[int, PairCosts] = {count: [[0] * self.servers for _ in range(self.servers)] for count in counts}
        for a in range(self.servers):
            for b in range(a):
                costs = self._flow_costs(a, b, max(counts, default=0))
                for count in counts:
                    rows[count][a][b] = rows[count][b][a] = costs[count]
        return rows

    def _flow_costs(self, start: int, goal: int, most: int) -> list[int]:
        """The fibres for 0 to ``most`` circuits: each takes the shortest way that rerouting those before it allows."""
        flow = [0] * len(self.ends)  # Circuits along an edge from its first end to its second; negative: the other way.
        costs = [0]
        while len(costs) <= most and (way := self._augmenting_way(start, goal, flow)) is not None:
            costs.append(costs[-1] + sum(1 if step * flow[edge] >= 0 else -1 for edge, step in way))
            for edge, step in way:
                flow[edge] += step
        return costs + [UNREACHABLE] * (most + 1 - len(costs))

    def _augmenting_way(self, start: int, goal: int, flow: Sequence[int]) -> list[tuple[int, int]] | None:
        """The edges of the shortest way with their directions; an edge passed against its flow counts as -1."""
        costs = [UNREACHABLE] * self.servers
        came: list[tuple[int, int, int]] = [(-1, -1, 0)] * self.servers
        costs[start] = 0
        queue = deque([start])
        while queue:
            here = queue.popleft()
            for edge, other in self.near[here]:
                step = 1 if self.ends[edge][0] == here else -1
                along = step * flow[edge]
                cost = costs[here] + (1 if along >= 0 else -1)
                if along < self.room[edge] and cost < costs[other]:
                    costs[other] = cost
                    came[other] = (edge, here, step)
                    queue.append(other)
        if costs[goal] == UNREACHABLE:
            return None
        way = []
        while goal != start:
            edge, goal, step = came[goal]
            way.append((edge, step))
        return way


def fibre_graph(torus: Torus, level: int) -> FibreGraph:
    """The room in a torus if no edge may carry more than ``level`` circuits, or more than its capacity."""
    number = torus.number_of
    return FibreGraph(
        tuple((number[edge.ends[0]], number[edge.ends[1]]) for edge in torus.edges),
        tuple(edge.room(level) for edge in torus.edges),
        len(number),
    )


def route_circuits(graph: FibreGraph, wants: Wants) -> Ways | None:
    """Edges for all circuits, within the room of every edge; ``None`` if none were found, which proves nothing.

    Circuits between neighbours take the edge between them while it has room. The others go around; where they compete,
    prices of the edges rise until each edge carries no more than it may (negotiated congestion, as in PathFinder).
    """
    load = [0] * len(graph.ends)
    ways: Ways = [[] for _ in wants]
    open_wants: list[int] = []
    for want, (a, b, count) in enumerate(wants):
        edges = graph.direct.get((a, b), ())
        for _ in range(count if a != b else 0):
            edge = max(edges, key=lambda each: graph.room[each] - load[each], default=-1)
            if edge < 0 or load[edge] >= graph.room[edge]:
                open_wants.append(want)
            else:
                load[edge] += 1
                ways[want].append((edge,))
        ways[want] += [()] * (count if a == b else 0)
    prices = [0.0] * len(graph.ends)
    for attempt in range(_ROUNDS):
        for want in open_wants:
            a, b, _ = wants[want]
            straight = _straight(graph, a, b, load) if attempt == 0 else None
            way = straight or _cheapest(graph, a, b, load, prices)
            if way is None:
                return None
            ways[want].append(way)
            for edge in way:
                load[edge] += 1
        over = [edge for edge, used in enumerate(load) if used > graph.room[edge]]
        if not over:
            return ways
        for edge in over:
            prices[edge] += _PRICE * (load[edge] - graph.room[edge])
        open_wants = list(_taken_off(ways, load, frozenset(over)))
    return None


def _taken_off(ways: Ways, load: list[int], over: frozenset[int]) -> Iterator[int]:
    """Take circuits off the edges that are too full; yields the want of each."""
    for want, own in enumerate(ways):
        kept = []
        for way in own:
            if over.isdisjoint(way):
                kept.append(way)
                continue
            for edge in way:
                load[edge] -= 1
            yield want
        own[:] = kept


def _straight(graph: FibreGraph, start: int, goal: int, load: Sequence[int]) -> tuple[int, ...] | None:
    """The edges of a way that comes nearer with each, of those with room the emptiest; ``None`` if it gets stuck.

    Most circuits find one, in a tenth of the time that the cheapest way takes.
    """
    way: list[int] = []
    while start != goal:
        left = graph.distances[start][goal]
        ahead = [
            (graph.room[edge] - load[edge], -edge, other)
            for edge, other in graph.near[start]
            if graph.distances[other][goal] < left and load[edge] < graph.room[edge]
        ]
        if not ahead:
            return None
        _, edge, start = max(ahead)
        way.append(-edge)
    return tuple(way)


def _cheapest(
    graph: FibreGraph, start: int, goal: int, load: Sequence[int], prices: Sequence[float]
) -> tuple[int, ...] | None:
    """The edges of the cheapest way; a full edge costs more, but is not closed."""
    costs = [float("inf")] * graph.servers
    came: list[tuple[int, int]] = [(-1, -1)] * graph.servers
    costs[start] = 0.0
    queue = [(0.0, start)]
    while queue:
        cost, here = heappop(queue)
        if here == goal:
            break
        if cost > costs[here]:
            continue
        for edge, other in graph.near[here]:
            over = load[edge] + 1 - graph.room[edge]
            passed = cost + 1 + prices[edge] + (over + over if over > 0 else 0)
            if passed < costs[other]:
                costs[other] = passed
                came[other] = (edge, here)
                heappush(queue, (passed, other))
    if start != goal and came[goal][0] < 0:
        return None
    way: list[int] = []
    while goal != start:
        edge, goal = came[goal]
        way.append(edge)
    return tuple(reversed(way))
