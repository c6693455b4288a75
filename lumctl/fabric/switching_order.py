"""The order in which circuits are switched over, so that none goes dark but the one being switched.

A circuit can be switched to its new way once nobody else stands in it. Where each of some circuits waits for another of
them, one is given another way that is in nobody's way, or is parked: it takes such a way for the time being.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf

from lumctl.devices.types import PucState
from lumctl.fabric.geometry import Mesh, Pass, PortPair
from lumctl.fabric.search import Prices, Way, cheapest_way

Passes = tuple[Pass, ...]
_CHANGE = 1 / 32
"""What it costs, beside the 1 of every pass, to change a PUC's state."""
_IN_THE_WAY = 64.0
"""The price of parking where another circuit wants to go: dearer than any detour."""


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


@dataclass(frozen=True, slots=True)
class SwitchingStep:
    """One circuit switched to a way: the PUCs that change, and to what. ``parked``: it will be switched once more."""

    circuit: PortPair
    passes: Passes
    changes: tuple[Pass, ...]
    parked: bool = False


class Deadlock(Exception):  # noqa: N818 - it is no error of anybody's
    """Circuits that wait for each other, and no way out of it was found."""

    def __init__(self, circuits: tuple[PortPair, ...]) -> None:
        super().__init__(circuits)
        self.circuits = circuits


def ordered(task: Task, targets: Mapping[PortPair, Passes]) -> tuple[SwitchingStep, ...]:
    """The steps from what stands to ``targets``, the new ways of circuits that are moved and of new ones.

    A target may be replaced by another way; the last step of each circuit says where it ends.

    Raises:
        Deadlock: circuits wait for each other; what was tried does not prove that there is no order.
    """
    moved = {pair: passes for pair, passes in targets.items() if task.live.get(pair) != passes}
    return _Yard(task, moved).run()


class _Yard:
    """What stands at the moment, where it has to go, and the steps made so far."""

    def __init__(self, task: Task, targets: Mapping[PortPair, Passes]) -> None:
        self._task = task
        self._targets = dict(targets)
        self._now = dict(task.live)
        self._states = dict(task.standing)
        self._pending = [*(p for p in targets if p in task.live), *(p for p in targets if p not in task.live)]
        self._may_park = {pair for pair in targets if pair in task.live}
        self._steps: list[SwitchingStep] = []

    def run(self) -> tuple[SwitchingStep, ...]:
        while self._pending:
            ready = next((pair for pair in self._pending if not self._waits_for(pair)), None)
            if ready is not None:
                self._switch(ready, self._targets[ready])
                self._pending.remove(ready)
            elif not (self._diverted() or self._parked()):
                raise Deadlock(self._circle())
        return tuple(self._steps)

    def _waits_for(self, pair: PortPair) -> list[PortPair]:
        """The circuits that stand in a circuit's new way now."""
        way = self._targets[pair]
        return [
            other
            for other in self._pending
            if other != pair and other in self._now and in_the_way(way, self._now[other])
        ]

    def _circle(self) -> tuple[PortPair, ...]:
        """Circuits of which each waits for the next, and the last for the first."""
        path = [self._pending[0]]
        while True:
            following = self._waits_for(path[-1])[0]
            if following in path:
                return tuple(path[path.index(following) :])
            path.append(following)

    def _diverted(self) -> bool:
        """Give one of a circle another way for good, one that is in nobody's way, now or later."""
        for pair in self._circle():
            later = [way for other, way in self._targets.items() if other != pair]
            way = self._way(pair, self._task.prices([*self._others(pair), *later]))
            if way is not None:
                self._targets[pair] = way
                return True
        return False

    def _parked(self) -> bool:
        """Let one of a circle wait elsewhere: where it is in nobody's way now, and frees one that waits for it."""
        circle = self._circle()
        for at, pair in enumerate(circle):
            if pair not in self._may_park:
                continue
            first = self._targets[circle[at - 1]]
            later = [way for other, way in self._targets.items() if other != pair and other in self._pending]
            prices = self._task.prices([*self._others(pair), first], [(way, _IN_THE_WAY) for way in later])
            way = self._way(pair, prices)
            if way is not None:
                self._may_park.remove(pair)
                self._switch(pair, way, parked=True)
                return True
        return False

    def _others(self, pair: PortPair) -> Iterable[Passes]:
        return (way for other, way in self._now.items() if other != pair)

    def _way(self, pair: PortPair, prices: Prices) -> Passes | None:
        way = cheapest_way(self._task.mesh, pair, prices)
        if way is None:
            return None
        passes = passes_of(way)
        return None if in_the_way(passes, passes) else passes

    def _switch(self, pair: PortPair, way: Passes, *, parked: bool = False) -> None:
        changes = changed(self._states, way)
        self._states.update(changes)
        self._now[pair] = way
        self._steps.append(SwitchingStep(pair, way, changes, parked))


def changed(states: Mapping[int, PucState], way: Passes) -> tuple[Pass, ...]:
    """The PUCs that are not as a way needs them, in their order, with the state they must go to."""
    return tuple(sorted({(p, s) for p, s in way if states.get(p, PucState.BAR) is not s}))
