"""Whether the dashboard's memory stays flat: an hour of virtual time, a thousand accelerators new each second.

``PYTHONPATH=tests/contract python tests/bench/tui/memory.py [--minutes N]``. The application is the real one, on a
screen that nobody sees; time is told to it. Prints what the process holds after each tenth of it.
"""

import argparse
import asyncio
import gc
import os
import re
import tempfile
import time
from pathlib import Path
from typing import NoReturn

from looks import Looks
from many_racks import inventory_of

from lumctl.cli.output import GLYPHS
from lumctl.errors import RefusedError
from lumctl.inventory.load import load_inventory
from lumctl.inventory.model import Inventory
from lumctl.tui.actions import Acts
from lumctl.tui.app import Dashboard
from lumctl.tui.look.marks import Marks
from lumctl.tui.sources import Sources
from lumctl.tui.threads.collector import Observed
from lumctl.tui.views.records import RecordedLook

RACKS = 16
START = 1_795_000_000.0
TENTHS = 10
ONLY_SHOWN = "this is a measurement, which only shows"


async def hour(inventory: Inventory, seconds: int) -> None:
    """So many looks, one for each second."""
    looks, now = Looks(inventory), [START]
    dashboard = Dashboard(
        Sources(lambda: looks.look(now[0])),
        Acts(_refused, _refused, ONLY_SHOWN),
        racks=inventory.racks,
        target="rack",
        marks=Marks(GLYPHS),
        interval_s=1e6,
        now=lambda: now[0],
    )
    first = 0.0
    async with dashboard.run_test(size=(160, 50)) as pilot:
        for second in range(seconds + 1):
            now[0] = START + second
            if second % 60 == 0:
                await pilot.press(str(1 + second // 60 % 9))
            dashboard.post_message(Observed(RecordedLook(looks.look(now[0], failed=["r03-h02-gpu1"]))))
            await pilot.pause(0)
            if second and second % (seconds // TENTHS) == 0:
                gc.collect()
                held = _held_mib()
                first = first or held
                print(f"{second / 60:5.1f} min  {held:6.1f} MiB  {held - first:+.1f}", flush=True)


def _held_mib() -> float:
    found = re.search(r"VmRSS:\s+(\d+)", Path("/proc/self/status").read_text())
    return int(found[1]) / 1024 if found else 0.0


def _refused(*_: object) -> NoReturn:
    raise RefusedError(ONLY_SHOWN)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=int, default=60)
    began = time.monotonic()
    os.environ.setdefault("TERM", "xterm-256color")
    seconds = parser.parse_args().minutes * 60
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "racks.yaml")
        path.write_text(inventory_of(RACKS))
        inventory = load_inventory(path)
    asyncio.run(hour(inventory, seconds))
    print(f"in {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
