"""Routes for new circuits that move as few live ones as possible, and the order of the moves.

Where the new circuits find no way beside the live ones, live ones that the caller allows to be moved make room. Each
step switches one circuit, and changes only PUCs that carry no other live circuit at that time: no circuit goes dark but
the one that is being switched, for as long as the PUCs take to settle.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from lumctl.devices.types import PucState
from lumctl.errors import LumctlError
from lumctl.fabric.disturbance.order import Step, ordered
from lumctl.fabric.disturbance.search import Effort, Found, fewest_moves
from lumctl.fabric.disturbance.task import Passes, Task
from lumctl.fabric.errors import Unroutable, named
from lumctl.fabric.geometry import Mesh, PortPair
from lumctl.fabric.routing import Route, route
from lumctl.fabric.tracing import trace

__all__ = ["Effort", "Move", "Rearrangement", "Step", "rearrange"]

_NO_STUCK: Mapping[int, PucState] = MappingProxyType({})
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
    steps: tuple[Step, ...]
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
        found = Found(steps, frozenset(), fewest=True)
    else:
        found = fewest_moves(task, effort, some_must_move=refused.proven)
    _prove(task, found.steps)
    return _told(task, found)


def _told(task: Task, found: Found) -> Rearrangement:
    ends = {step.circuit: Route(step.circuit, step.passes) for step in found.steps}
    return Rearrangement(
        routes=tuple(ends[pair] for pair in task.demands),
        moves=tuple(Move(pair, task.live[pair], ends[pair]) for pair in task.live if pair in found.moved),
        steps=found.steps,
        fewest=found.fewest,
    )


def _prove(task: Task, steps: Sequence[Step]) -> None:
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
