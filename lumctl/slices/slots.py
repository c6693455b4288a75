"""Divides a slice into slots: parts that lie on one server each. Few large slots need few fibres between servers.

A slot is a box of ranks with no more accelerators than a server has. The mesh of a server joins any of its accelerators
with any other and with any fibre, so the slot's form does not matter on the server, only its size. Two slots may share
a server that has enough free accelerators.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod

from lumctl.slices.allocation import SliceDemand
from lumctl.slices.torus import Coordinates, Extents


@dataclass(frozen=True)
class SlotGraph:
    """The slots of a slice and the circuits between them.

    ``ranks[s]`` are the ranks of slot ``s``. ``links`` are two slots, the lower one first, with the number of circuits
    between them.
    """

    ranks: tuple[tuple[int, ...], ...]
    links: tuple[tuple[int, int, int], ...]

    @cached_property
    def needs(self) -> tuple[int, ...]:
        """How many accelerators each slot needs."""
        return tuple(map(len, self.ranks))

    @cached_property
    def neighbours(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """For each slot, the slots that it is joined with and the number of circuits."""
        found: list[list[tuple[int, int]]] = [[] for _ in self.ranks]
        for a, b, circuits in self.links:
            found[a].append((b, circuits))
            found[b].append((a, circuits))
        return tuple(map(tuple, found))

    @cached_property
    def degrees(self) -> tuple[int, ...]:
        """How many circuits leave each slot."""
        return tuple(sum(circuits for _, circuits in near) for near in self.neighbours)

    @cached_property
    def counts(self) -> frozenset[int]:
        """The numbers of circuits that occur between two slots."""
        return frozenset(count for *_, count in self.links)

    @property
    def circuits(self) -> int:
        """How many circuits join slots."""
        return sum(circuits for _, _, circuits in self.links)


def divisions(demand: SliceDemand, accelerators_per_server: int) -> Iterator[SlotGraph]:
    """The slice in slots, from the fewest slots to one for each accelerator.

    Of all divisions into as many slots, the one with the fewest circuits between them is chosen. The last division can
    be placed if any other can, because slots may share servers.
    """
    forms: dict[int, list[Extents]] = {}
    for form in _forms(demand.shape, accelerators_per_server):
        slots = prod(-(-extent // part) for extent, part in zip(demand.shape, form, strict=True))
        forms.setdefault(slots, []).append(form)
    for slots in sorted(forms):
        yield min((divided(demand, form) for form in forms[slots]), key=lambda graph: graph.circuits)


def divided(demand: SliceDemand, form: Extents) -> SlotGraph:
    """The slice in slots of one form; those at the end of a dimension may be smaller."""
    slot_of: dict[Coordinates, int] = {}
    numbers: dict[Coordinates, int] = {}
    ranks: list[list[int]] = []
    for rank, place in enumerate(demand.places):
        x, y, z = (at // extent for at, extent in zip(place, form, strict=True))
        slot = numbers.setdefault((x, y, z), len(numbers))
        if slot == len(ranks):
            ranks.append([])
        ranks[slot].append(rank)
        slot_of[place] = slot
    counts: Counter[tuple[int, int]] = Counter()
    for a, b, _ in demand.links():
        pair = sorted((slot_of[a], slot_of[b]))
        if pair[0] != pair[1]:
            counts[pair[0], pair[1]] += 1
    return SlotGraph(tuple(map(tuple, ranks)), tuple((a, b, count) for (a, b), count in sorted(counts.items())))


def _forms(shape: Extents, most: int) -> Iterator[Extents]:
    for x, y, z in product(*(range(1, min(extent, most) + 1) for extent in shape)):
        if x * y * z <= most:
            yield x, y, z
