"""The graph for the exact answers: the turns that light may take, and the distances from all terminals to a port.

One fact makes the model small: if two paths need one PUC in different states, they always share one of its terminals,
because a pass in bar and a pass in cross share exactly one. So circuits are compatible if and only if no waveguide
carries two of them, and the states of the PUCs need no separate variables.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from math import inf

from lumctl.devices.types import PucState
from lumctl.errors import UsageError
from lumctl.fabric.geometry import FREE, TURN, Mesh, PortPair
from lumctl.fabric.routing import Route
from lumctl.fabric.search import InconsistentFabricError

Way = tuple[int, ...]
"""The terminals at which a path enters its PUCs, in order."""


@dataclass(frozen=True, eq=False, slots=True)
class Graph:
    """The usable part of a mesh, and the demands.

    ``turns[t]`` are the turns open to light that enters a PUC at terminal ``t`` (2 as in bar, 3 as in cross),
    ``wire[t]`` numbers the waveguide at ``t`` (:data:`FREE` at a port), ``demands`` are pairs of terminals.
    """

    mesh: Mesh
    turns: tuple[tuple[int, ...], ...]
    wire: tuple[int, ...]
    wires: int
    demands: tuple[tuple[int, int], ...]

    @property
    def most_passes(self) -> int:
        """An upper bound of the PUCs that all circuits pass together: each PUC carries light at most twice."""
        return 2 * self.mesh.puc_count

    def costs(self, start: int, prices: Sequence[float], passes: Sequence[float] = ()) -> list[float]:
        """The least cost of light from ``start`` to entering at each terminal, over all PUCs and waveguides on the way.

        ``passes`` are the costs of the PUCs, 1 each by default. Every path is reversible, so with a goal as ``start``
        the same numbers are the costs that remain to the goal.
        """
        peers, wire = self.mesh.peers, self.wire
        costs = [inf] * len(peers)
        costs[start] = 0.0
        queue = [(0.0, start)]
        while queue:
            cost, terminal = heappop(queue)
            if cost > costs[terminal]:
                continue
            passed = cost + (passes[terminal >> 2] if passes else 1)
            for turn in self.turns[terminal]:
                entered = peers[terminal ^ turn]
                if entered != FREE and passed + prices[wire[entered]] < costs[entered]:
                    costs[entered] = passed + prices[wire[entered]]
                    heappush(queue, (costs[entered], entered))
        return costs


def graph(
    mesh: Mesh,
    demands: Sequence[PortPair],
    *,
    stuck: Mapping[int, PucState],
    damaged: Collection[int],
    live: Collection[Route],
    blocked_ports: Collection[int],
) -> Graph:
    """The graph of a mesh for ``demands``. There are no turns at a blocked port or at a live circuit's waveguide.

    Raises:
        UsageError: a port or PUC is not on the mesh, or a port is used twice.
        InconsistentFabricError: live circuits contradict each other or a stuck PUC.
    """
    _check_ports(mesh, (*(route.ports for route in live), *demands))
    off = sorted(puc for puc in {*stuck, *damaged} if not 0 <= puc < mesh.puc_count)
    if off:
        raise UsageError(f"PUC {off[0]} is not on the mesh", hint=f"its PUCs are 0 to {mesh.puc_count - 1}")
    held = _held(stuck, live)
    turns: list[tuple[int, ...]] = [
        (TURN[held[at >> 2]],) if at >> 2 in held else (2, 3) for at in range(len(mesh.peers))
    ]
    for puc in damaged:
        turns[4 * puc : 4 * puc + 4] = [()] * 4
    # No turn for light that comes in here. As the goal of a demand, the port is refused where its turns are looked at.
    for terminal in (mesh.ports[port] for port in blocked_ports if 0 <= port < mesh.port_count):
        turns[terminal] = ()
    wire, wires = [FREE] * len(mesh.peers), 0
    for terminal, peer in enumerate(mesh.peers):
        if peer > terminal:
            wire[terminal] = wire[peer] = wires
            wires += 1
    ends = tuple((mesh.ports[a], mesh.ports[b]) for a, b in demands)
    return Graph(mesh, tuple(turns), tuple(wire), wires, ends)


def _held(stuck: Mapping[int, PucState], live: Collection[Route]) -> dict[int, PucState]:
    """The states that are fixed, of stuck PUCs and of PUCs of live circuits.

    This also protects the waveguides of live circuits: only a PUC in its other state could lead light onto them.
    """
    held = dict(stuck)
    for route in live:
        for puc, state in route.passes:
            if held.setdefault(puc, state) is not state:
                a, b = route.ports
                raise InconsistentFabricError(
                    f"the live circuit {a}:{b} needs PUC {puc} in {state.word}, but it is in the other state",
                    hint="read or re-assert the mesh's states first",
                )
    return held


def _check_ports(mesh: Mesh, pairs: Collection[PortPair]) -> None:
    used: set[int] = set()
    for port in (port for pair in pairs for port in pair):
        if not 0 <= port < mesh.port_count:
            raise UsageError(f"port {port} is not on the mesh", hint=f"its ports are 0 to {mesh.port_count - 1}")
        if port in used:
            raise UsageError(f"port {port} is used twice", hint="a port can be the end of only one circuit")
        used.add(port)
