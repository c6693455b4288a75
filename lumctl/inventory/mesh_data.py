"""A mesh given as data: how many PUCs, and which of their waveguide ends are joined.

A PUC has two ends (0 and 1) and two sides (0 and 1); each of its four waveguide ends is one *terminal*, numbered
``4 * puc + 2 * end + side``. Bar joins the terminals of one side, cross those of different sides; nothing leads back to
the end where light came in. What no junction joins is a port.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite
from typing import NamedTuple

Point = tuple[float, float]
"""A place on paper: to the right, and downwards."""

MOST_PUCS = 50_000


@dataclass(frozen=True, slots=True)
class MeshData:
    """A mesh as data; :func:`flaws` says what is wrong with it.

    ``junctions`` are pairs of terminals. ``ports`` are all free terminals in the order in which ports are numbered;
    empty means the order of the terminals. ``positions`` are where the two ends of each PUC lie, the length of an edge
    being about 1; empty where the mesh cannot be drawn.
    """

    name: str
    puc_count: int
    junctions: tuple[tuple[int, int], ...]
    ports: tuple[int, ...] = ()
    positions: tuple[tuple[Point, Point], ...] = ()

    def __hash__(self) -> int:
        # Shapes are looked up for every trace: going through thousands of junctions each time would take longer.
        return hash((self.name, self.puc_count, len(self.junctions)))

    @property
    def port_count(self) -> int:
        """Number of ports: every PUC has four terminals, and every junction takes two of them."""
        return 4 * self.puc_count - 2 * len(self.junctions)


class Flaw(NamedTuple):
    """One thing that is wrong: under which field of the data, at which item of it (``None``: as a whole)."""

    field: str
    item: int | None
    message: str


def spoken(terminal: int) -> str:
    """A terminal in words."""
    puc, rest = divmod(terminal, 4)
    return f"PUC {puc} end {rest >> 1} side {rest & 1}"


def flaws(data: MeshData) -> Iterator[Flaw]:
    """Everything that is wrong with the data, in one line each."""
    if not 1 <= data.puc_count <= MOST_PUCS:
        yield Flaw("puc_count", None, f"found {data.puc_count} PUCs, expected 1 to {MOST_PUCS}")
        return
    junctions = tuple(_junction_flaws(data))
    yield from junctions
    if not junctions:  # else it is not certain which terminals are free
        yield from _port_flaws(data)
    yield from _position_flaws(data)


def _junction_flaws(data: MeshData) -> Iterator[Flaw]:
    last = 4 * data.puc_count - 1
    first_joined: dict[int, int] = {}
    for at, (a, b) in enumerate(data.junctions):
        outside = [terminal for terminal in (a, b) if not 0 <= terminal <= last]
        if outside:
            message = f"found {spoken(outside[0])}, expected PUCs 0 to {data.puc_count - 1}"
            yield Flaw("junctions", at, message)
            continue
        if a >> 2 == b >> 2:
            yield Flaw("junctions", at, f"PUC {a >> 2} is joined with itself")
            continue
        for terminal in (a, b):
            if first_joined.setdefault(terminal, at) != at:
                message = f"{spoken(terminal)} is joined twice, first in junction {first_joined[terminal]} (from 0)"
                yield Flaw("junctions", at, message)


def _port_flaws(data: MeshData) -> Iterator[Flaw]:
    if data.port_count < 2:  # noqa: PLR2004 - light goes in at one and out at another
        yield Flaw("junctions", None, "every waveguide end is joined: no port is left, expected two at least")
        return
    if not data.ports:
        return
    joined = {terminal for junction in data.junctions for terminal in junction}
    free = set(range(4 * data.puc_count)) - joined
    seen = Counter[int]()
    for at, terminal in enumerate(data.ports):
        seen[terminal] += 1
        if terminal not in free:
            why = "is joined, so it is no port" if terminal in joined else "is not on the mesh"
            yield Flaw("ports", at, f"{spoken(terminal)} {why}")
        elif seen[terminal] > 1:
            yield Flaw("ports", at, f"{spoken(terminal)} is listed twice")
    missing = sorted(free - set(seen))
    if missing:
        are = "is" if len(missing) == 1 else f"and {len(missing) - 1} more are"
        verb = "is" if len(missing) == 1 else "are"
        message = f"{spoken(missing[0])} {are} joined with nothing and {verb} not here"
        yield Flaw("ports", None, message)


def _position_flaws(data: MeshData) -> Iterator[Flaw]:
    if data.positions and len(data.positions) != data.puc_count:
        message = f"found {len(data.positions)} positions, expected one for each of the {data.puc_count} PUCs"
        yield Flaw("positions", None, message)
    for at, (here, there) in enumerate(data.positions):
        if not all(isfinite(number) for number in (*here, *there)):
            yield Flaw("positions", at, "found a number that is not finite")
        elif here == there:
            yield Flaw("positions", at, f"both ends of PUC {at} lie at one place")
