"""The peak memory of a process that solves cases of a study: alone, or of the engine's workers; prints KiB as JSON.

python tests/bench/studies/worker_memory.py alone|workers STUDY [NAME=VALUE ...]
"""

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path

WORKERS = 2


def peak_kib() -> int:
    """The most that this program has had in memory. Unlike getrusage, nothing of the process that started it."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


def measured(module: str, *case: object) -> Iterator[dict[str, int]]:
    """Solve a case; gives only the peak."""
    rows = list(import_module(module).STUDY.solve(*case))
    assert rows
    yield {"peak_kib": peak_kib()}


def main() -> None:
    way, name, *given = sys.argv[1:]
    module = f"lumctl.studies.{name.replace('-', '_')}"
    study = import_module(module).STUDY
    cases = [(module, *case) for case in study.cases(study.settings(given, quick=True))]
    if way == "alone":
        rows = [row for case in cases for row in measured(*case)]
    else:
        from lumctl.studies.engine import StudyWorkers, solve_cases

        study = replace(study, solve=measured)
        solved = solve_cases(study, dict(enumerate(cases)), StudyWorkers(WORKERS))
        rows = [row for _, found in solved for row in found]
    print(json.dumps(max(row["peak_kib"] for row in rows)))


if __name__ == "__main__":
    main()
