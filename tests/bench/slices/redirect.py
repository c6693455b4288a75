"""Bandwidth between the ranks of a slice that does not use all dimensions of a torus, with and without redirection.

    python tests/bench/slices/redirect.py [MBPS] [ROUNDS]

Slices of torus64, whose accelerators have two ports for each of three dimensions: 4x2x1 uses two dimensions, 4x1x1 one.
Without redirection a link between neighbours is one circuit; with it, those along the longest dimension have two or
three. Measured is a ring of four ranks of PyTorch along that dimension, joined by gloo through the simulator's lanes,
each of which carries MBPS Mbit/s each way. The ranks open a connection, or a channel of all-reduce with its part of the
bucket, for each circuit.

*Stream*: what the connections between two neighbours carry together in each direction, all ranks at once.
*All-reduce*: bytes of the bucket that leave each rank in a second.

Published for Morphlux (arXiv 2508.03674), with two ports for each neighbour instead of one: iperf 2.00x, AllReduce 1.79
to 1.82x.
"""

import os
import sys
import tempfile
from pathlib import Path
from statistics import median

sys.path += [str(Path(__file__).resolve().parents[1] / name) for name in ("jobs", "fabric")]

from bandwidth import BUCKET, all_reduces, show, streams, verdict
from machine import described

from lumctl.change import apply
from lumctl.context import Context
from lumctl.inventory.load import example, load_inventory
from lumctl.sim.launch import launch
from lumctl.slices.planning import plan_slice
from lumctl.slices.release import plan_release
from lumctl.slices.request import SliceRequest, read_shapes
from lumctl.store import store_at
from lumctl.swap import commission

MBPS, ROUNDS = 20.0, 5
SHAPES, JOB = ("4x2x1", "4x1x1"), "tenant"
PUBLISHED = {"stream": (2.0, 2.0), "all-reduce": (1.79, 1.82)}


def measured(context: Context, shape: str, rounds: int, *, redirect: bool) -> tuple[int, dict[str, float]]:
    """The circuits of a link along the first dimension, and the figures of a ring there, in Mbit/s."""
    (extents,) = read_shapes(shape)
    plan = plan_slice(context, SliceRequest((extents,), (JOB,), (), redirect=redirect))
    assert plan.slices is not None
    assert apply(context, plan).outcome == "done"
    width = plan.slices.bandwidth[0]["ports_used"] // 2
    placement = context.assignment()[JOB][:: extents[1] * extents[2]]  # ranks are in row-major order
    rates = streams(context, placement, connections=width)
    pairs = len(rates) // width
    took = all_reduces(context, placement, rounds, {"parts": [False] * width})
    through = 2 * (len(placement) - 1) / len(placement) * 8 * BUCKET / 1e6
    assert apply(context, plan_release(context, JOB, force=True)).outcome == "done"
    # The connections of one pair lie a whole round of the ring apart, each with two ends.
    stream = min(sum(rates[at::pairs]) for at in range(pairs))
    return width, {"stream": stream, "all-reduce": through / median(took["parts"])}


def main(mbps: float, rounds: int) -> int:
    print(f"{described()}; Mbit/s; lanes of {mbps:g} each way; load {os.getloadavg()[0]:.1f}")
    print(f"{'':32}" + "".join(f"{figure:>23}" for figure in PUBLISHED))
    inventory = load_inventory(example("torus64"))
    with tempfile.TemporaryDirectory(prefix="lumctl-rd-") as scratch:
        store = store_at(str(Path(scratch) / "store"), rack="torus64")
        with (
            launch(inventory, folder=Path(scratch) / "sim", lane_mbps=mbps, tied=True) as sim,
            Context(inventory, "sim", endpoints=sim.endpoints(), store=lambda _rack: store) as context,
        ):
            commission(context)
            for shape in SHAPES:
                one, plain = measured(context, shape, rounds, redirect=False)
                several, wide = measured(context, shape, rounds, redirect=True)
                show(f"{shape}, {one} circuit a link", [plain[figure] for figure in PUBLISHED], 1)
                show(f"{shape}, {several} circuits a link", [wide[figure] for figure in PUBLISHED], 1)
                ratios = {figure: wide[figure] / plain[figure] for figure in PUBLISHED}
                show(f"{shape}, ratio", list(ratios.values()), 2)
                for figure, (least, most) in PUBLISHED.items() if several == 2 * one else ():
                    said = verdict(ratios[figure], least, most)
                    print(f"{figure}: {ratios[figure]:.2f}x here, {least:g} to {most:g}x published: {said}")
    return 0


if __name__ == "__main__":
    words = [float(word) for word in sys.argv[1:]]
    sys.exit(main(words[0] if words else MBPS, int(words[1]) if len(words) > 1 else ROUNDS))
