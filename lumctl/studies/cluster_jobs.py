"""Jobs that come and go on the published cluster, whose requests for slices find places or do not.

A job gets one slice of one rack, of the smallest size that is enough. On the electrical torus that is an aligned box of
the first rack that has one. With light it is the same box, as long as fibres are free for its circuits, and otherwise
what the rack's own allocator finds in the first rack where it finds something.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush

from lumctl.slices.allocation import SlicePlacement, with_slice
from lumctl.slices.allocator import allocate
from lumctl.slices.boxes import find_box
from lumctl.slices.fragmentation import aligned_box, index
from lumctl.slices.slot_search import fit_slots
from lumctl.slices.torus import Torus
from lumctl.studies.torus_cluster import FIBRES, PARTS, RACKS, SHAPES, empty_rack, torus_demand
from lumctl.studies.trace_file import ClusterJob

_SIZES = sorted(PARTS)


def slice_size(accelerators: int) -> int | None:
    """The smallest slice with so many accelerators; ``None`` if a rack has fewer."""
    return next((size for size in _SIZES if size >= accelerators), None)


@dataclass(frozen=True, slots=True)
class JobStart:
    """What a job's request met; ``start_s`` is ``None`` if it was refused.

    ``fragmented``: it found no place though some rack had enough free accelerators. ``by_light``: it got one that is no
    aligned box.
    """

    start_s: float | None
    fragmented: bool
    by_light: bool


class _Rack:
    """A rack, and the places that were looked for since it changed; ``None``: there is none."""

    def __init__(self, torus: Torus) -> None:
        self.torus = torus
        self._boxes: dict[int, SlicePlacement | None] = {}
        self._lit: dict[int, SlicePlacement | None] = {}

    def box(self, size: int) -> SlicePlacement | None:
        """An aligned box."""
        if size not in self._boxes:
            self._boxes[size] = self._find_box(size)
        return self._boxes[size]

    def _find_box(self, size: int) -> SlicePlacement | None:
        cells = aligned_box(self.torus, PARTS[size])
        if cells is None or not self.torus.edges:  # the links of an electrical torus are always there
            return None if cells is None else SlicePlacement(cells, (), contiguous=True, fullest=0, bound=0)
        return find_box(replace(self.torus, free=frozenset(cells)), torus_demand(PARTS[size])).placement

    def lit(self, size: int) -> SlicePlacement | None:
        """Any accelerators that light joins."""
        if not self.torus.edges or len(self.torus.free) < size:
            return None
        if size not in self._lit:
            self._lit[size] = allocate(self.torus, [torus_demand(PARTS[size])], place=fit_slots).placement
        return self._lit[size]

    def largest(self) -> int:
        """The accelerators of the largest slice of a published size that finds a place."""
        sizes = sorted((size for size in SHAPES if size <= len(self.torus.free)), reverse=True)
        return next((size for size in sizes if self.box(size) or self.lit(size)), 0)


@dataclass(slots=True)
class JobCluster:
    """The cluster while jobs are submitted, in the order of time. ``fibres`` between servers; 0: an electrical torus.

    ``is_queued``: a job without a place waits, and so do all after it; otherwise it is refused. ``sample_s`` are the
    times at which the index of fragmentation is taken, before the jobs that are submitted then: one less the largest
    slices of all racks over all that is free. The slices are those of published sizes.
    """

    fibres: int
    is_queued: bool
    sample_s: Sequence[float] = ()
    racks: int = RACKS
    indices: list[float] = field(default_factory=list)
    _empty: _Rack = field(init=False)
    _racks: list[_Rack] = field(init=False)
    _live: list[tuple[float, int, int, SlicePlacement]] = field(default_factory=list)
    _started: int = 0
    _now_s: float = 0.0

    def __post_init__(self) -> None:
        torus = empty_rack(self.fibres or FIBRES)
        self._empty = _Rack(torus if self.fibres else replace(torus, edges=()))
        # Empty racks share what was looked for: a rack is never changed, but another takes its place.
        self._racks = [self._empty] * self.racks

    def submit(self, job: ClusterJob) -> JobStart:
        """Place a job, or find out that it has no place; only then may the next one be submitted.

        Raises:
            ValueError: it is larger than a rack.
        """
        size = slice_size(job.accelerators)
        if size is None:
            raise ValueError(f"a job of {job.accelerators} accelerators is larger than a rack")
        self.advance(job.submit_s)
        had_room = any(len(rack.torus.free) >= size for rack in self._racks)
        placed = self._placed(size)
        fragmented = had_room and placed is None
        while placed is None and self.is_queued:
            self.advance(self._live[0][0])
            placed = self._placed(size)
        if placed is None:
            return JobStart(None, fragmented, by_light=False)
        number, placement, by_light = placed
        self._racks[number] = _Rack(with_slice(self._racks[number].torus, placement))
        heappush(self._live, (self._now_s + job.duration_s, self._started, number, placement))
        self._started += 1
        return JobStart(self._now_s, fragmented, by_light)

    def _placed(self, size: int) -> tuple[int, SlicePlacement, bool] | None:
        for number, rack in enumerate(self._racks):
            if (box := rack.box(size)) is not None:
                return number, box, False
        for number, rack in enumerate(self._racks):
            if (lit := rack.lit(size)) is not None:
                return number, lit, True
        return None

    def advance(self, to_s: float) -> None:
        """Let time pass: jobs end, and samples are taken. Time never goes back."""
        to_s = max(to_s, self._now_s)
        while len(self.indices) < len(self.sample_s) and self.sample_s[len(self.indices)] <= to_s:
            self._end_jobs(self.sample_s[len(self.indices)])
            self.indices.append(self._index())
        self._end_jobs(to_s)
        self._now_s = to_s

    def _end_jobs(self, until_s: float) -> None:
        while self._live and self._live[0][0] <= until_s:
            _, _, number, placement = heappop(self._live)
            torus = _without(self._racks[number].torus, placement)
            self._racks[number] = self._empty if torus == self._empty.torus else _Rack(torus)

    def _index(self) -> float:
        free = sum(len(rack.torus.free) for rack in self._racks)
        return index(sum(rack.largest() for rack in self._racks), free)


def _without(torus: Torus, placement: SlicePlacement) -> Torus:
    """The torus after a slice was released: its accelerators are free, and so are the fibres of its circuits."""
    added = placement.added(torus)
    edges = tuple(replace(edge, used=edge.used - added[edge.name]) for edge in torus.edges)
    return replace(torus, free=torus.free.union(placement.accelerators), edges=edges)
