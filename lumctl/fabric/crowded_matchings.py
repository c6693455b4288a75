"""Packs pairs of ports into few matchings, one pair after the other. Fast and complete, but seldom optimal.

:meth:`Packer.emptied` then reduces their number: it moves the circuits of the smallest matchings into others with room
for them, and routes those again.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from lumctl.fabric.condition import MeshCondition
from lumctl.fabric.geometry import Mesh, PortPair
from lumctl.fabric.routing import Route, route, route_most
from lumctl.fabric.search import Unroutable

_FAILURES = 60
"""Emptying ends after this many moves of a circuit into another matching that find no routes."""


@dataclass(frozen=True, slots=True)
class Packed:
    """The pairs in no matching: ``unreachable`` ones have no route even alone; for those ``left``, time ran out."""

    unreachable: tuple[PortPair, ...] = ()
    left: tuple[PortPair, ...] = ()


@dataclass
class Packer:
    """Packs pairs on one mesh, until no seconds are ``left``."""

    mesh: Mesh
    condition: MeshCondition
    left: Callable[[], float]
    tell: Callable[[str], object]
    _failures: int = 0

    def packed(self, pairs: Sequence[PortPair], matchings: list[tuple[Route, ...]]) -> Packed:
        """Add matchings that contain the pairs to ``matchings``; return the pairs that are in none."""
        open_pairs = list(pairs)
        unreachable: list[PortPair] = []
        while open_pairs and self.left() > 0:
            self.tell(f"{len(matchings)} matchings packed, {len(open_pairs)} pairs left")
            routes = self._most(open_pairs)
            if not routes:  # a single pass misses some ways, such as a way that must avoid itself
                alone = self._alone(open_pairs[0])
                if not alone:
                    unreachable.append(open_pairs.pop(0))
                    continue
                routes = alone
            matchings.append(routes)
            done = {found.ports for found in routes}
            open_pairs = [pair for pair in open_pairs if pair not in done]
        return Packed(tuple(unreachable), tuple(open_pairs))

    def _most(self, pairs: Sequence[PortPair]) -> tuple[Route, ...]:
        """Route most pairs in one pass. Ports with the most pairs come first: they decide how many matchings follow."""
        wanted = Counter(port for pair in pairs for port in pair)
        ordered = sorted(pairs, key=lambda pair: -wanted[pair[0]] - wanted[pair[1]])
        return route_most(self.mesh, ordered, stuck=self.condition.stuck, damaged=self.condition.damaged)

    def _alone(self, pair: PortPair) -> tuple[Route, ...]:
        try:
            return self._route([pair], brisk=False)
        except Unroutable:
            return ()

    def _route(self, pairs: Sequence[PortPair], *, brisk: bool) -> tuple[Route, ...]:
        known = self.condition
        return route(self.mesh, pairs, states={}, stuck=known.stuck, damaged=known.damaged, brisk=brisk, left=self.left)

    def emptied(self, matchings: Sequence[tuple[Route, ...]], least: int) -> Iterator[list[tuple[Route, ...]]]:
        """Yield sets of matchings with the same circuits, each smaller than the last, down to ``least`` matchings."""
        kept = list(matchings)
        tried = 0
        while tried < len(kept) > least and self._failures < _FAILURES and self.left() > 0:
            # The smallest first: its circuits need the least room in the others.
            kept.sort(key=len)
            self.tell(f"{len(kept)} matchings, {least} at least")
            fewer = self._without(kept, tried)
            if fewer is None:
                tried += 1
            else:
                # A success changes the other matchings, so all are tried again.
                kept, tried = fewer, 0
                yield kept

    def _without(self, matchings: list[tuple[Route, ...]], at: int) -> list[tuple[Route, ...]] | None:
        """The matchings without one of them, whose circuits move to the others; ``None`` if a circuit finds no room."""
        others = [*matchings[:at], *matchings[at + 1 :]]
        for moving in matchings[at]:
            for number, other in enumerate(others):
                if self._failures >= _FAILURES or self.left() <= 0:
                    return None
                joined = self._joined(other, moving.ports)
                if joined is not None:
                    others[number] = joined
                    break
            else:
                return None
        return others

    def _joined(self, matching: tuple[Route, ...], pair: PortPair) -> tuple[Route, ...] | None:
        """A matching with one more pair, all routed again; ``None`` if a port is taken or no routes are found."""
        if any(not set(pair).isdisjoint(found.ports) for found in matching):
            return None
        try:
            return self._route([*(found.ports for found in matching), pair], brisk=True)
        except Unroutable:
            self._failures += 1
            return None
