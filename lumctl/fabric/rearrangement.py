"""Finds routes for new circuits that move as few live circuits as possible, and the order of the moves.

If the new circuits find no path next to the live ones, live circuits that the caller allows to move make room. Each
step switches one circuit and changes only PUCs that carry no other live circuit at that time. So only the circuit that
is being switched goes dark, until the PUCs have settled.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from types import MappingProxyType

from lumctl.devices.types import PucState
from lumctl.errors import LumctlError
from lumctl.fabric.geometry import Mesh, PortPair, trace
from lumctl.fabric.negotiation import negotiate
from lumctl.fabric.refinement import shorten
from lumctl.fabric.routing import Route, route
from lumctl.fabric.search import (
    NO_ROUTE_HINT,
    Passes,
    Prices,
    Undecided,
    Unroutable,
    Way,
    cheapest_way,
    endless,
    exhaust,
    named,
    passes_of,
)
from lumctl.fabric.switching_order import Deadlock, SwitchingStep, Task, in_the_way, ordered

__all__ = ["Effort", "Move", "Rearrangement", "SwitchingStep", "rearrange"]

_NO_STUCK: Mapping[int, PucState] = MappingProxyType({})
_NO_LOSS: Mapping[int, float] = MappingProxyType({})
_TOLLS = (0.75, 3.0, 12.0)
"""Prices, tried in turn, of a PUC that a movable circuit uses. With a higher price, fewer circuits must move."""


@dataclass(frozen=True, slots=True)
class Effort:
    """Limits of the search: the number of sets of circuits that are tried, and of search nodes for each set's proof.

    The search also ends when no seconds are ``left``.
    """

    sets: int = 24
    nodes: int = 200
    left: Callable[[], float] = endless


@dataclass(frozen=True, slots=True)
class MovesFound:
    """The steps, the live circuits that they move, and whether every smaller set of these is proven to be too small."""

    steps: tuple[SwitchingStep, ...]
    moved: frozenset[PortPair]
    fewest: bool = False


_EFFORT = Effort()


@dataclass(frozen=True, slots=True)
class Move:
    """A live circuit that makes room: its old path, and its new path."""

    ports: PortPair
    before: Passes
    route: Route


@dataclass(frozen=True, slots=True)
class Rearrangement:
    """Routes for the new circuits, the live circuits that are moved, and the steps in their order.

    ``fewest``: it is proven that no smaller number of moves makes room; otherwise it is the smallest number found.
    """

    routes: tuple[Route, ...]
    moves: tuple[Move, ...]
    steps: tuple[SwitchingStep, ...]
    fewest: bool

    @property
    def changes(self) -> dict[int, PucState]:
        """The PUCs that are written, with their final states. Parking may write a PUC that ends in its old state."""
        return dict(sorted((puc, state) for step in self.steps for puc, state in step.changes))


def rearrange(  # noqa: PLR0913 - the present state, the demands, and what must not be used
    mesh: Mesh,
    demands: Sequence[PortPair],
    *,
    states: Mapping[int, PucState],
    live: Collection[PortPair] = (),
    movable: Collection[PortPair] = (),
    stuck: Mapping[int, PucState] = _NO_STUCK,
    damaged: Collection[int] = (),
    blocked_ports: Collection[int] = (),
    excess: Mapping[int, float] = _NO_LOSS,
    effort: Effort = _EFFORT,
) -> Rearrangement:
    """Route the demands next to the ``live`` circuits, moving as few of those as possible, and only ``movable`` ones.

    ``movable`` are circuits of ``live``, with their ports in the same order; others are ignored. ``excess`` is the
    extra cost of passing a PUC, as for :func:`route`. The result has been traced after each step: every circuit takes
    its planned path, and no step affects a circuit that it does not switch.

    Raises:
        UsageError: a port is not on the mesh, or is used twice. InconsistentFabricError: the states do not form a live
            circuit.
        Unroutable: there is no path, or none was found, or none that can be reached without darkening a live circuit;
            ``proven`` is true if it is proven that there is none.
    """
    may_move = tuple(pair for pair in live if pair in movable and set(pair).isdisjoint(blocked_ports))
    try:
        routes = route(
            mesh,
            demands,
            states=states,
            live=live,
            stuck=stuck,
            damaged=damaged,
            blocked_ports=blocked_ports,
            excess=excess,
            left=effort.left,
        )
        refused = None
    except Unroutable as error:
        if not may_move or any(not set(pair).isdisjoint(blocked_ports) for pair in demands):
            raise
        routes, refused = (), error
    present = {**states, **stuck}
    carried = {pair: trace(mesh, present, pair[0]).passes for pair in live}
    task = Task(mesh, present, tuple(demands), carried, may_move, stuck, frozenset(damaged), excess)
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
    """Trace every circuit after every step, and check that each step affected only the circuit that it switches."""
    states, now = dict(task.present), dict(task.live)
    for step in steps:
        written = dict(step.changes)
        touched = [pair for pair, way in now.items() if pair != step.circuit and any(p in written for p, _ in way)]
        states.update(written)
        now[step.circuit] = step.passes
        found = {pair: trace(task.mesh, states, pair[0]) for pair in now}
        astray = [pair for pair, way in now.items() if (found[pair].exit, found[pair].passes) != (pair[1], way)]
        if touched or astray or not written.keys().isdisjoint(task.stuck):
            raise LumctlError(
                f"the step for {named([step.circuit])} does not leave every circuit in place",
                hint="this is a bug: please report it",
            )


def fewest_moves(task: Task, effort: Effort, *, some_must_move: bool) -> MovesFound:
    """Make room for the demands by few moves. ``some_must_move``: it is proven that there is no room without moves.

    Raises:
        Unroutable: there is no path even if all movable circuits are moved (proven), or none was found.
    """
    return _Search(task, effort, some_must_move=some_must_move).run()


class _Search:
    def __init__(self, task: Task, effort: Effort, *, some_must_move: bool) -> None:
        self._task = task
        self._effort = effort
        self._proven = some_must_move
        """Whether every set that was tried and rejected is proven to be too small."""
        self._sets_left = effort.sets
        self._deadlock: tuple[PortPair, ...] = ()

    def run(self) -> MovesFound:
        self._require_room()
        # The router gave up without a proof: the exhaustive search may still find ways without any move.
        if not self._proven:
            self._proven = True
            found = self._with(())
            if found:
                return replace(found, fewest=True)
        guess: MovesFound | None = None
        for size in range(1, len(self._task.movable) + 1):
            # No set of this size or larger beats the guess.
            if guess and len(guess.moved) <= size:
                return replace(guess, fewest=self._proven)
            # Only the smaller sizes had to be refuted; of this size, one set that works is enough.
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
        """Check that each demand has a path without the movable circuits; otherwise moving cannot help."""
        prices = self._task.prices(self._task.others(self._task.movable))
        lost = tuple(pair for pair in self._task.demands if cheapest_way(self._task.mesh, pair, prices) is None)
        if lost:
            raise _none_at_all(lost)

    def _guided(self) -> MovesFound | None:
        """Route with a toll on the PUCs of movable circuits; blocking circuits must move too, until all have paths."""
        best: MovesFound | None = None
        for toll in _TOLLS:
            found = self._at_toll(toll)
            if found and (best is None or len(found.moved) < len(best.moved)):
                best = found
        return best

    def _at_toll(self, toll: float) -> MovesFound | None:
        task, moved = self._task, list[PortPair]()
        # This ends: `moved` grows in each turn.
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
        """Try the sets of ``size`` circuits; first those of circuits that block most of the demands' cheapest paths."""
        for moved in combinations(self._likely_first(), size):
            if self._sets_left == 0 or self._effort.left() <= 0:
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
        """Paths for the demands and for these circuits; all other circuits keep their paths."""
        wanted = [*self._task.demands, *moved]
        prices = self._task.prices(self._task.others(moved))
        ways = self._ways(wanted, prices)
        return (
            self._in_order(moved, shorten(self._task.mesh, wanted, ways, prices, left=self._effort.left))
            if ways
            else None
        )

    def _ways(self, wanted: Sequence[PortPair], prices: Prices) -> Sequence[Way] | None:
        """Ways by exhaustive search, or by negotiation if that is undecided.

        Exhaustive search comes first: it is mostly quicker than a negotiation that fails, and its refusal is a proof.
        """
        try:
            return exhaust(self._task.mesh, wanted, prices, nodes=self._effort.nodes, left=self._effort.left)
        except Undecided:
            pass
        try:
            return negotiate(self._task.mesh, wanted, prices, left=self._effort.left)
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
        hint = NO_ROUTE_HINT
        if self._deadlock:
            return Unroutable(
                task.demands,
                f"routes for {named(task.demands)} exist, but no order of steps was found that keeps every live "
                f"circuit lit: {named(self._deadlock)} block each other",
                proven=False,
                hint=hint,
            )
        wanted, prices = [*task.demands, *task.movable], task.prices(task.others(task.movable))
        try:
            if exhaust(task.mesh, wanted, prices, nodes=2 * self._effort.nodes, left=self._effort.left) is None:
                return _none_at_all(task.demands)
        except Undecided:
            pass
        return Unroutable(
            task.demands,
            f"no route found for {named(task.demands)} by moving live circuits: the search gave up, which does not "
            "prove that none exists",
            proven=False,
            hint=hint,
        )


def _none_at_all(lost: tuple[PortPair, ...]) -> Unroutable:
    return Unroutable(
        lost,
        f"no route exists for {named(lost)}, whichever of the movable circuits are moved",
        proven=True,
        hint=NO_ROUTE_HINT,
    )
