"""What the dashboard costs beside another checkout of the program: ``live.py`` here and there, in turn.

    python tests/bench/tui/beside.py OTHER [ROUNDS] [SECONDS] [KEYS]

OTHER is a checkout, such as ``git worktree add`` gives; it runs in its own ``.venv``, or in this Python if it has none.
Each round watches each pane for SECONDS and presses KEYS keys, here and there; which goes first alternates. Prints the
median of each figure, and of the rounds' ratios.
"""

import os
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

HERE = Path(__file__).parents[3]
ROUNDS, SECONDS, KEYS = 5, 10.0, 60
SHARE = re.compile(r"^(\w+) +([\d.]+)% of one core", re.MULTILINE)
KEY = re.compile(r"after ([\d.]+) ms in the median, ([\d.]+) ms at the 95th")


def measured(checkout: Path, seconds: float, keys: int) -> dict[str, float]:
    """The figures of a checkout's own ``live.py``: percents of a core for each pane, milliseconds for a key."""
    own = checkout / ".venv/bin/python"
    done = subprocess.run(
        [own if own.exists() else sys.executable, "tests/bench/tui/live.py", f"--seconds={seconds}", f"--keys={keys}"],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(checkout), os.environ.get("PYTHONPATH", "")])},
        capture_output=True,
        text=True,
        check=True,
    )
    key = KEY.search(done.stdout)
    assert key is not None, done.stdout
    shares = {f"{pane}, % of a core": float(share) for pane, share in SHARE.findall(done.stdout) if pane != "htop"}
    return {**shares, "key, ms (median)": float(key[1]), "key, ms (p95)": float(key[2])}


def main(other: Path, rounds: int, seconds: float, keys: int) -> None:
    """Measure, and print."""
    pairs: list[tuple[dict[str, float], dict[str, float]]] = []
    for number in range(rounds):
        sides = (HERE, other) if number % 2 else (other, HERE)
        one, two = (measured(side, seconds, keys) for side in sides)
        pairs.append((one, two) if number % 2 else (two, one))
    now = datetime.now(UTC).isoformat(timespec="seconds")
    print(f"{now}  {os.cpu_count()} cores, load {os.getloadavg()[0]:.2f}, {rounds} interleaved rounds")
    for name in pairs[0][0]:
        ratio = median(here[name] / there[name] for here, there in pairs)
        ours, theirs = (median(pair[side][name] for pair in pairs) for side in (0, 1))
        print(f"{name:26} here {ours:6.1f}, {other.name} {theirs:6.1f}, ratio {ratio:.2f}")


if __name__ == "__main__":
    given = sys.argv[2:]
    main(
        Path(sys.argv[1]).resolve(),
        int(given[0]) if given else ROUNDS,
        float(given[1]) if len(given) > 1 else SECONDS,
        int(given[2]) if len(given) > 2 else KEYS,
    )
