"""What a gateway adds to a call: the same driver asked from here, and through a gateway in a process of its own.

    python tests/bench/devices/gateway.py [ROUNDS]

The calls are a mesh's answer to who it is, and the commit of nine cells with what goes before and after it, as the
change engine does it; the simulator's devices settle at once, the store is SQLite on this machine's disk. Ends with 1
if a call's median is more than the limit slower.
"""

import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from statistics import median, quantiles

sys.path.insert(0, str(Path(__file__).parents[2] / "contract"))

from gateways import process, through

from lumctl.context import Context
from lumctl.devices import transaction
from lumctl.devices.transaction import LightDriver
from lumctl.inventory.load import load_inventory
from lumctl.sim.launch import launch
from lumctl.store import store_at

LIMIT_MS = 1.0
ROUNDS, WARM = 300, 20
PUCS = (3, 7, 11, 12, 19, 23, 24, 31, 40)
RACK = """\
lumctl: 1
racks:
  r1:
hosts:
  - name: h1
    accelerators:
      - {id: g1, model: X100, memory_gib: 80}
devices:
  - {id: m1, kind: mesh, driver: sim-mesh, address: "x:1", geometry: {columns: 7, rows: 3}, settle_ms: 0}
"""


def calls(driver: LightDriver, round_: int) -> dict[str, Callable[[], object]]:
    """What is timed."""
    cells = [(puc, "=x"[1 - round_ % 2], "=x"[round_ % 2]) for puc in PUCS]
    staged = transaction.stage(driver, cells)
    return {
        "identify": driver.identify,
        "stage": lambda: transaction.stage(driver, cells),
        "commit": lambda: driver.commit(staged),
        "compare": lambda: driver.compare(staged),
    }


def main(rounds: int) -> int:
    """Ask in turns, and print."""
    found: dict[str, list[tuple[float, float]]] = {}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lumctl-")))
        (folder / "rack.yaml").write_text(RACK)
        inventory = load_inventory(folder / "rack.yaml")
        sim = stack.enter_context(launch(inventory, folder=folder / "sim", tied=True))
        place, socket = str(folder / "store"), folder / "r1.sock"
        store = store_at(place, rack="r1")
        stack.callback(store.close)
        lease = store.leases.acquire("r1", "the measurement", term_s=3600.0, now=time.time())
        order = {"inventory": str(inventory.path), "sim": str(sim.folder), "store": place, "rack": "r1"}
        stack.enter_context(process({**order, "socket": str(socket)}))
        contexts = [
            stack.enter_context(Context(inventory, "sim", endpoints=endpoints, store=lambda _: store))
            for endpoints in (sim.endpoints(), through(sim.endpoints(), socket))
        ]
        for context in contexts:
            context.act_under(lease)
        for round_ in range(rounds + WARM):
            times: dict[str, list[float]] = {}
            for context in contexts if round_ % 2 else contexts[::-1]:
                for name, call in calls(context.devices.mesh("m1"), round_).items():
                    began = time.perf_counter()
                    call()
                    times.setdefault(name, []).append((time.perf_counter() - began) * 1000)
            for name, (first, second) in times.items():
                pair = (first, second) if round_ % 2 else (second, first)
                found.setdefault(name, []).append(pair)
    print(f"{'ms':10} {'direct':>15} {'gateway':>15} {'adds':>7}\n{'':10} {'p50':>7} {'p95':>7} {'p50':>7} {'p95':>7}")
    slow = []
    for name, pairs in found.items():
        columns = [list(column) for column in zip(*pairs[WARM:], strict=True)]
        figures = [figure for column in columns for figure in (median(column), quantiles(column, n=20)[18])]
        adds = figures[2] - figures[0]
        print(f"{name:10} " + " ".join(f"{each:7.2f}" for each in (*figures, adds)))
        slow += [name] * (adds > LIMIT_MS)
    print(f"\nlimit {LIMIT_MS:g} ms: {'all within' if not slow else 'above: ' + ', '.join(slow)}")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS))
