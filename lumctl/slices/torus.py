"""A torus of accelerators as the allocator sees it: which accelerators are free, and the fibres between servers.

Coordinates count from 0 and are written x, y, z. An accelerator's server follows from its coordinates, so a server has
no name here. Nothing in this module knows the inventory.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod

from lumctl.errors import UsageError
from lumctl.printable import shape_text

Coordinates = tuple[int, int, int]
"""The place of an accelerator in its torus, or of a server in the grid of servers."""
Extents = tuple[int, int, int]
"""The size of a box in each dimension."""


@dataclass(frozen=True, slots=True)
class FibreEdge:
    """All fibres with one name between two servers. A wrap-around edge and a parallel edge have names of their own.

    ``capacity`` is the number of duplex circuits that it can carry now: damage has been deducted. ``used`` of them are
    live. A failed edge has capacity 0; ``used`` may exceed a capacity that damage has reduced.
    """

    name: str
    ends: tuple[Coordinates, Coordinates]
    capacity: int
    used: int = 0

    @property
    def free(self) -> int:
        """How many circuits it can carry in addition."""
        return self.room(self.capacity)

    def room(self, level: int) -> int:
        """How many circuits it can carry in addition if it may carry ``level`` at most."""
        return max(0, min(level, self.capacity) - self.used)


@dataclass(frozen=True)
class Torus:
    """A torus and its present use.

    ``shape`` and ``server_shape`` count accelerators. ``free`` are the accelerators that a slice may take: they work,
    no job uses them, and they are no spares. Every server passes circuits on, whether its accelerators are free or not.

    Raises:
        UsageError: servers do not fill the torus, a free accelerator or an edge's end is outside it, an edge joins a
            server with itself, or two edges have one name.
    """

    shape: Extents
    server_shape: Extents
    free: frozenset[Coordinates]
    edges: tuple[FibreEdge, ...]

    def __post_init__(self) -> None:
        if min(*self.shape, *self.server_shape) < 1 or any(map(int.__mod__, self.shape, self.server_shape)):
            raise UsageError(
                f"servers of {shape_text(self.server_shape)} do not fill a torus of {shape_text(self.shape)}"
            )
        for place in self.free:
            if not _inside(place, self.shape):
                raise UsageError(f"accelerator {place} is not in the torus of {shape_text(self.shape)}")
        names: set[str] = set()
        for edge in self.edges:
            if edge.ends[0] == edge.ends[1] or not all(_inside(end, self.grid) for end in edge.ends):
                raise UsageError(f"edge {edge.name} does not join two servers of the torus")
            if edge.name in names:
                raise UsageError(f"two edges are called {edge.name}", hint="each edge has a name of its own")
            names.add(edge.name)

    @cached_property
    def grid(self) -> Extents:
        """The shape of the torus in servers."""
        x, y, z = (whole // part for whole, part in zip(self.shape, self.server_shape, strict=True))
        return x, y, z

    @cached_property
    def fullest(self) -> int:
        """The circuits in use on the fullest edge."""
        return max((edge.used for edge in self.edges), default=0)

    @cached_property
    def levels(self) -> range:
        """How many circuits the fullest edge may carry after a change: from now to the largest capacity."""
        return range(self.fullest, max(self.fullest, *(edge.capacity for edge in self.edges), 0) + 1)

    @property
    def accelerators_per_server(self) -> int:
        """How many accelerators a server has."""
        return prod(self.server_shape)

    def server_of(self, accelerator: Coordinates) -> Coordinates:
        """The server of an accelerator."""
        x, y, z = (at // part for at, part in zip(accelerator, self.server_shape, strict=True))
        return x, y, z

    @cached_property
    def servers(self) -> tuple[Coordinates, ...]:
        """All servers, in order of their coordinates."""
        x, y, z = map(range, self.grid)
        return tuple(product(x, y, z))

    @cached_property
    def number_of(self) -> Mapping[Coordinates, int]:
        """The number of each server in that order."""
        return {server: number for number, server in enumerate(self.servers)}

    @cached_property
    def between(self) -> Mapping[tuple[int, int], tuple[FibreEdge, ...]]:
        """The edges between two servers, by the numbers of these, the lower one first."""
        found: dict[tuple[int, int], tuple[FibreEdge, ...]] = {}
        for edge in self.edges:
            a, b = sorted(self.number_of[end] for end in edge.ends)
            found[a, b] = (*found.get((a, b), ()), edge)
        return found

    @cached_property
    def free_on(self) -> Mapping[Coordinates, tuple[Coordinates, ...]]:
        """The free accelerators of each server, in order of their coordinates."""
        found: dict[Coordinates, list[Coordinates]] = {server: [] for server in self.servers}
        for accelerator in sorted(self.free):
            found[self.server_of(accelerator)].append(accelerator)
        return {server: tuple(free) for server, free in found.items()}


def _inside(place: Coordinates, extents: Extents) -> bool:
    return all(0 <= at < extent for at, extent in zip(place, extents, strict=True))
