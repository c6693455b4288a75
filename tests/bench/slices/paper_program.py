"""The published integer program for scattered servers (Morphlux, arXiv 2508.03674), on HiGHS.

A variable ``x[a, m]`` says that slot ``a`` lies on server ``m``, and ``r[l, p]`` that link ``l`` takes path ``p``. A
link whose slots lie on ``m`` and ``n`` takes one of the paths between these; the product of the two ``x`` is written as
a sum, which the paper leaves open. Minimised is ``z``, at least the circuits on every edge. Two differences are in the
paper's favour: a link counts its true number of circuits, not always four, and wrap-around edges are all there. As in
the paper, no edge has a capacity.
"""

from collections.abc import Sequence
from itertools import permutations, product
from math import inf
from time import process_time

import highspy

from lumctl.fabric.research.integer_program import Column, has_solution, program
from lumctl.slices.fibre_graph import FibreGraph
from lumctl.slices.slots import SlotGraph

_PATHS = 4
"""Shortest paths between two servers that may be chosen from."""
_LOOK_S = 0.1
"""How often it is seen whether the time is up."""


def paths(fibres: FibreGraph, start: int, goal: int) -> list[tuple[int, ...]]:
    """The first shortest paths between two servers, as edges."""
    found: list[tuple[int, ...]] = []
    open_paths: list[tuple[int, tuple[int, ...]]] = [(start, ())]
    while open_paths and len(found) < _PATHS:
        here, way = open_paths.pop()
        if here == goal:
            found.append(way)
        left = fibres.distances[here][goal]
        open_paths += [(other, (*way, e)) for e, other in fibres.near[here] if fibres.distances[other][goal] < left]
    return found


def least_fullest(
    slots: SlotGraph, fibres: FibreGraph, used: Sequence[int], servers: Sequence[int], seconds: float
) -> tuple[list[int] | None, bool]:
    """The circuits on each edge in the best placement found in time, and whether it is proven to be the optimum.

    ``seconds`` are of CPU time, so that other programs on the machine take nothing away.
    """
    pairs = list(permutations(servers, 2))
    # The rows: each slot once, each server once at most, each edge against z, and a path for each link that needs it.
    rows = [(1.0, 1.0)] * len(slots.needs) + [(-inf, 1.0)] * len(servers) + [(-inf, -float(each)) for each in used]
    first_edge = len(slots.needs) + len(servers)
    chosen = {key: len(rows) + at for at, key in enumerate(product(range(len(slots.links)), pairs))}
    rows += [(-1.0, inf)] * len(chosen)
    columns: list[Column] = []
    for slot, (at, server) in product(range(len(slots.needs)), enumerate(servers)):
        ends = [(slots.links[link][:2], pair, row) for (link, pair), row in chosen.items()]
        needing = [(row, -1.0) for (a, b), pair, row in ends if (slot, server) in {(a, pair[0]), (b, pair[1])}]
        columns.append((0.0, [(slot, 1.0), (len(slots.needs) + at, 1.0), *needing]))
    routes = [
        (row, slots.links[link][2], path) for (link, pair), row in chosen.items() for path in paths(fibres, *pair)
    ]
    for row, circuits, path in routes:
        columns.append((0.0, [(row, 1.0), *((first_edge + edge, float(circuits)) for edge in path)]))
    columns.append((1.0, [(first_edge + edge, -1.0) for edge in range(len(used))]))
    solver = program(rows, columns, whole=True, most=[*[1.0] * (len(columns) - 1), 1000.0])
    solver.setOptionValue("presolve", "choose")  # As the solver comes; the published program is not a proof here.
    solving = solver.startSolve()
    until = process_time() + seconds
    while solving.is_alive():
        solving.join(_LOOK_S)
        if process_time() > until:
            solver.cancelSolve()
    if not has_solution(solver):
        return None, False
    load = list(used)
    values = solver.getSolution().col_value[len(slots.needs) * len(servers) :]
    for value, (_, circuits, path) in zip(values, routes, strict=False):
        for edge in path if value > 1 / 2 else ():
            load[edge] += circuits
    return load, solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
