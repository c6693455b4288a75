"""How soon a rank that is killed, or stopped, is known to have failed, beside another checkout, in interleaved runs.

    python tests/bench/jobs/detection.py OTHER [--runs 5] [--rounds 2]

OTHER is a checkout of another commit. Each round measures both with tests/bench/jobs/recover.py of this one: its kinds
crash (kill -9) and hang (SIGSTOP), on four ranks of a simulated rack. t0 is the signal; known is when the agent's word
has reached the coordinator.
"""

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parents[3]
KINDS = {"crash": "kill -9", "hang": "SIGSTOP"}
LINE = re.compile(r"^  detected +median +([0-9.]+) +best +([0-9.]+) +worst +([0-9.]+)$")


def measure(checkout: Path, kind: str, runs: int) -> str:
    """The median, best and worst time in milliseconds."""
    words = ["--ranks", "4", "--kinds", kind, "--runs", str(runs), "--beside", ""]
    said = subprocess.run(
        [sys.executable, str(HERE / "tests/bench/jobs/recover.py"), *words],
        env={**os.environ, "PYTHONPATH": str(checkout)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
        cwd=checkout,
    ).stdout
    found = next(match for line in said.splitlines() if (match := LINE.match(line)))
    return f"median {found[1]:>8}   best {found[2]:>8}   worst {found[3]:>8}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("other", type=Path)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    print("milliseconds from the signal until it is known")
    for _ in range(options.rounds):
        for kind, name in KINDS.items():
            for title, checkout in (("other", options.other.resolve()), ("this", HERE)):
                print(f"  {name:8} {title:6} {measure(checkout, kind, options.runs)}", flush=True)


if __name__ == "__main__":
    main()
