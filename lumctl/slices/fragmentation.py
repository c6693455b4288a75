"""How fragmented a torus is: the largest slices that can still be placed, beside the accelerators that are free.

The index of fragmentation is ``1 - S / T`` (Morphlux, arXiv 2508.03674): ``S`` accelerators in the largest slice that
can be placed, ``T`` free ones. What ``S`` is depends on the allocator, so each has an index of its own.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from lumctl.slices.allocation import SliceDemand
from lumctl.slices.allocator import allocate
from lumctl.slices.boxes import find_box
from lumctl.slices.slot_search import fit_slots
from lumctl.slices.torus import Coordinates, Extents, Torus

ALIGNED_SHAPES: tuple[Extents, ...] = ((4, 4, 4), (2, 4, 4), (2, 2, 4), (2, 2, 2), (2, 2, 1))
"""The slices of the published allocator for a fixed torus, which places them at multiples of their extents only."""


@dataclass(frozen=True, slots=True)
class Fragmentation:
    """Free accelerators, and those in the largest slice: of a published shape and aligned, of any box, of any kind.

    ``shape`` is that of the largest slice of any kind, if there is one and the torus is only one.
    """

    free: int
    aligned: int
    contiguous: int
    scattered: int
    shape: Extents | None = None

    @property
    def aligned_index(self) -> float:
        """The index of a fixed torus whose allocator places aligned boxes."""
        return index(self.aligned, self.free)

    @property
    def contiguous_index(self) -> float:
        """The index of a fixed torus whose allocator finds every box."""
        return index(self.contiguous, self.free)

    @property
    def scattered_index(self) -> float:
        """The index of a torus that light joins."""
        return index(self.scattered, self.free)


def index(largest: int, free: int) -> float:
    """The share of the free accelerators that the largest slice leaves; 0 if none are free."""
    return 1 - largest / free if free else 0.0


def fragmentation(
    torus: Torus, demand_of: Callable[[Extents], SliceDemand] = SliceDemand, *, seed: int = 0
) -> Fragmentation:
    """The fragmentation of one torus. ``demand_of`` makes the demand for a shape: its rings, widths, and servers."""
    aligned = max((prod(shape) for shape in ALIGNED_SHAPES if aligned_box(torus, shape)), default=0)
    box = largest_slice(torus, demand_of, contiguous=True)
    any_kind = largest_slice(torus, demand_of, seed=seed)
    return Fragmentation(len(torus.free), aligned, prod(box or (0,)), prod(any_kind or (0,)), any_kind)


def overall(parts: Sequence[Fragmentation]) -> Fragmentation:
    """Several tori as one whole, in which each holds the largest slice that it can: all numbers are sums."""
    return Fragmentation(
        sum(part.free for part in parts),
        sum(part.aligned for part in parts),
        sum(part.contiguous for part in parts),
        sum(part.scattered for part in parts),
    )


def largest_slice(
    torus: Torus,
    demand_of: Callable[[Extents], SliceDemand] = SliceDemand,
    *,
    contiguous: bool = False,
    seed: int = 0,
) -> Extents | None:
    """The shape of the largest slice that finds a place; ``contiguous``: as a box. ``None`` if there is none.

    Shapes that fit the undamaged torus are tried, of equal ones the most compact first. A scattered slice that the
    search misses is not counted, so the true one may be larger.
    """
    for shape in shapes_in(torus):
        demand = demand_of(shape)
        found = find_box(torus, demand) if contiguous else allocate(torus, [demand], seed=seed, place=fit_slots)
        if found.placement is not None:
            return shape
    return None


def aligned_box(torus: Torus, shape: Extents) -> tuple[Coordinates, ...] | None:
    """The first free box of a shape at multiples of its extents, in this orientation; its fibres are not looked at."""
    x, y, z = (range(0, whole - extent + 1, extent) for whole, extent in zip(torus.shape, shape, strict=True))
    for start in product(x, y, z):
        steps = product(*map(range, shape))
        cells = tuple((start[0] + step[0], start[1] + step[1], start[2] + step[2]) for step in steps)
        if torus.free.issuperset(cells):
            return cells
    return None


def shapes_in(torus: Torus) -> Iterator[Extents]:
    """The shapes with no more accelerators than are free, the largest first; extents in descending order."""
    a, b, c = sorted(torus.shape, reverse=True)
    found = [(x, y, z) for x in range(1, a + 1) for y in range(1, min(b, x) + 1) for z in range(1, min(c, y) + 1)]
    yield from sorted((shape for shape in found if prod(shape) <= len(torus.free)), key=lambda s: (-prod(s), s))
