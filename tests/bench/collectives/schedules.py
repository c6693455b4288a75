"""The rounds of schedules for a late rank beside their bound and the published ones, and the time to build and check.

    python tests/bench/collectives/schedules.py [RUNS]

Prints the CPU time of each in the median of RUNS runs; nothing is asserted.
"""

import gc
import sys
from collections.abc import Callable
from statistics import median
from time import process_time

from lumctl.collectives import first_fault, ring, stragglar
from lumctl.collectives.cost import LinkCost, stragglar_cost
from lumctl.collectives.machine import run_program
from lumctl.collectives.msccl import msccl_lines
from lumctl.collectives.mscclpp import mscclpp_lines
from lumctl.collectives.schedule_files import read_file
from lumctl.collectives.stragglar import lower_bound

RUNS = 3
NUMBERS = (*range(2, 65), 96, 128, 192, 256, 1024)
AUTHORS = {6: 7, 10: 12, 12: 15, 14: 17, 20: 24, 24: 27, 48: 57, 96: 108, 192: 208}
"""The rounds that the authors of StragglAR publish for numbers that are no powers of two."""


def seconds(runs: int, act: Callable[[], object]) -> float:
    times = []
    for _ in range(runs):
        started = process_time()
        act()
        times.append(process_time() - started)
    return median(times)


def print_rounds() -> None:
    print("ranks: rounds (lower bound; published), each checked")
    cells = []
    for ranks in NUMBERS:
        schedule = stragglar(ranks, ranks - 1)
        assert first_fault(schedule) is None
        published = f"; {AUTHORS[ranks]}" if ranks in AUTHORS else ""
        cells.append(f"{ranks}: {len(schedule.rounds)} ({lower_bound(ranks)}{published})")
    for at in range(0, len(cells), 6):
        print("  " + "  ".join(f"{cell:<18}" for cell in cells[at : at + 6]).rstrip())


def print_times(runs: int) -> None:
    print(f"CPU seconds, median of {runs}")
    for ranks in (8, 64, 256, 1000, 1023, 1024):
        schedule = stragglar(ranks, 0)
        built = seconds(runs, lambda ranks=ranks: stragglar(ranks, 0))
        checked = seconds(runs, lambda schedule=schedule: first_fault(schedule))
        print(f"  {ranks:>5} ranks: built {built:.4f}, checked {checked:.4f}")
    every = seconds(runs, lambda: [stragglar(ranks, 0) for ranks in range(2, 65)])
    print(f"  2 to 64 ranks, all 63 built: {every:.4f}")
    print(f"   1024 ranks, ring built: {seconds(runs, lambda: ring(1024)):.4f}")
    for ranks in (8, 32, 64):
        for lines in (msccl_lines, mscclpp_lines):
            content = "\n".join(lines(stragglar(ranks, 0))).encode()
            run = seconds(runs, lambda content=content: run_program(read_file(content), 0))
            print(f"  {ranks:>5} ranks: {lines.__name__.partition('_')[0]} read and executed {run:.3f}")


def print_gains() -> None:
    print("speed over ring for large buffers: after the arrival, at the best delay, without a delay")
    for ranks in (3, 4, 8, 16, 64, 256):
        cost = stragglar_cost(ranks, 1e9, LinkCost(0.0, 1e-9))
        print(f"  {ranks:>5} ranks: {cost.gain_after:.3f}  {cost.best_gain:.3f}  {cost.gain(0.0):.3f}")


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else RUNS
    gc.set_threshold(100_000)  # as the program has it
    print_rounds()
    print_times(runs)
    print_gains()


if __name__ == "__main__":
    main()
