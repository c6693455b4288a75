"""The published cluster: racks that are a torus of accelerators, filled with slices that are aligned boxes.

64 racks of 4x4x4 accelerators in servers of 2x2x1, and slices of the shapes of the published allocator (Morphlux,
arXiv 2508.03674). Fibres join neighbouring servers; the source has four for each pair of them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from math import prod
from random import Random

from lumctl.errors import UsageError
from lumctl.slices.allocation import SliceDemand, SlicePlacement, with_slice
from lumctl.slices.boxes import find_box
from lumctl.slices.fragmentation import ALIGNED_SHAPES, aligned_box
from lumctl.slices.torus import Coordinates, Extents, FibreEdge, Torus
from lumctl.studies.study import StudyParameter, StudySettings

SOURCE = "arXiv 2508.03674"
RACKS = 64
RACK: Extents = (4, 4, 4)
SERVER: Extents = (2, 2, 1)
FIBRES = 4
"""Between two neighbouring servers, as published."""
UNLIMITED = 3 * prod(RACK)
"""So many fibres are as good as any number: the slices of a rack have no more circuits."""
SHAPES: Mapping[int, Extents] = {prod(shape): shape for shape in ALIGNED_SHAPES}
"""The shape of an aligned slice by its number of accelerators."""
PARTS: Mapping[int, Extents] = {**SHAPES, 2: (2, 1, 1), 1: (1, 1, 1)}
"""The same with those that are part of a server; the published allocator has none of these."""

RACKS_PARAMETER = StudyParameter("racks", "Racks of the cluster.", (RACKS,), 1, 1024, whole=True, several=False)

FILLINGS = ("by-size", "mixed")
"""The source does not say which slices share a rack: those of one size, or any."""
FIBRES_LABEL = f"fibres between two servers ({UNLIMITED}: unlimited)"


def fibres_parameter(default: tuple[int, ...], quick: tuple[int, ...] = ()) -> StudyParameter:
    """The numbers of fibres between two servers that a study tries."""
    words = f"Fibres between two servers; {UNLIMITED} are more than a rack uses."
    return StudyParameter("fibres", words, default, 4, UNLIMITED, quick, whole=True)


def require_slice_sizes(parameter: str, sizes: Iterable[int]) -> None:
    """Require that slices of the torus have these sizes; ``parameter`` gave them.

    Raises:
        UsageError: none has one of them.
    """
    if strange := [each for each in sizes if each not in SHAPES]:
        known = ", ".join(map(str, sorted(SHAPES)))
        raise UsageError(f"{parameter} is {strange[0]}, but slices of the torus have {known} accelerators")


def is_published_cluster(settings: StudySettings) -> bool:
    """Whether the cluster has as many racks as the published one; a claim is not judged on another."""
    return settings.get(RACKS_PARAMETER.name, RACKS_PARAMETER.default) == (RACKS,)


@dataclass(frozen=True, slots=True)
class LiveSlice:
    """A slice of an aligned shape, and the accelerators of its rack that it has."""

    rack: int
    shape: Extents
    accelerators: frozenset[Coordinates]


def torus_demand(shape: Extents) -> SliceDemand:
    """The demand for the links that a box of a shape has in the torus: rings where it reaches around the rack."""
    x, y, z = (extent == whole for extent, whole in zip(shape, RACK, strict=True))
    return SliceDemand(shape, (x, y, z))


def fill(
    chips: Mapping[int, int],
    rng: Random,
    *,
    mixed: bool,
    racks: int = RACKS,
    spares: frozenset[Coordinates] = frozenset(),
) -> tuple[LiveSlice, ...]:
    """Slices on all racks: ``chips[n]`` accelerators in slices of ``n``, the largest slices first.

    Each slice takes the first aligned box of the first rack that has one, so that a rack has slices of one size if the
    numbers allow it; ``mixed``: of a rack at random. As each size divides the next, every slice finds its box while
    accelerators are left. ``spares`` are left free in each rack.

    Raises:
        ValueError: there are more slices than accelerators.
    """
    free = [_all() - spares for _ in range(racks)]
    order = list(range(racks))
    found = []
    for size in sorted(chips, reverse=True):
        for _ in range(chips[size] // size):
            if mixed:
                rng.shuffle(order)
            found.append(_next_slice(free, order, PARTS[size]))
            free[found[-1].rack] -= found[-1].accelerators
    return tuple(found)


def _next_slice(free: Sequence[frozenset[Coordinates]], order: Iterable[int], shape: Extents) -> LiveSlice:
    for rack in order:
        if (cells := _first_box(free[rack], shape)) is not None:
            return LiveSlice(rack, shape, frozenset(cells))
    raise ValueError(f"no rack has an aligned box for a slice of {prod(shape)}")


@cache
def _first_box(free: frozenset[Coordinates], shape: Extents) -> tuple[Coordinates, ...] | None:
    return aligned_box(Torus(RACK, SERVER, free, ()), shape)


def release(slices: Iterable[LiveSlice], share: float, rng: Random, *, racks: int = RACKS) -> tuple[LiveSlice, ...]:
    """What is left after slices were released at random until this share of the accelerators, or more, is free."""
    left = list(slices)
    rng.shuffle(left)
    used = sum(len(each.accelerators) for each in left)
    while left and used > (1 - share) * racks * prod(RACK):
        used -= len(left.pop().accelerators)
    return tuple(left)


def racks_with(slices: Iterable[LiveSlice], fibres: int, *, racks: int = RACKS) -> tuple[Torus, ...]:
    """The racks on which these slices live; ``fibres`` between two servers, of which the slices' circuits use some."""
    by_rack: list[set[LiveSlice]] = [set() for _ in range(racks)]
    for each in slices:
        by_rack[each.rack].add(replace(each, rack=0))
    return tuple(_rack_with(frozenset(own), fibres) for own in by_rack)


@cache
def _rack_with(slices: frozenset[LiveSlice], fibres: int) -> Torus:
    torus = empty_rack(fibres)
    for each in slices:
        torus = with_slice(torus, live_placement(each, fibres))
    return torus


@cache
def live_placement(each: LiveSlice, fibres: int) -> SlicePlacement:
    """A live slice with its circuits, all of which run directly between neighbours: no two slices use one fibre."""
    free = replace(empty_rack(fibres), free=each.accelerators)
    placement = find_box(free, torus_demand(each.shape)).placement
    if placement is None:
        raise ValueError(f"{fibres} fibres between servers are too few for the circuits of a torus")
    return placement


@cache
def empty_rack(fibres: int) -> Torus:
    """A rack without slices."""
    return Torus(RACK, SERVER, _all(), _edges(fibres))


def _all() -> frozenset[Coordinates]:
    x, y, z = map(range, RACK)
    return frozenset(product(x, y, z))


def _edges(fibres: int) -> tuple[FibreEdge, ...]:
    """One edge between any two neighbouring servers, wrap-around included.

    Where a dimension has two servers, they are neighbours both ways, and one edge has all of their fibres.
    """
    grid = tuple(whole // part for whole, part in zip(RACK, SERVER, strict=True))
    found = []
    for server in product(*map(range, grid)):
        for axis, extent in enumerate(grid):
            ahead = [*server]
            ahead[axis] = (server[axis] + 1) % extent
            if server[axis] < ahead[axis] or (ahead[axis] + 1) % extent != server[axis]:
                name = f"{'xyz'[axis]}-{'-'.join(map(str, server))}"
                ends = (server[0], server[1], server[2]), (ahead[0], ahead[1], ahead[2])
                found.append(FibreEdge(name, ends, fibres))
    return tuple(found)
