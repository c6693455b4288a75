"""A study whose cases take some time, for tests of what solves cases; one of them may kill the process that solves it.

As a program it is ``lumctl`` with this study: ``python drawn_study.py study run drawn``.
"""

import os
import signal
import sys
import time
from pathlib import Path
from random import Random

from lumctl.studies.claim import Claim, found_value
from lumctl.studies.study import Study, StudyParameter, StudyPlot


def _cases(settings):
    seconds, fatal = settings["seconds"][0], int(settings["fatal"][0])
    for seed in range(int(settings["seeds"][0])):
        yield seed, seconds, fatal if seed == 1 else 0, os.environ.get("DRAWN_DEATHS", "")


def _solve(seed, seconds, fatal, deaths):
    # Each death leaves a file: a process that was killed remembers nothing.
    if fatal and len(list(Path(deaths).iterdir())) < fatal:
        Path(deaths, str(os.getpid())).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(seconds)
    for draw in range(2):
        number = Random(seed * 2 + draw).random()  # noqa: S311 - no secret
        yield {"seed": seed, "draw": draw, "number": number, "word": f"{number:.3f}", "beyond": float("inf")}


def _values(_, rows):
    return {"drawn.mean": {"all": found_value(sum(row["number"] for row in rows) / len(rows))}} if rows else {}


STUDY = Study(
    name="drawn",
    question="What is drawn at $5 (a sign that is no formula$)?",
    parameters=(
        StudyParameter("seeds", "How many cases.", (8,), 1, 1000, whole=True, several=False),
        StudyParameter("seconds", "What each takes.", (0.0,), 0, 60, several=False),
        StudyParameter("fatal", "How often the second one kills its worker.", (0,), 0, 10, whole=True, several=False),
    ),
    claims=(Claim("drawn.mean", "a test", "the mean", 0.5, "of 1", 0.3, {"all": "of all draws"}),),
    cases=_cases,
    solve=_solve,
    values=_values,
    plots=(StudyPlot("seed", ("number", "beyond"), "seed", "number (of 1)", ("draw",)),),
)

if __name__ == "__main__":
    import drawn_study  # workers import it by this name

    from lumctl.cli.main import run
    from lumctl.studies import STUDIES

    STUDIES["drawn"] = drawn_study.STUDY
    sys.exit(run(sys.argv[1:]))
