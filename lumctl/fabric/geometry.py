"""A mesh: its PUCs, waveguides and ports, their numbers, and the tracing of light through them.

A mesh is a parallelogram of hexagonal cells, corners up, each row half a cell further to the right than the row above;
or a region of such cells in the shape of a hexagon; or a grid of squares; or it is given as data. Every edge of a cell
is one PUC. Two waveguides run along the edge, one on each side.

PUCs are numbered from 0 in reading order of their middles: top to bottom, then left to right.

A PUC has two *ends*: end 0 is the upper one, or the left one of a level edge. It has two *sides*: side 0 is the left
one on paper, or the lower one of a level edge; it is on the right hand from end 0 to end 1. Its four *terminals* are
numbered ``4 * puc + 2 * end + side``, so that bar leads from terminal ``t`` to ``t ^ 2`` (other end, same side) and
cross to ``t ^ 3`` (other end, other side). No light returns to the end where it came in.

Where edges meet, a short waveguide runs round each corner between two neighbouring edges. A corner on the rim that is
wider than those inside has no waveguide: its two terminals are *ports*, at which light enters and leaves the mesh. A
honeycomb has ports at the vertices where only two edges meet, a grid of squares at every vertex of the rim. Ports are
numbered from 0 along the perimeter, clockwise. Port 0 lies at the upper left vertex of the top left cell; its light
runs along the outside of the top edge. The last port is its neighbour at that vertex. With every PUC in bar, light
stays on the outside: port 0 is connected to 1, port 2 to 3, and so on.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from lumctl.devices.types import PucState
from lumctl.errors import UsageError

Point = tuple[float, float]
"""A point on paper: ``x`` to the right and ``y`` downwards, with edges of length 1."""

PortPair = tuple[int, int]
"""Two ports: the ends of an existing or wanted circuit."""

FREE = -1
"""The far terminal of a waveguide that leaves the mesh."""


# Compared by identity: caches have meshes as keys, and comparing thousands of terminals each time would be slow.
@dataclass(frozen=True, eq=False)
class Mesh:
    """A mesh. Equal shapes are the same object: :func:`mesh` and similar functions cache their results.

    ``ends[puc]`` are the two vertices of a PUC, ``peers[t]`` is the terminal at the far end of the waveguide at
    terminal ``t`` (:data:`FREE` at a port), ``ports[p]`` the terminal of port ``p``. ``points`` holds the position of
    each vertex on paper, to the right and downwards, with edges of length 1; it is empty if positions are unknown.
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
    """The far terminal of every terminal, from the pairs that are connected."""
    peers = [FREE] * (4 * puc_count)
    for a, b in junctions:
        peers[a], peers[b] = b, a
    return tuple(peers)


Pass = tuple[int, PucState]
"""One PUC on the path of light, and its state."""

TURN: Mapping[PucState, int] = {PucState.BAR: 2, PucState.CROSS: 3}
"""By state, the number whose exclusive or with the entry terminal gives the exit terminal."""


@dataclass(frozen=True, slots=True)
class Trace:
    """The path of light from ``port`` to ``exit``. Light in the other direction takes the same path."""

    port: int
    exit: int
    passes: tuple[Pass, ...]

    @property
    def pucs(self) -> tuple[int, ...]:
        """The PUCs passed, in order; a PUC that is passed on both sides is listed twice."""
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
    # This ends: every step is reversible, so light that came in from outside cannot be caught in a loop.
    while True:
        puc = terminal >> 2
        state = states.get(puc, PucState.BAR)
        passes.append((puc, state))
        out = terminal ^ TURN[state]
        terminal = mesh.peers[out]
        if terminal == FREE:
            return Trace(port, mesh.port_at[out], tuple(passes))


def exits(mesh: Mesh, states: Mapping[int, PucState]) -> dict[int, int]:
    """The exit port of the light of every port. The mapping is symmetric, and no port is its own partner."""
    return {port: trace(mesh, states, port).exit for port in range(mesh.port_count)}
