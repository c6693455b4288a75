"""The parts that failures use up: by migration of racks, eviction of servers, swap by light, and an ideal switch.

Three counts: the parts used, those used less the failed ones, and the latter divided by the failed ones. Eviction is a
model of what Kubernetes does: a node with a failed accelerator is drained, so all of the node is replaced.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import prod
from random import Random
from typing import TYPE_CHECKING

from lumctl.errors import UsageError
from lumctl.slices.allocation import SliceCircuit
from lumctl.slices.fibre_graph import fibre_graph, route_circuits
from lumctl.slices.torus import Coordinates, Torus
from lumctl.studies.claim import Claim, ReadingValue, exact_value, found_value, range_value
from lumctl.studies.inventory_rack import torus_racks
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
    live_placement,
    racks_with,
)

if TYPE_CHECKING:
    from lumctl.inventory.model import Inventory

_SOURCE = "arXiv 2505.23105, 2508.03674"
_WHOLE = prod(RACK)
_SIZES = (1, 2, 4, 8, 16, 32)
_FAILURES = (1, 2, 3, 4)
_MIXES = {
    "accelerators": ((29.0,), "29 % of accelerators below a rack"),
    "slices": ((0.0, 17.0), "29 % of slices below a rack"),
    "only": ((100.0,), "slices below a rack only"),
}
"""The shares of accelerators in slices below one rack, in percent, if the published 29 % are a share of accelerators,
or one of slices: 29 % of slices have 17 % of the accelerators if they have 32 each and the others 64 each, else fewer.
The last one: if no other slices are looked at."""
_PERCENTS = tuple(sorted({each for percents, _ in _MIXES.values() for each in percents}))
_FIBRES = {"light-4": FIBRES, "light-8": 8, "light-unlimited": UNLIMITED}
"""Light swaps a spare in, with so many fibres between two servers."""
SPARE_SERVER: Coordinates = (1, 1, 3)
"""The server whose accelerators are the spares. The source does not say where these are."""
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
    shares = {100.0 * round(count * each / 100.0) / count for each in _PERCENTS}
    return {**racks, "below_percent": tuple(sorted(shares))}


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


def joined_spares(slices: Sequence[LiveSlice], failed: Sequence[Coordinates], fibres: int) -> int:
    """How many failed accelerators of one rack get a spare that light joins with their slice, one after another.

    The circuits of a failed one are torn down, and those of its spare take any fibres that are free then; no other
    circuit is moved. One that cannot be joined gets no spare, and its circuits stay down. It is not proven that none of
    its ways suffices.
    """
    (torus,) = racks_with(slices, fibres, racks=1)
    state = {each: _SliceState(each, torus, fibres) for each in slices}
    count = 0
    for accelerator in failed:
        own = next(state[each] for each in slices if accelerator in each.accelerators)
        torus, is_joined = own.replaced(torus, accelerator)
        count += is_joined
    return count


class _SliceState:
    """A slice with the server of each rank and its circuits, while accelerators are replaced."""

    def __init__(self, of: LiveSlice, torus: Torus, fibres: int) -> None:
        placement = live_placement(replace(of, rack=0), fibres)
        self.ranks = placement.accelerators
        self.servers = [torus.server_of(at) for at in self.ranks]
        self.circuits = list(placement.circuits)

    def replaced(self, torus: Torus, accelerator: Coordinates) -> tuple[Torus, bool]:
        """The torus after one more replacement, and whether the spare was joined."""
        rank = self.ranks.index(accelerator)
        down = [circuit for circuit in self.circuits if rank in circuit.ranks]
        self.circuits = [circuit for circuit in self.circuits if rank not in circuit.ranks]
        self.servers[rank] = SPARE_SERVER
        torus = _changed(torus, down, -1)
        wants = [(*(torus.number_of[self.servers[end]] for end in circuit.ranks), 1) for circuit in down]
        ways = route_circuits(fibre_graph(torus, torus.levels[-1]), [(a, b, count) for a, b, count in wants])
        if ways is None:
            return torus, False
        names = [tuple(torus.edges[edge].name for edge in way) for (way,) in ways]
        lit = [replace(circuit, edges=edges) for circuit, edges in zip(down, names, strict=True)]
        self.circuits += lit
        return _changed(torus, lit, 1), True


def _changed(torus: Torus, circuits: Sequence[SliceCircuit], by: int) -> Torus:
    """The torus after circuits were lit (1) or torn down (-1)."""
    counts = Counter(name for circuit in circuits for name in circuit.edges)
    edges = tuple(replace(edge, used=edge.used + by * counts[edge.name]) for edge in torus.edges)
    return replace(torus, edges=edges)


def _values(settings: StudySettings, rows: Sequence[StudyRow]) -> ClaimValues:
    needed = {"below_percent": _PERCENTS, "size": _SIZES, "failures": _FAILURES}
    has_all = all(set(values) <= set(settings[name]) for name, values in needed.items())
    if not (has_all and is_published_cluster(settings)):
        return {}
    rows = [row for row in rows if row["failures"] in _FAILURES]
    found: dict[str, dict[str, ReadingValue]] = {
        "overprovisioning.ideal": {"count": exact_value(1.0), **{way: _joined(rows, way) for way in _FIBRES}}
    }
    for mix, (percents, _) in _MIXES.items():
        own = [row for row in rows if row["below_percent"] in percents]
        for claim, way in (("migration", "migration"), ("migration", "rack_migration"), ("eviction", "eviction")):
            values = found.setdefault(f"overprovisioning.{claim}", {})
            for number in _NUMBERS:
                ratios = _ratios(own, way, number)
                for count, (less, _) in _LESS.items():
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


_LESS = {"used": (0.0, "parts used by each"), "extra": (1.0, "parts used less failed, to one part for each failure")}
"""What is taken off the ratio of parts used to parts failed, for each count."""
_NUMBERS = {"all": "1 to 4 failures a rack alike", "each": "any number of failures"}
_WAY_WORDS = {
    "migration": "a slice moves",
    "rack_migration": "a whole rack moves",
    "eviction": "a model of Kubernetes' eviction",
}


def _readings(*ways: str) -> dict[str, str]:
    return {
        f"{way}-{count}-{mix}-{number}": f"{words}; {_WAY_WORDS[way]}; {slices}; {which}"
        for way in ways
        for mix, (_, slices) in _MIXES.items()
        for number, which in _NUMBERS.items()
        for count, (_, words) in _LESS.items()
    }


_IDEAL = {
    "count": "by the count itself, which charges both one part for each failure",
    **{
        way: "the share of failures with a spare that light joins with its slice below a rack; "
        f"{fibres} fibres between servers, one server of each rack has the spares"
        for way, fibres in _FIBRES.items()
    },
}


def _claim(name: str, of: str, published: float, tolerance: float, readings: Mapping[str, str]) -> Claim:
    words = f"overprovisioning of {of}"
    return Claim(f"overprovisioning.{name}", _SOURCE, words, published, "times", tolerance, readings)


_EXTRA = "parts used for each failed one,\nless that one (parts)"

STUDY = Study(
    name="overprovisioning",
    question="How many parts do failures use up if racks migrate, servers are evicted, or light swaps in a spare?",
    parameters=(
        StudyParameter("below_percent", "Accelerators in slices below a rack, in percent.", _PERCENTS, 0.0, 100.0),
        StudyParameter("size", "Accelerators of a slice below one rack.", _SIZES, 1, 32, whole=True),
        StudyParameter("failures", "Failed accelerators of each rack.", _FAILURES, 1, 4, whole=True),
        RACKS_PARAMETER,
        StudyParameter("seeds", "Random draws of each.", (5,), 1, 10_000, quick=(1,), whole=True, several=False),
    ),
    claims=(
        # The source says "about", "an order of magnitude"; the second number is stated with one digit.
        _claim("migration", "rack migration to that of light", 10.0, 1.0, _readings("migration", "rack_migration")),
        _claim("eviction", "server eviction to that of light", 3.0, 0.5, _readings("eviction")),
        _claim("ideal", "light to that of an ideal switch", 1.0, 0.0, _IDEAL),
    ),
    cases=_cases,
    solve=_solve,
    values=_values,
    plots=(
        StudyPlot("failures", ("per_failed",), "failed accelerators of each rack", _EXTRA, ("way",)),
        StudyPlot("below_percent", ("per_failed",), "accelerators in slices below one rack (%)", _EXTRA, ("way",)),
    ),
    of_inventory=_of_inventory,
)
