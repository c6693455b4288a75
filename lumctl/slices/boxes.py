"""Finds a contiguous box of free accelerators: at any position, in any orientation, across wrap-around edges.

Neighbours in a box are on one server or on servers with an edge between them, so its circuits need no way around while
these edges have room. Of all free boxes one on the fewest servers is chosen, which leaves whole servers for others,
then the one with the least fullest edge, then the one that touches the fewest free accelerators, which leaves large
gaps.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations, product

from lumctl.printable import shape_text
from lumctl.slices.allocation import SliceDemand, SlicePlacement, placed_slice
from lumctl.slices.fibre_graph import fibre_graph, route_circuits
from lumctl.slices.torus import Coordinates, Torus

_ROUTED = 24
"""How many free boxes are tried at each level if circuits must go around."""


@dataclass(frozen=True, slots=True)
class BoxSearch:
    """The result: a placement or the reason why there is none, and the accelerators that the nearest box lacks."""

    placement: SlicePlacement | None
    reason: str = ""
    in_the_way: tuple[Coordinates, ...] = ()


def find_box(torus: Torus, demand: SliceDemand) -> BoxSearch:
    """The best contiguous placement of a slice."""
    usable = usable_accelerators(torus, demand)
    nearest: tuple[Coordinates, ...] = ()
    free: list[tuple[Coordinates, ...]] = []
    for cells in boxes_in(torus, demand):
        missing = tuple(cell for cell in cells if cell not in usable)
        if not missing:
            free.append(cells)
        elif not nearest or len(missing) < len(nearest):
            nearest = missing
    if free:
        return _routed(torus, demand, free)
    if not nearest:
        return BoxSearch(None, f"no box: {demand} fits a torus of {shape_text(torus.shape)} in no direction")
    count = len(nearest)
    lacks = f"the nearest one lacks {count} accelerator{'s' if count > 1 else ''}"
    return BoxSearch(None, f"no box of {demand} is free; {lacks}", nearest)


def usable_accelerators(torus: Torus, demand: SliceDemand) -> frozenset[Coordinates]:
    """The free accelerators on the servers that the demand allows."""
    if demand.servers is None:
        return torus.free
    return frozenset(place for place in torus.free if torus.server_of(place) in demand.servers)


@dataclass(frozen=True, slots=True)
class _Box:
    """A free box: its accelerators in the order of ranks, and its circuits between servers.

    ``level`` is what these make of the fullest edge if all run directly between neighbours. ``blocked`` are two servers
    between which they cannot: the edges have no room, or there is no edge because the box does not span a ring.
    """

    cells: tuple[Coordinates, ...]
    wants: tuple[tuple[int, int, int], ...]
    servers: int
    level: int
    blocked: tuple[int, int] | None

    @property
    def circuits(self) -> int:
        """How many circuits leave a server."""
        return sum(count for *_, count in self.wants)


def _box(torus: Torus, links: Sequence[tuple[int, int]], cells: tuple[Coordinates, ...]) -> _Box:
    server = [torus.number_of[torus.server_of(cell)] for cell in cells]
    counts = Counter(
        (min(pair), max(pair)) for a, b in links if (pair := (server[a], server[b])) and pair[0] != pair[1]
    )
    level, blocked = torus.fullest, None
    for pair, count in counts.items():
        edges = torus.between.get(pair, ())
        direct = next((each for each in torus.levels if sum(edge.room(each) for edge in edges) >= count), None)
        if direct is None:
            blocked = blocked or pair
        else:
            level = max(level, direct)
    return _Box(cells, tuple((a, b, count) for (a, b), count in counts.items()), len(set(server)), level, blocked)


def _routed(torus: Torus, demand: SliceDemand, free: Sequence[tuple[Coordinates, ...]]) -> BoxSearch:
    """The best of the free boxes whose circuits find edges."""
    rank_of = {place: rank for rank, place in enumerate(demand.places)}
    links = [(rank_of[a], rank_of[b]) for a, b, _ in demand.links()]
    boxes = sorted((_box(torus, links, cells) for cells in free), key=lambda box: (box.servers, box.level))
    direct = [box for box in boxes if box.blocked is None]
    if direct:
        equal = [box for box in direct if (box.servers, box.level) == (direct[0].servers, direct[0].level)]
        box = min(equal, key=lambda each: (each.circuits, _free_around(torus, each)))
        if (placement := _placed(torus, demand, box, box.level)) is not None:
            return BoxSearch(placement)
    for level in torus.levels:
        for box in boxes[:_ROUTED]:
            if box.level <= level and (placement := _placed(torus, demand, box, level)) is not None:
                return BoxSearch(placement)
    count = f"{len(boxes)} boxes of {demand} are" if len(boxes) > 1 else "a box is"
    full = [edge.name for box in boxes[:1] if box.blocked for edge in torus.between.get(box.blocked, ())]
    where = f" ({', '.join(full)} is too full)" if full else ""
    return BoxSearch(None, f"{count} free, but the fibres have no room for its circuits{where}")


def _placed(torus: Torus, demand: SliceDemand, box: _Box, level: int) -> SlicePlacement | None:
    ways = route_circuits(fibre_graph(torus, level), box.wants)
    if ways is None:
        return None
    return placed_slice(torus, demand, box.cells, box.wants, ways, contiguous=True, bound=box.level)


def _free_around(torus: Torus, box: _Box) -> int:
    """How many free accelerators a box touches."""
    own = frozenset(box.cells)
    around = set()
    for x, y, z in own:
        for axis, step in product(range(3), (-1, 1)):
            near = [x, y, z]
            near[axis] = (near[axis] + step) % torus.shape[axis]
            around.add((near[0], near[1], near[2]))
    return len((around - own) & torus.free)


def boxes_in(torus: Torus, demand: SliceDemand) -> Iterator[tuple[Coordinates, ...]]:
    """The accelerators of each box that a slice could be, in the order of ranks; whether they are free or not."""
    tried: set[tuple[tuple[int, bool, int], ...]] = set()
    for axes in permutations(range(3)):  # The slice's dimension axes[a] lies along the torus's axis a.
        turned = tuple((demand.shape[axis], demand.rings[axis], demand.widths[axis]) for axis in axes)
        fits = all(extent <= whole for (extent, *_), whole in zip(turned, torus.shape, strict=True))
        if not fits or turned in tried:
            continue
        tried.add(turned)
        starts = [
            range(1 if extent == whole else whole) for (extent, *_), whole in zip(turned, torus.shape, strict=True)
        ]
        a, b, c = axes
        for x, y, z in product(*starts):
            yield tuple(
                ((x + at[a]) % torus.shape[0], (y + at[b]) % torus.shape[1], (z + at[c]) % torus.shape[2])
                for at in demand.places
            )
