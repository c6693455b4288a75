"""What the dashboard costs with a thousand accelerators, each second new: CPU, and how soon a key is answered.

``python tests/bench/tui/live.py [--seconds N] [--keys N]``. The daemon's socket serves looks that were made up (see
``looks.py``); the dashboard is the real command in tmux. Beside it, where they are installed, htop and glances show as
many processes at the same rate.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from many_racks import inventory_of
from peers import others
from terminal import Terminal

HERE = Path(__file__).parent
RACKS = 16
BACKGROUND = re.compile(r"48;2;\d+;\d+;\d+")
HEAD, FOOT = 5, 1
"""How many lines stand above and below a table."""
PANES = {"1": "racks", "2": "accelerators", "3": "circuits"}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=30.0, help="for how long each pane is watched")
    parser.add_argument("--keys", type=int, default=100, help="how many keys are pressed")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lumctl-bench-") as folder:
        place = Path(folder)
        (place / "run").mkdir(mode=0o700)
        inventory = place / "racks.yaml"
        inventory.write_text(inventory_of(RACKS))
        os.environ |= {"XDG_RUNTIME_DIR": str(place / "run"), "XDG_STATE_HOME": str(place)}
        paths = os.pathsep.join([str(HERE.parents[1] / "contract"), str(HERE)])
        with subprocess.Popen(
            [sys.executable, str(HERE / "daemon.py"), str(inventory), "rack", "r03-h02-gpu1"],
            env={**os.environ, "PYTHONPATH": paths},
            stdout=subprocess.PIPE,
            text=True,
        ) as daemon:
            try:
                assert daemon.stdout is not None
                assert daemon.stdout.readline() == "ready\n"
                watch(inventory, arguments.seconds, arguments.keys)
            finally:
                daemon.terminate()
    for name, share, memory in others(64 * RACKS, arguments.seconds):
        print(f"{name:<14} {share:7.1%} of one core, {memory:.0f} MiB, of {64 * RACKS} processes", flush=True)


def watch(inventory: Path, seconds: float, keys: int) -> None:
    """The dashboard, pane by pane, then its keys."""
    words = [sys.executable, "-m", "lumctl", "-i", str(inventory), "top", "--interval", "1"]
    terminal = Terminal("lumctl", words)
    try:
        terminal.until(lambda screen: "live, read" in screen)
        for key, pane in PANES.items():
            terminal.press(key)
            time.sleep(3)  # the first showing of a pane is no part of its running cost
            cpu, began = terminal.cpu_s(), time.monotonic()
            time.sleep(seconds)
            share = (terminal.cpu_s() - cpu) / (time.monotonic() - began)
            print(f"{pane:<14} {share:7.1%} of one core, {terminal.memory_mib():.0f} MiB", flush=True)
        terminal.press("2")
        time.sleep(1)
        waited = sorted(answered(terminal, "j" if number % 20 < 10 else "k") for number in range(keys))
        print(
            f"a key is answered after {statistics.median(waited) * 1000:.0f} ms in the median, "
            f"{waited[int(len(waited) * 0.95)] * 1000:.0f} ms at the 95th percentile, "
            f"{waited[-1] * 1000:.0f} ms at worst"
        )
    finally:
        terminal.close()


def answered(terminal: Terminal, key: str) -> float:
    """How long it takes from a key to the cursor's new place on the screen (seconds)."""
    before = selected(terminal.screen(colours=True))
    began = time.monotonic()
    terminal.press(key)
    return terminal.until(lambda screen: selected(screen) != before, colours=True) - began


def selected(screen: str) -> int:
    """Which line is selected: the one of a table with a background of its own."""
    lines = screen.splitlines()[HEAD:-FOOT]
    backgrounds = [frozenset(BACKGROUND.findall(line)) for line in lines]
    counted = Counter(colour for each in backgrounds for colour in each)
    own = (number for number, each in enumerate(backgrounds) if any(counted[colour] == 1 for colour in each))
    return next(own, -1)


if __name__ == "__main__":
    main()
