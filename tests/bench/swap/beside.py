"""How long a swap takes beside another checkout of the program, in pairs: one swap here, one there, in turn.

    python tests/bench/swap/beside.py OTHER [PAIRS] [FOLDER]

OTHER is a checkout with its own environment in ``.venv``, such as ``git worktree add`` and ``make`` give. Each has its
own simulator and store, which stay for all pairs, and is measured by its own ``run.py`` from the fault to verified
circuits, with a mesh that answers at once. Which of the two goes first alternates. The processor time of each side and
of its simulator is compared as well: it depends less on what else the machine does. Ends with 1 if the median of the
pairs' ratios of time is above the limit.
"""

import json
import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean, median, quantiles

LIMIT = 1.05
PAIRS, WARM = 60, 5
HERE = Path(__file__).parents[3]
LARGE = Path("/var/tmp")  # noqa: S108 - on a disk; a folder of our own is made in it
TIME, CPU, SIMULATED = PARTS = ("fault to verified", "lumctl's CPU until verified", "simulator's CPU until verified")
SWAPS = """
import json, sys
from pathlib import Path
sys.path.insert(0, "tests/bench/swap")
import run
with run.rack(Path(sys.argv[1]), 0.0) as (sim, context, clocks, standby):
    for _ in sys.stdin:
        print(json.dumps(run.once(sim, context, clocks, standby)), flush=True)
"""


class Checkout:
    """A checkout whose swaps are measured one at a time."""

    def __init__(self, root: Path, folder: Path, stack: ExitStack) -> None:
        folder.mkdir()
        self._swaps = stack.enter_context(
            subprocess.Popen(
                [root / ".venv/bin/python", "-c", SWAPS, folder],
                cwd=root,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        )
        stack.callback(self._swaps.stdin.close)  # type: ignore[union-attr]  # it is a pipe

    def swap(self) -> dict[str, float]:
        """Milliseconds of the parts of one swap."""
        assert self._swaps.stdin is not None
        assert self._swaps.stdout is not None
        self._swaps.stdin.write("\n")
        self._swaps.stdin.flush()
        return dict(json.loads(self._swaps.stdout.readline()))


def main(other: Path, pairs: int, place: Path) -> int:
    """Measure, and print."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lumctl-beside-", dir=place)))
        here, there = Checkout(HERE, folder / "here", stack), Checkout(other, folder / "there", stack)
        swaps: list[tuple[dict[str, float], dict[str, float]]] = []
        for number in range(pairs + WARM):
            sides = (here, there) if number % 2 else (there, here)
            one, two = (side.swap() for side in sides)
            swaps.append((one, two) if number % 2 else (two, one))
    swaps = swaps[WARM:]
    now = datetime.now(UTC).isoformat(timespec="seconds")
    print(f"{now}  {os.cpu_count()} cores, load {os.getloadavg()[0]:.2f}, {pairs} interleaved pairs")
    ratios: dict[str, float] = {}
    for part in PARTS:
        ours, theirs = ([pair[side][part] for pair in swaps] for side in (0, 1))
        if part is SIMULATED:  # it counts in steps of some milliseconds: a median of few steps says little
            print(f"{part}: here {fmean(ours):.1f} ms, {other} {fmean(theirs):.1f} ms (means)")
            continue
        low, middle, high = quantiles([one / two for one, two in zip(ours, theirs, strict=True)], n=4)
        ratios[part] = middle
        print(f"{part}: here {median(ours):.1f} ms, {other} {median(theirs):.1f} ms (medians)")
        print(f"  ratio: median {middle:.3f}, quartiles {low:.3f} to {high:.3f}")
    print(f"limit of the ratio of time: {LIMIT}")
    return 1 if ratios[TIME] > LIMIT else 0


if __name__ == "__main__":
    sys.exit(
        main(
            Path(sys.argv[1]).resolve(),
            int(sys.argv[2]) if len(sys.argv) > 2 else PAIRS,
            Path(sys.argv[3]) if len(sys.argv) > 3 else LARGE,
        )
    )
