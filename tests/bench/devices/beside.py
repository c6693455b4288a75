"""How long drivers take beside another checkout of the program: a run of ``overhead.py`` here, one there, in turn.

    python tests/bench/devices/beside.py OTHER [PAIRS]

OTHER is a checkout with its own environment in ``.venv``. Which of the two goes first alternates. Each ratio is of the
medians of one pair of runs, the device's own time included. Ends with 1 if the median over all drivers is above the
limit.
"""

import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from statistics import geometric_mean, median, quantiles

from overhead import MESHES, SWITCHES

LIMIT = 1.1
PAIRS, ROUNDS = 20, 60
HERE = Path(__file__).parents[3]


def medians_ms(root: Path) -> dict[str, float]:
    """The median of each driver's write, in milliseconds."""
    command = [root / ".venv/bin/python", "tests/bench/devices/overhead.py", str(ROUNDS)]
    table = subprocess.run(command, cwd=root, stdout=subprocess.PIPE, text=True, check=False).stdout
    rows = [line.split() for line in table.splitlines()]
    return {row[0]: float(row[1]) for row in rows if row and row[0] in {*MESHES, *SWITCHES}}


def main(other: Path, pairs: int) -> int:
    """Measure, and print."""
    found: list[tuple[dict[str, float], dict[str, float]]] = []
    for number in range(pairs):
        roots = (HERE, other) if number % 2 else (other, HERE)
        one, two = (medians_ms(root) for root in roots)
        found.append((one, two) if number % 2 else (two, one))
    now = datetime.now(UTC).isoformat(timespec="seconds")
    print(
        f"{now}  {os.cpu_count()} cores, load {os.getloadavg()[0]:.2f}, {pairs} interleaved pairs, each {ROUNDS} writes"
    )
    ratios: dict[str, list[float]] = {
        driver: [here[driver] / there[driver] for here, there in found] for driver in found[0][0]
    }
    ratios["all drivers"] = [geometric_mean(each) for each in zip(*ratios.values(), strict=True)]
    for driver, each in ratios.items():
        low, middle, high = quantiles(each, n=4)
        print(f"{driver:20} ratio: median {middle:.3f}, quartiles {low:.3f} to {high:.3f}")
    overall = median(ratios["all drivers"])
    print(f"limit {LIMIT}")
    return 1 if overall > LIMIT else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), int(sys.argv[2]) if len(sys.argv) > 2 else PAIRS))
