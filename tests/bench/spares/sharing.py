"""The time to share 1,000 spares of 64 racks among 100 demands, under each policy; a demand in the store; a full queue.

    python tests/bench/spares/sharing.py [RUNS]

Prints medians; ends with 1 if one is above its limit.
"""

import sys
import tempfile
import tracemalloc
from pathlib import Path
from random import Random
from statistics import median
from time import perf_counter, time

from lumctl.spares.decision import decide
from lumctl.spares.policies import POLICIES
from lumctl.spares.sharing import Demand, FreeSpare, SharingQuestion
from lumctl.store import CANCELLED, store_at

RUNS = 21
SHARE_MS, STORE_MS, QUEUE_MB = 20.0, 5.0, 20.0
RACKS, SPARES, DEMANDS, QUEUED = 64, 1000, 100, 10_000


def racks(rng: Random) -> list[SharingQuestion]:
    """A question for each rack that has demands."""
    spares: list[dict[str, FreeSpare]] = [{} for _ in range(RACKS)]
    for number in range(SPARES):
        name, replaces = ("common", 1) if rng.random() < 0.7 else ("rare", 2)
        spares[number % RACKS][f"s{number}"] = FreeSpare(f"s{number}", name, replaces)
    demands: list[list[Demand]] = [[] for _ in range(RACKS)]
    for number in range(DEMANDS):
        rack = rng.randrange(RACKS)
        classes = ("rare",) if rng.random() < 0.3 else ("common", "rare")
        usable = tuple(name for name, spare in spares[rack].items() if spare.accelerator_class in classes)
        row = (usable,) * rng.randint(1, 8)
        able = (frozenset(classes),) * len(row)
        demands[rack].append(Demand(f"demand-{number:04}", f"job-{number % 7}", float(number), row, able))
    return [SharingQuestion(1e6, tuple(of), spares[rack]) for rack, of in enumerate(demands) if of]


def main() -> int:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else RUNS
    slow, asked = False, racks(Random(1))
    print(f"{DEMANDS} demands, {SPARES} spares, {RACKS} racks, median of {runs}")
    for name in POLICIES:
        took = []
        for _ in range(runs):
            began = perf_counter()
            served = sum(len(decide(name, question).given) for question in asked)
            took.append((perf_counter() - began) * 1000)
        slow |= median(took) > SHARE_MS
        print(f"{name:10} {served:3} served  {median(took):6.1f} ms (limit {SHARE_MS:g})")
    with tempfile.TemporaryDirectory() as folder:
        store = store_at(f"sqlite:///{folder}/lumctl.db", files=Path(folder), rack="r1")
        took = []
        for number in range(runs):
            began = perf_counter()
            wanted = {"train": (f"a{number}",)}
            (demand,) = store.demands.ask("r1", wanted, why="no spare is free", who="bench", at=time())
            took.append((perf_counter() - began) * 1000)
            store.demands.end(demand.id, CANCELLED, why="", who="bench", at=time())
        slow |= median(took) > STORE_MS
        print(f"a demand is queued, journalled and synced in {median(took):.1f} ms (limit {STORE_MS:g})")
        for number in range(QUEUED):
            wanted = {f"job-{number}": (f"b{number}",)}
            store.demands.ask("r1", wanted, why="no spare is free", who="bench", at=time())
        tracemalloc.start()
        waiting = store.demands.waiting()
        held_mb = tracemalloc.get_traced_memory()[0] / 1e6
        store.close()
    slow |= held_mb > QUEUE_MB or len(waiting) != QUEUED
    print(f"{len(waiting)} queued demands take {held_mb:.1f} MB (limit {QUEUE_MB:g})")
    return int(slow)


if __name__ == "__main__":
    sys.exit(main())
