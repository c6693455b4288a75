"""Routes for new circuits that move as few live ones as possible, and the order of the moves.

Where the new circuits find no way beside the live ones, live ones that the caller allows to be moved make room. Each
step switches one circuit, and changes only PUCs that carry no other live circuit at that time: no circuit goes dark but
the one that is being switched, for as long as the PUCs take to settle.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from types import MappingProxyType

from lumctl.devices.types import PucState
from lumctl.errors import LumctlError
from lumctl.fabric.geometry import Mesh, PortPair, trace
from lumctl.fabric.negotiation import negotiate
from lumctl.fabric.refinement import shorten
from lumctl.fabric.routing import Route, route
from lumctl.fabric.search import Prices, Undecided, Unroutable, Way, cheapest_way, exhaust, named
from lumctl.fabric.switching_order import Deadlock, Passes, SwitchingStep, Task, in_the_way, ordered, passes_of

__all__ = ["Effort", "Move", "Rearrangement", "SwitchingStep", "rearrange"]

_NO_STUCK: Mapping[int, PucState] = MappingProxyType({})
_TOLLS = (0.75, 3.0, 12.0)
"""What a PUC in the way of a circuit that can be moved may cost: the dearer, the fewer circuits are hit."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How long is searched: sets of circuits tried, and settings of PUCs looked at for each in search of a proof."""

    sets: int = 24
    nodes: int = 200


@dataclass(frozen=True, slots=True)
class MovesFound:
    """The steps, the live circuits among them, and whether every smaller set of those was proven to be too small."""

    steps: tuple[SwitchingStep, ...]
    moved: frozenset[PortPair]
    fewest: bool = False


_EFFORT = Effort()


@dataclass(frozen=True, slots=True)
class Move:
    """A live circuit that makes room: the way it took, and the one it takes in the end."""

    ports: PortPair
    before: Passes
    route: Route


@dataclass(frozen=True, slots=True)
class Rearrangement:
    """Routes for the new circuits, the live circuits that are moved, and the steps in the order they must be made.

    ``fewest``: it is proven that no smaller number of moves makes room; else it is the smallest that was found.
    """

    routes: tuple[Route, ...]
    moves: tuple[Move, ...]
    steps: tuple[SwitchingStep, ...]
    fewest: bool

    @property
    def changes(self) -> dict[int, PucState]:
        """The PUCs that are written, with the state that each is left in; parking may write one that ends as it was."""
        return dict(sorted((puc, state) for step in self.steps for puc, state in step.changes))


def rearrange(  # noqa: PLR0913 - what stands, what is wanted, and what may not be used
    mesh: Mesh,
    demands: Sequence[PortPair],
    *,
    states: Mapping[int, PucState],
    live: Collection[PortPair] = (),
    movable: Collection[PortPair] = (),
    stuck: Mapping[int, PucState] = _NO_STUCK,
    damaged: Collection[int] = (),
    blocked_ports: Collection[int] = (),
    effort: Effort = _EFFORT,
) -> Rearrangement:
    """Route the demands beside the ``live`` circuits, moving as few of those as possible, and only ``movable`` ones.

    ``movable`` are circuits of ``live``, as they are written there; others are passed over. The result has been traced
    after each step: every circuit is where it should be, and none that the step did not switch was touched.

    Raises:
        UsageError: a port is not on the mesh, or is wanted twice.
        InconsistentFabricError: a live circuit is not what the states make.
        Unroutable: there is no way, or none was found, or none that can be reached without darkening a live circuit;
            ``proven`` tells whether there is none.
    """
    may_move = tuple(pair for pair in live if pair in movable and set(pair).isdisjoint(blocked_ports))
    try:
        routes = route(
            mesh, demands, states=states, live=live, stuck=stuck, damaged=damaged, blocked_ports=blocked_ports
        )
        refused = None
    except Unroutable as error:
        if not may_move or any(not set(pair).isdisjoint(blocked_ports) for pair in demands):
            raise
        routes, refused = (), error
    standing = {**states, **stuck}
    carried = {pair: trace(mesh, standing, pair[0]).passes for pair in live}
    task = Task(mesh, standing, tuple(demands), carried, may_move, stuck, frozenset(damaged))
    if refused is None:
        steps = ordered(task, {planned.ports: planned.passes for planned in routes})
        found = MovesFound(steps, frozenset(), fewest=True)
    else:
        found = fewest_moves(task, effort, some_must_move=refused.proven)
    _prove(task, found.steps)
    return _told(task, found)


def _told(task: Task, found: MovesFound) -> Rearrangement:
    ends = {step.circuit: Route(step.circuit, step.passes) for step in found.steps}
    return Rearrangement(
        routes=tuple(ends[pair] for pair in task.demands),
        moves=tuple(Move(pair, task.live[pair], ends[pair]) for pair in task.live if pair in found.moved),
        steps=found.steps,
        fewest=found.fewest,
    )


def _prove(task: Task, steps: Sequence[SwitchingStep]) -> None:
    """Trace every circuit after every step, and see that a step touched nobody but the circuit that it switches."""
    states, now = dict(task.standing), dict(task.live)
    for step in steps:
        written = dict(step.changes)
        touched = [pair for pair, way in now.items() if pair != step.circuit and any(p in written for p, _ in way)]
        states.update(written)
        now[step.circuit] = step.passes
        found = {pair: trace(task.mesh, states, pair[0]) for pair in now}
        astray = [pair for pair, way in now.items() if (found[pair].exit, found[pair].passes) != (pair[1], way)]
        if touched or astray or not written.keys().isdisjoint(task.stuck):
            raise LumctlError(
                f"the step for {named([step.circuit])} does not leave every circuit where it should be",
                hint="a defect: please report it",
            )


def fewest_moves(task: Task, effort: Effort, *, some_must_move: bool) -> MovesFound:
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

    def run(self) -> MovesFound:
        self._require_room()
        if not self._proven:
            self._proven = True
            found = self._with(())
            if found:
                return replace(found, fewest=True)
        guess: MovesFound | None = None
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

    def _guided(self) -> MovesFound | None:
        """Let the demands bargain with toll roads: whoever's road is taken joins them, until all have ways."""
        best: MovesFound | None = None
        for toll in _TOLLS:
            found = self._at_toll(toll)
            if found and (best is None or len(found.moved) < len(best.moved)):
                best = found
        return best

    def _at_toll(self, toll: float) -> MovesFound | None:
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

    def _of_size(self, size: int) -> MovesFound | None:
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

    def _with(self, moved: Sequence[PortPair]) -> MovesFound | None:
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

    def _in_order(self, moved: Sequence[PortPair], ways: Sequence[Way]) -> MovesFound | None:
        targets = zip((*self._task.demands, *moved), map(passes_of, ways), strict=True)
        try:
            steps = ordered(self._task, dict(targets))
        except Deadlock as deadlock:
            self._proven = False
            self._deadlock = deadlock.circuits
            return None
        return MovesFound(steps, frozenset(step.circuit for step in steps if step.circuit in self._task.live))

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
