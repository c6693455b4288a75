"""The contract of kinds of job control on this one: subclass the suite, and give it the control and its twin."""

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Unpack

import pytest
from lumctl_example_job import ExampleJob
from lumctl_example_job.job import ExampleHookEntry

from lumctl.errors import RefusedError, UnreachableError
from lumctl.jobs.control import Facts, More
from lumctl.jobs.testing import JobContract, JobUnderTest, bench_context, ranks
from lumctl.programs import Ended

STATES = {"running": "running", "held": "paused"}
HERE, ELSEWHERE = ranks("h1", "h2"), ranks("h1", "h3")
TWIN = Path(__file__).with_name("exq.py")


class Scheduler:
    """The twin's file, and settings that lead to it."""

    def __init__(self, file: Path, *, refuses: bool = False) -> None:
        self.file = file
        file.write_text(json.dumps({"is": "running", "hosts": ["h1", "h2"], "refuses": refuses}))
        self.settings = ExampleHookEntry(kind="example", id="42", program=[sys.executable, "-IS", str(TWIN), str(file)])

    def read(self, key: str) -> list[str]:
        """One value of the file."""
        found: list[str] = json.loads(self.file.read_text())[key]
        return found


@pytest.fixture
def scheduler(tmp_path: Path) -> Scheduler:
    """A scheduler with one job, which runs."""
    return Scheduler(tmp_path / "state.json")


class TestExampleJob(JobContract):
    """Every promise that lumctl relies on."""

    @pytest.fixture
    def job(self, scheduler: Scheduler, tmp_path: Path) -> JobUnderTest:
        """Give the control on its twin."""
        frozen = Scheduler(tmp_path / "frozen.json", refuses=True).settings
        absent = scheduler.settings.model_copy(update={"program": [sys.executable, "-c", "raise SystemExit(3)"]})
        context = bench_context(scheduler.settings, HERE)
        return JobUnderTest(
            control=ExampleJob(context),
            context=context,
            settings=scheduler.settings,
            placement=HERE,
            truth=lambda: STATES[str(scheduler.read("is"))],
            hosts=lambda: scheduler.read("hosts"),
            elsewhere=ELSEWHERE,
            facts=Facts("swap-0001", ["h2-gpu0"], ["h3-gpu0"]),
            refused=ExampleJob(bench_context(frozen, HERE)),
            silent=ExampleJob(bench_context(absent, HERE)),
        )


def test_after_a_change_no_refusal_says_that_the_job_is_as_it_was(scheduler: Scheduler) -> None:
    """The scheduler held the job, and will not say so."""
    context = bench_context(scheduler.settings, HERE)
    acts: list[str] = []

    def run(argv: Sequence[str], *, act: str, timeout_s: float, **more: Unpack[More]) -> Ended:
        acts.append(argv[-2])
        return (
            Ended(1, late=False, said="busy")
            if "hold" in acts[:-1]
            else context.run(argv, act=act, timeout_s=timeout_s, **more)
        )

    with pytest.raises(UnreachableError, match="exq hold was run before"):
        ExampleJob(replace(context, run=run)).pause(Facts(), HERE)
    assert scheduler.read("is") == "held"


def test_what_the_scheduler_says_is_in_the_error(scheduler: Scheduler) -> None:
    """A refusal is told from an answer that says nothing."""
    other = scheduler.settings.model_copy(update={"id": "7"})
    with pytest.raises(RefusedError, match="no job 7"):
        ExampleJob(bench_context(other, HERE)).status()
    words = scheduler.settings.model_copy(update={"program": [sys.executable, "-c", "print('asleep')"]})
    with pytest.raises(UnreachableError, match="'asleep', which is not a state"):
        ExampleJob(bench_context(words, HERE)).status()
