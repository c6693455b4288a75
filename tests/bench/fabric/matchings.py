"""A mesh as an all-to-all switch: how many matchings, how long their ways, how long it takes on one core.

    python tests/bench/fabric/matchings.py [--sizes 3,5,...] [--seeds 5] [--bounds]

CPU time of this process; every matching is traced before it counts. BOUND is the sum of the shortest ways, each circuit
as if it were alone, which is proven; with --bounds the one of the linear relaxation as well, for each matching of the
9x9. Ends with 1 if what is promised for the 9x9 does not hold: 31 matchings within 2 s, 2 % above the bound at most.
"""

import argparse
import sys
from random import Random
from statistics import median
from time import process_time

from machine import described

from lumctl.fabric import mesh, trace
from lumctl.fabric.matchings import AllToAll, all_to_all

SECONDS, GAP = 2.0, 0.02
PORTS = {3: 8, 5: 16, 7: 24, 9: 32, 12: 48, 15: 60}
"""How many ports are connected, by size."""


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default=",".join(map(str, PORTS)))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--bounds", action="store_true")
    options = parser.parse_args(arguments)
    held = True
    print("mesh    ports  matchings (least)  PUCs    bound   gap    worst   median s  worst s")
    for size in map(int, options.sizes.split(",")):
        ports = PORTS[size]
        times, found = [], None
        for seed in range(options.seeds):
            began = process_time()
            found = all_to_all(mesh(size, size), ports, rng=Random(seed))
            times.append(process_time() - began)
            _require_traced(size, found)
            total, bound = _sums(found)
            if size == 9:
                held &= len(found.matchings) == found.least and times[-1] <= SECONDS and total <= (1 + GAP) * bound
        total, bound = _sums(found)
        worst = max(each.pucs / each.bound - 1 for each in found.matchings)
        print(
            f"{size:>2}x{size:<2}   {ports:>4}   {len(found.matchings):>5} ({found.least})         {total:>6}  "
            f"{bound:>6}  "
            f"{total / bound - 1:5.2%}  {worst:5.2%}   {median(times):6.2f}    {max(times):6.2f}"
        )
    if options.bounds:
        _bounds()
    print(
        f"\n{'PASS' if held else 'FAIL'}  9x9: 31 matchings in {SECONDS:g} s at most, {GAP:.0%} above the bound at most"
    )
    print(described())
    return int(not held)


def _require_traced(size: int, found: AllToAll) -> None:
    pairs = set()
    for matching in found.matchings:
        for each in matching.routes:
            a, b = each.ports
            assert trace(mesh(size, size), matching.states, a).exit == b
            assert trace(mesh(size, size), matching.states, b).exit == a
            pairs.add(each.ports)
    assert len(pairs) == len(found.ports) * (len(found.ports) - 1) // 2


def _sums(found: AllToAll) -> tuple[int, int]:
    return sum(each.pucs for each in found.matchings), sum(each.bound for each in found.matchings)


def _bounds() -> None:
    from lumctl.fabric.research.exact import lower_bound

    found = all_to_all(mesh(9, 9), 32, rng=Random(0))
    began = process_time()
    rows = [
        (each.pucs, each.bound, lower_bound(mesh(9, 9), [route.ports for route in each.routes]).value)
        for each in found.matchings
    ]
    seconds = process_time() - began
    print(f"\n9x9, 32 ports, seed 0: the bound of the linear relaxation of each matching ({seconds:.1f} s)")
    print("matching  PUCs  alone  together    gap")
    for at, (pucs, alone, together) in enumerate(rows):
        print(f"{at:>8}  {pucs:>4}  {alone:>5}  {together:>8.0f}  {pucs / together - 1:5.2%}")
    total, together = sum(row[0] for row in rows), sum(row[2] for row in rows)
    print(f"     all  {total:>4}  {sum(row[1] for row in rows):>5}  {together:>8.0f}  {total / together - 1:5.2%}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
