"""The schedule for a late rank beside gloo's all-reduce, ring, and recursive halving and doubling, over the same lanes.

    python tests/bench/collectives/late_rank.py [MBPS] [ROUNDS] [RANKS,...] [MB,...] [SECONDS]

Ranks of PyTorch, joined by gloo through a simulator's lanes: each pair has a lane of its own through a switch, which
carries MBPS Mbit/s each way. One rank begins each all-reduce late, by 0, half, one and two times the time of the
reduce-scatter that the others can do meanwhile. All ways and delays take turns in an order drawn for each round. Time
runs from the begin of the others to the end of the last rank, the delay included. Beside the medians: the speed over
ring with its 95 % interval (resampled rounds), what the alpha-beta model says, with beta as the lanes have it and alpha
fitted to the ring, and how far the measured time of the schedule is from the model's.

Then a job with `straggler_schedule: on` over the same lanes with the smallest size, for SECONDS (0: not at all) with no
rank late, and for as long with the last one late by the time of the reduce-scatter. Its steps average gradients as the
job has decided, or by gloo, in a drawn order; so the job decides by the record of both. Beside the medians: the speed
of the steps with advice over gloo's with its 95 % interval, of all of them and of those that use the schedule.
"""

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from statistics import median

from lumctl.collectives.cost import LinkCost, stragglar_cost
from lumctl.context import Context
from lumctl.inventory.load import load_inventory
from lumctl.sim.launch import launch
from lumctl.store import store_at
from lumctl.swap import commission
from lumctl.training.job_run import run_job

sys.path.append(str(Path(__file__).resolve().parents[1] / "jobs"))

from bandwidth import said_by_ranks

MBPS, ROUNDS, RANKS, MEGABYTES = 100.0, 7, (4, 5, 6, 8), (1, 4, 16)
DELAYS = (0.0, 0.5, 1.0, 2.0)
"""The delays of the late rank, in times of the reduce-scatter of the others."""
RANK = Path(__file__).with_name("late_rank_ranks.py")
JOB = Path(__file__).with_name("late_rank_job.py")
PATIENCE_S = 1800.0
ADVISED_S = 90.0
"""How long a job with advice runs; it looks at its record every 15 s."""
WARM_UP = 5
RESAMPLED = 2000


def inventory_text(ranks: int, run: str) -> str:
    """A rack of single-GPU hosts, of which each two have a lane of their own through one switch, with a job."""
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
            f"  - {{name: train, ranks: [{names}], links: [{{kind: pairs, pairs: {json.dumps(pairs)}}}]{run}}}",
            "",
        ]
    )


@contextmanager
def rack(ranks: int, mbps: float, run: Callable[[Path], str] = lambda _: "") -> Iterator[Callable[[], Context]]:
    """A commissioned rack in a private folder, for which ``run`` gives the job's entry; yields what opens a context."""
    with tempfile.TemporaryDirectory(prefix="lumctl-bench-") as scratch:
        folder = Path(scratch)
        (folder / "r").mkdir(mode=0o700)
        os.environ["XDG_RUNTIME_DIR"] = str(folder / "r")
        (folder / "rack.yaml").write_text(inventory_text(ranks, run(folder)))
        inventory = load_inventory(folder / "rack.yaml")
        store = store_at(str(folder / "store"), rack="r")
        with launch(inventory, folder=folder / "sim", lane_mbps=mbps, tied=True) as sim:

            def opened() -> Context:
                return Context(inventory, "sim", endpoints=sim.endpoints(), store=lambda _rack: store)

            with opened() as context:
                commission(context)
            yield opened


def measured(mbps: float, rounds: int, ranks: int, sizes: Sequence[int]) -> list[dict[str, object]]:
    """What rank 0 reports: the seconds of each all-reduce, with its size, way, delay and round."""
    order = {"rounds": rounds, "sizes": list(sizes), "delays": DELAYS, "seconds_per_byte": 8 / (mbps * 1e6)}
    with rack(ranks, mbps) as opened, opened() as context:
        return list(said_by_ranks(RANK, context, context.assignment()["train"], order, PATIENCE_S))


def advised(mbps: float, ranks: int, size: int, seconds: float, late_s: float) -> dict[str, list[float]]:
    """The seconds of each step of a job that decides by itself whether to use a schedule, by the step's way."""
    step_s = LinkCost(0.0, 8 / (mbps * 1e6)).ring_s(ranks, size) + late_s
    steps = WARM_UP + max(round(seconds / step_s), 1)

    def run(folder: Path) -> str:
        command = [sys.executable, str(JOB), str(folder / "found.json"), str(size), str(steps), str(late_s)]
        return f', run: {{command: {json.dumps(command)}, straggler_schedule: "on", standby: false, folder: {folder}}}'

    with rack(ranks, mbps, run) as opened:
        with opened() as context:
            folder = context.inventory.path.parent
        run_job(opened, "train", "", lambda line: print(f"  {line}", file=sys.stderr))
        found = json.loads((folder / "found.json").read_text())[WARM_UP:]
    seconds_of: dict[str, list[float]] = {}
    for way, took in found:
        seconds_of.setdefault(way, []).append(took)
    return seconds_of


def report_advised(ranks: int, mbps: float, size: int, seconds: float, rng: Random) -> None:
    """Print how fast a job with advice is beside gloo, with no rank late and with one."""
    scatter_s = (ranks - 2) / (ranks - 1) * size * 8 / (mbps * 1e6)
    print(f"{ranks} ranks, {size >> 20} MiB, a job with straggler_schedule: on, times in ms")
    for late_s in (0.0, scatter_s):
        found = advised(mbps, ranks, size, seconds, late_s)
        gloo, scheduled = found["gloo"], found.get("scheduled", [])
        every = found.get("advised", []) + scheduled
        text = f"  late by {1e3 * late_s:.0f}: gloo {1e3 * median(gloo):.0f}"
        for name, times in (
            (f"all {len(every)} steps with advice", every),
            (f"{len(scheduled)} by schedule", scheduled),
        ):
            if times:
                low, high = unpaired_interval(gloo, times, rng)
                speed = f"over gloo {median(gloo) / median(times):.3f} ({low:.3f} to {high:.3f})"
                text += f"; {name} {1e3 * median(times):.0f}, {speed}"
        print(text, flush=True)


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
    return ends(ratios)


def unpaired_interval(theirs: Sequence[float], ours: Sequence[float], rng: Random) -> tuple[float, float]:
    """The same from times that have no rounds in common."""
    drawn = ([rng.choices(times, k=len(times)) for times in (theirs, ours)] for _ in range(RESAMPLED))
    return ends([median(their) / median(own) for their, own in drawn])


def ends(ratios: Sequence[float]) -> tuple[float, float]:
    ordered = sorted(ratios)
    return ordered[int(0.025 * RESAMPLED)], ordered[int(0.975 * RESAMPLED)]


def main(mbps: float, rounds: int, numbers: Sequence[int], megabytes: Sequence[int], seconds: float) -> None:
    print(f"lanes of {mbps:g} Mbit/s each way, {rounds} rounds; load {os.getloadavg()[0]:.1f}")
    rng = Random(1)
    for ranks in numbers:
        sizes = [each << 20 for each in megabytes]
        if rounds:
            report(ranks, mbps, measured(mbps, rounds, ranks, sizes), rng)
        if seconds:
            report_advised(ranks, mbps, min(sizes), seconds, rng)


if __name__ == "__main__":
    words = sys.argv[1:]
    main(
        float(words[0]) if words else MBPS,
        int(words[1]) if len(words) > 1 else ROUNDS,
        [int(each) for each in words[2].split(",")] if len(words) > 2 else RANKS,
        [int(each) for each in words[3].split(",")] if len(words) > 3 else MEGABYTES,
        float(words[4]) if len(words) > 4 else ADVISED_S,
    )
