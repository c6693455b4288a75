"""Places slices of eight servers on random states of torus64, beside other allocators, on one core.

    python tests/bench/slices/run.py [--states 200] [--seconds 10]

Each state has live slices with circuits, damage in every second one, and at least eight servers with all accelerators
free. Asked for is a 4x4x2. Aligned first fit and any-box first fit look at accelerators only, as on a fixed torus. The
published integer program places scattered servers, as lumctl does, without the capacity of fibres, and stops at the
limit (0: it is left out). Times and the limit are CPU times of this process. Then a slice is planned over 64 racks of
which none has a free box. Ends with 1 if a limit does not hold.
"""

import argparse
import os
import resource
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from random import Random
from statistics import median, quantiles
from time import process_time
from typing import TypeVar

sys.path += [str(Path(__file__).resolve().parents[at] / name) for at, name in ((1, "fabric"), (2, "contract"))]

from machine import described
from paper_program import least_fullest
from torus_states import damaged, torus_of, with_live_slice

from lumctl.slices.allocation import SliceDemand, SlicePlacement
from lumctl.slices.allocator import allocate_box, allocate_scattered
from lumctl.slices.fibre_graph import FibreGraph
from lumctl.slices.fragmentation import aligned_box
from lumctl.slices.slots import divisions
from lumctl.slices.torus import Torus

DEMAND = SliceDemand((4, 4, 2))
MEDIAN_MS, P95_MS, TIMES_FASTER = 20.0, 100.0, 100.0
RACKS, RACKS_S, RACKS_MB = 64, 1.0, 200.0
Answer = TypeVar("Answer")


@dataclass
class Contender:
    """CPU seconds of each call, and how many slices were placed."""

    name: str
    seconds: list[float] = field(default_factory=list)
    placed: int = 0

    def timed(self, call: Callable[[], Answer]) -> Answer:
        """Call and keep the time."""
        began = process_time()
        found = call()
        self.seconds.append(process_time() - began)
        return found

    @property
    def late_ms(self) -> float:
        """The 95th percentile."""
        return 1000 * quantiles(self.seconds, n=20)[-1]

    @property
    def median_ms(self) -> float:
        """The median."""
        return 1000 * median(self.seconds)


def state(seed: int) -> Torus:
    """A torus64 with up to four live slices on up to eight servers."""
    rng = Random(seed)
    torus = damaged(rng, torus_of((2, 2, 4), (2, 2, 1), 4), rng.choice((0.0, 0.1)))
    idle = list(torus.servers)
    rng.shuffle(idle)
    for _ in range(rng.randint(1, 4)):
        size = rng.randint(1, 4)
        if len(idle) - size >= 8:
            torus = with_live_slice(rng, torus, idle[:size])
            del idle[:size]
    return torus


def first_box(torus: Torus) -> bool:
    """Any-box first fit: whether a 4x4x2 is free at any position in any orientation."""
    for shape in ((4, 4, 2), (4, 2, 4), (2, 4, 4)):
        for x, y, z in product(range(4), range(4), range(4)):
            cells = (((x + i) % 4, (y + j) % 4, (z + k) % 4) for i, j, k in product(*map(range, shape)))
            if torus.free.issuperset(cells):
                return True
    return False


def by_program(torus: Torus, seconds: float) -> tuple[list[int] | None, bool]:
    """The published program: the circuits on each edge, and whether they are proven optimal."""
    number = torus.number_of
    ends = tuple((number[edge.ends[0]], number[edge.ends[1]]) for edge in torus.edges)
    alive = FibreGraph(ends, tuple(min(1, edge.capacity) for edge in torus.edges), len(number))
    free = [number[server] for server in torus.servers if len(torus.free_on[server]) == torus.accelerators_per_server]
    slots = next(divisions(DEMAND, torus.accelerators_per_server))
    return least_fullest(slots, alive, [edge.used for edge in torus.edges], free, seconds)


def over_racks() -> tuple[float, float]:
    """CPU seconds and peak MB of a plan over 64 racks: no box is found, then scattered servers in the first rack."""
    racks = [torus for torus in map(state, range(10 * RACKS)) if not first_box(torus)][:RACKS]
    began = process_time()
    boxed = [allocate_box(torus, [DEMAND]).placement for torus in racks]
    found = next(filter(None, (allocate_scattered(torus, [DEMAND]).placement for torus in racks)))
    seconds = process_time() - began
    if any(boxed) or found.contiguous:
        raise AssertionError("a rack without a free box has one")
    return seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(arguments: list[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--states", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=10.0)
    options = parser.parse_args(arguments)
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    rack_seconds, rack_mb = over_racks()  # First: the solver's memory would count otherwise.
    aligned, boxes = Contender("aligned first fit"), Contender("any-box first fit")
    light, program = Contender("lumctl, scattered"), Contender("published program")
    placements: list[SlicePlacement | None] = []
    optimal = overfull = worse = 0
    for torus in map(state, range(options.states)):
        aligned.placed += aligned.timed(lambda torus=torus: aligned_box(torus, DEMAND.shape)) is not None
        boxes.placed += boxes.timed(lambda torus=torus: first_box(torus))
        found = light.timed(lambda torus=torus: allocate_scattered(torus, [DEMAND])).placement
        light.placed += found is not None
        placements.append(found)
        if options.seconds:
            load, proven = program.timed(lambda torus=torus: by_program(torus, options.seconds))
            program.placed += load is not None
            optimal += proven
            full = load is not None and any(
                circuits > max(edge.used, edge.capacity) for edge, circuits in zip(torus.edges, load, strict=True)
            )
            overfull += full
            worse += load is not None and not full and (found is None or found.fullest > max(load))
    print(f"{options.states} states, 4x4x2       placed     median ms         p95 ms")
    for each in (aligned, boxes, light, program):
        if each.seconds:
            print(f"{each.name:22}  {each.placed:8}  {each.median_ms:12.2f}  {each.late_ms:13.2f}")
    known = [placement for placement in placements if placement is not None]
    print(f"lumctl: fullest edge proven least in {sum(placement.optimal for placement in known)} of {len(known)}")
    limits = {
        f"median {MEDIAN_MS:g} ms, p95 {P95_MS:g} ms": light.median_ms <= MEDIAN_MS and light.late_ms <= P95_MS,
        f"{RACKS} racks: {rack_seconds:.2f} s (limit {RACKS_S:g}), {rack_mb:.0f} MB (limit {RACKS_MB:g})": (
            rack_seconds <= RACKS_S and rack_mb <= RACKS_MB
        ),
    }
    if program.seconds:
        ratio = median(theirs / ours for theirs, ours in zip(program.seconds, light.seconds, strict=True))
        print(f"program: {optimal} proven optimal, {overfull} with more circuits than fibres on an edge")
        limits[f"{ratio:.0f} times as fast as the program (limit {TIMES_FASTER:g})"] = ratio >= TIMES_FASTER
        limits[f"{worse} of its placements within the capacity have a less full edge (limit 0)"] = not worse
    for text, holds in limits.items():
        print(f"{'PASS' if holds else 'FAIL'}  {text}")
    print(described())
    return int(not all(limits.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
