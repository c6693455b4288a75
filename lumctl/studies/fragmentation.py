"""How fragmented a cluster is after slices were released at random: on an electrical torus, and joined by light."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import prod
from random import Random
from statistics import fmean

from lumctl.slices.allocator import allocate
from lumctl.slices.fragmentation import fragmentation, index
from lumctl.slices.slot_search import fit_slots
from lumctl.slices.torus import Torus
from lumctl.studies.claim import Claim, ReadingValue, range_value
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

_RELEASED_PERCENT = 20.0
_LARGEST = (4, 8, 16, 32)
"""The source does not say with which slices the cluster is filled: here with those up to a size. Slices of 64 are left
out, for the rack of one is free or in use as a whole, and never fragmented."""


def _cases(settings: StudySettings) -> Iterator[StudyCase]:
    largest = [int(each) for each in settings["largest"]]
    require_slice_sizes("largest", largest)
    fibres = [int(each) for each in settings["fibres"]]
    seeds = range(int(settings["seeds"][0]))
    return product(FILLINGS, largest, settings["released_percent"], fibres, seeds, map(int, settings["racks"]))


def _solve(
    filling: str, largest: int, released_percent: float, fibres: int, seed: int, racks: int = RACKS
) -> Iterator[StudyRow]:
    rng = Random(seed)  # noqa: S311 - the same choices in every run
    slices = fill(_even(largest, racks), rng, mixed=filling == "mixed", racks=racks)
    live = release(slices, released_percent / 100.0, rng, racks=racks)
    parts = [_largest_slices(rack) for rack in racks_with(live, fibres, racks=racks) if rack.free]
    for kind in _KINDS:
        own = [(each["free"], each[kind]) for each in parts]
        free, together = (sum(each) for each in zip(*own, strict=True)) if own else (0, 0)
        indices = [index(most, whole) for whole, most in own]
        yield {
            "filling": filling,
            "largest": largest,
            "released_percent": released_percent,
            "fibres": fibres,
            "seed": seed,
            "slices": kind,
            "free": free,
            "rack_mean": fmean(indices or [0.0]),
            "rack_most": max(indices, default=0.0),
            "sums": index(together, free),
            "cluster": index(max((most for _, most in own), default=0), free),
        }


def _even(largest: int, racks: int) -> Mapping[int, int]:
    """As many accelerators in slices of each size up to the largest; what is left over is in slices of the smallest."""
    sizes = sorted(size for size in SHAPES if size <= largest)
    whole = racks * prod(RACK)
    chips = {size: whole // len(sizes) // size * size for size in sizes}
    return {**chips, sizes[0]: whole - sum(chips[size] for size in sizes[1:])}


def _largest_slices(rack: Torus) -> Mapping[str, int]:
    """Accelerators that are free in one rack, and those of the largest slice of each kind that finds a place."""
    found = fragmentation(rack, torus_demand)
    boxes = {"aligned": found.aligned, "any-box": found.contiguous}
    return {"free": found.free, **boxes, "light-sizes": _largest_of_sizes(rack), "light-any": found.scattered}


def _largest_of_sizes(rack: Torus) -> int:
    """The largest of the published sizes that finds a place by light."""
    for size in sorted(SHAPES, reverse=True):
        if allocate(rack, [torus_demand(SHAPES[size])], place=fit_slots).placement is not None:
            return size
    return 0


_KINDS = {
    "aligned": "boxes at multiples of their extents",
    "any-box": "boxes anywhere",
    "light-sizes": "slices of the published sizes joined by light",
    "light-any": "slices of any shape joined by light",
}
_OVER = {
    "rack_most": "the most fragmented rack",
    "rack_mean": "mean of the racks",
    "sums": "largest slices of all racks together",
    "cluster": "the largest slice of the whole cluster",
}
_LINKS = {"four": FIBRES, "unlimited": UNLIMITED}


def _values(settings: StudySettings, rows: Sequence[StudyRow]) -> ClaimValues:
    published = [row for row in rows if row["released_percent"] == _RELEASED_PERCENT]
    if not is_published_cluster(settings) or not ({FIBRES, UNLIMITED} <= {row["fibres"] for row in published}):
        return {}
    by_fibres = {name: [row for row in published if row["fibres"] == fibres] for name, fibres in _LINKS.items()}
    few = by_fibres["four"]
    return {
        "fragmentation.index": {
            f"{kind}-{over}": _index_value(few, kind, over) for kind in ("aligned", "any-box") for over in _OVER
        },
        "fragmentation.reduction": {
            f"{kind}-{over}-{name}": range_value([_reduction(own, kind, over) for own in _fills(of)])
            for kind in ("light-sizes", "light-any")
            for over in ("rack_mean", "sums")
            for name, of in by_fibres.items()
        },
    }


def _fills(rows: Sequence[StudyRow]) -> list[list[StudyRow]]:
    """The rows of each way to fill the cluster."""
    found: dict[tuple[float | str, float | str], list[StudyRow]] = {}
    for row in rows:
        found.setdefault((row["filling"], row["largest"]), []).append(row)
    return list(found.values())


def _index_value(rows: Sequence[StudyRow], kind: str, over: str) -> ReadingValue:
    """What the index reaches, so the highest of the draws, for every way to fill the cluster."""
    own = [row for row in rows if row["slices"] == kind]
    value = range_value([max(float(row[over]) for row in each) for each in _fills(own)])
    if over != "cluster":
        return value
    # No slice is larger than a rack.
    return replace(value, least=min(index(prod(RACK), int(row["free"])) for row in own))


def _reduction(rows: Sequence[StudyRow], kind: str, over: str) -> float:
    """Up to how many percent the index is below that of aligned boxes; 0 if these are not fragmented."""
    of = {(row["seed"], row["slices"]): float(row[over]) for row in rows}
    seeds = {seed for seed, _ in of}
    return max(100.0 * (1.0 - of[seed, kind] / before) if (before := of[seed, "aligned"]) else 0.0 for seed in seeds)


_DRAWN = "for any filling, the highest draw"
_INDEX = {
    f"{kind}-{over}": f"{_KINDS[kind]}; {words}; {_DRAWN}"
    for kind in ("aligned", "any-box")
    for over, words in _OVER.items()
}
_REDUCTION = {
    f"{kind}-{over}-{name}": f"{_KINDS[kind]}; {_OVER[over]}; {name} fibres; {_DRAWN}"
    for kind in ("light-sizes", "light-any")
    for over in ("rack_mean", "sums")
    for name in _LINKS
}
_FILLING, _MEAN = "largest slice of the filling (accelerators)", "index 1 - S / T, mean of racks"

STUDY = Study(
    name="fragmentation",
    question="How fragmented is a cluster after random releases, and how much less if light joins its servers?",
    parameters=(
        StudyParameter("largest", "The largest slices of the filling.", _LARGEST, 4, 64, quick=(4, 32), whole=True),
        StudyParameter("released_percent", "The share that is released.", (_RELEASED_PERCENT,), 1.0, 100.0),
        fibres_parameter((FIBRES, 8, UNLIMITED), quick=(FIBRES, UNLIMITED)),
        RACKS_PARAMETER,
        StudyParameter("seeds", "Random draws of each.", (8,), 1, 10_000, quick=(1,), whole=True, several=False),
    ),
    claims=(
        # The index is stated with one digit, the reduction with "up to".
        Claim(
            "fragmentation.index", SOURCE, "1 - S / T that the torus reaches, 20 % released", 0.7, "index", 0.05, _INDEX
        ),
        Claim("fragmentation.reduction", SOURCE, "less fragmentation by light, up to", 70.0, "%", 5.0, _REDUCTION),
    ),
    cases=_cases,
    solve=_solve,
    values=_values,
    plots=(
        StudyPlot("largest", ("rack_mean",), _FILLING, _MEAN, ("slices", "filling"), log_x=True),
        StudyPlot("fibres", ("rack_mean",), FIBRES_LABEL, _MEAN, ("slices",), log_x=True),
    ),
    of_inventory=torus_fibres,
)
