"""Routes for new circuits around those that are live."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from math import inf
from types import MappingProxyType

from lumctl.devices.types import PucState
from lumctl.errors import LumctlError, UsageError
from lumctl.fabric.geometry import Mesh, Pass, PortPair, Trace, trace
from lumctl.fabric.negotiation import BRISK, GENTLE, HARDER, negotiate
from lumctl.fabric.refinement import level, shorten
from lumctl.fabric.search import InconsistentFabricError, Prices, Undecided, Unroutable, Way, exhaust, named

_CHANGE = 1 / 32
"""What it costs, beside the 1 of every pass, to change a PUC's state: decides only between ways of equal length."""

_SHARING = 0.5
"""What it costs to share a PUC with another circuit, where light that leaks from one into the other counts."""

_NODES = 300
"""How many settings of single PUCs are looked at to find ways, or to prove that there are none."""

_NO_STUCK: Mapping[int, PucState] = MappingProxyType({})
_NO_LOSS: Mapping[int, float] = MappingProxyType({})


class Objective(StrEnum):
    """What makes routes good: any at all, few PUCs together, the least loss of the worst circuit, few shared PUCs."""

    FEASIBLE = "feasible"
    PUCS = "pucs"
    LOSS = "loss"
    CROSSTALK = "crosstalk"


@dataclass(frozen=True, slots=True)
class Route:
    """The way of a circuit between two ports: the PUCs it passes, in order, and the state each must stand in."""

    ports: PortPair
    passes: tuple[Pass, ...]

    @property
    def pucs(self) -> tuple[int, ...]:
        """The PUCs passed, in order; one that is passed on both sides stands here twice."""
        return tuple(puc for puc, _ in self.passes)


def route(  # noqa: PLR0913 - what stands, what is wanted, and what may not be used
    mesh: Mesh,
    demands: Sequence[PortPair],
    *,
    states: Mapping[int, PucState],
    live: Collection[PortPair] = (),
    stuck: Mapping[int, PucState] = _NO_STUCK,
    damaged: Collection[int] = (),
    blocked_ports: Collection[int] = (),
    excess: Mapping[int, float] = _NO_LOSS,
    objective: Objective = Objective.PUCS,
    brisk: bool = False,
) -> tuple[Route, ...]:
    """Find a route for every demand, all at once, that leaves the ``live`` circuits untouched.

    A live circuit keeps the state of every PUC and every waveguide that it uses; a new route may pass such a PUC only
    as it stands, on its other side. ``stuck`` PUCs are passed only in the state they are stuck in, whatever ``states``
    says of them; no light is led through ``damaged`` ones. ``excess`` is what passing a PUC costs more than passing
    another, in times of that (its extra loss by the usual loss, say). PUCs that no route needs are left as they are.
    ``brisk`` gives up sooner. The result has been traced before it is returned.

    Raises:
        UsageError: a port is not on the mesh, or is wanted twice.
        InconsistentFabricError: a live circuit is not what the states make.
        Unroutable: there is no way, or none was found; ``proven`` tells which.
    """
    _check_ports(mesh, demands, live)
    blocked = tuple(demand for demand in demands if not set(demand).isdisjoint(blocked_ports))
    if blocked:
        raise Unroutable(blocked, f"there is no way for {named(blocked)}: a port is blocked", proven=True)
    standing = {**states, **stuck}
    carried = _live_traces(mesh, standing, live)
    prices = _prices(mesh, standing, carried, stuck)
    for puc, more in excess.items():
        prices.pass_costs(puc, more)
    for puc in damaged:
        prices.pass_costs(puc, inf)
    ways = _best(mesh, demands, prices, objective, brisk=brisk)
    routes = tuple(Route(demand, _passes(way)) for demand, way in zip(demands, ways, strict=True))
    _prove(mesh, {**standing, **changes(standing, routes)}, routes, carried, stuck)
    return routes


def _best(mesh: Mesh, demands: Sequence[PortPair], prices: Prices, objective: Objective, *, brisk: bool) -> list[Way]:
    sharing = _SHARING if objective is Objective.CROSSTALK else 0.0
    if brisk:
        ways = negotiate(mesh, demands, prices, sharing=sharing, pressures=BRISK)
    else:
        ways = _whatever_it_takes(mesh, demands, prices, sharing)
    if objective is Objective.PUCS:
        return shorten(mesh, demands, ways, prices)
    if objective is Objective.LOSS:
        return level(mesh, demands, shorten(mesh, demands, ways, prices), prices)
    return ways


def _whatever_it_takes(mesh: Mesh, demands: Sequence[PortPair], prices: Prices, sharing: float) -> list[Way]:
    """Where a negotiation ends without agreement, try everything; where that takes too long, negotiate harder."""
    try:
        return negotiate(mesh, demands, prices, sharing=sharing, pressures=GENTLE)
    except Unroutable as refused:
        if refused.proven:
            raise
    try:
        ways = exhaust(mesh, demands, prices, nodes=_NODES)
    except Undecided:
        return negotiate(mesh, demands, prices, sharing=sharing, pressures=HARDER)
    if ways is None:
        raise Unroutable(
            tuple(demands),
            f"there are no ways for {named(demands)} together, around live circuits and stuck PUCs",
            proven=True,
            hint="try other ports or another spare, or program the whole mesh afresh",
        )
    return ways


def changes(states: Mapping[int, PucState], routes: Iterable[Route]) -> dict[int, PucState]:
    """The PUCs whose state must change for ``routes``, by number, with the state they must go to."""
    wanted = {puc: state for found in routes for puc, state in found.passes}
    return {puc: wanted[puc] for puc in sorted(wanted) if states.get(puc, PucState.BAR) is not wanted[puc]}


def _check_ports(mesh: Mesh, demands: Iterable[PortPair], live: Iterable[PortPair]) -> None:
    used: set[int] = set()
    for port in (port for pair in (*live, *demands) for port in pair):
        if not 0 <= port < mesh.port_count:
            raise UsageError(f"port {port} is not on the mesh", hint=f"its ports are 0 to {mesh.port_count - 1}")
        if port in used:
            raise UsageError(f"port {port} is wanted twice", hint="a port is the end of one circuit")
        used.add(port)


def _live_traces(mesh: Mesh, states: Mapping[int, PucState], live: Iterable[PortPair]) -> tuple[Trace, ...]:
    carried = tuple(trace(mesh, states, port) for port, _ in live)
    for (port, expected), found in zip(live, carried, strict=True):
        if found.exit != expected:
            raise InconsistentFabricError(
                f"circuit {port}:{expected} is said to be live, but light from port {port} leaves at {found.exit}",
                hint="read or re-assert the mesh's states first",
            )
    return carried


def _prices(mesh: Mesh, states: Mapping[int, PucState], live: Iterable[Trace], stuck: Mapping[int, PucState]) -> Prices:
    """Each pass costs 1, a little more where a state changes; what is live or stuck cannot be had otherwise.

    That holds a live circuit's waveguides too: only a PUC in its other state could lead light onto them.
    """
    prices = Prices(turn=[1.0] * (2 * mesh.puc_count), wire=[0.0] * len(mesh.peers))
    for puc in range(mesh.puc_count):
        prices.turn[_other_turn(puc, states.get(puc, PucState.BAR))] += _CHANGE
    for puc, state in chain(stuck.items(), *(found.passes for found in live)):
        prices.turn[_other_turn(puc, state)] = inf
    return prices


def _other_turn(puc: int, state: PucState) -> int:
    """Where :class:`Prices` keeps the price of passing a PUC in the state that it is not in."""
    return 2 * puc + (1 if state is PucState.BAR else 0)


def _passes(way: Way) -> tuple[Pass, ...]:
    return tuple((terminal >> 2, PucState.CROSS if turn else PucState.BAR) for terminal, turn in way)


def _prove(
    mesh: Mesh,
    states: Mapping[int, PucState],
    routes: Iterable[Route],
    live: Iterable[Trace],
    stuck: Mapping[int, PucState],
) -> None:
    """Trace what would be programmed: every new circuit and every live one must be there, as it was planned."""
    planned = [(*found.ports, found.passes) for found in routes]
    planned += [(found.port, found.exit, found.passes) for found in live]
    for port, expected, passes in planned:
        found = trace(mesh, states, port)
        if (found.exit, found.passes) != (expected, passes):
            raise LumctlError(f"the route of {port}:{expected} does not trace", hint="a defect: please report it")
    if any(states[puc] is not state for puc, state in stuck.items()):
        raise LumctlError("a route wants a stuck PUC in its other state", hint="a defect: please report it")
