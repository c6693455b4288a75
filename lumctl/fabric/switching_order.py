"""The order in which circuits are switched over, so that only the circuit being switched goes dark.

A circuit can be switched to its new path once no other circuit blocks that way. If circuits wait for each other in a
cycle, one of them gets another final path that blocks no circuit, or is parked on such a way for some time.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import inf

from lumctl.devices.types import PucState
from lumctl.fabric.geometry import Mesh, Pass, PortPair
from lumctl.fabric.search import Passes, Prices, cheapest_way, other_turn, passes_of

_CHANGE = 1 / 32
"""The price of changing a PUC's state, on top of 1 for each pass. Small, so that length decides first."""
_IN_THE_WAY = 64.0
"""The price of parking on the new path of another circuit: higher than any detour."""


@dataclass(frozen=True, slots=True)
class Task:
    """New circuits that are routed next to live ones.

    ``present`` has the state of every PUC that is not in bar, including stuck ones. ``excess`` is the extra cost of
    passing a PUC, as for :func:`lumctl.fabric.routing.route`.
    """

    mesh: Mesh
    present: Mapping[int, PucState]
    demands: tuple[PortPair, ...]
    live: Mapping[PortPair, Passes]
    movable: tuple[PortPair, ...]
    stuck: Mapping[int, PucState]
    damaged: frozenset[int]
    excess: Mapping[int, float] = field(default_factory=dict)

    def prices(self, held: Iterable[Passes], tolls: Iterable[tuple[Passes, float]] = ()) -> Prices:
        """Prices for paths that never block ``held``; ``tolls`` are paths, each with the price of blocking it."""
        turn = [1.0] * (2 * self.mesh.puc_count)
        for puc in range(self.mesh.puc_count):
            turn[other_turn(puc, self.present.get(puc, PucState.BAR))] += _CHANGE
        for passes, toll in tolls:
            for puc, state in passes:
                turn[other_turn(puc, state)] += toll
        for passes in (*held, tuple(self.stuck.items())):
            for puc, state in passes:
                turn[other_turn(puc, state)] = inf
        for puc in self.damaged:
            turn[2 * puc] = turn[2 * puc + 1] = inf
        prices = Prices(turn, [0.0] * len(self.mesh.peers))
        for puc, more in self.excess.items():
            prices.pass_costs(puc, more)
        return prices

    def others(self, moved: Iterable[PortPair]) -> list[Passes]:
        """The paths of all live circuits except ``moved``."""
        gone = set(moved)
        return [passes for pair, passes in self.live.items() if pair not in gone]


def in_the_way(one: Passes, other: Passes) -> bool:
    """Whether two circuits exclude each other: both need the same PUC, in different states."""
    wanted = dict(one)
    return any(wanted.get(puc, state) is not state for puc, state in other)


@dataclass(frozen=True, slots=True)
class SwitchingStep:
    """One circuit switched to a path: the PUCs that change, with their new states. If ``parked``, it moves again."""

    circuit: PortPair
    passes: Passes
    changes: tuple[Pass, ...]
    parked: bool = False


class Deadlock(Exception):  # noqa: N818 - an outcome, which the caller handles
    """Circuits wait for each other, and no order was found that resolves this."""

    def __init__(self, circuits: tuple[PortPair, ...]) -> None:
        super().__init__(circuits)
        self.circuits = circuits


def ordered(task: Task, targets: Mapping[PortPair, Passes]) -> tuple[SwitchingStep, ...]:
    """The steps from the present states to ``targets``, the new paths of moved circuits and of new ones.

    A target may be replaced by another path; the last step of each circuit has its final path.

    Raises:
        Deadlock: circuits wait for each other, and no order was found; this does not prove that there is none.
    """
    moved = {pair: passes for pair, passes in targets.items() if task.live.get(pair) != passes}
    return _Switching(task, moved).run()


class _Switching:
    """The present path of each circuit, its target path, and the steps so far."""

    def __init__(self, task: Task, targets: Mapping[PortPair, Passes]) -> None:
        self._task = task
        self._targets = dict(targets)
        self._now = dict(task.live)
        self._states = dict(task.present)
        # Moved circuits first: they make room for the new ones.
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
        """The circuits that now block a circuit's new path."""
        way = self._targets[pair]
        return [
            other
            for other in self._pending
            if other != pair and other in self._now and in_the_way(way, self._now[other])
        ]

    def _circle(self) -> tuple[PortPair, ...]:
        """A cycle of circuits: each waits for the next, and the last waits for the first."""
        path = [self._pending[0]]
        while True:
            following = self._waits_for(path[-1])[0]
            if following in path:
                return tuple(path[path.index(following) :])
            path.append(following)

    def _diverted(self) -> bool:
        """Give one circuit of a cycle another final path that blocks no circuit, now or later."""
        for pair in self._circle():
            later = [way for other, way in self._targets.items() if other != pair]
            way = self._way(pair, self._task.prices([*self._others(pair), *later]))
            if way is not None:
                self._targets[pair] = way
                return True
        return False

    def _parked(self) -> bool:
        """Park one circuit of a cycle on a path that blocks no circuit now and frees the circuit that waits for it.

        Each circuit is parked at most once, so this ends.
        """
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
        # The search does not see that a way needs one PUC in both states.
        return None if in_the_way(passes, passes) else passes

    def _switch(self, pair: PortPair, way: Passes, *, parked: bool = False) -> None:
        changes = changed(self._states, way)
        self._states.update(changes)
        self._now[pair] = way
        self._steps.append(SwitchingStep(pair, way, changes, parked))


def changed(states: Mapping[int, PucState], way: Passes) -> tuple[Pass, ...]:
    """The PUCs that must change for a way, by number, with their new states."""
    return tuple(sorted({(p, s) for p, s in way if states.get(p, PucState.BAR) is not s}))
