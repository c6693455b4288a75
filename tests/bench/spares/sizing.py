"""The time to size a pool of 4,096 accelerators, with rates that are equal, unequal, or with hosts that fail whole.

    python tests/bench/spares/sizing.py [RUNS]

Prints the median of each; ends with 1 if one takes longer than the limit.
"""

import sys
from dataclasses import replace
from statistics import median
from time import perf_counter

from lumctl.spares.sizing import Groups, even_groups, size_pool, spread

LIMIT_MS = 100.0
RUNS = 11
ACCELERATORS, PER_HOST, AVAILABILITY, REPAIR_S = 4096, 8, 0.999, 5 * 86_400.0


def rack(low: float, high: float, host_rate: float) -> Groups:
    groups = spread(even_groups(ACCELERATORS, PER_HOST), low, high)
    return tuple(replace(group, rate=host_rate) for group in groups)


def main() -> int:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else RUNS
    slow = False
    print(f"{ACCELERATORS} accelerators, {PER_HOST} to a host, availability {AVAILABILITY}, median of {runs}")
    for low, high, host_rate in ((0.02, 0.02, 0.0), (0.01, 0.03, 0.0), (0.03, 0.05, 0.0), (0.01, 0.03, 0.002)):
        groups = rack(low, high, host_rate)
        times_ms = []
        for _ in range(runs):
            started = perf_counter()
            found = size_pool(groups, AVAILABILITY, REPAIR_S)
            times_ms.append((perf_counter() - started) * 1000)
        slow |= median(times_ms) > LIMIT_MS
        print(f"rates {low:.2f}-{high:.2f}, hosts {host_rate:.3f}: {found.exact} spares  {median(times_ms):6.1f} ms")
    return int(slow)


if __name__ == "__main__":
    sys.exit(main())
