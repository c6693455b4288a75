"""Start-up: wall time of ``lumctl --help`` against a bare ``import typer``, alternating so that both see the same load.

    python tests/bench/startup.py [RUNS]

Prints both medians and their ratio; ends with 1 if the ratio is above the limit that CONTRIBUTING.md states.
"""

import subprocess
import sys
from pathlib import Path
from statistics import median
from time import perf_counter

LIMIT = 1.5
RUNS = 21
BASE = [sys.executable, "-c", "import typer"]
HELP = [str(Path(sys.executable).with_name("lumctl")), "--help"]


def wall_s(command: list[str]) -> float:
    started = perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return perf_counter() - started


def measure(runs: int) -> tuple[float, float]:
    """Medians of the base and of the help, in seconds; the first pair only warms the disk cache."""
    pairs = [(wall_s(BASE), wall_s(HELP)) for _ in range(runs + 1)][1:]
    return median(base for base, _ in pairs), median(shown for _, shown in pairs)


def main() -> int:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else RUNS
    base, shown = measure(runs)
    ratio = shown / base
    print(f"python -c 'import typer'   {base * 1000:7.1f} ms   median of {runs}")
    print(f"lumctl --help              {shown * 1000:7.1f} ms   median of {runs}")
    print(f"ratio                      {ratio:7.2f}      limit {LIMIT}")
    return 0 if ratio <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
