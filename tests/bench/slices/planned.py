"""Whole plans of scattered slices on a simulated torus64: servers and fibres, mesh routes, and the proof.

    python tests/bench/slices/planned.py [STATES] [SEEDS]

Each state has live slices on random servers, so that no box of 4x4x2 is free; then a 4x4x2 is planned with several
seeds. Measured is the time from a reading of the rack to a plan that is proved to change no circuit of another
slice: `plan_slice` and the foreign-circuit check, on one core. Ends with 1 if the median is over the limit.
"""

import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from random import Random
from statistics import median, quantiles
from time import perf_counter

sys.path.append(str(Path(__file__).resolve().parents[1] / "fabric"))

from machine import described

from lumctl.change import apply
from lumctl.change.foreign_circuits import require_foreign_circuits_kept
from lumctl.context import Context
from lumctl.errors import RefusedError
from lumctl.inventory.load import example, load_inventory
from lumctl.inventory.model import Role
from lumctl.inventory.slice_records import slices_in
from lumctl.sim.launch import launch
from lumctl.slices.planning import plan_slice
from lumctl.slices.release import plan_release
from lumctl.slices.request import SliceRequest, read_shapes
from lumctl.store import store_at
from lumctl.swap import commission

STATES, SEEDS, LIMIT_MS = 15, 10, 250.0
WANTED = "4x4x2"


def asked(shape: str, job: str, hosts: tuple[str, ...] = ()) -> SliceRequest:
    """A request for one slice."""
    return SliceRequest(read_shapes(shape), (job,), (), hosts=hosts)


def fill(context: Context, rng: Random) -> bool:
    """Place slices on one or two random hosts each, until no box is free; whether a 4x4x2 still has a place then."""
    hosts = sorted({each.host for each in context.inventory.accelerators.values() if each.role is Role.ACTIVE})
    rng.shuffle(hosts)
    while True:
        try:
            plan = plan_slice(context, asked(WANTED, "wanted"))
        except RefusedError as error:
            print(f"left out: {error}")
            return False
        if plan.slices is not None and not plan.slices.slices[0]["contiguous"]:
            return True
        taken = [hosts.pop() for _ in range(rng.randint(1, 2))]
        shape = "2x2x1" if len(taken) == 1 else "4x2x1"
        with suppress(RefusedError):
            apply(context, plan_slice(context, asked(shape, f"t{len(hosts)}", tuple(taken))))


def measured(context: Context, seeds: int) -> tuple[list[float], int, int]:
    """The time of each plan in ms, and how many circuits it adds and proves to be kept."""
    seen, took = context.observe(), list[float]()
    for seed in range(seeds):
        began = perf_counter()
        plan = plan_slice(context, asked(WANTED, "wanted"), seed=seed, seen=seen)
        require_foreign_circuits_kept(context, plan)
        took.append(1000 * (perf_counter() - began))
    return took, len(plan.add), len(plan.keep)


def main(states: int, seeds: int) -> int:
    """Measure and print."""
    inventory, took = load_inventory(example("torus64")), list[float]()
    cores = os.sched_getaffinity(0)
    with tempfile.TemporaryDirectory(prefix="lumctl-planned-") as scratch:
        store = store_at(str(Path(scratch) / "store"), rack="torus64")
        with (
            launch(inventory, folder=Path(scratch) / "sim", tied=True) as sim,
            Context(inventory, "sim", endpoints=sim.endpoints(), store=lambda _rack: store) as context,
        ):
            commission(context)
            for state in range(states):
                if fill(context, Random(state)):
                    os.sched_setaffinity(0, {max(cores)})
                    own, added, kept = measured(context, seeds)
                    os.sched_setaffinity(0, cores)
                    print(
                        f"state {state}: {added} circuits added, {kept} kept; median {median(own):.0f} ms", flush=True
                    )
                    took += own
                for name in slices_in(context.inventory, context.assignment()):
                    apply(context, plan_release(context, name, force=True))
    late = quantiles(took, n=20)[-1]
    print(f"{len(took)} plans: median {median(took):.0f} ms, 95th percentile {late:.0f} ms, most {max(took):.0f} ms")
    print(f"{'PASS' if median(took) <= LIMIT_MS else 'FAIL'}  median at most {LIMIT_MS:g} ms")
    print(described())
    return int(median(took) > LIMIT_MS)


if __name__ == "__main__":
    sys.exit(main(*(int(word) for word in sys.argv[1:3]), *(STATES, SEEDS)[len(sys.argv) - 1 :]))
