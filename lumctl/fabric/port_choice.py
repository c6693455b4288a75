"""Chooses the ports of a mesh for an all-to-all, if only their number is given."""

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import islice

from lumctl.errors import UsageError
from lumctl.fabric.condition import MeshCondition
from lumctl.fabric.geometry import Mesh, PortPair
from lumctl.fabric.matching_bound import CongestionPrices
from lumctl.fabric.routing import route
from lumctl.fabric.search import Unroutable, endless, pucs_ahead

_FAR_PORTS = 5
"""A port that cannot reach this many other ports counts as cut off."""
_CROWDED = 0.5
"""Above this share of the usable ports, omitting crowded ports matters more than the distances of the others."""
_LEAVINGS, _PRICE_ROUNDS = 4, 5
"""The number of steps in which the most crowded ports are omitted, and the number of price rounds in each step."""


def port_sets(
    mesh: Mesh, count: int, condition: MeshCondition, most: int, left: Callable[[], float] = endless
) -> Iterator[tuple[int, ...]]:
    """Yield at most ``most`` sets of ports to choose from.

    One kind of set consists of pairs that face each other across an edge of the rim: light that leaves by one port runs
    past the other, so the two share a corner of the mesh instead of using that of a third port. Another set has the
    ports that crowd each other least; it takes longer to find, and is omitted when no seconds are ``left``. If many of
    the usable ports are needed, the latter set comes first. Others follow.

    Raises:
        UsageError: the mesh has too few usable ports.
    """
    dead = {port for port in range(mesh.port_count) if is_cut_off(mesh, port, condition)}
    usable = [port for port in range(mesh.port_count) if port not in dead]
    if not 2 <= count <= len(usable):  # noqa: PLR2004 - a pair
        raise UsageError(
            f"{count} ports of {mesh.name} cannot be connected",
            hint=f"{len(usable)} of its ports can be used; at least 2 are needed",
        )
    return islice(_sets(mesh, count, condition, usable, left), most)


def _sets(
    mesh: Mesh, count: int, condition: MeshCondition, usable: list[int], left: Callable[[], float]
) -> Iterator[tuple[int, ...]]:
    sets: list[tuple[int, ...]] = []
    places, twos = mesh.port_count // 2, (count + 1) // 2
    for first in range(places):
        edges = {(first + at * places // twos) % places for at in range(twos)}
        facing = [port % mesh.port_count for edge in sorted(edges) for port in (2 * edge + 1, 2 * edge + 2)]
        if set(facing) <= set(usable):
            sets.append(tuple(sorted(facing)[:count]))
    sets.sort(key=lambda chosen: _hardships(mesh, chosen))
    crowded = _CROWDED * len(usable) < count < len(usable)
    if not crowded:
        yield from sets[:1]
    if count < len(usable) and (free := _uncrowded(mesh, count, condition, usable, left)):
        yield free
    if crowded:
        yield from sets[:1]
    yield tuple(usable[at * len(usable) // count] for at in range(count))
    yield from sets[1:]


def _uncrowded(
    mesh: Mesh, count: int, condition: MeshCondition, usable: list[int], left: Callable[[], float]
) -> tuple[int, ...]:
    """The usable ports without those with the most expensive paths to the others, such as ports in a narrow corner.

    The result is empty if time ran out.
    """
    ports, most = list(usable), max(1, -(-(len(usable) - count) // _LEAVINGS))
    while len(ports) > count:
        prices = CongestionPrices(mesh, ports, condition)
        partners = {port: ports[at + 1 :] for at, port in enumerate(ports)}
        bound = float(len(ports) - 1)
        for _ in range(_PRICE_ROUNDS):
            if left() <= 0:
                return ()
            bound = max(bound, prices.after_round(partners, bound))
        costs = prices.port_costs()
        leaving = sorted(ports, key=lambda port: -costs[port])[: min(most, len(ports) - count)]
        ports = [port for port in ports if port not in leaving]
    return tuple(ports)


def is_cut_off(mesh: Mesh, port: int, condition: MeshCondition) -> bool:
    """Whether a port is blocked, or cut off by damage: it has no path to any of a few distant ports."""
    if port in condition.blocked_ports or not (condition.stuck or condition.damaged):
        return port in condition.blocked_ports
    for steps in range(1, _FAR_PORTS + 1):
        other = (port + steps * mesh.port_count // (_FAR_PORTS + 1)) % mesh.port_count
        try:
            route(mesh, [(port, other)], states={}, stuck=condition.stuck, damaged=condition.damaged, brisk=True)
        except Unroutable:
            continue
        return False
    return True


def _hardships(mesh: Mesh, ports: Sequence[int]) -> float:
    """The sum of the shortest paths of all pairs of these ports."""
    return sum(shortest(mesh, (a, b)) for at, a in enumerate(ports) for b in ports[:at])


def checked_ports(mesh: Mesh, ports: Collection[int], condition: MeshCondition) -> tuple[int, ...]:
    """The given ports, in order.

    Raises:
        UsageError: a port is not on the mesh, is blocked or given twice, or there are fewer than two ports.
    """
    chosen = tuple(sorted(ports))
    for port in chosen:
        if not 0 <= port < mesh.port_count:
            raise UsageError(f"port {port} is not on the mesh", hint=f"its ports are 0 to {mesh.port_count - 1}")
        if port in condition.blocked_ports:
            raise UsageError(f"port {port} is blocked")
    if len(set(chosen)) < len(chosen) or len(chosen) < 2:  # noqa: PLR2004 - a pair
        raise UsageError("all-to-all needs two ports or more, each listed once")
    return chosen


def shortest(mesh: Mesh, pair: PortPair) -> float:
    """The PUCs of the shortest path of a pair on an idle mesh; ``inf`` if there is none."""
    return pucs_ahead(mesh, mesh.ports[pair[1]])[mesh.ports[pair[0]]]
