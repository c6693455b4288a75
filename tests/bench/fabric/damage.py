"""What is left of a switch when PUCs are stuck: with and without knowing which.

    python tests/bench/fabric/damage.py [--share 0.05] [--draws 10]

On the 9x9 with 32 ports a share of the PUCs is stuck in random states. Counted are the matchings, of those planned for
the undamaged mesh, that still carry all their circuits (nobody knows), those of the same pairs that find other routes
(the damage is known), and the matchings that connect all pairs when pairs may be exchanged as well.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from random import Random

from machine import described

from lumctl.devices.types import PucState
from lumctl.fabric import Mesh, MeshCondition, Route, Unroutable, mesh, route, trace
from lumctl.fabric.matchings import all_to_all


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--share", type=float, default=0.05)
    parser.add_argument("--draws", type=int, default=10)
    options = parser.parse_args(arguments)
    shape = mesh(9, 9)
    planned = all_to_all(shape, 32, rng=Random(0)).matchings
    print(f"{options.share:.0%} of {shape.puc_count} PUCs stuck; of {len(planned)} matchings with 32 ports")
    print("draw  unknown: whole, circuits made  known: routed  exchanged: matchings, pairs without a way")
    sums = [0, 0, 0, 0, 0]
    for draw in range(options.draws):
        rng = Random(draw)
        pucs = rng.sample(range(shape.puc_count), round(options.share * shape.puc_count))
        stuck = {puc: rng.choice((PucState.BAR, PucState.CROSS)) for puc in pucs}
        made = [_made(shape, each.routes, {**each.states, **stuck}) for each in planned]
        whole = sum(count == len(each.routes) for count, each in zip(made, planned, strict=True))
        routed = sum(_routed(shape, each.routes, stuck) for each in planned)
        again = all_to_all(shape, 32, condition=MeshCondition(stuck=stuck), rng=Random(draw))
        row = (whole, sum(made), routed, len(again.matchings), len(again.unreachable))
        sums = [a + b for a, b in zip(sums, row, strict=True)]
        print(f"{draw:>4}  {row[0]:>7}  {row[1]:>12} of 496     {row[2]:>6}  {row[3]:>10}  {row[4]:>10}", flush=True)
    draws, matchings = options.draws, options.draws * len(planned)
    print(
        f"share of matchings: unknown {sums[0] / matchings:.1%} (circuits {sums[1] / (496 * draws):.1%}), "
        f"known {sums[2] / matchings:.1%}; exchanged: {sums[3] / draws:.1f} matchings, "
        f"{sums[4] / draws:.1f} of 496 pairs without a way"
    )
    print(described())
    return 0


def _made(shape: Mesh, routes: Sequence[Route], states: Mapping[int, PucState]) -> int:
    return sum(trace(shape, states, each.ports[0]).exit == each.ports[1] for each in routes)


def _routed(shape: Mesh, routes: Sequence[Route], stuck: Mapping[int, PucState]) -> bool:
    try:
        route(shape, [each.ports for each in routes], states={}, stuck=stuck, brisk=True)
    except Unroutable:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
