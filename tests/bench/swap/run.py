"""How long a swap takes from the fault to circuits that are verified, and where that time goes.

    python tests/bench/swap/run.py [ROUNDS] [FOLDER]

The prototype inventory and its simulator, a process of its own whose hosts answer over SSH and whose mesh answers over
TCP. The fleet's sessions are open and a revert guard stands by: neither has to be waited for. A round: the accelerator
is lost (``sim fault s1-gpu0 gpu-lost``); t0 is the moment from which an open channel reads that. Then ticks until there
is a finding, the plan, and its run. The end is the moment at which the proof of the new circuits is on disk; what comes
after it (the placement, the end of the run, the lease) is told apart. Afterwards the run is undone, and all is as
it was for the next round.

The journal lies in FOLDER (a fresh one in it; else in the system's folder for large temporary files), which must be a
disk, and every transaction is synced. How long one fsync takes there is measured beside, and so is the processor time
of this process and of the simulator; both are in all the figures. The inventory is the one of the prototype as it is:
that its mesh is given 5 ms to settle is in the figures too. Once the simulated mesh answers at once, and once its cells
take 100 ms for each commit: what is beyond that must be the same. Ends with 1 if a median is above the limit.
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean, median, quantiles

from clocks import Clocks, Stamp
from place import Place

from lumctl.change import apply
from lumctl.change.guard import Standby
from lumctl.context import Context, Observation
from lumctl.devices.endpoints import Endpoints
from lumctl.health.acknowledgements import EventClear
from lumctl.health.states import State
from lumctl.inventory.load import example, load_inventory
from lumctl.sim.launch import SimProcess, launch
from lumctl.store import store_at
from lumctl.swap import commission, plan_rollback, plan_swap

LIMIT_MS = 60.0
ROUNDS, WARM = 100, 3
SETTLE_MS = (0.0, 100.0)
WHOLE = "fault to verified"
JOB, VICTIM, SPARE = "finetune", "s1-gpu0", "s3-gpu0"
LARGE = Path("/var/tmp")  # noqa: S108 - unlike /tmp on a disk everywhere; a folder of our own is made in it
_WELL_WITHIN_S = 30.0


@contextmanager
def rack(
    folder: Path, settle_ms: float, *, way: Callable[[Endpoints], Endpoints] = lambda endpoints: endpoints
) -> Iterator[tuple[SimProcess, Context, Clocks, Standby]]:
    """A commissioned rack whose mesh settles in this time, and clocks on all that its store writes.

    ``way`` may put something before the simulator's endpoints.
    """
    inventory = load_inventory(example("prototype"))
    store = store_at(str(folder / "store"), rack="prototype")
    clocks = Clocks(store)
    with (
        launch(inventory, folder=folder / "sim", delay_ms=settle_ms, tied=True) as sim,
        Context(inventory, "sim", endpoints=way(sim.endpoints()), store=lambda _rack: store) as context,
    ):
        clocks.simulated = lambda: cpu_ms(sim) / 1000
        commission(context)
        with Standby(context) as standby:
            yield sim, context, clocks, standby


def once(sim: SimProcess, context: Context, clocks: Clocks, standby: Standby) -> dict[str, float]:
    """Milliseconds of each part of one swap."""
    parts = measured(sim, context, clocks, standby)
    whole = parts.pop(WHOLE)
    return {
        WHOLE: 1000 * whole.wall,
        **{name: 1000 * took.wall for name, took in parts.items()},
        "transactions": len(clocks.swap),
        "lumctl's CPU until verified": 1000 * whole.cpu,
        "simulator's CPU until verified": 1000 * whole.simulated,
    }


def measured(sim: SimProcess, context: Context, clocks: Clocks, standby: Standby) -> dict[str, Stamp]:
    """What each part of one swap took; afterwards the run is undone."""
    standby.ready("prototype")
    heal(sim, context)
    clocks.clear()
    sim.inject(VICTIM, "gpu-lost")
    began = clocks.now()
    seen = context.observe(tick=True)
    while state_of(seen, VICTIM) is not State.FAILED:
        seen = context.observe(tick=True)
    found = clocks.now()
    plan = plan_swap(context, JOB, [VICTIM], seen=seen)
    planned = clocks.now()
    result = apply(context, plan, arm=standby.arm)
    ended = clocks.now()
    assert result.outcome == "done"
    assert {proof.circuit for proof in result.verified} == {circuit.id for circuit in plan.add}
    verified = clocks.verified(plan)
    clocks.keep()
    apply(context, plan_rollback(context, context.store("prototype").runs.get(result.run)))
    return {
        WHOLE: verified - began,
        "detection": found - began,
        "planning": planned - found,
        **clocks.parts(planned, ended),
        "waiting for the disk": Stamp(clocks.waited_for_disk(verified)),
        "after it": ended - verified,
    }


def heal(sim: SimProcess, context: Context) -> None:
    """Repair everything, end the victim's events as an operator does, and wait until a tick finds nothing wrong."""
    sim.clear()
    repaired = EventClear(VICTIM, None, "the benchmark", "repaired", context.now())
    context.store("prototype").health.clear_events(repaired)
    deadline = time.monotonic() + _WELL_WITHIN_S
    while any(state_of(seen := context.observe(tick=True), each) is not State.OK for each in (VICTIM, SPARE)):
        assert time.monotonic() < deadline, f"{VICTIM} is {state_of(seen, VICTIM)}, {SPARE} is {state_of(seen, SPARE)}"


def state_of(seen: Observation, accelerator: str) -> State:
    return seen.report.accelerators[accelerator].state


def cpu_ms(sim: SimProcess) -> float:
    """Processor time that the simulator has used so far; it counts in steps of some milliseconds."""
    fields = Path(f"/proc/{sim.process.pid}/stat").read_text().rpartition(")")[2].split()
    return 1000 * (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def show(settle_ms: float, rounds: list[dict[str, float]]) -> float:
    """Print the parts; gives the median of what is beyond the settling."""
    print(f"\nsettling {settle_ms:g} ms: {len(rounds)} swaps{'median':>22}{'p95':>9}{'best':>9}{'worst':>9}")
    for part in rounds[0]:
        times = [one[part] for one in rounds]
        unit = "" if part == "transactions" else " ms"
        row = [median(times), quantiles(times, n=20)[18], min(times), max(times)]
        mean = f"   mean {fmean(times):.1f}" if part.startswith("simulator's") else ""
        print(f"  {part:32}" + "".join(f"{value:9.1f}" for value in row) + unit + mean)
    beyond = median(one["fault to verified"] for one in rounds) - settle_ms
    print(f"  beyond the settling: {beyond:.1f} ms median, limit {LIMIT_MS:g} ms")
    return beyond


def machine() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")
    load = ", ".join(f"{value:.2f}" for value in os.getloadavg())
    cores = len(os.sched_getaffinity(0))
    now = datetime.now(UTC)
    return f"{now:%Y-%m-%dT%H:%M:%SZ}  {model}, {cores} cores, load {load}, Python {sys.version.split()[0]}"


def main(rounds: int, folder: Path) -> int:
    slow = []
    print(machine())
    for settle_ms in SETTLE_MS:
        with (
            tempfile.TemporaryDirectory(prefix="lumctl-swap-", dir=folder) as scratch,
            rack(Path(scratch), settle_ms) as (sim, context, clocks, standby),
        ):
            place = Place(Path(scratch) / "store", clocks.store)
            print(f"\njournal in {place}")
            all_rounds = [once(sim, context, clocks, standby) for _ in range(rounds + WARM)]
            if show(settle_ms, all_rounds[WARM:]) > LIMIT_MS:
                slow.append(f"settling {settle_ms:g} ms")
    print(f"\n{'all within' if not slow else 'above: ' + ', '.join(slow)}\n{machine()}")
    return 1 if slow else 0


if __name__ == "__main__":
    words = sys.argv[1:]
    sys.exit(main(int(words[0]) if words else ROUNDS, Path(words[1]) if len(words) > 1 else LARGE))
