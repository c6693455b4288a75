"""The schedule for a late rank beside gloo's all-reduce, ring, and recursive halving and doubling, over the same lanes.

    python tests/bench/collectives/late_rank.py [MBPS] [ROUNDS] [RANKS,...] [MB,...]

Ranks of PyTorch, joined by gloo through a simulator's lanes: each pair has a lane of its own through a switch, which
carries MBPS Mbit/s each way. One rank begins each all-reduce late, by 0, half, one and two times the time of the
reduce-scatter that the others can do meanwhile. All ways and delays take turns in an order drawn for each round. Time
runs from the begin of the others to the end of the last rank, the delay included. Beside the medians: the speed over
ring with its 95 % interval (resampled rounds), what the alpha-beta model says, with beta as the lanes have it and alpha
fitted to the ring, and how far the measured time of the schedule is from the model's.
"""

import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from random import Random
from statistics import median

from lumctl.collectives.cost import LinkCost, stragglar_cost
from lumctl.context import Context
from lumctl.inventory.load import load_inventory
from lumctl.sim.launch import launch
from lumctl.store import store_at
from lumctl.swap import commission

sys.path.append(str(Path(__file__).resolve().parents[1] / "jobs"))

from bandwidth import said_by_ranks

MBPS, ROUNDS, RANKS, MEGABYTES = 100.0, 7, (4, 5, 6, 8), (1, 4, 16)
DELAYS = (0.0, 0.5, 1.0, 2.0)
"""The delays of the late rank, in times of the reduce-scatter of the others."""
RANK = Path(__file__).with_name("late_rank_ranks.py")
PATIENCE_S = 1800.0
RESAMPLED = 2000


def inventory_text(ranks: int) -> str:
    """A rack of single-GPU hosts, of which each two have a lane of their own through one switch."""
    lanes, half = ranks - 1, ranks * (ranks - 1)
    hosts = [f"  - {{name: h{r}, accelerators: [{{id: h{r}-g, model: X, memory_gib: 80}}]}}" for r in range(ranks)]
    transponders = [
        f"  - {{id: h{rank}-{lane}, accelerator: h{rank}-g, interface: eth{lane}, device: s, "
        f"tx: {rank * lanes + lane}, rx: {half + rank * lanes + lane}, rx_sensitivity_dbm: -30}}"
        for rank in range(ranks)
        for lane in range(lanes)
    ]
    pairs = [[a, b] for a in range(ranks) for b in range(a + 1, ranks)]
    names = ", ".join(f"h{rank}-g" for rank in range(ranks))
    return "\n".join(
        [
            *("lumctl: 1", "racks: {r: }", "hosts:", *hosts, "devices:"),
            f"  - {{id: s, kind: switch, driver: polatis-scpi, address: 's:1', port_count: {2 * half}}}",
            *("transponders:", *transponders, "jobs:"),
            f"  - {{name: train, ranks: [{names}], links: [{{kind: pairs, pairs: {json.dumps(pairs)}}}]}}",
            "",
        ]
    )


def measured(mbps: float, rounds: int, ranks: int, sizes: Sequence[int]) -> list[dict[str, object]]:
    """What rank 0 reports: the seconds of each all-reduce, with its size, way, delay and round."""
    with tempfile.TemporaryDirectory(prefix="lumctl-bench-") as scratch:
        folder = Path(scratch)
        (folder / "rack.yaml").write_text(inventory_text(ranks))
        inventory = load_inventory(folder / "rack.yaml")
        store = store_at(str(folder / "store"), rack="r")
        with (
            launch(inventory, folder=folder / "sim", lane_mbps=mbps, tied=True) as sim,
            Context(inventory, "sim", endpoints=sim.endpoints(), store=lambda _rack: store) as context,
        ):
            commission(context)
            return _reported(context, mbps, rounds, sizes)


def _reported(context: Context, mbps: float, rounds: int, sizes: Sequence[int]) -> list[dict[str, object]]:
    placement = context.assignment()["train"]
    order = {"rounds": rounds, "sizes": list(sizes), "delays": DELAYS, "seconds_per_byte": 8 / (mbps * 1e6)}
    return list(said_by_ranks(RANK, context, placement, order, PATIENCE_S))


def report(ranks: int, mbps: float, found: Sequence[dict[str, object]], rng: Random) -> None:
    """Print the medians of each size and delay, and what they say."""
    beta = 8 / (mbps * 1e6)
    sizes = sorted({row["size"] for row in found})
    seconds: dict[tuple[object, ...], dict[int, float]] = {}
    for row in found:
        seconds.setdefault((row["size"], row["delay"], row["way"]), {})[row["round"]] = row["seconds"]
    ways = list(dict.fromkeys(row["way"] for row in found))
    for size in sizes:
        without = median(seconds[size, 0.0, "ring"].values())
        alpha = max(0.0, without / (2 * (ranks - 1)) - size / ranks * beta)
        cost = stragglar_cost(ranks, size, LinkCost(alpha, beta))
        scatter_s = (ranks - 2) / (ranks - 1) * size * beta
        times = f"alpha {1e3 * alpha:.2f} ms, reduce-scatter {1e3 * scatter_s:.0f} ms"
        print(f"{ranks} ranks, {size >> 20} MiB, times in ms: {times}")
        for delay in DELAYS:
            medians = {way: median(seconds[size, delay, way].values()) for way in ways}
            low, high = interval(seconds[size, delay, "ring"], seconds[size, delay, "stragglar"], rng)
            model = cost.total_s(delay * scatter_s)
            print(
                f"  delay {delay:3g}: "
                + "  ".join(f"{way} {1e3 * each:.0f}" for way, each in medians.items())
                + f"; over ring {medians['ring'] / medians['stragglar']:.3f} ({low:.3f} to {high:.3f})"
                + f", model {cost.gain(delay * scatter_s):.3f}; measured {medians['stragglar'] / model - 1:+.1%} of it",
                flush=True,
            )


def interval(ring: dict[int, float], ours: dict[int, float], rng: Random) -> tuple[float, float]:
    """The 95 % interval of the ratio of medians, from resampled rounds."""
    rounds = sorted(ring)
    ratios = []
    for _ in range(RESAMPLED):
        drawn = rng.choices(rounds, k=len(rounds))
        ratios.append(median(ring[each] for each in drawn) / median(ours[each] for each in drawn))
    ratios.sort()
    return ratios[int(0.025 * RESAMPLED)], ratios[int(0.975 * RESAMPLED)]


def main(mbps: float, rounds: int, numbers: Sequence[int], megabytes: Sequence[int]) -> None:
    print(f"lanes of {mbps:g} Mbit/s each way, {rounds} rounds; load {os.getloadavg()[0]:.1f}")
    rng = Random(1)
    for ranks in numbers:
        found = measured(mbps, rounds, ranks, [each << 20 for each in megabytes])
        report(ranks, mbps, found, rng)


if __name__ == "__main__":
    words = sys.argv[1:]
    main(
        float(words[0]) if words else MBPS,
        int(words[1]) if len(words) > 1 else ROUNDS,
        [int(each) for each in words[2].split(",")] if len(words) > 2 else RANKS,
        [int(each) for each in words[3].split(",")] if len(words) > 3 else MEGABYTES,
    )
