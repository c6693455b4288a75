"""Finds a place for a slice: a contiguous box first, then scattered servers that light joins."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import isqrt
from random import Random

from lumctl.slices.allocation import Allocation, SliceDemand, SliceVerdict, placed_slice
from lumctl.slices.bounds import refutation, too_few_free
from lumctl.slices.boxes import find_box, usable_accelerators
from lumctl.slices.fibre_graph import fibre_graph
from lumctl.slices.slot_search import SlotSearch, place_slots
from lumctl.slices.slots import SlotGraph, divided, divisions
from lumctl.slices.torus import Coordinates, Extents, Torus

PlaceSlots = Callable[[SlotGraph, Torus, Sequence[int], Random], SlotSearch]
"""A search for scattered servers: :func:`place_slots`, or an exact one."""


def shapes_of(accelerators: int) -> tuple[Extents, ...]:
    """The shapes with so many accelerators, the most compact one first; extents in descending order."""
    shapes = [
        (accelerators // (y * z), y, z)
        for z in range(1, isqrt(accelerators) + 1)
        if accelerators % z == 0
        for y in range(z, isqrt(accelerators // z) + 1)
        if accelerators // z % y == 0
    ]
    return tuple(sorted(shapes))


def allocate(
    torus: Torus, demands: Sequence[SliceDemand], *, seed: int = 0, place: PlaceSlots = place_slots
) -> Allocation:
    """The first of the demands that a box meets, otherwise the first one that scattered servers meet.

    Several demands are the shapes that would do, the best one first; see :func:`shapes_of`. The same torus, demands and
    seed give the same answer, unless an exact ``place`` runs out of time.
    """
    box = allocate_box(torus, demands)
    if box.placement is not None:
        return box
    found = allocate_scattered(torus, demands, seed=seed, place=place)
    return replace(found, reasons=(*box.reasons, *found.reasons), in_the_way=box.in_the_way)


def allocate_box(torus: Torus, demands: Sequence[SliceDemand]) -> Allocation:
    """The first of the demands that a contiguous box meets; without one, the verdict is about boxes only."""
    reasons: list[str] = []
    in_the_way: tuple[Coordinates, ...] = ()
    for demand in demands:
        box = find_box(torus, demand)
        if box.placement is not None:
            return Allocation(SliceVerdict.PLACED, demand, box.placement, tuple(reasons), in_the_way)
        reasons.append(box.reason)
        in_the_way = in_the_way or box.in_the_way
    return Allocation(SliceVerdict.GAVE_UP, reasons=tuple(reasons), in_the_way=in_the_way)


def allocate_scattered(
    torus: Torus, demands: Sequence[SliceDemand], *, seed: int = 0, place: PlaceSlots = place_slots
) -> Allocation:
    """The first of the demands that scattered servers meet; see :func:`allocate`."""
    reasons: list[str] = []
    proven = True
    for demand in demands:
        found = _scattered(torus, demand, Random(seed), place)  # noqa: S311 - the same choices in every run
        reasons += found.reasons
        if found.placement is not None:
            return replace(found, reasons=tuple(reasons))
        proven &= found.verdict is SliceVerdict.IMPOSSIBLE
    return Allocation(SliceVerdict.IMPOSSIBLE if proven else SliceVerdict.GAVE_UP, reasons=tuple(reasons))


def _scattered(torus: Torus, demand: SliceDemand, rng: Random, place: PlaceSlots) -> Allocation:
    """A placement in few large slots, or in smaller ones as long as it is proven that the larger ones have no place.

    The reasons are those of the first and of the last division.
    """
    usable = usable_accelerators(torus, demand)
    own = [[each for each in torus.free_on[server] if each in usable] for server in torus.servers]
    free = tuple(map(len, own))
    if demand.accelerators > sum(free):  # Before the slice is divided: a slip of the pen may ask for millions.
        reason = too_few_free(demand.accelerators, sum(free))
        return Allocation(SliceVerdict.IMPOSSIBLE, reasons=(reason,))
    reasons: list[str] = []
    for slots in divisions(demand, torus.accelerators_per_server):
        search = place(slots, torus, free, rng)
        if search.placed is not None:
            servers, ways = search.placed.servers, search.placed.ways
            accelerators = [(0, 0, 0)] * demand.accelerators
            for slot, server in enumerate(servers):
                for rank in slots.ranks[slot]:
                    accelerators[rank] = own[server].pop(0)
            wants = [(servers[a], servers[b], count) for a, b, count in slots.links]
            placement = placed_slice(
                torus, demand, tuple(accelerators), wants, ways, contiguous=False, bound=search.bound
            )
            return Allocation(SliceVerdict.PLACED, demand, placement, tuple(reasons))
        parts = f"{len(slots.needs)} parts" if len(slots.needs) > 1 else "one part"
        reasons = [*reasons[:1], f"no scattered {demand} in {parts}: {search.reason}"]
        # Smaller slots need more fibres. They help only where it is certain that larger ones fit nowhere.
        if not search.proven:
            break
    # Every placement is one of the last division too, because its slots are single accelerators and may share servers.
    single = divided(demand, (1, 1, 1))
    proven = search.proven or refutation(single, fibre_graph(torus, torus.levels[-1]), free) is not None
    return Allocation(SliceVerdict.IMPOSSIBLE if proven else SliceVerdict.GAVE_UP, reasons=tuple(reasons))
