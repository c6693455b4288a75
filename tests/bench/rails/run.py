"""``make bench-rails``: what changes of light cost a training step, beside ranks whose light does not change.

    python tests/bench/rails/run.py [FOLDER]

Eight ranks run under ``lumctl job run`` on the simulated rack of inventories/rails.yaml, with its gateway. Their
computing is a wait of known length (``ranks.py``), so that windows are known and the CPU is not what is measured. All
variants take turns in one job; only bare gloo runs after it, under torchrun. The model gets the windows and steps of
the same run, and the time of a change of its idle ranks. With FOLDER, what the ranks wrote stays there.
"""

import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import demo
import figures
import memory
import ranks

from lumctl.devices.endpoints import sim_runtime_folder
from lumctl.inventory.load import load_inventory
from lumctl.sim import runtime, simulator
from lumctl.sim.world.work import ChangeTimes


def main() -> int:
    """Run all, and print the figures; 1 if a change of light failed."""
    began = time.monotonic()
    os.umask(0o077)  # as the simulator's own process
    print(
        f"{time.strftime('%Y-%m-%d')}, {platform.machine()}, {os.cpu_count()} cores, Python "
        f"{platform.python_version()}, load {os.getloadavg()[0]:.1f}"
    )
    with tempfile.TemporaryDirectory(prefix="lumctl-rails-") as made:
        folder = Path(made)
        light = in_job(folder)
        demo.under_torchrun([ranks.__file__, str(folder)])
        steps = {of: figures.read(folder, of) for of in ("job", "bare")}
        for path in folder.glob("*.jsonl") if sys.argv[1:] else ():
            Path(sys.argv[1], path.name).write_text(path.read_text())
    print(f"{light['changes']} changes of light in the job, {light['failed_changes']} failed")
    for line in chain(figures.lines(steps["job"], steps["bare"]), memory.lines()):
        print(line, flush=True)
    print(f"{time.monotonic() - began:.0f} s, load {os.getloadavg()[0]:.1f}")
    return 1 if light["failed_changes"] else 0


def in_job(folder: Path) -> dict[str, Any]:
    """Run the ranks under ``lumctl job run``; return the light of the ended job."""
    inventory = demo.inventory_with(folder, f"{ranks.__file__}, {folder}")
    environment = demo.environment_of(folder, inventory)
    os.environ["XDG_RUNTIME_DIR"] = environment["XDG_RUNTIME_DIR"]
    with simulated(inventory, folder / ranks.CHANGE_FILE), demo.served(environment, folder) as found:
        demo.lumctl(found, "job", "run", "train", "--yes")
        light: dict[str, Any] = json.loads(demo.lumctl(found, "job", "status", "train", "-o", "json"))["light"]
        return light


@contextmanager
def simulated(inventory: Path, change_file: Path) -> Iterator[None]:
    """The simulator, in this process: a change of its switches takes the milliseconds that a file holds."""

    class WrittenTimes(ChangeTimes):
        def of(self, device: str) -> float:
            del device
            return float(change_file.read_text() or 0) / 1000

    change_file.write_text("0")
    setattr(simulator, "ChangeTimes", WrittenTimes)  # noqa: B010 - to mypy, assigning a class is an error
    folder = sim_runtime_folder(inventory)
    with runtime.claimed(folder):
        running = simulator.Simulator(load_inventory(inventory), folder)
        running.start()
        try:
            yield
        finally:
            running.stop()


if __name__ == "__main__":
    sys.exit(main())
