"""A mesh: its PUCs, waveguides and ports, how they are numbered, and where light goes through them.

A mesh is a parallelogram of hexagonal cells, corners up, each row half a cell further to the right than the row above;
or a region of such cells in the shape of a hexagon; or a grid of squares; or what data say. Every edge of a cell is one
PUC: two waveguides run along it, one on the side of each cell that the edge parts.

PUCs are numbered from 0 in reading order of their middles: top to bottom, then left to right.

A PUC has two *ends* (end 0 is the upper one, or the left one of a level edge) and two *sides* (side 0 is the left one
on paper, or the lower one of a level edge: from end 0 to end 1 the one on the right hand). Its four *terminals* are
numbered ``4 * puc + 2 * end + side``, so that bar leads from terminal ``t`` to ``t ^ 2`` (other end, same side) and
cross to ``t ^ 3`` (other end, other side); nothing leads back to the end where light came in.

Where edges meet, a short waveguide runs round each corner between two neighbouring ones. A corner on the rim that is
wider than those inside has no waveguide: the two terminals there are *ports*, ways in and out of the mesh. In a
honeycomb that is where only two edges meet, in a grid of squares every vertex of the rim. Ports are numbered from 0
along the perimeter, clockwise: port 0 lies at the upper left vertex of the top left cell, where light goes in to run
along the outside of the top edge, and the last port is its neighbour at that vertex. With every PUC in bar light keeps
to the outside: port 0 is joined with 1, port 2 with 3, and so on.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from lumctl.devices.types import PucState
from lumctl.errors import UsageError

Point = tuple[float, float]
"""A point on paper: to the right and downwards, with edges of length 1."""

PortPair = tuple[int, int]
"""Two ports: the ends of a circuit, or of one that is wanted."""

FREE = -1
"""Stands for the far terminal of a waveguide that leaves the mesh."""


@dataclass(frozen=True, eq=False)
class Mesh:
    """A mesh. Equal shapes are the same object: they are made by :func:`mesh` and its like, and kept.

    ``ends[puc]`` are the two vertices of a PUC, ``peers[t]`` is the terminal at the far end of the waveguide at
    terminal ``t`` (:data:`FREE` at a port), ``ports[p]`` the terminal of port ``p``. ``points`` is where each vertex
    lies on paper, to the right and downwards, with edges of length 1; it is empty where that is not known.
    """

    name: str
    ends: tuple[tuple[int, int], ...]
    peers: tuple[int, ...]
    ports: tuple[int, ...]
    points: tuple[Point, ...] = ()

    @property
    def puc_count(self) -> int:
        """How many PUCs the mesh has."""
        return len(self.ends)

    @property
    def port_count(self) -> int:
        """How many ports the mesh has."""
        return len(self.ports)

    @cached_property
    def port_at(self) -> Mapping[int, int]:
        """Terminal on the perimeter -> number of its port."""
        return {terminal: port for port, terminal in enumerate(self.ports)}

    def port_vertex(self, port: int) -> int:
        """The vertex at which a port lies."""
        puc, terminal = divmod(self.ports[port], 4)
        return self.ends[puc][terminal >> 1]


def joined(puc_count: int, junctions: Iterable[tuple[int, int]]) -> tuple[int, ...]:
    """The far terminal for every terminal, from the pairs that are joined."""
    peers = [FREE] * (4 * puc_count)
    for a, b in junctions:
        peers[a], peers[b] = b, a
    return tuple(peers)


Pass = tuple[int, PucState]
"""One PUC on the way of light, and the state it stands in."""

TURN: Mapping[PucState, int] = {PucState.BAR: 2, PucState.CROSS: 3}
"""What a state does to the number of the terminal at which light comes in (by exclusive or)."""


@dataclass(frozen=True, slots=True)
class Trace:
    """The way of light from ``port`` to ``exit``. Backwards it is the same."""

    port: int
    exit: int
    passes: tuple[Pass, ...]

    @property
    def pucs(self) -> tuple[int, ...]:
        """The PUCs passed, in order; one that is passed on both sides stands here twice."""
        return tuple(puc for puc, _ in self.passes)


def trace(mesh: Mesh, states: Mapping[int, PucState], port: int) -> Trace:
    """Follow light from ``port``. PUCs that ``states`` does not name are in bar.

    Raises:
        UsageError: the mesh has no such port.
    """
    if not 0 <= port < mesh.port_count:
        raise UsageError(f"port {port} is not on the mesh", hint=f"its ports are 0 to {mesh.port_count - 1}")
    passes: list[Pass] = []
    terminal = mesh.ports[port]
    # This ends: every step can be walked back, so light that came in from outside cannot be caught in a loop.
    while True:
        puc = terminal >> 2
        state = states.get(puc, PucState.BAR)
        passes.append((puc, state))
        out = terminal ^ TURN[state]
        terminal = mesh.peers[out]
        if terminal == FREE:
            return Trace(port, mesh.port_at[out], tuple(passes))


def exits(mesh: Mesh, states: Mapping[int, PucState]) -> dict[int, int]:
    """For every port the port that its light leaves by. It is an involution, and no port is its own partner."""
    return {port: trace(mesh, states, port).exit for port in range(mesh.port_count)}
