"""Who waits for whom, brought into an order; those who wait for each other come at once."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from lumctl.fabric.geometry import PortPair


def in_turn(
    circuits: Sequence[PortPair], waits_for: Mapping[PortPair, AbstractSet[PortPair]]
) -> tuple[tuple[PortPair, ...], ...]:
    """Groups in an order in which nobody waits for a later group. Groups are as small as can be."""
    reach = {pair: _reached(pair, waits_for) for pair in circuits}
    groups: list[tuple[PortPair, ...]] = []
    placed: set[PortPair] = set()
    while len(placed) < len(circuits):
        # Of those left, one with the fewest to wait for waits only for such as wait for it as well.
        left = {pair: reach[pair] - placed for pair in circuits if pair not in placed}
        fewest = left[min(left, key=lambda pair: len(left[pair]))]
        group = tuple(pair for pair in circuits if pair in fewest)
        groups.append(group)
        placed.update(group)
    return tuple(groups)


def _reached(start: PortPair, waits_for: Mapping[PortPair, AbstractSet[PortPair]]) -> set[PortPair]:
    """A circuit, and everybody for whom it waits, at first or second hand."""
    reached = {start}
    frontier = [start]
    while frontier:
        for other in waits_for[frontier.pop()] - reached:
            reached.add(other)
            frontier.append(other)
    return reached
