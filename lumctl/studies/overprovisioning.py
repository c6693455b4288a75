"""The parts that failures use up: by migration of racks, eviction of servers, swap by light, and an ideal switch.

Three counts: the parts used, those used less the failed ones, and the latter divided by the failed ones. Eviction is a
model of what Kubernetes does: a node with a failed accelerator is drained, so all of the node is replaced.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from math import prod
from random import Random
from typing import TYPE_CHECKING

from lumctl.errors import UsageError
from lumctl.slices.torus import Coordinates
from lumctl.studies.claim import Claim, ReadingValue, exact_value, found_value, range_value
from lumctl.studies.inventory_rack import torus_racks
from lumctl.studies.replacement import SPARE_SERVER, joined_spares
from lumctl.studies.study import ClaimValues, Study, StudyCase, StudyParameter, StudyPlot, StudyRow, StudySettings
from lumctl.studies.torus_cluster import (
    FIBRES,
    RACK,
    RACKS,
    RACKS_PARAMETER,
    UNLIMITED,
    LiveSlice,
    empty_rack,
    fill,
    is_published_cluster,
)

if TYPE_CHECKING:
    from lumctl.inventory.model import Inventory

_SOURCE = "arXiv 2505.23105, 2508.03674"
_WHOLE = prod(RACK)
_SIZES = (1, 2, 4, 8, 16, 32)
_FAILURES = (1, 2, 3, 4)
_MIXES = {"accelerators": (29.0,), "slices": (0.0, 17.0), "only": (100.0,)}
"""The shares of accelerators in slices below one rack, in percent, if the published 29 % are a share of accelerators,
or one of slices: 29 % of slices have 17 % of the accelerators if they have 32 each and the others 64 each, else fewer.
The last one: if no other slices are looked at."""
_FIBRES = {"light-4": FIBRES, "light-8": 8, "light-unlimited": UNLIMITED}
"""Light swaps a spare in, with so many fibres between two servers."""
_TRIED = 8
"""In how many racks of a draw each spare is joined with its slice."""


def _cases(settings: StudySettings) -> Iterator[StudyCase]:
    sizes, failures = ([int(each) for each in settings[name]] for name in ("size", "failures"))
    if strange := [each for each in sizes if each not in _SIZES]:
        raise UsageError(f"size is {strange[0]}, but slices below a rack have {', '.join(map(str, _SIZES))}")
    # Without slices below a rack, their size does not matter.
    mixes = [(each, size) for each in settings["below_percent"] for size in (sizes if each else sizes[:1])]
    seeds = range(int(settings["seeds"][0]))
    return ((*mix, *each) for mix, each in product(mixes, product(failures, seeds, map(int, settings["racks"]))))


def _solve(below_percent: float, size: int, failures: int, seed: int, of: int = RACKS) -> Iterator[StudyRow]:
    rng = Random(seed)  # noqa: S311 - the same choices in every run
    below = round(of * below_percent / 100.0)
    slices = fill({size: below * _WHOLE, _WHOLE: (of - below) * _WHOLE}, rng, mixed=False, racks=of)
    racks = [[each for each in slices if each.rack == rack] for rack in range(of)]
    down = [_drawn(rack, failures, rng) for rack in racks]
    failed = sum(map(len, down))
    spared = _with_spares(size)
    drawn = [_drawn(spared, failures, rng) for _ in range(min(below, _TRIED))]
    used = {
        "migration": sum(map(_migrated, racks, down)),
        "rack_migration": _WHOLE * sum(map(bool, down)),
        "eviction": sum(map(_evicted, down)),
        **dict.fromkeys((*_FIBRES, "ideal"), failed),
    }
    for way, parts in used.items():
        fibres = _FIBRES.get(way)
        yield {
            "below_percent": below_percent,
            "size": size if below else "-",
            "failures": failures,
            "seed": seed,
            "way": way,
            "failed": failed,
            "used": parts,
            "used_less_failed": parts - failed,
            "per_failed": (parts - failed) / failed,
            "spares": "-" if fibres is None else sum(map(len, drawn)),
            "joined": "-" if fibres is None else sum(joined_spares(spared, each, fibres) for each in drawn),
        }


def _of_inventory(inventory: "Inventory") -> StudySettings:
    """The inventory's racks, and of the published shares those that whole racks can have."""
    racks = torus_racks(inventory)
    (count,) = racks["racks"]
    shares = {each: 100.0 * round(count * each / 100.0) / count for percents in _MIXES.values() for each in percents}
    return {**racks, "below_percent": tuple(sorted(set(shares.values())))}


def _drawn(slices: Sequence[LiveSlice], failures: int, rng: Random) -> list[Coordinates]:
    """Accelerators of the slices of one rack that fail, each as likely as any other."""
    return rng.sample(sorted(at for each in slices for at in each.accelerators), failures)


def _migrated(slices: Sequence[LiveSlice], down: Sequence[Coordinates]) -> int:
    """The parts that migration uses: each slice moves that has a failed accelerator, or its part in this rack."""
    return sum(len(each.accelerators) for each in slices if not each.accelerators.isdisjoint(down))


def _evicted(down: Sequence[Coordinates]) -> int:
    """The parts that eviction uses: all accelerators of each server that has a failed one."""
    rack = empty_rack(FIBRES)
    return rack.accelerators_per_server * len({rack.server_of(each) for each in down})


def _with_spares(size: int) -> tuple[LiveSlice, ...]:
    """One rack in slices of a size, but for one server of spares; what is left over is in ever smaller slices."""
    rack = empty_rack(FIBRES)
    spares = frozenset(at for at in rack.free if rack.server_of(at) == SPARE_SERVER)
    chips, left = {}, _WHOLE - len(spares)
    while left:
        chips[size] = left // size * size
        left -= chips[size]
        size //= 2
    return fill(chips, Random(0), mixed=False, racks=1, spares=spares)  # noqa: S311 - nothing is drawn


def _values(settings: StudySettings, rows: Sequence[StudyRow]) -> ClaimValues:
    given = {name: set(values) for name, values in settings.items()}
    needed = {"below_percent": {each for percents in _MIXES.values() for each in percents}}
    needed |= {"size": set(_SIZES), "failures": set(_FAILURES)}
    if not is_published_cluster(settings) or not all(values <= given[name] for name, values in needed.items()):
        return {}
    rows = [row for row in rows if row["failures"] in _FAILURES]
    found: dict[str, dict[str, ReadingValue]] = {
        "overprovisioning.ideal": {"count": exact_value(1.0), **{way: _joined(rows, way) for way in _FIBRES}}
    }
    for mix, percents in _MIXES.items():
        own = [row for row in rows if row["below_percent"] in percents]
        for claim, way in (("migration", "migration"), ("migration", "rack_migration"), ("eviction", "eviction")):
            values = found.setdefault(f"overprovisioning.{claim}", {})
            for number in _NUMBERS:
                ratios = _ratios(own, way, number)
                for count, less in _LESS.items():
                    value = range_value([each - less for each in ratios])
                    # No slices use fewer parts than those of one accelerator, of which each failure takes its own.
                    least = None if way == "eviction" else value.low
                    values[f"{way}-{count}-{mix}-{number}"] = replace(value, least=least)
    return found


def _ratios(rows: Sequence[StudyRow], way: str, number: str) -> list[float]:
    """Parts used over parts failed in all draws, for each mix; ``number``: for each number of failures, or for all."""
    parts: dict[tuple[float | str, ...], list[float]] = {}
    for row in rows:
        if row["way"] == way:
            key = (row["below_percent"], row["size"], row["failures"] if number == "each" else "all")
            sums = parts.setdefault(key, [0.0, 0.0])
            sums[0] += float(row["used"])
            sums[1] += float(row["failed"])
    return [used / failed for used, failed in parts.values()]


def _joined(rows: Sequence[StudyRow], way: str) -> ReadingValue:
    """The share of the failed accelerators whose spares are joined, with the slices for which it is least."""
    of_sizes: dict[float | str, list[float]] = {}
    for row in rows:
        if row["way"] == way and row["spares"]:
            sums = of_sizes.setdefault(row["size"], [0.0, 0.0])
            sums[0] += float(row["joined"])
            sums[1] += float(row["spares"])
    return found_value(min(joined / spares for joined, spares in of_sizes.values()), most=1.0)


_LESS = {"used": 0.0, "extra": 1.0}
"""What is taken off the ratio of parts used to parts failed, for each count."""
_LESS_WORDS = {"used": "parts used by each", "extra": "parts used less failed, to one part for each failure"}
_MIX_WORDS = {
    "accelerators": "29 % of accelerators below a rack",
    "slices": "29 % of slices below a rack",
    "only": "slices below a rack only",
}
_NUMBERS = {"all": "1 to 4 failures a rack alike", "each": "any number of failures"}
_WAY_WORDS = {
    "migration": "a slice moves",
    "rack_migration": "a whole rack moves",
    "eviction": "a model of Kubernetes' eviction",
}


def _readings(*ways: str) -> dict[str, str]:
    return {
        f"{way}-{count}-{mix}-{number}": f"{_LESS_WORDS[count]}; {_WAY_WORDS[way]}; {_MIX_WORDS[mix]}; {which}"
        for way in ways
        for mix in _MIXES
        for number, which in _NUMBERS.items()
        for count in _LESS
    }


STUDY = Study(
    name="overprovisioning",
    question="How many parts do failures use up if racks migrate, servers are evicted, or light swaps in a spare?",
    parameters=(
        StudyParameter(
            "below_percent",
            "The share of accelerators in slices below one rack.",
            tuple(sorted({each for percents in _MIXES.values() for each in percents})),
            0.0,
            100.0,
        ),
        StudyParameter("size", "Accelerators of a slice below one rack.", _SIZES, 1, 32, whole=True),
        StudyParameter("failures", "Failed accelerators of each rack.", _FAILURES, 1, 4, whole=True),
        RACKS_PARAMETER,
        StudyParameter("seeds", "Random draws of each.", (5,), 1, 10_000, quick=(1,), whole=True, several=False),
    ),
    claims=(
        Claim(
            "overprovisioning.migration",
            _SOURCE,
            "overprovisioning of rack migration to that of light",
            10.0,
            "times",
            1.0,  # "about", "an order of magnitude"
            _readings("migration", "rack_migration"),
        ),
        Claim(
            "overprovisioning.eviction",
            _SOURCE,
            "overprovisioning of server eviction to that of light",
            3.0,
            "times",
            0.5,  # stated with one digit
            _readings("eviction"),
        ),
        Claim(
            "overprovisioning.ideal",
            _SOURCE,
            "overprovisioning of light to that of an ideal switch",
            1.0,
            "times",
            0.0,
            {
                "count": "by the count itself, which charges both one part for each failure",
                **{
                    way: "the share of failures with a spare that light joins with its slice below a rack; "
                    f"{fibres} fibres between servers, one server of each rack has the spares"
                    for way, fibres in _FIBRES.items()
                },
            },
        ),
    ),
    columns=(
        *("below_percent", "size", "failures", "seed", "way", "failed"),
        *("used", "used_less_failed", "per_failed", "spares", "joined"),
    ),
    cases=_cases,
    solve=_solve,
    values=_values,
    plots=tuple(
        StudyPlot(x, ("per_failed",), label, "parts used for each failed one,\nless that one (parts)", ("way",))
        for x, label in (
            ("failures", "failed accelerators of each rack"),
            ("below_percent", "accelerators in slices below one rack (%)"),
        )
    ),
    of_inventory=_of_inventory,
)
