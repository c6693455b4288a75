"""The torus of a rack: its servers in order, and the fibres that join neighbouring servers."""

from dataclasses import dataclass
from itertools import product
from math import prod

from lumctl.inventory.job_run import JobHook, JobRun

Position = tuple[int, ...]
"""The place of a server in the grid of servers, or of an accelerator in the torus: one number for each dimension."""


@dataclass(frozen=True, slots=True)
class TorusEdge:
    """A fibre or bundle that joins two neighbouring servers; ``servers`` are their numbers in ``RackTorus.hosts``.

    ``wraps``: it joins the last server of a dimension with the first one.
    """

    fibre: str
    servers: tuple[int, int]
    dimension: int
    wraps: bool


@dataclass(frozen=True, slots=True)
class RackTorus:
    """Accelerators on a torus of ``shape``; each server holds a block of shape ``server``.

    ``hosts`` are the servers in row-major order (the last dimension changes fastest); ``devices[i]`` is the mesh or
    switch at which all lanes of ``hosts[i]`` end. The accelerators of a host are in row-major order too. Two edges
    between the same two servers are two. ``hook``, ``needs_no_pause`` and ``run`` are those of each slice.
    """

    shape: tuple[int, ...]
    server: tuple[int, ...]
    hosts: tuple[str, ...]
    devices: tuple[str, ...]
    edges: tuple[TorusEdge, ...]
    hook: JobHook | None = None
    needs_no_pause: bool = False
    run: JobRun | None = None

    @property
    def grid(self) -> tuple[int, ...]:
        """The number of servers along each dimension."""
        return tuple(whole // block for whole, block in zip(self.shape, self.server, strict=True))

    @property
    def server_size(self) -> int:
        """The number of accelerators of a server."""
        return prod(self.server)

    @property
    def positions(self) -> tuple[Position, ...]:
        """The place of each host in the grid, in the order of ``hosts``."""
        return positions_in(self.grid)


def positions_in(shape: tuple[int, ...]) -> tuple[Position, ...]:
    """All places of a grid in row-major order."""
    return tuple(product(*map(range, shape)))


def neighbours_along(grid: tuple[int, ...], a: Position, b: Position) -> int | None:
    """The dimension along which two servers are neighbours, directly or around the end; ``None`` if they are not."""
    apart = [at for at, (here, there) in enumerate(zip(a, b, strict=True)) if here != there]
    if len(apart) != 1:
        return None
    step = abs(a[apart[0]] - b[apart[0]])
    return apart[0] if step in {1, grid[apart[0]] - 1} else None
