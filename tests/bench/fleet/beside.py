"""A tick over many hosts beside another checkout of lumctl: one tick here, one there, in turn, over the same sshd.

    python tests/bench/fleet/beside.py OTHER [PAIRS] [HOSTS]

OTHER is a checkout with its own environment in ``.venv``, such as ``git worktree add`` and ``make`` give. Every byte of
every answer is new in every tick, and checked. Prints the medians of the pairs' ratios, this checkout's by the other's,
of wall time and client CPU; ends with 1 if one is above the limit.
"""

import random
import sys
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from statistics import median, quantiles

import payload
from driver import Contender, Tick
from rack import Rack, addresses, allow_many_files
from roster import Entry

LIMIT = 1.05
PAIRS, HOSTS, BYTES, WARM = 40, 256, 40960, 6
HERE = Path(__file__).parents[3]


def main(other: Path, pairs: int, hosts: int) -> int:
    """Measure, print, and say whether the limit holds."""
    allow_many_files()
    ticks: dict[str, list[Tick]] = {"here": [], "there": []}
    with Rack(addresses(hosts)) as rack, ExitStack() as running:
        payload.put(rack.payload, payload.fresh(BYTES))
        contenders = {}
        for name, root in (("here", HERE), ("there", other.resolve())):
            script = root / "tests/bench/fleet/contender_lumctl.py"
            contender = Contender(Entry(name, str(script), name), rack, str(root / ".venv/bin/python"), name=name)
            running.callback(contender.close)
            contenders[name] = contender
        order = list(contenders)
        draw = random.Random(0)
        for at in range(WARM + pairs):
            draw.shuffle(order)
            for name in order:
                digest = payload.put(rack.payload, payload.fresh(BYTES))
                tick = contenders[name].tick()
                contenders[name].check(digest)
                if at >= WARM:
                    ticks[name].append(tick)
    print(f"{pairs} pairs of ticks over {hosts} hosts, {BYTES} bytes each, {datetime.now(UTC):%Y-%m-%d %H:%MZ}")
    ratios = {
        "wall": [here.wall_s / there.wall_s for here, there in zip(ticks["here"], ticks["there"], strict=True)],
        "client CPU": [here.cpu_s / there.cpu_s for here, there in zip(ticks["here"], ticks["there"], strict=True)],
    }
    for what, found in ratios.items():
        low, _, high = quantiles(found, n=4)
        print(f"{what}: {median(found):.3f} times the other's (quartiles {low:.3f} to {high:.3f}; limit {LIMIT})")
    return int(any(median(found) > LIMIT for found in ratios.values()))


if __name__ == "__main__":
    counts = [int(word) for word in sys.argv[2:]]
    sys.exit(main(Path(sys.argv[1]), *(counts + [PAIRS, HOSTS][len(counts) :])))
