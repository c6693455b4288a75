"""Finds routes for new circuits around live circuits."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from math import inf
from types import MappingProxyType

from lumctl.devices.types import PucState
from lumctl.errors import LumctlError, UsageError
from lumctl.fabric.geometry import Mesh, Pass, PortPair, Trace, trace
from lumctl.fabric.negotiation import BRISK, GENTLE, HARDER, Occupancy, negotiate
from lumctl.fabric.refinement import crosses_itself, level, shorten
from lumctl.fabric.search import (
    NO_ROUTE_HINT,
    InconsistentFabricError,
    Prices,
    Undecided,
    Unroutable,
    Way,
    cheapest_way,
    endless,
    exhaust,
    named,
    other_turn,
    passes_of,
)

_CHANGE = 1 / 32
"""The price of changing a PUC's state, on top of 1 for each pass; it decides only between paths of equal length."""

_SHARING = 0.5
"""The price of sharing a PUC with another circuit, if leakage between circuits counts."""

_FULL = 100
"""If this many demands in a row find no path, the mesh counts as full."""

_NODES = 300
"""Maximum number of settings of single PUCs that are tried to find paths, or to prove that none exist."""

_NO_STUCK: Mapping[int, PucState] = MappingProxyType({})
_NO_LOSS: Mapping[int, float] = MappingProxyType({})


class Objective(StrEnum):
    """Criteria for good routes: any routes, few PUCs in total, the least loss of the worst circuit, few shared PUCs."""

    FEASIBLE = "feasible"
    PUCS = "pucs"
    LOSS = "loss"
    CROSSTALK = "crosstalk"


@dataclass(frozen=True, slots=True)
class Route:
    """The path of a circuit between two ports: the PUCs it passes, in order, each with the state that it needs."""

    ports: PortPair
    passes: tuple[Pass, ...]

    @property
    def pucs(self) -> tuple[int, ...]:
        """The PUCs passed, in order; a PUC that is passed on both sides is listed twice."""
        return tuple(puc for puc, _ in self.passes)


def route(  # noqa: PLR0913 - the present state, the demands, and what must not be used
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
    left: Callable[[], float] = endless,
) -> tuple[Route, ...]:
    """Find a route for every demand, all at once, that leaves the ``live`` circuits unchanged.

    A live circuit keeps the state of every PUC and every waveguide that it uses; a new route may pass such a PUC only
    in its present state, on its other side. Routes pass ``stuck`` PUCs only in the state in which they are stuck,
    whatever ``states`` says, and never pass ``damaged`` PUCs. ``excess`` is the extra cost of passing a PUC, as a
    multiple of the usual cost (such as extra loss divided by usual loss). PUCs that no route needs keep their states.
    With ``brisk`` the search gives up sooner. When no seconds are ``left``, the search ends, and routes are not
    improved further. The result has been traced before it is returned.

    Raises:
        UsageError: a port is not on the mesh, or is used twice. InconsistentFabricError: the states do not form a live
            circuit.
        Unroutable: there is no path, or none was found; ``proven`` tells which.
    """
    _check_ports(mesh, demands, live)
    blocked = tuple(demand for demand in demands if not set(demand).isdisjoint(blocked_ports))
    if blocked:
        raise Unroutable(blocked, f"no route exists for {named(blocked)}: a port is blocked", proven=True)
    present = {**states, **stuck}
    carried = _live_traces(mesh, present, live)
    prices = _prices(mesh, present, carried, stuck)
    for puc, more in excess.items():
        prices.pass_costs(puc, more)
    for puc in damaged:
        prices.pass_costs(puc, inf)
    ways = _best(mesh, demands, prices, objective, left, brisk=brisk)
    routes = tuple(Route(demand, passes_of(way)) for demand, way in zip(demands, ways, strict=True))
    # Tracing shares nothing with the search, so it also finds errors of the search.
    _prove(mesh, {**present, **changes(present, routes)}, routes, carried, stuck)
    return routes


def _best(
    mesh: Mesh,
    demands: Sequence[PortPair],
    prices: Prices,
    objective: Objective,
    left: Callable[[], float],
    *,
    brisk: bool,
) -> list[Way]:
    sharing = _SHARING if objective is Objective.CROSSTALK else 0.0
    if brisk:
        ways = negotiate(mesh, demands, prices, sharing=sharing, pressures=BRISK, left=left)
    else:
        ways = _whatever_it_takes(mesh, demands, prices, sharing, left)
    if objective is Objective.PUCS:
        return shorten(mesh, demands, ways, prices, left=left)
    if objective is Objective.LOSS:
        return level(mesh, demands, shorten(mesh, demands, ways, prices, left=left), prices, left)
    return ways


def _whatever_it_takes(
    mesh: Mesh, demands: Sequence[PortPair], prices: Prices, sharing: float, left: Callable[[], float]
) -> list[Way]:
    """Negotiate; if that fails, search exhaustively; if that takes too long, negotiate under more pressure."""
    try:
        return negotiate(mesh, demands, prices, sharing=sharing, pressures=GENTLE, left=left)
    except Unroutable as refused:
        if refused.proven or left() <= 0:
            raise
    try:
        ways = exhaust(mesh, demands, prices, nodes=_NODES, left=left)
    except Undecided:
        return negotiate(mesh, demands, prices, sharing=sharing, pressures=HARDER, left=left)
    if ways is None:
        raise Unroutable(
            tuple(demands),
            f"no routes exist for {named(demands)} together, around live circuits and stuck PUCs",
            proven=True,
            hint=NO_ROUTE_HINT,
        )
    return ways


def route_most(
    mesh: Mesh,
    demands: Sequence[PortPair],
    *,
    stuck: Mapping[int, PucState] = _NO_STUCK,
    damaged: Collection[int] = (),
) -> tuple[Route, ...]:
    """Routes on an idle mesh for as many of the demands as a single pass can route.

    Each demand in turn takes its cheapest path around the earlier ones. A demand is omitted if it finds no path or
    needs a port of an earlier one. The result has been traced.
    """
    prices = _prices(mesh, stuck, (), stuck)
    for puc in damaged:
        prices.pass_costs(puc, inf)
    # An infinite price cannot be subtracted again (inf - inf is not a number), but paths are only added here.
    occupancy = Occupancy(mesh, prices, inf)
    taken: set[int] = set()
    routes: list[Route] = []
    failures = 0
    for demand in demands:
        if not taken.isdisjoint(demand):
            continue
        way = cheapest_way(mesh, demand, occupancy.prices)
        if way is None or crosses_itself(mesh, way):
            failures += 1
            if failures > _FULL:
                break
            continue
        failures = 0
        occupancy.enter(way)
        taken.update(demand)
        routes.append(Route(demand, passes_of(way)))
    _prove(mesh, {**stuck, **changes(stuck, routes)}, routes, (), stuck)
    return tuple(routes)


def changes(states: Mapping[int, PucState], routes: Iterable[Route]) -> dict[int, PucState]:
    """The PUCs whose states must change for ``routes``, with their new states."""
    wanted = {puc: state for found in routes for puc, state in found.passes}
    return {puc: wanted[puc] for puc in sorted(wanted) if states.get(puc, PucState.BAR) is not wanted[puc]}


def _check_ports(mesh: Mesh, demands: Iterable[PortPair], live: Iterable[PortPair]) -> None:
    used: set[int] = set()
    for port in (port for pair in (*live, *demands) for port in pair):
        if not 0 <= port < mesh.port_count:
            raise UsageError(f"port {port} is not on the mesh", hint=f"its ports are 0 to {mesh.port_count - 1}")
        if port in used:
            raise UsageError(f"port {port} is used twice", hint="a port can be the end of only one circuit")
        used.add(port)


def _live_traces(mesh: Mesh, states: Mapping[int, PucState], live: Iterable[PortPair]) -> tuple[Trace, ...]:
    carried = tuple(trace(mesh, states, port) for port, _ in live)
    for (port, expected), found in zip(live, carried, strict=True):
        if found.exit != expected:
            raise InconsistentFabricError(
                f"circuit {port}:{expected} should be live, but light from port {port} leaves at {found.exit}",
                hint="read or re-assert the mesh's states first",
            )
    return carried


def _prices(mesh: Mesh, states: Mapping[int, PucState], live: Iterable[Trace], stuck: Mapping[int, PucState]) -> Prices:
    """The prices: 1 for each pass, a little more if a state changes, ``inf`` for the other state of live or stuck PUCs.

    This also protects the waveguides of live circuits: only a PUC in its other state could lead light onto them.
    """
    prices = Prices(turn=[1.0] * (2 * mesh.puc_count), wire=[0.0] * len(mesh.peers))
    for puc in range(mesh.puc_count):
        prices.turn[other_turn(puc, states.get(puc, PucState.BAR))] += _CHANGE
    for puc, state in chain(stuck.items(), *(found.passes for found in live)):
        prices.turn[other_turn(puc, state)] = inf
    return prices


def _prove(
    mesh: Mesh,
    states: Mapping[int, PucState],
    routes: Iterable[Route],
    live: Iterable[Trace],
    stuck: Mapping[int, PucState],
) -> None:
    """Trace the planned states: every new circuit and every live circuit must take its planned path."""
    planned = [(*found.ports, found.passes) for found in routes]
    planned += [(found.port, found.exit, found.passes) for found in live]
    for port, expected, passes in planned:
        found = trace(mesh, states, port)
        if (found.exit, found.passes) != (expected, passes):
            raise LumctlError(
                f"the route of {port}:{expected} cannot be traced", hint="this is a bug: please report it"
            )
    if any(states[puc] is not state for puc, state in stuck.items()):
        raise LumctlError("a route needs a stuck PUC in its other state", hint="this is a bug: please report it")
