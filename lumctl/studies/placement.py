"""Requests for slices in a cluster in use: how many an electrical torus refuses, and how many light places."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from math import prod
from random import Random
from statistics import fmean

from lumctl.slices.allocation import SliceDemand, SliceVerdict, with_slice
from lumctl.slices.allocator import allocate
from lumctl.slices.boxes import find_box
from lumctl.slices.fragmentation import aligned_box
from lumctl.slices.slot_search import fit_slots
from lumctl.slices.torus import Torus
from lumctl.studies.claim import Claim, ReadingValue, found_value, range_value
from lumctl.studies.inventory_rack import torus_fibres
from lumctl.studies.study import ClaimValues, Study, StudyCase, StudyParameter, StudyPlot, StudyRow, StudySettings
from lumctl.studies.torus_cluster import (
    FIBRES,
    FIBRES_LABEL,
    FILLINGS,
    RACK,
    RACKS,
    RACKS_PARAMETER,
    SHAPES,
    SOURCE,
    UNLIMITED,
    fibres_parameter,
    fill,
    is_published_cluster,
    racks_with,
    release,
    require_slice_sizes,
    torus_demand,
)

_FREE_PERCENT, _REQUEST = 30.0, 32
_SIZES = (4, 8, 16, 32)
"""Of the slices in use. Each size has as many accelerators."""


def _cases(settings: StudySettings) -> Iterator[StudyCase]:
    requests = [int(each) for each in settings["request"]]
    require_slice_sizes("request", requests)
    fibres = [int(each) for each in settings["fibres"]]
    seeds = range(int(settings["seeds"][0]))
    rings = [int(each) for each in settings["rings"]]
    racks = map(int, settings["racks"])
    return product(FILLINGS, settings["free_percent"], requests, fibres, rings, seeds, racks)


def _solve(  # noqa: PLR0917 - a case is a tuple
    filling: str, free_percent: float, request: int, fibres: int, rings: int, seed: int, of: int = RACKS
) -> Iterator[StudyRow]:
    rng = Random(seed)  # noqa: S311 - the same choices in every run
    chips = dict.fromkeys(_SIZES, of * prod(RACK) // len(_SIZES))
    live = release(fill(chips, rng, mixed=filling == "mixed", racks=of), free_percent / 100.0, rng, racks=of)
    racks = racks_with(live, fibres, racks=of)
    free = sum(len(rack.free) for rack in racks)
    demand = torus_demand(SHAPES[request]) if rings else SliceDemand(SHAPES[request])
    by_light = [_by_light(rack, demand) for rack in racks]
    yield {
        "filling": filling,
        "free_percent": free_percent,
        "request": request,
        "fibres": fibres,
        "rings": rings,
        "seed": seed,
        "free": free,
        "requests": free // request,
        "bound": sum(_bound(rack, request) for rack in racks),
        "aligned": sum(_boxes(rack, request, _with_aligned) for rack in racks),
        "any_box": sum(_boxes(rack, request, _with_box) for rack in racks),
        "by_light": sum(placed for placed, _ in by_light),
        "by_light_at_most": sum(most for _, most in by_light),
    }


def _bound(rack: Torus, request: int) -> int:
    """The slices for which a rack has enough servers that are wholly free; no slice spans two racks."""
    servers = sum(len(free) == rack.accelerators_per_server for free in rack.free_on.values())
    return servers * rack.accelerators_per_server // request


def _boxes(rack: Torus, request: int, place: Callable[[Torus, int], Torus | None]) -> int:
    """How many boxes find a place one after another.

    A rack holds two boxes of half its size only if all of it is free, so for these the number is the largest possible.
    """
    count, left = 0, place(rack, request)
    while left is not None:
        count, left = count + 1, place(left, request)
    return count


def _with_aligned(rack: Torus, request: int) -> Torus | None:
    cells = aligned_box(rack, SHAPES[request])
    return None if cells is None else replace(rack, free=rack.free.difference(cells))


def _with_box(rack: Torus, request: int) -> Torus | None:
    placement = find_box(rack, torus_demand(SHAPES[request])).placement
    return None if placement is None else with_slice(rack, placement)


def _by_light(rack: Torus, demand: SliceDemand) -> tuple[int, int]:
    """How many slices find a place one after another, and how many could at most, as far as that is proven.

    Where the fibres are few, the search misses some places that an integer program finds.
    """
    most = _bound(rack, demand.accelerators)
    for count in range(most):
        found = allocate(rack, [demand], place=fit_slots)
        if found.placement is None:
            return count, 0 if count == 0 and found.verdict is SliceVerdict.IMPOSSIBLE else most
        rack = with_slice(rack, found.placement)
    return most, most


def _values(settings: StudySettings, rows: Sequence[StudyRow]) -> ClaimValues:
    published = [row for row in rows if (row["free_percent"], row["request"]) == (_FREE_PERCENT, _REQUEST)]
    links = {
        name: [row for row in published if [row["fibres"], row["rings"]] == of] for name, (*of, _) in _LINKS.items()
    }
    if not is_published_cluster(settings) or not all(links.values()):
        return {}
    torus = links["four-rings"]  # The electrical torus has all links of a box, whatever the fibres.
    refused: dict[str, ReadingValue] = {}
    columns = {name: column for name, (column, _) in _REQUESTS.items()}
    for name, of in columns.items():
        for boxes in _BOXES:
            refused[f"{boxes}-{name}-mean"] = range_value(
                [fmean(_refused(row, boxes, of) for row in torus if row["filling"] == each) for each in FILLINGS]
            )
            refused[f"{boxes}-{name}-draw"] = range_value([_refused(row, boxes, of) for row in torus])
    placed = {
        f"{name}-{link}": found_value(
            min(100.0 - _refused(row, "by_light", of) for row in own),
            most=min(100.0 - _refused(row, "by_light_at_most", of) for row in own),
        )
        for name, of in columns.items()
        for link, own in links.items()
    }
    return {"placement.refused": refused, "placement.all": placed}


def _refused(row: StudyRow, placed: str, of: str) -> float:
    """The share of the requests in percent for which there is no place."""
    requests = float(row[of])
    return 100.0 * (requests - float(row[placed])) / requests if requests else 0.0


_REQUESTS = {
    "free": ("requests", "as many requests as all free accelerators would serve"),
    "fitting": ("bound", "as many requests as the free servers of each rack would serve"),
}
"""The source does not say how many slices are requested."""
_BOXES = {"aligned": "boxes at multiples of their extents", "any_box": "boxes anywhere"}
_DRAWS = {"mean": "mean of the draws", "draw": "one draw, any"}
_LINKS = {
    "four-rings": (FIBRES, 1, "four fibres between servers, each slice with the rings of its box in the torus"),
    "four-open": (FIBRES, 0, "four fibres between servers, requested slices without rings"),
    "unlimited-rings": (UNLIMITED, 1, "unlimited fibres"),
}
_REFUSES = "requests for 32 that an electrical torus refuses, 30 % free"
_REFUSED = {
    f"{boxes}-{name}-{draw}": f"{words}, of {number}; either filling, {which}"
    for name, (_, number) in _REQUESTS.items()
    for boxes, words in _BOXES.items()
    for draw, which in _DRAWS.items()
}
_PLACED = {
    f"{name}-{link}": f"of {words}; {which}, the worst draw"
    for name, (_, words) in _REQUESTS.items()
    for link, (*_, which) in _LINKS.items()
}
_PLACES = ("requests", "bound", "by_light", "any_box", "aligned")

STUDY = Study(
    name="placement",
    question="How many requests for a slice does a torus in use refuse, and does light place all of them?",
    parameters=(
        StudyParameter("free_percent", "The share of free accelerators.", (_FREE_PERCENT,), 1.0, 100.0),
        StudyParameter("request", "Accelerators of each requested slice.", (_REQUEST,), 4, 64, whole=True),
        fibres_parameter((FIBRES, 8, UNLIMITED), quick=(FIBRES, UNLIMITED)),
        StudyParameter("rings", "1: a slice has the rings of its box in the torus; 0: none.", (1, 0), 0, 1, whole=True),
        RACKS_PARAMETER,
        StudyParameter("seeds", "Random draws of each.", (20,), 1, 10_000, quick=(4,), whole=True, several=False),
    ),
    claims=(
        Claim("placement.refused", SOURCE, _REFUSES, 75.0, "%", 2.5, _REFUSED),  # the source says "about"
        Claim("placement.all", SOURCE, "requests for 32 that light places, 30 % free", 100.0, "%", 0.0, _PLACED),
    ),
    cases=_cases,
    solve=_solve,
    values=_values,
    plots=(
        StudyPlot("filling", _PLACES, "which slices share a rack", "slices requested, and placed", ("free_percent",)),
        StudyPlot("fibres", ("by_light",), FIBRES_LABEL, "slices placed by light", ("filling", "rings"), log_x=True),
    ),
    of_inventory=torus_fibres,
)
