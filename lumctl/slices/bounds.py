"""Why no placement of a slice's slots can exist at a level: counts that every placement would have to pass.

What is refuted here is proven impossible. What is not refuted may still be impossible.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from lumctl.printable import counted, is_or_are
from lumctl.slices.fibre_graph import UNREACHABLE, FibreGraph, PairCosts
from lumctl.slices.slots import SlotGraph


def refutation(
    slots: SlotGraph, fibres: FibreGraph, free: Sequence[int], costs: Mapping[int, PairCosts] | None = None
) -> str | None:
    """The reason why the slots cannot be placed, or ``None``. ``free`` accelerators each server has for the slice.

    ``costs`` are the flow costs of the fibres for the counts of circuits between slots; they refute more than hops do.
    """
    if reason := too_few_servers(slots, free):
        return reason
    if costs is None:
        costs = {count: [[count * hops for hops in row] for row in fibres.distances] for count in slots.counts}
    bound = _Bound(slots, fibres, free, costs)
    reasons = [bound.refuted_in(part) for part in bound.parts()]
    return None if any(reason is None for reason in reasons) else reasons[0]


def too_few_servers(slots: SlotGraph, free: Sequence[int]) -> str | None:
    """The reason why the servers have too few free accelerators, wherever they are; ``None`` if they suffice."""
    wanted = sum(slots.needs)
    if wanted > sum(free):
        return too_few_free(wanted, sum(free))
    for need in sorted(set(slots.needs), reverse=True):
        count = sum(each >= need for each in slots.needs)
        places = sum(each // need for each in free)
        if count > places:
            groups = f"{counted(count, 'groups')} of {counted(need, 'accelerators')} on one server"
            return f"{groups} {is_or_are(count)} needed and {places} {is_or_are(places)} free"
    return None


def too_few_free(wanted: int, free: int) -> str:
    """The reason that fewer accelerators are free than a slice needs."""
    return f"{counted(wanted, 'accelerators')} {is_or_are(wanted)} needed and {free} {is_or_are(free)} free"


def _too_few_fibres(least: int, room: int) -> str:
    return f"its circuits need {counted(least, 'fibres')} at least and {room} {is_or_are(room)} free"


@dataclass(frozen=True, slots=True)
class _Bound:
    slots: SlotGraph
    fibres: FibreGraph
    free: Sequence[int]
    costs: Mapping[int, PairCosts]

    def parts(self) -> list[list[int]]:
        """The servers that the slice may use: parts that edges with room join, the largest one first.

        Every shape is connected, so a slice of several slots lies in one part. One slot may lie anywhere.
        """
        usable = [server for server, count in enumerate(self.free) if count >= min(self.slots.needs)]
        if not self.slots.links:
            return [usable]
        parts: list[list[int]] = []
        for server in usable:
            near = [part for part in parts if self.fibres.distances[part[0]][server] < UNREACHABLE]
            if near:
                near[0].append(server)
            else:
                parts.append([server])
        return sorted(parts, key=lambda part: -sum(self.free[server] for server in part))

    def refuted_in(self, part: Sequence[int]) -> str | None:
        """Why the slots cannot be placed on these servers."""
        if reason := too_few_servers(self.slots, [self.free[server] for server in part]):
            return f"{reason} where fibres join them" if len(part) < sum(map(bool, self.free)) else reason
        if 2 * min(self.slots.needs) <= max(self.free):
            return self._refuted_if_shared(part)
        table = [[self._least(slot, server, part) for server in part] for slot in range(len(self.slots.needs))]
        # Every circuit has been counted at both of its ends.
        least, room = -(-assignment(table) // 2), sum(self.fibres.room)
        if least >= UNREACHABLE // 2:
            return "too few of the free servers have as many free fibres as their circuits need"
        return _too_few_fibres(least, room) if least > room else None

    def _refuted_if_shared(self, part: Sequence[int]) -> str | None:
        """Slots may share a server, and links inside it need no fibres: count what leaves the best groups of slots."""
        leaving = least_leaving(self.slots, max(self.free))
        hosted = 0
        for server in part:
            fits = [size for size, circuits in leaving.items() if circuits <= self.fibres.room_at[server]]
            hosted += max((size for size in fits if size <= self.free[server]), default=0)
        wanted = sum(self.slots.needs)
        if hosted < wanted:
            needed = f"{counted(wanted, 'accelerators')} {is_or_are(wanted)} needed"
            return f"{needed} and {hosted} {is_or_are(hosted)} on servers with enough free fibres"
        least, room = wanted * min(circuits / size for size, circuits in leaving.items()) / 2, sum(self.fibres.room)
        return _too_few_fibres(ceil(least), room) if least > room else None

    def _least(self, slot: int, server: int, part: Sequence[int]) -> int:
        """The fewest fibres for the circuits of a slot on a server, if its neighbours had the best servers for that.

        Summed over the slots this is the bound of Gilmore and Lawler for quadratic assignment.
        """
        if self.free[server] < self.slots.needs[slot] or self.fibres.room_at[server] < self.slots.degrees[slot]:
            return UNREACHABLE
        counts = Counter(count for _, count in self.slots.neighbours[slot])
        return sum(
            sum(sorted(self.costs[count][server][other] for other in part if other != server)[:links])
            for count, links in counts.items()
        )


def least_leaving(slots: SlotGraph, most: int) -> dict[int, int]:
    """By number of accelerators, up to ``most``: the fewest circuits that leave slots with so many together."""
    least: dict[int, int] = {}
    seen = {frozenset((slot,)): slots.degrees[slot] for slot, need in enumerate(slots.needs) if need <= most}
    waiting = list(seen)
    while waiting:  # Grow all connected groups, each by one slot that is joined with it.
        group = waiting.pop()
        size = sum(slots.needs[slot] for slot in group)
        least[size] = min(least.get(size, seen[group]), seen[group])
        for other in {near for slot in group for near, _ in slots.neighbours[slot]} - group:
            if size + slots.needs[other] <= most and (grown := group | {other}) not in seen:
                inside = sum(count for near, count in slots.neighbours[other] if near in group)
                seen[grown] = seen[group] + slots.degrees[other] - 2 * inside
                waiting.append(grown)
    for size in range(1, most + 1):  # Groups that are not connected are sums of such that are.
        for part in range(1, size):
            if part in least and size - part in least:
                least[size] = min(least.get(size, UNREACHABLE), least[part] + least[size - part])
    return least


def assignment(costs: Sequence[Sequence[int]]) -> int:
    """The least sum of costs with a column for each row, and no column for two rows (Hungarian method).

    There are at least as many columns as rows.
    """
    columns = range(len(costs[0]))
    row_price, column_price = [0] * len(costs), [0] * len(costs[0])
    owner = [-1] * len(costs[0])
    for row in range(len(costs)):
        # Grow a tree of cheapest exchanges from this row until it reaches a column that no row owns.
        best: list[float] = [float("inf")] * len(costs[0])
        came = [-1] * len(costs[0])
        waiting = set(columns)
        here, at = row, -1
        while here >= 0:
            for column in waiting:
                reduced = costs[here][column] - row_price[here] - column_price[column]
                if reduced < best[column]:
                    best[column], came[column] = reduced, at
            nearest = min(waiting, key=lambda column: best[column])
            step = int(best[nearest])
            row_price[row] += step
            for column in columns:
                if column in waiting:
                    best[column] -= step
                else:
                    row_price[owner[column]] += step
                    column_price[column] -= step
            waiting.discard(nearest)
            at, here = nearest, owner[nearest]
        while at >= 0:
            owner[at] = owner[came[at]] if came[at] >= 0 else row
            at = came[at]
    return sum(costs[row][column] for column, row in enumerate(owner) if row >= 0)
