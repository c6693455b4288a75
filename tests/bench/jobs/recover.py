"""How long a job is away when one of its ranks dies: real training on a simulated rack, beside torchrun and torchft.

    python tests/bench/jobs/recover.py [--ranks 4,8] [--runs 30] [--kinds gpu,crash,hang,host]
        [--beside torchrun,torchft] [--times 5] [--picture FILE.svg] [--seed 1]

t0 is the kill; the end is the next step done by the whole group. Kinds, of a rank drawn by lot:
  gpu    its accelerator falls off the bus and its process is killed: a spare of the rack takes its place, its circuits
         are programmed and proved by light, its journal is on disk
  crash  its process is killed on a well accelerator: it continues in place, no light moves
  hang   its process is stopped (SIGSTOP): the heartbeat finds it (2 s), and it continues in place
  host   all accelerators of its host are lost, and their processes killed (8 ranks: two at once)
One job serves all runs of a kind; after each, ranks return to their own accelerators and all spares are ready again.
More than 8 ranks form a ring through an optical switch, eight on each host, beside one host of spares. They have no
standby processes, for this machine's memory holds only one process of each rank; so only gpu is measured.
The simulator and its lanes, which carry the ranks' traffic, run on the same cores. Not exercised: CUDA, NCCL, real
transceivers, the settling of a real mesh beyond what the inventory states (5 ms), models of real size.

The contenders train the same model on the same data over loopback, without a swap: --times kills each, each in a job of
its own, one after each kind of ours. They need tests/bench/jobs/requirements.txt. Ends with 1 if the median of gpu with
4 ranks is above 0.25 s, or a run did not come back.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from lumctl.change import apply
from lumctl.cli.drill import Drill, drilling
from lumctl.health.states import State
from lumctl.inventory.load import example, load_inventory
from lumctl.inventory.model import Inventory
from lumctl.runbook.actions import end_window, open_window, record
from lumctl.swap import plan_return
from lumctl.training.picture import About, save, this_machine
from lumctl.training.timeline import KnownBy, Moment, Timeline, in_order

LIMIT_S = 0.25
WELL, WELL_WITHIN_S = {State.OK, State.DISABLED}, 30.0
HOST_RANKS = 2
INVENTORIES = {4: "ring4", 8: "ring8"}
ON_A_HOST, SPARES = 8, 2
CONTENDERS = Path(__file__).parent / "contenders"
TIGHT_MS = {"torchft": (150, 500), "torchrun": (0,)}
"""The time-outs of collectives to try: three steps, and ten. The shortest that every rank keeps is the fastest."""
MOMENTS = ("detected", "held", "health", "planned", "circuits", "verified", "state", "joined", "step")


def strike(drill: Drill, kind: str, choice: random.Random) -> Timeline:
    """One failure of a kind."""
    ranks = len(drill.coordinator.state.group.members)
    rank = choice.randrange(ranks)
    if kind == "host":
        host = drill.coordinator.state.host_of(drill.coordinator.state.placement[rank])
        beside = [
            r
            for r, name in enumerate(drill.coordinator.state.placement)
            if drill.coordinator.state.host_of(name) == host
        ]
        return drill.strike(beside, lost=True)
    how = signal.SIGSTOP if kind == "hang" else signal.SIGKILL
    return drill.strike([rank], lost=kind == "gpu", how=how)


def mend(drill: Drill) -> None:
    """All accelerators are well again, and each rank is back on its own."""
    drill.wait(lambda: not drill.coordinator.state.under_examination, "the end of the run", 30.0)
    drill.sim.clear()
    if tuple(drill.coordinator.state.placement) != drill.inventory.jobs[drill.job].ranks:
        repaired(drill)
        apply(drill.context, plan_return(drill.context, drill.job))
    drill.settle(steps=5)


def repaired(drill: Drill) -> None:
    """What was seen of accelerators before they were repaired is not held against them: they were worked on."""
    context, rack = drill.context, drill.inventory.jobs[drill.job].rack
    record(
        context, "maintain", [open_window(rack, rack, "new accelerators", starts_in_s=0, for_s=60)], at=context.now()
    )
    context.observe()
    record(context, "maintain", [end_window(rack, rack)], at=context.now())
    deadline = time.monotonic() + WELL_WITHIN_S
    while ill := {n: h.state for n, h in context.observe().report.accelerators.items() if h.state not in WELL}:
        assert time.monotonic() < deadline, f"not well again: {ill}"


def large_ring(ranks: int) -> str:
    """The inventory of a ring of so many ranks through one switch."""
    hosts, lanes = ranks // ON_A_HOST, 2 * (ranks + SPARES)
    accelerators = [f"h{host}-gpu{gpu}" for host in range(1, hosts + 1) for gpu in range(ON_A_HOST)]
    transponders = "".join(
        f"""
  - id: {name}-{lane}
    accelerator: {name}
    interface: eth{2 + 2 * (number % ON_A_HOST) + port}
    device: switch
    tx: {2 * number + port}
    rx: {lanes + 2 * number + port}"""
        for number, name in enumerate([*accelerators, *(f"spare-gpu{gpu}" for gpu in range(SPARES))])
        for port, lane in enumerate("ab")
    )
    return f"""
lumctl: 1
racks: {{ring: {{location: made up}}}}
defaults: {{transponder: {{verify: [lldp]}}}}
hosts:
  - name: h[1-{hosts}]
    accelerators:
      - {{id: "{{host}}-gpu[0-{ON_A_HOST - 1}]", model: GPU, memory_gib: 80, pci: {addresses(ON_A_HOST)}}}
  - name: spare
    accelerators:
      - {{id: "{{host}}-gpu[0-{SPARES - 1}]", model: GPU, memory_gib: 80, role: spare, pci: {addresses(SPARES)}}}
devices:
  - {{id: switch, kind: switch, driver: polatis-scpi, address: "switch.example:5025", port_count: {2 * lanes},
     loss_per_port_db: 0.7, settle_ms: 5}}
transponders:{transponders}
jobs:
  - name: train
    ranks: h[1-{hosts}]-gpu[0-{ON_A_HOST - 1}]
    links: [{{kind: ring}}]
    run: {{command: [python3, -m, lumctl.training.example, --steps, "100000"]}}
"""


def addresses(count: int) -> list[str]:
    """PCI addresses of the accelerators of a host."""
    return [f"0000:{0x10 + 8 * number:02x}:00.0" for number in range(count)]


def inventory_of(ranks: int, folder: Path) -> Inventory:
    """An example, or a ring made for this number of ranks."""
    if ranks in INVENTORIES:
        return load_inventory(example(INVENTORIES[ranks]))
    path = folder / f"ring{ranks}.yaml"
    path.write_text(large_ring(ranks))
    return load_inventory(path)


def ours(ranks: int, kind: str, runs: int, seed: int) -> list[Timeline]:
    """Failures of one kind, in one job."""
    choice = random.Random(seed)
    found = []
    with (
        TemporaryDirectory(prefix="lumctl-bench-") as folder,
        drilling(inventory_of(ranks, Path(folder)), "train", standby=ranks in INVENTORIES) as drill,
    ):
        drill.settle(steps=10)
        for number in range(runs):
            one = strike(drill, kind, choice)
            found.append(one)
            print(f"  {number + 1}/{runs}: step after {one.failure_to_step_s:.3f} s", file=sys.stderr, flush=True)
            if number + 1 < runs:
                mend(drill)
    return found


def show(ranks: int, kind: str, timelines: list[Timeline]) -> float:
    """Print the moments; gives the median of the step."""
    print(f"\n{kind}, {ranks} ranks: {len(timelines)} runs, milliseconds since the kill")
    for name in MOMENTS:
        times = sorted(1000 * at for each in timelines if (at := each.at(name)) is not None)
        if times:
            print(f"  {name:10} median {median(times):8.1f}   best {times[0]:8.1f}   worst {times[-1]:8.1f}")
    return median([each.failure_to_step_s or float("inf") for each in timelines])


def beside(contender: str, ranks: int, times: int, seed: int) -> float:
    """Seconds from the kill to the next step, the median, with the time-out that serves it best."""
    return min(median(with_timeout(contender, ms, ranks, times, seed)) for ms in TIGHT_MS[contender])


def with_timeout(contender: str, ms: int, ranks: int, times: int, seed: int) -> list[float]:
    """Seconds from each kill to the next step, of all ranks or of those left; infinite if none came."""
    script = "torchft_manager.py" if contender == "torchft" else f"{contender}.py"
    command = [
        sys.executable,
        str(CONTENDERS / script),
        str(ranks),
        "--times",
        str(times),
        "--seed",
        str(seed),
        "--json",
    ]
    environment = {**os.environ, **({"TORCHFT_COLLECTIVE_MS": str(ms)} if ms else {})}
    said = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment).stdout
    found = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    best = [
        min((each[key] for key in ("whole_s", "shrunk_s") if each.get(key)), default=float("inf")) for each in found
    ]
    whole = [each["whole_s"] or float("inf") for each in found]
    named = f"{contender}, time-out {ms} ms" if ms else contender
    print(f"\n{named}, {ranks} ranks: {len(found)} kills, seconds to the next step, without any swap")
    print(f"  of all ranks       median {median(whole):8.3f}   worst {max(whole):8.3f}")
    if best != whole:
        print(f"  of those left, too median {median(best):8.3f}   worst {max(best):8.3f}")
    return best


def medians_and_worst(timelines: list[Timeline]) -> tuple[Timeline, dict[str, float]]:
    """The median of each moment as a timeline, and the latest time of each; some recoveries may lack a moment."""
    seconds: dict[str, list[float]] = {}
    titles: dict[str, str] = {}
    for timeline in timelines:
        for moment in timeline.moments:
            seconds.setdefault(moment.name, []).append(moment.seconds)
            titles[moment.name] = moment.title
    by_kill = all(timeline.known_by is KnownBy.KILL for timeline in timelines)
    typical = Timeline(
        min(timeline.t0 for timeline in timelines),
        KnownBy.KILL if by_kill else KnownBy.DETECTION,
        in_order(Moment(name, titles[name], median(found)) for name, found in seconds.items()),
        job=timelines[0].job,
    )
    return typical, {name: max(found) for name, found in seconds.items()}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", default="4,8")
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--kinds", default="gpu,crash,hang,host")
    parser.add_argument("--beside", default="torchrun,torchft")
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--picture", type=Path)
    options = parser.parse_args()
    print(f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}  {this_machine()}")
    slow = False
    for ranks in (int(word) for word in options.ranks.split(",")):
        medians = {}
        for kind in options.kinds.split(","):
            if (kind == "host" and ranks < 2 * HOST_RANKS + 1) or (kind != "gpu" and ranks not in INVENTORIES):
                continue  # a host of ring4 has one rank: that is gpu
            timelines = ours(ranks, kind, options.runs, options.seed)
            medians[kind] = show(ranks, kind, timelines)
            if kind == "gpu" and options.picture is not None and ranks == 4:
                title = f"One of {ranks} ranks and its GPU die: {options.runs} runs"
                typical, worst = medians_and_worst(timelines)
                heading = f"lumctl, measured: medians of {len(timelines)} runs, thin lines to the worst"
                about = About(this_machine(), f"{datetime.now(UTC):%Y-%m-%d}", worst, heading)
                save(options.picture, typical, about, title=title)
        for contender in filter(None, options.beside.split(",")):
            theirs = beside(contender, ranks, options.times, options.seed)
            for kind in ("gpu", "crash"):
                if kind in medians:
                    print(f"  {contender} takes {theirs / medians[kind]:.1f}x of our {kind}")
        slow |= ranks == 4 and medians.get("gpu", 0.0) > LIMIT_S
    return int(slow)


if __name__ == "__main__":
    sys.exit(main())
