"""Which live circuits make room: sets of growing size, the likely ones first."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from lumctl.fabric.disturbance.order import Deadlock, Step, ordered
from lumctl.fabric.disturbance.task import Task, in_the_way, passes_of
from lumctl.fabric.errors import Unroutable, named
from lumctl.fabric.exhaustion import Undecided, exhaust
from lumctl.fabric.geometry import PortPair
from lumctl.fabric.negotiation import Prices, Way, cheapest_way, negotiate
from lumctl.fabric.shortening import shorten

_TOLLS = (0.75, 3.0, 12.0)
"""What a PUC in the way of a circuit that can be moved may cost: the dearer, the fewer circuits are hit."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How long is searched: sets of circuits tried, and settings of PUCs looked at for each in search of a proof."""

    sets: int = 24
    nodes: int = 200


@dataclass(frozen=True, slots=True)
class Found:
    """The steps, the live circuits among them, and whether every smaller set of those was proven to be too small."""

    steps: tuple[Step, ...]
    moved: frozenset[PortPair]
    fewest: bool = False


def fewest_moves(task: Task, effort: Effort, *, some_must_move: bool) -> Found:
    """Room for the demands by moving few circuits. ``some_must_move``: it is proven that without moves there is none.

    Raises:
        Unroutable: there is no way however many of the movable circuits are moved (proven), or none was found.
    """
    return _Search(task, effort, some_must_move=some_must_move).run()


class _Search:
    def __init__(self, task: Task, effort: Effort, *, some_must_move: bool) -> None:
        self._task = task
        self._effort = effort
        self._proven = some_must_move
        """Every set that was looked at and refused was proven to be too small."""
        self._sets_left = effort.sets
        self._deadlock: tuple[PortPair, ...] = ()

    def run(self) -> Found:
        self._require_room()
        if not self._proven:
            self._proven = True
            found = self._with(())
            if found:
                return replace(found, fewest=True)
        guess: Found | None = None
        for size in range(1, len(self._task.movable) + 1):
            if guess and len(guess.moved) <= size:
                return replace(guess, fewest=self._proven)
            proven = self._proven
            found = self._of_size(size)
            if found:
                return replace(found, fewest=proven)
            if size == 1:
                guess = self._guided()
        if guess:
            return guess
        raise self._refusal()

    def _require_room(self) -> None:
        """Each demand must have a way at least where all that can be moved were gone: else moving is of no use."""
        prices = self._task.prices(self._task.others(self._task.movable))
        lost = tuple(pair for pair in self._task.demands if cheapest_way(self._task.mesh, pair, prices) is None)
        if lost:
            raise _none_at_all(lost)

    def _guided(self) -> Found | None:
        """Let the demands bargain with toll roads: whoever's road is taken joins them, until all have ways."""
        best: Found | None = None
        for toll in _TOLLS:
            found = self._at_toll(toll)
            if found and (best is None or len(found.moved) < len(best.moved)):
                best = found
        return best

    def _at_toll(self, toll: float) -> Found | None:
        task, moved = self._task, list[PortPair]()
        while True:
            staying = [pair for pair in task.movable if pair not in moved]
            prices = task.prices(task.others(task.movable), [(task.live[pair], toll) for pair in staying])
            ways = self._ways([*task.demands, *moved], prices)
            if ways is None:
                return None
            taken = [passes_of(way) for way in ways]
            hit = [pair for pair in staying if any(in_the_way(way, task.live[pair]) for way in taken)]
            if not hit:
                return self._in_order(moved, ways)
            moved += hit

    def _of_size(self, size: int) -> Found | None:
        """Try the sets of so many circuits, those first that stand in the most of the demands' cheapest ways."""
        for moved in combinations(self._likely_first(), size):
            if self._sets_left == 0:
                self._proven = False
                return None
            self._sets_left -= 1
            found = self._with(moved)
            if found:
                return found
        return None

    def _likely_first(self) -> list[PortPair]:
        task, hits = self._task, dict.fromkeys(self._task.movable, 0)
        for toll in _TOLLS:
            prices = task.prices(task.others(task.movable), [(task.live[pair], toll) for pair in task.movable])
            for way in (cheapest_way(task.mesh, demand, prices) for demand in task.demands):
                for pair in task.movable:
                    hits[pair] += way is not None and in_the_way(passes_of(way), task.live[pair])
        return sorted(hits, key=lambda pair: -hits[pair])

    def _with(self, moved: Sequence[PortPair]) -> Found | None:
        """Ways for the demands and for these circuits, all others left where they are."""
        wanted = [*self._task.demands, *moved]
        prices = self._task.prices(self._task.others(moved))
        ways = self._ways(wanted, prices)
        return self._in_order(moved, shorten(self._task.mesh, wanted, ways, prices)) if ways else None

    def _ways(self, wanted: Sequence[PortPair], prices: Prices) -> Sequence[Way] | None:
        """Trying everything is quicker than it sounds, and mostly quicker than a bargain that comes to nothing."""
        try:
            return exhaust(self._task.mesh, wanted, prices, nodes=self._effort.nodes)
        except Undecided:
            pass
        try:
            return negotiate(self._task.mesh, wanted, prices)
        except Unroutable:
            self._proven = False
            return None

    def _in_order(self, moved: Sequence[PortPair], ways: Sequence[Way]) -> Found | None:
        targets = zip((*self._task.demands, *moved), map(passes_of, ways), strict=True)
        try:
            steps = ordered(self._task, dict(targets))
        except Deadlock as deadlock:
            self._proven = False
            self._deadlock = deadlock.circuits
            return None
        return Found(steps, frozenset(step.circuit for step in steps if step.circuit in self._task.live))

    def _refusal(self) -> Unroutable:
        task = self._task
        hint = "try other ports or another spare, or program the whole mesh afresh"
        if self._deadlock:
            return Unroutable(
                task.demands,
                f"there are ways for {named(task.demands)}, but none was found to get there without darkening a live "
                f"circuit: {named(self._deadlock)} wait for each other",
                proven=False,
                hint=hint,
            )
        wanted, prices = [*task.demands, *task.movable], task.prices(task.others(task.movable))
        try:
            if exhaust(task.mesh, wanted, prices, nodes=2 * self._effort.nodes) is None:
                return _none_at_all(task.demands)
        except Undecided:
            pass
        return Unroutable(
            task.demands,
            f"no way found for {named(task.demands)} by moving live circuits: gave up, which does not prove that "
            "there is none",
            proven=False,
            hint=hint,
        )


def _none_at_all(lost: tuple[PortPair, ...]) -> Unroutable:
    return Unroutable(
        lost,
        f"there is no way for {named(lost)}, whichever circuits that may be moved are moved",
        proven=True,
        hint="try other ports or another spare, or program the whole mesh afresh",
    )
