"""Places the slots of a slice on servers anywhere in the torus, and routes its circuits over free fibres.

A local search moves and exchanges slots so that their circuits need few fibres at a given level, which is the most
circuits that an edge may carry. A placement counts when its circuits have been routed within the room of every edge.
Levels rise from the lower bound, so a placement at the first level that is not refuted is proven to be the best.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from lumctl.slices.bounds import refutation
from lumctl.slices.fibre_graph import FibreGraph, PairCosts, Ways, fibre_graph, route_circuits
from lumctl.slices.slots import SlotGraph
from lumctl.slices.torus import Torus

_BRIEF = 8
"""Placements that are tried at a level with the costs of hops, which are known at once."""
_THOROUGH = 320
"""And those with the costs of flows, which take some milliseconds to find and are closer to the truth, times slots.

A third as many if a higher level is left to try."""
_DISTURBED = 4
"""One placement in so many starts from nothing; the others change the one before it."""
_MORE = 6
"""Placements that are tried after the first one at a level was routed: on average they save a tenth of the fibres."""


@dataclass(frozen=True, slots=True)
class PlacedSlots:
    """The server of each slot, by number, and for each link of the slots the edges of each of its circuits."""

    servers: tuple[int, ...]
    ways: Ways

    @property
    def fibres(self) -> int:
        """How many fibres all circuits use together."""
        return sum(len(way) for own in self.ways for way in own)


@dataclass(frozen=True, slots=True)
class SlotSearch:
    """The result of a search for scattered servers.

    ``level`` is the most circuits that the placement lets an edge carry, ``bound`` the least that any placement needs.
    Without a placement, ``reason`` says why, and ``proven`` whether there is none.
    """

    placed: PlacedSlots | None
    level: int
    bound: int
    reason: str = ""
    proven: bool = False


def place_slots(slots: SlotGraph, torus: Torus, free: Sequence[int], rng: Random) -> SlotSearch:
    """A placement of the slots on servers with so many ``free`` accelerators, at the lowest level that is reached."""
    return _place(slots, torus, free, rng, torus.levels, _MORE)


def fit_slots(slots: SlotGraph, torus: Torus, free: Sequence[int], rng: Random) -> SlotSearch:
    """As :func:`place_slots`, but edges may be filled at once: it says only whether a placement is found at all."""
    return _place(slots, torus, free, rng, torus.levels[-1:], 0)


def _place(slots: SlotGraph, torus: Torus, free: Sequence[int], rng: Random, levels: range, more: int) -> SlotSearch:
    bound, top, reason = torus.levels[0], levels[-1], ""
    for level in levels:
        fibres = fibre_graph(torus, level)
        refuted = refutation(slots, fibres, free)
        if refuted is None:
            hops = {count: fibres.hop_costs(count) for count in slots.counts}
            placed = _Search(slots, fibres, free, hops, rng).placed(_BRIEF, more)
            if placed is not None:
                return SlotSearch(placed, level, bound)
            flows = fibres.flow_costs(slots.counts)
            refuted = refutation(slots, fibres, free, flows)
        if refuted is not None:
            bound, reason = level + 1, refuted
            continue
        tries = _THOROUGH // len(slots.needs) // (1 if level == top else 3)
        placed = _Search(slots, fibres, free, flows, rng).placed(max(_BRIEF, tries), more)
        if placed is not None:
            return SlotSearch(placed, level, bound)
    if bound > top:
        return SlotSearch(None, top, top, reason, proven=True)
    return SlotSearch(None, top, bound, "no placement whose circuits find free fibres was found")


class _Search:
    """One search at one level. ``costs[k][a][b]`` are the fibres for ``k`` circuits between two servers."""

    def __init__(
        self, slots: SlotGraph, fibres: FibreGraph, free: Sequence[int], costs: Mapping[int, PairCosts], rng: Random
    ) -> None:
        self.slots, self.fibres, self.costs, self.rng = slots, fibres, costs, rng
        self.free = list(free)
        self.servers = [server for server, count in enumerate(free) if count]

    def placed(self, tries: int, more: int) -> PlacedSlots | None:
        """The placement with the fewest fibres of those that were routed: the first one and some tries after it."""
        room = sum(self.fibres.room)
        at: list[int] | None = None
        best: PlacedSlots | None = None
        seen: set[tuple[int, ...]] = set()
        last = tries
        for attempt in range(tries):
            if attempt > last:
                break
            at = self._start() if at is None or attempt % _DISTURBED == 0 else self._disturbed(at)
            if at is None:
                continue
            self._descend(at)
            if (key := tuple(at)) in seen or self._total(at) > room:
                continue
            seen.add(key)
            ways = route_circuits(self.fibres, [(at[a], at[b], count) for a, b, count in self.slots.links])
            if ways is not None:
                found = PlacedSlots(key, ways)
                last = attempt + more if best is None else last
                best = found if best is None or found.fibres < best.fibres else best
        return best

    def _start(self) -> list[int] | None:
        """Slots in an order in which each has neighbours before it, each on the server that suits these best."""
        left, at = self.free[:], [-1] * len(self.slots.needs)
        first = self.rng.randrange(len(at))
        waiting = {first: 0}
        while waiting:
            slot = max(waiting, key=lambda each: (waiting[each], self.slots.needs[each]))
            del waiting[slot]
            fits = [server for server in self.servers if left[server] >= self.slots.needs[slot]]
            if not fits:
                return None
            costs = {server: (self._slot_cost(at, slot, server), left[server], self.rng.random()) for server in fits}
            at[slot] = min(fits, key=costs.__getitem__)  # Of equal ones the fullest: whole servers are left for others.
            left[at[slot]] -= self.slots.needs[slot]
            for other, count in self.slots.neighbours[slot]:
                if at[other] < 0:
                    waiting[other] = waiting.get(other, 0) + count
        return at

    def _disturbed(self, at: Sequence[int]) -> list[int]:
        """The placement with some slots moved or exchanged at random."""
        changed, left = list(at), self.free[:]
        for slot, server in enumerate(at):
            left[server] -= self.slots.needs[slot]
        for _ in range(1 + len(at) // 3):
            slot = self.rng.randrange(len(at))
            need, here = self.slots.needs[slot], changed[slot]
            target = self.rng.choice(self.servers)
            others = [other for other, server in enumerate(changed) if server == target]
            if left[target] >= need:
                changed[slot] = target
                left[here] += need
                left[target] -= need
            elif len(others) == 1 and self.slots.needs[others[0]] == need:
                changed[slot], changed[others[0]] = target, here
        return changed

    def _descend(self, at: list[int]) -> None:
        """Move a slot, or exchange two, as long as that saves fibres."""
        left = self.free[:]
        for slot, server in enumerate(at):
            left[server] -= self.slots.needs[slot]
        order = list(range(len(at)))
        improved = True
        while improved:
            improved = False
            self.rng.shuffle(order)
            for slot in order:
                improved |= self._improve(at, left, slot)

    def _improve(self, at: list[int], left: list[int], slot: int) -> bool:
        need, here = self.slots.needs[slot], at[slot]
        now = self._slot_cost(at, slot, here)
        best, best_saved = None, 0
        for server in self.servers:
            if left[server] >= need and server != here:
                saved = now - self._slot_cost(at, slot, server)
                if saved > best_saved:
                    best, best_saved = (slot, server, -1), saved
        for other, there in enumerate(at):
            gap = self.slots.needs[other] - need
            if there == here or gap > left[here] or -gap > left[there]:
                continue
            before = now + self._slot_cost(at, other, there)
            at[slot], at[other] = there, here
            saved = before - self._slot_cost(at, slot, there) - self._slot_cost(at, other, here)
            at[slot], at[other] = here, there
            if saved > best_saved:
                best, best_saved = (slot, there, other), saved
        if best is None:
            return False
        _, server, other = best
        left[here] += need
        left[server] -= need
        at[slot] = server
        if other >= 0:
            at[other] = here
            left[server] += self.slots.needs[other]
            left[here] -= self.slots.needs[other]
        return True

    def _slot_cost(self, at: Sequence[int], slot: int, server: int) -> int:
        return sum(
            self.costs[count][server][at[other]] for other, count in self.slots.neighbours[slot] if at[other] >= 0
        )

    def _total(self, at: Sequence[int]) -> int:
        return sum(self.costs[count][at[a]][at[b]] for a, b, count in self.slots.links)
