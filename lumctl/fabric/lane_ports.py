"""Chooses the ports of a mesh for the lanes of accelerators, so that their ring and any replacement can be routed.

A mesh that carries a ring has room for some further circuits and not for others, depending on the ports of the
accelerators. There is no rule for good ports, so layouts are tried by routing the circuits that ``fabric apply`` and
``swap plan`` would route.
"""

import time
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import inf
from random import Random

from lumctl.errors import UsageError
from lumctl.fabric.condition import MeshCondition
from lumctl.fabric.geometry import Mesh, PortPair
from lumctl.fabric.routing import Route, changes, route
from lumctl.fabric.search import Unroutable, pucs_ahead
from lumctl.printable import counted

LanePorts = tuple[int, int]
"""The ports of an accelerator's lane 0, at which the ring arrives, and of its lane 1, at which it leaves."""

_DRAWS = 400
"""How many layouts with random gaps are tried, after those with even gaps."""
_NEAR = 3
"""The largest distance between the two ports of an accelerator on the rim."""


class NoLayoutError(UsageError):
    """No layout was found on which the ring can be routed; ``out_of_time`` if some were not tried for lack of time."""

    def __init__(self, message: str, *, out_of_time: bool) -> None:
        super().__init__(message)
        self.out_of_time = out_of_time


@dataclass(frozen=True, slots=True)
class LaneLayout:
    """The ports of each rank of a ring, in rank order, and of each spare.

    ``replaceable[rank]`` are the numbers of the spares that can replace the rank while all other circuits stay.
    """

    ranks: tuple[LanePorts, ...]
    spares: tuple[LanePorts, ...]
    replaceable: tuple[tuple[int, ...], ...]

    @property
    def complete(self) -> bool:
        """Whether every rank has a spare."""
        return all(self.replaceable)

    @property
    def replacements(self) -> int:
        """The number of pairs of a rank and a spare that can be routed."""
        return sum(map(len, self.replaceable))


def ring_circuits(ranks: Sequence[LanePorts]) -> list[PortPair]:
    """The circuits of a ring: lane 1 of each rank to lane 0 of the next; the last rank is connected to the first."""
    return [(here[1], there[0]) for here, there in zip(ranks, [*ranks[1:], ranks[0]], strict=True)]


def choose_ports(
    mesh: Mesh,
    ranks: int,
    spares: int,
    *,
    rng: Random,
    most_loss_db: float = inf,
    limit_s: float = inf,
    clock: Callable[[], float] = time.monotonic,
    tell: Callable[[str], object] = lambda _: None,
) -> LaneLayout:
    """Choose ports for a ring of accelerators and its spares, two nearby ports each.

    Layouts are tried until every spare can replace every rank, until ``limit_s`` seconds have passed, or until all
    layouts worth trying were tried; the best layout is returned. A circuit that loses more than ``most_loss_db`` counts
    as not routed.

    Raises:
        UsageError: the mesh has too few ports.
        NoLayoutError: no layout was found on which the ring can be routed.
    """
    count = ranks + spares
    if 2 * count > mesh.port_count:
        raise UsageError(
            f"{count} accelerators with two lanes each need {2 * count} ports; {mesh.name} has {mesh.port_count}"
        )
    ends = clock() + limit_s
    best: LaneLayout | None = None
    tried, out_of_time = 0, False
    for chosen in _layouts(mesh, ranks, spares, rng):
        tried += 1
        found = judged(mesh, chosen[:ranks], chosen[ranks:], most_loss_db=most_loss_db)
        if found is not None and (best is None or _merit(found) > _merit(best)):
            best = found
        if best is not None and best.replacements == ranks * spares:
            break
        # After a layout was judged: at least one is tried, however short the time.
        out_of_time = clock() >= ends
        if out_of_time:
            break
        reached = "the ring has no route yet" if best is None else f"{best.replacements} of {ranks * spares}"
        tell(f"layout {tried}: replacements that can be routed: {reached}")
    if best is None:
        raise NoLayoutError(
            f"no routable layout of a ring of {ranks} accelerators on {mesh.name} was found "
            f"({counted(tried, 'layouts')} tried)",
            out_of_time=out_of_time,
        )
    return best


def _merit(found: LaneLayout) -> tuple[int, int]:
    return sum(map(bool, found.replaceable)), found.replacements


def judged(
    mesh: Mesh, ranks: Sequence[LanePorts], spares: Sequence[LanePorts], *, most_loss_db: float = inf
) -> LaneLayout | None:
    """A layout with the replacements that can be routed on it; ``None`` if the ring itself cannot be routed."""
    demands = ring_circuits(ranks)
    ring = _routed(mesh, demands, [], (), most_loss_db)
    if ring is None:
        return None
    replaceable = []
    for rank in range(len(ranks)):
        able = []
        for spare, ports in enumerate(spares):
            after = ring_circuits([*ranks[:rank], ports, *ranks[rank + 1 :]])
            new = [pair for pair in after if pair not in demands]
            kept = [pair for pair in after if pair in demands]
            if _routed(mesh, new, kept, ring, most_loss_db) is not None:
                able.append(spare)
        replaceable.append(tuple(able))
    return LaneLayout(tuple(ranks), tuple(spares), tuple(replaceable))


def _routed(
    mesh: Mesh, demands: Sequence[PortPair], live: Sequence[PortPair], held: Sequence[Route], most_loss_db: float
) -> tuple[Route, ...] | None:
    """Routes that ``fabric apply`` (without live circuits) or ``swap plan`` would find; ``None`` if there are none."""
    condition = MeshCondition()
    try:
        found = route(mesh, demands, states=changes({}, held), live=live)
    except Unroutable:
        return None
    lossy = any(condition.loss_db(each.ports, each.pucs) > most_loss_db for each in found)
    return None if lossy else found


def _layouts(mesh: Mesh, ranks: int, spares: int, rng: Random) -> Iterator[list[LanePorts]]:
    """Layouts worth trying: round the rim in the order of the ring, first with even gaps, then with random gaps.

    The spares follow the last rank, or are between the ranks.
    """
    count = ranks + spares
    orders = [list(range(count))]
    if spares > 1:
        orders.append(sorted(range(count), key=lambda at: _place_between(at, ranks, spares)))
    rows = [row for first in (0, 1) if len(row := _seats(mesh, first)) >= count]
    for start in range(max(map(len, rows), default=0)):
        for row, order in product(rows, orders):
            places = [(start + at * len(row) // count) % len(row) for at in range(count)]
            yield _seated(row, places, order)
    for _ in range(_DRAWS if rows else 0):
        row, order = rng.choice(rows), rng.choice(orders)
        start, places = rng.randrange(len(row)), sorted(rng.sample(range(len(row)), count))
        yield _seated(row, [(start + place) % len(row) for place in places], order)


def _place_between(at: int, ranks: int, spares: int) -> float:
    """The place of a spare if spares are spread evenly between the ranks."""
    return at if at < ranks else (at - ranks + 1) * ranks / spares - 1 / 2


def _seated(row: Sequence[LanePorts], places: Sequence[int], order: Sequence[int]) -> list[LanePorts]:
    at = dict(zip(order, places, strict=True))
    return [row[at[number]] for number in range(len(places))]


def _seats(mesh: Mesh, first: int) -> list[LanePorts]:
    """Pairs of neighbouring ports round the rim, from port ``first`` on, such that any two pairs can be linked.

    In a honeycomb every port can reach every other port; in a grid of squares a port can reach only half of them.
    """
    first_port = mesh.ports[0]
    ahead = pucs_ahead(mesh, first_port)
    leaving = [port for port in range(mesh.port_count) if ahead[mesh.ports[port]] < inf]
    if not leaving:
        return []
    back = pucs_ahead(mesh, mesh.ports[leaving[0]])
    arriving = {0, *(port for port in range(mesh.port_count) if back[mesh.ports[port]] < inf)}
    if len(leaving) == mesh.port_count - 1:  # all but the port itself: any two can be linked
        arriving = set(range(mesh.port_count))
        leaving = list(arriving)
    left = [(first + step) % mesh.port_count for step in range(mesh.port_count)]
    seats: list[LanePorts] = []
    while len(left) > 1:
        here = left.pop(0)
        for there in left[:_NEAR]:
            pair = _in_order(here, there, arriving, leaving)
            if pair is not None:
                left.remove(there)
                seats.append(pair)
                break
    return seats


def _in_order(here: int, there: int, arriving: Container[int], leaving: Container[int]) -> LanePorts | None:
    if here in arriving and there in leaving:
        return here, there
    return (there, here) if there in arriving and here in leaving else None
