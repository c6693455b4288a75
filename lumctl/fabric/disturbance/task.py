"""What a search for few moves knows: what stands, what is wanted, and what a way may pass."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf

from lumctl.devices.types import PucState
from lumctl.fabric.geometry import Mesh, PortPair
from lumctl.fabric.negotiation import Prices, Way
from lumctl.fabric.tracing import Pass

Passes = tuple[Pass, ...]

_CHANGE = 1 / 32
"""What it costs, beside the 1 of every pass, to change a PUC's state."""


@dataclass(frozen=True, slots=True)
class Task:
    """New circuits that are wanted beside live ones. ``standing`` is every PUC that is not in bar, stuck ones too."""

    mesh: Mesh
    standing: Mapping[int, PucState]
    demands: tuple[PortPair, ...]
    live: Mapping[PortPair, Passes]
    movable: tuple[PortPair, ...]
    stuck: Mapping[int, PucState]
    damaged: frozenset[int]

    def prices(self, held: Iterable[Passes], tolls: Iterable[tuple[Passes, float]] = ()) -> Prices:
        """Prices at which nothing in the way of ``held`` can be had, and a toll is due in the way of others."""
        turn = [1.0] * (2 * self.mesh.puc_count)
        for puc in range(self.mesh.puc_count):
            turn[other_turn(puc, self.standing.get(puc, PucState.BAR))] += _CHANGE
        for passes, toll in tolls:
            for puc, state in passes:
                turn[other_turn(puc, state)] += toll
        for passes in (*held, tuple(self.stuck.items())):
            for puc, state in passes:
                turn[other_turn(puc, state)] = inf
        for puc in self.damaged:
            turn[2 * puc] = turn[2 * puc + 1] = inf
        return Prices(turn, [0.0] * len(self.mesh.peers))

    def others(self, moved: Iterable[PortPair]) -> list[Passes]:
        """The ways of the live circuits that are not moved."""
        gone = set(moved)
        return [passes for pair, passes in self.live.items() if pair not in gone]


def other_turn(puc: int, state: PucState) -> int:
    """Where :class:`Prices` keeps the price of passing a PUC in the state that it is not in."""
    return 2 * puc + (1 if state is PucState.BAR else 0)


def passes_of(way: Way) -> Passes:
    """A way as PUCs and the state each must stand in."""
    return tuple((terminal >> 2, PucState.CROSS if turn else PucState.BAR) for terminal, turn in way)


def in_the_way(one: Passes, other: Passes) -> bool:
    """Whether two circuits cannot stand at once: some PUC is wanted in both states."""
    wanted = dict(one)
    return any(wanted.get(puc, state) is not state for puc, state in other)
