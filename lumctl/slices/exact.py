"""The best placement of a slice's slots, or the proof that there is none, by an integer program on HiGHS.

A variable says whether a slot lies on a server, and for each link and each direction of an edge how many of the link's
circuits pass it. Circuits leave the server of a link's first slot and enter that of its second one. The program decides
one level at a time: whether a placement exists in which no edge carries more circuits than the level.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf
from random import Random
from time import perf_counter

from lumctl.fabric.research.integer_program import Column, has_solution, program, run
from lumctl.slices.fibre_graph import FibreGraph, fibre_graph
from lumctl.slices.slot_search import PlacedSlots, SlotSearch, place_slots
from lumctl.slices.slots import SlotGraph
from lumctl.slices.torus import Torus

_SYMMETRIES = 500


@dataclass(frozen=True, slots=True)
class ExactPlacing:
    """Places slots exactly within ``seconds``: the best placement, the proof that there is none, or what was reached.

    The fast search goes first; the program then decides the levels below it, from the top down.
    """

    seconds: float
    clock: Callable[[], float] = perf_counter

    def __call__(self, slots: SlotGraph, torus: Torus, free: Sequence[int], rng: Random) -> SlotSearch:
        """The result for slots on servers with so many ``free`` accelerators; see :func:`place_slots`.

        Raises:
            UsageError: the solver is not installed.
        """
        until = self.clock() + self.seconds
        best = place_slots(slots, torus, free, rng)
        while not best.proven and (best.placed is None or best.level > best.bound):
            level = best.level if best.placed is None else best.level - 1
            placed, refuted = LevelProgram(slots, fibre_graph(torus, level), free).solved(until - self.clock())
            if placed is not None:
                best = replace(best, placed=placed, level=level)
            elif refuted and best.placed is not None:
                return replace(best, bound=best.level)
            elif refuted:
                return replace(best, reason="the integer program proves that no placement exists", proven=True)
            else:
                unknown = "the time was up before a placement or the proof that there is none was found"
                return replace(best, reason="" if best.placed else unknown)
        return best


class LevelProgram:
    """The integer program of one level. Columns: slots on servers, then circuits of links on edges both ways."""

    def __init__(self, slots: SlotGraph, fibres: FibreGraph, free: Sequence[int]) -> None:
        self.slots, self.fibres = slots, fibres
        self.places = [
            (slot, server) for slot, need in enumerate(slots.needs) for server, left in enumerate(free) if left >= need
        ]
        self.arcs = [
            (link, edge, ends)
            for link in range(len(slots.links))
            for edge, ends in enumerate(fibres.ends)
            if fibres.room[edge]
            for ends in (ends, ends[::-1])
        ]
        self.alone = 2 * min(slots.needs) > max(free, default=0)
        self.rows: list[tuple[float, float]] = []
        self._row_of: dict[tuple[str, int, int], int] = {}
        self.columns = [*self._ordered(self._place_columns(free)), *self._arc_columns()]

    def solved(self, seconds: float) -> tuple[PlacedSlots | None, bool]:
        """A placement, or ``None`` and whether it is proven that there is none."""
        counts = [self.slots.links[link][2] for link, *_ in self.arcs]
        most = [1.0] * len(self.places) + [
            float(min(count, self.fibres.room[edge])) for count, (_, edge, _) in zip(counts, self.arcs, strict=True)
        ]
        solver = program(self.rows, self.columns, whole=True, most=most)
        solver.setOptionValue("mip_rel_gap", inf)
        ended = run(solver, seconds)
        if ended == "infeasible" or not has_solution(solver):
            return None, ended == "infeasible"
        values = [round(value) for value in solver.getSolution().col_value]
        servers = [-1] * len(self.slots.needs)
        for (slot, server), value in zip(self.places, values, strict=False):
            if value:
                servers[slot] = server
        flows: list[dict[tuple[int, int, int], int]] = [{} for _ in self.slots.links]
        for (link, edge, (start, end)), value in zip(self.arcs, values[len(self.places) :], strict=True):
            if value:
                flows[link][edge, start, end] = value
        ways = [
            [_way(flow, servers[a], servers[b]) for _ in range(count)]
            for flow, (a, b, count) in zip(flows, self.slots.links, strict=True)
        ]
        return PlacedSlots(tuple(servers), ways), False

    def _row(self, kind: str, first: int, second: int, lower: float, upper: float) -> int:
        at = self._row_of.setdefault((kind, first, second), len(self.rows))
        if at == len(self.rows):
            self.rows.append((lower, upper))
        return at

    def _place_columns(self, free: Sequence[int]) -> Iterator[Column]:
        for slot, server in self.places:
            entries = [(self._row("slot", slot, 0, 1.0, 1.0), 1.0)]
            entries.append((self._row("server", server, 0, -inf, float(free[server])), float(self.slots.needs[slot])))
            for link, (a, b, count) in enumerate(self.slots.links):
                if slot in {a, b}:
                    sign = 1.0 if slot == a else -1.0
                    entries.append((self._row("flow", link, server, 0.0, 0.0), -sign * count))
                    if self.alone:
                        kind = "leaves" if slot == a else "enters"
                        entries.append((self._row(kind, link, server, 0.0, inf), -float(count)))
            yield 0.0, entries

    def _ordered(self, columns: Iterable[Column]) -> Iterator[Column]:
        """Leave out placements that only exchange like slots: of these, the first slot lies on the lowest server.

        Without this a program with the 48 symmetries of a cube took ten times as long to prove that it has no solution.
        """
        orders = [(first, slot) for first, orbit in like_slots(self.slots) for slot in orbit]
        servers = range(self.fibres.servers)
        for (slot, server), (cost, entries) in zip(self.places, columns, strict=True):
            more: list[tuple[int, float]] = []
            for first, later in orders:
                # On the servers up to each one there is no later slot unless the first slot is there as well.
                if slot == later:
                    more += [(self._row(f"order {first}", later, upto, -inf, 0.0), 1.0) for upto in servers[server:]]
                elif slot == first:
                    least = server + self.alone
                    more += [(self._row(f"order {first}", later, upto, -inf, 0.0), -1.0) for upto in servers[least:]]
            yield cost, [*entries, *more]

    def _arc_columns(self) -> Iterator[Column]:
        for link, edge, (start, end) in self.arcs:
            entries = [
                (self._row("flow", link, start, 0.0, 0.0), 1.0),
                (self._row("flow", link, end, 0.0, 0.0), -1.0),
                (self._row("edge", edge, 0, -inf, float(self.fibres.room[edge])), 1.0),
            ]
            if self.alone:
                entries.append((self._row("leaves", link, start, 0.0, inf), 1.0))
                entries.append((self._row("enters", link, end, 0.0, inf), 1.0))
            yield 0.0, entries


def like_slots(slots: SlotGraph) -> list[tuple[int, list[int]]]:
    """Slots, each with the later ones that can take its part if all slots before it keep theirs.

    These are the orbits along a chain of stabilisers of the symmetries of the slots, found by trying. There are none if
    there are very many symmetries: to list the 46,080 of 64 slots in rings of four takes longer than they save.
    """
    circuits = {(a, b): count for x, y, count in slots.links for a, b in ((x, y), (y, x))}
    symmetries: list[list[int]] = [[]]
    for slot, need in enumerate(slots.needs):
        symmetries = [
            [*image, other]
            for image in symmetries
            for other in range(len(slots.needs))
            if other not in image
            and slots.needs[other] == need
            and all(circuits.get((slot, at)) == circuits.get((other, to)) for at, to in enumerate(image))
        ]
        if len(symmetries) > _SYMMETRIES:
            return []
    found = []
    for slot in range(len(slots.needs)):
        orbit = sorted({image[slot] for image in symmetries} - {slot})
        if orbit:
            found.append((slot, orbit))
        symmetries = [image for image in symmetries if image[slot] == slot]
    return found


def _way(flow: dict[tuple[int, int, int], int], start: int, goal: int) -> tuple[int, ...]:
    """Take one circuit's way out of a link's flow. Cycles that lead nowhere are cut."""
    way: list[int] = []
    servers = [start]
    while servers[-1] != goal:
        arc = next(each for each, left in flow.items() if left and each[1] == servers[-1])
        flow[arc] -= 1
        way.append(arc[0])
        servers.append(arc[2])
        if arc[2] in servers[:-1]:
            first = servers.index(arc[2])
            del servers[first + 1 :], way[first:]
    return tuple(way)
