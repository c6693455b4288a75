"""What the exact answers are computed on: which turns light may take, and how far it is from everywhere to a port.

One fact makes the model small. Two ways that want one PUC in both states always meet on one of its terminals: bar and
cross share exactly one, whichever sides they are taken on. So circuits can stand together exactly if no waveguide
carries two of them, and the states of the PUCs need no variables of their own.
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
"""The terminals at which a way enters its PUCs, in order."""


@dataclass(frozen=True, eq=False, slots=True)
class Graph:
    """A mesh with what may be used of it.

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
        """All circuits together never pass more PUCs than this: each PUC carries light at most twice."""
        return 2 * self.mesh.puc_count

    def costs(self, start: int, prices: Sequence[float]) -> list[float]:
        """For every terminal the least cost to enter there, from ``start``: 1 a PUC, and the price of each waveguide.

        Light can walk every way backwards, so from a goal the same numbers tell what is left.
        """
        peers, wire = self.mesh.peers, self.wire
        costs = [inf] * len(peers)
        costs[start] = 0.0
        queue = [(0.0, start)]
        while queue:
            cost, terminal = heappop(queue)
            if cost > costs[terminal]:
                continue
            for turn in self.turns[terminal]:
                entered = peers[terminal ^ turn]
                if entered != FREE and cost + 1 + prices[wire[entered]] < costs[entered]:
                    costs[entered] = cost + 1 + prices[wire[entered]]
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
    """What is left of a mesh for ``demands``. At a blocked port, or a live circuit's waveguide, no turn is left.

    Raises:
        UsageError: a port or PUC is not on the mesh, or a port is wanted twice.
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
    """The states that cannot be chosen any more.

    That holds a live circuit's waveguides too: only a PUC in its other state could lead light onto them.
    """
    held = dict(stuck)
    for route in live:
        for puc, state in route.passes:
            if held.setdefault(puc, state) is not state:
                a, b = route.ports
                raise InconsistentFabricError(
                    f"the live circuit {a}:{b} needs PUC {puc} in {state.word}, which stands in the other state",
                    hint="read or re-assert the mesh's states first",
                )
    return held


def _check_ports(mesh: Mesh, pairs: Collection[PortPair]) -> None:
    used: set[int] = set()
    for port in (port for pair in pairs for port in pair):
        if not 0 <= port < mesh.port_count:
            raise UsageError(f"port {port} is not on the mesh", hint=f"its ports are 0 to {mesh.port_count - 1}")
        if port in used:
            raise UsageError(f"port {port} is wanted twice", hint="a port is the end of one circuit")
        used.add(port)
