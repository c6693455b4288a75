"""Random states of a torus and demands for slices, for tests and measurements: the same for the same seed."""

from collections import deque
from dataclasses import replace
from itertools import product

from lumctl.slices.allocation import SliceDemand
from lumctl.slices.torus import FibreEdge, Torus

GRIDS = ((2, 2, 4), (4, 4, 1), (2, 4, 2), (2, 2, 2), (3, 2, 2), (4, 2, 1), (3, 3, 1), (5, 3, 1), (2, 2, 3), (8, 2, 1))
"""Shapes of tori in servers."""


def edges_of(grid, capacity):
    """One edge between neighbours along each dimension; where an extent is 2, a wrap-around edge is parallel to it."""
    for server in product(*map(range, grid)):
        for dimension, extent in enumerate(grid):
            if extent > 1:
                ahead = list(server)
                ahead[dimension] = (server[dimension] + 1) % extent
                name = f"{'xyz'[dimension]}-{'-'.join(map(str, server))}"
                yield FibreEdge(name, (server, tuple(ahead)), capacity)


def torus_of(grid, server_shape, capacity, free=None):
    """An undamaged torus; all accelerators are free by default."""
    shape = tuple(whole * part for whole, part in zip(grid, server_shape, strict=True))
    places = frozenset(product(*map(range, shape))) if free is None else frozenset(free)
    return Torus(shape, server_shape, places, tuple(edges_of(grid, capacity)))


def damaged(rng, torus, share):
    """Some edges lose a part of their capacity or all of it."""
    hit = [replace(e, capacity=rng.randint(0, e.capacity)) if rng.random() < share else e for e in torus.edges]
    return replace(torus, edges=tuple(hit))


def with_live_slice(rng, torus, servers):
    """A live slice on some servers: a ring of circuits over the shortest ways that have room."""
    edges = {edge.name: edge for edge in torus.edges}
    free = frozenset(place for place in torus.free if torus.server_of(place) not in servers)
    ring = list(servers)
    rng.shuffle(ring)
    for a, b in zip(ring, ring[1:] + ring[:1], strict=True):
        for _ in range(rng.choice((1, 2, 2, 4))):
            for name in shortest(edges.values(), a, b):
                edges[name] = replace(edges[name], used=edges[name].used + 1)
    return replace(torus, free=free, edges=tuple(edges.values()))


def shortest(edges, start, goal):
    """The names of the edges with room on a shortest way; none if there is no way."""
    came, queue = {start: ()}, deque([start])
    while queue:
        here = queue.popleft()
        for edge in edges:
            if edge.free and here in edge.ends:
                (there,) = set(edge.ends) - {here}
                if there not in came:
                    came[there] = (*came[here], edge.name)
                    queue.append(there)
    return came.get(goal, ())


def random_state(rng, grid=None, server_shape=(2, 2, 1)):
    """A torus with damage, live slices, and servers of which all, some or no accelerators are free."""
    grid = grid or rng.choice(GRIDS)
    torus = damaged(rng, torus_of(grid, server_shape, rng.randint(1, 8)), rng.choice((0, 0, 0.1, 0.3)))
    idle = list(torus.servers)
    rng.shuffle(idle)
    for _ in range(rng.randint(0, 3)):
        size = rng.randint(1, 4)
        if len(idle) > size + 2:
            torus = with_live_slice(rng, torus, idle[:size])
            del idle[:size]
    gone = set()
    for server in idle:
        if rng.random() < 0.15:
            own = torus.free_on[server]
            gone |= set(rng.sample(own, rng.randint(1, len(own))))
    return replace(torus, free=torus.free - gone)


def random_demand(rng, torus):
    """A demand for at most as many accelerators as are free, mostly of whole servers."""
    while True:
        slots = [rng.choice((1, 1, 2, 2, 3, 4)) for _ in range(3)]
        parts = torus.server_shape if rng.random() < 0.8 else (1, 1, 1)
        shape = tuple(slot * part for slot, part in zip(slots, parts, strict=True))
        demand = SliceDemand(shape, rings=tuple(rng.random() < 0.3 for _ in range(3)))
        if 1 < demand.accelerators <= len(torus.free) or not torus.free:
            return demand


def faults_of(torus, demand, placement):
    """What is wrong with a placement; nothing if it may be applied. Shares no code with the allocator."""
    faults = []
    ranks = placement.accelerators
    if len(set(ranks)) != demand.accelerators or not set(ranks) <= torus.free:
        faults.append("it takes accelerators twice or takes such that are not free")
    if demand.servers is not None and not {torus.server_of(at) for at in ranks} <= demand.servers:
        faults.append("it takes servers that are not allowed")
    places = list(product(*map(range, demand.shape)))
    wanted = sorted((places.index(a), places.index(b), dimension) for a, b, dimension in demand.links())
    if sorted((*circuit.ranks, circuit.dimension) for circuit in placement.circuits) != wanted:
        faults.append("its circuits are not those of the demand")
    load = {edge.name: edge.used for edge in torus.edges}
    for circuit in placement.circuits:
        start, goal = (torus.server_of(ranks[rank]) for rank in circuit.ranks)
        if not leads(torus, circuit.edges, start, goal):
            faults.append(f"the circuit of ranks {circuit.ranks} does not join their servers")
        for name in circuit.edges:
            load[name] += 1
    faults += [f"{e.name} carries {load[e.name]}" for e in torus.edges if load[e.name] > max(e.capacity, e.used)]
    if placement.fullest != max(load.values(), default=0):
        faults.append(f"the fullest edge carries {max(load.values())}, not {placement.fullest}")
    return faults


def leads(torus, names, start, goal):
    """Whether edges are a way between two servers."""
    ends = {edge.name: edge.ends for edge in torus.edges}
    for name in names:
        if start not in ends[name]:
            return False
        (start,) = set(ends[name]) - {start}
    return start == goal
