"""What a slice asks of a torus, and the answer: accelerators in rank order with the fibres of each circuit, or why not.

Ranks lie in row-major order on the slice's shape, as a job's torus links have them in the inventory.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import product
from math import prod

from lumctl.errors import UsageError
from lumctl.printable import shape_text
from lumctl.slices.fibre_graph import Wants, Ways
from lumctl.slices.torus import Coordinates, Extents, Torus


@dataclass(frozen=True, slots=True)
class SliceDemand:
    """What is asked for.

    Neighbours along dimension ``d`` of ``shape`` are joined by ``widths[d]`` circuits. ``rings[d]``: the last rank is
    joined with the first as well; two ranks are then joined twice. ``servers`` are those that may be used (``None``:
    all); circuits may pass others.

    Raises:
        UsageError: an extent or a width is below 1.
    """

    shape: Extents
    rings: tuple[bool, bool, bool] = (False, False, False)
    widths: tuple[int, int, int] = (1, 1, 1)
    servers: frozenset[Coordinates] | None = None

    def __post_init__(self) -> None:
        if min(self.shape) < 1:
            raise UsageError(f"{shape_text(self.shape)} is not a shape of a slice", hint="extents are 1 or more: 4x4x2")
        if min(self.widths) < 1:
            raise UsageError("a link needs 1 circuit or more", hint="give one width for each dimension")

    def __str__(self) -> str:
        """Shape, and widths if a link has several circuits."""
        wide = f" with {shape_text(self.widths)} circuits a link" if max(self.widths) > 1 else ""
        return shape_text(self.shape) + wide

    @property
    def accelerators(self) -> int:
        """How many accelerators it asks for."""
        return prod(self.shape)

    @property
    def places(self) -> Iterator[Coordinates]:
        """The place of each rank in the slice, in the order of ranks."""
        x, y, z = map(range, self.shape)
        return product(x, y, z)

    def links(self) -> Iterator[tuple[Coordinates, Coordinates, int]]:
        """Every circuit: the places of its two ranks in the slice, and its dimension."""
        for place in self.places:
            for dimension, extent in enumerate(self.shape):
                last = place[dimension] == extent - 1
                if extent == 1 or (last and not self.rings[dimension]):
                    continue
                ahead = list(place)
                ahead[dimension] = 0 if last else place[dimension] + 1
                for _ in range(self.widths[dimension]):
                    yield place, (ahead[0], ahead[1], ahead[2]), dimension


def ring_demand(shape: Extents, widths: Extents = (1, 1, 1)) -> SliceDemand:
    """The demand for a slice of a shape in which every dimension is a ring, as in a job's torus links."""
    return SliceDemand(shape, (True, True, True), widths)


def redirected_widths(shape: Extents, ports: int) -> Extents:
    """The circuits of each link if the ports of a rank serve only the dimensions in which it has neighbours.

    Every ring takes two ports of a rank for each circuit of a link. Pairs of ports are shared out evenly, as published
    (Morphlux, arXiv 2508.03674); what is left goes to the longest dimensions, one pair each.
    """
    used = sorted((axis for axis in range(3) if shape[axis] > 1), key=lambda axis: -shape[axis])
    widths = [1, 1, 1]
    for turn, axis in enumerate(used):
        widths[axis] = max(1, (ports // 2 + len(used) - 1 - turn) // len(used))
    return widths[0], widths[1], widths[2]


class SliceVerdict(StrEnum):
    """How the search for a slice ended. ``impossible`` is proven, ``gave-up`` is not."""

    PLACED = "placed"
    IMPOSSIBLE = "impossible"
    GAVE_UP = "gave-up"


@dataclass(frozen=True, slots=True)
class SliceCircuit:
    """A circuit between two ranks. ``edges`` are the names of the edges passed from the first rank's server on.

    It has no edges if both ranks are on one server.
    """

    ranks: tuple[int, int]
    dimension: int
    edges: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SlicePlacement:
    """Where a slice lies: the accelerator of each rank, and the slice's circuits.

    ``contiguous``: the accelerators are a box of the torus. ``fullest`` is the number of circuits on the fullest edge
    of the torus with this slice. No scattered placement in as many parts can have less than ``bound``. For a box, that
    is what its circuits need if all of them run directly between neighbours.
    """

    accelerators: tuple[Coordinates, ...]
    circuits: tuple[SliceCircuit, ...]
    contiguous: bool
    fullest: int
    bound: int

    @property
    def optimal(self) -> bool:
        """Whether the fullest edge is proven to be the least possible."""
        return self.fullest <= self.bound

    @property
    def fibres_used(self) -> int:
        """How many fibres all circuits use together: one for each edge that a circuit passes."""
        return sum(len(circuit.edges) for circuit in self.circuits)

    def added(self, torus: Torus) -> dict[str, int]:
        """The circuits that the slice adds to each edge of the torus."""
        counts = dict.fromkeys((edge.name for edge in torus.edges), 0)
        for circuit in self.circuits:
            for name in circuit.edges:
                counts[name] += 1
        return counts


def placed_slice(
    torus: Torus,
    demand: SliceDemand,
    accelerators: tuple[Coordinates, ...],
    wants: Wants,
    ways: Ways,
    *,
    contiguous: bool,
    bound: int,
) -> SlicePlacement:
    """The placement of ranks on ``accelerators``, whose circuits between servers take the ``ways`` of the ``wants``."""
    waiting: dict[tuple[int, int], list[tuple[int, ...]]] = {}
    for (a, b, _), own in zip(wants, ways, strict=True):
        waiting.setdefault((a, b), []).extend(own)
        if a != b:
            waiting.setdefault((b, a), []).extend(way[::-1] for way in own)
    rank_of = {place: rank for rank, place in enumerate(demand.places)}
    server = [torus.number_of[torus.server_of(place)] for place in accelerators]
    load = [edge.used for edge in torus.edges]
    circuits = []
    for here, there, dimension in demand.links():
        ranks = rank_of[here], rank_of[there]
        ends = server[ranks[0]], server[ranks[1]]
        way: tuple[int, ...] = ()
        if ends[0] != ends[1]:
            way = waiting[ends].pop()
            waiting[ends[::-1]].remove(way[::-1])
        for edge in way:
            load[edge] += 1
        circuits.append(SliceCircuit(ranks, dimension, tuple(torus.edges[edge].name for edge in way)))
    return SlicePlacement(accelerators, tuple(circuits), contiguous, max(load, default=0), bound)


def with_slice(torus: Torus, placement: SlicePlacement) -> Torus:
    """The torus once a slice has been placed: its accelerators are taken and its circuits are live."""
    added = placement.added(torus)
    edges = tuple(replace(edge, used=edge.used + added[edge.name]) for edge in torus.edges)
    return replace(torus, free=torus.free - set(placement.accelerators), edges=edges)


@dataclass(frozen=True, slots=True)
class Allocation:
    """The answer to demands. ``reasons`` say why each option that was tried before the last one failed.

    Without a placement they say why there is none, and ``verdict`` whether that is proven. ``demand`` is the one that
    was placed. ``in_the_way`` are the accelerators that the nearest box of the first demand lacks.
    """

    verdict: SliceVerdict
    demand: SliceDemand | None = None
    placement: SlicePlacement | None = None
    reasons: tuple[str, ...] = ()
    in_the_way: tuple[Coordinates, ...] = ()
