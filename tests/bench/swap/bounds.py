"""What bounds the time of a swap: for each of its parts, who computed meanwhile, and what was waited for.

    python tests/bench/swap/bounds.py [ROUNDS] [FOLDER]

Measured as ``run.py`` does it, with a mesh that answers at once. All figures are means, for the processor time of the
simulator counts in steps of some milliseconds. Simulator and lumctl are two processes and may compute at the same
time. ``disk`` is the time of transactions in which lumctl did not compute; ``rest`` is the time beyond lumctl's own and
the disk: the simulator's answers and their way through the connections, the 5 ms in which the mesh settles, and
whatever else the machine does.
"""

import sys
import tempfile
from pathlib import Path
from statistics import fmean

import run

ROUNDS = 100
DISK = "waiting for the disk"


def main(rounds: int, folder: Path) -> None:
    """Measure, and print."""
    print(run.machine())
    with (
        tempfile.TemporaryDirectory(prefix="lumctl-swap-", dir=folder) as scratch,
        run.rack(Path(scratch), 0.0) as (sim, context, clocks, standby),
    ):
        for _ in range(run.WARM):
            run.measured(sim, context, clocks, standby)
        swaps = [run.measured(sim, context, clocks, standby) for _ in range(rounds)]
    print(f"\n{rounds} swaps, means in ms{'time':>17}{'lumctl':>9}{'simulator':>11}{'disk':>8}{'rest':>8}")
    for part in swaps[0]:
        if part == DISK:
            continue
        wall, cpu, simulated = (1000 * fmean(swap[part][place] for swap in swaps) for place in range(3))
        written = part.startswith("journal") or part in {"lease", "begin"}
        disk = 1000 * fmean(swap[DISK].wall for swap in swaps) if part == run.WHOLE else wall - cpu if written else 0.0
        print(f"  {part:32}{wall:9.1f}{cpu:9.1f}{simulated:11.1f}{disk:8.1f}{wall - cpu - disk:8.1f}")
    print(f"\n{run.machine()}")


if __name__ == "__main__":
    words = sys.argv[1:]
    main(int(words[0]) if words else ROUNDS, Path(words[1]) if len(words) > 1 else run.LARGE)
