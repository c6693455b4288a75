"""Jobs that an operator stopped for a run and has not resumed, as far as their accelerators show it."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lumctl.context import Context
from lumctl.fleet.readings import GpuReading
from lumctl.health.observation import Observation
from lumctl.health.states import State
from lumctl.jobs.hooks import jobs_to_resume
from lumctl.store import StoredRun

FORGOTTEN_S = 86_400.0
"""A job that is idle for so long after a run was not forgotten: it has ended, or is stopped for another reason."""


@dataclass(frozen=True, slots=True)
class StoppedJob:
    """A job without a hook that a run has moved and that does not run yet: the accelerators in ``idle`` do no work.

    ``failed`` are accelerators of the job that must be replaced before it can be resumed.
    """

    job: str
    run: StoredRun
    idle: tuple[str, ...]
    failed: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """What has not happened."""
        return f"{self.job} was not resumed after {self.run.id}"

    @property
    def command(self) -> str:
        """The command that resumes it; empty if no command does, or not yet."""
        return f"lumctl sim resume {self.job}" if self.run.target == "sim" and not self.failed else ""

    @property
    def advice(self) -> str:
        """How to resume it."""
        if self.failed:
            return f"replace {', '.join(self.failed)} before you resume it"
        return f"resume it: {self.command}" if self.command else "resume it by hand: it has no hook"


class ResumptionWatch:
    """Remembers which jobs ran again after a run: idle later, they have ended and are not to be resumed."""

    def __init__(self) -> None:
        self._resumed: set[tuple[str, str, str]] = set()

    def stopped(self, observation: Observation, runs: Iterable[StoredRun]) -> tuple[StoppedJob, ...]:
        """The jobs that were not resumed after the last run that moved them; ``runs`` are newest first."""
        found, known = [], set[str]()
        for run in runs:
            if run.ended_at is None or not 0 <= observation.at - run.ended_at < FORGOTTEN_S or run.state != "done":
                continue
            moved = dict(_moved(run.plan))
            for job in jobs_to_resume(observation.inventory, run.plan.get("warnings", ()), moved.keys() - known):
                key, readings = (run.rack, run.id, job), _readings_since(run.ended_at, observation, moved[job])
                if key in self._resumed:
                    continue
                idle = tuple(name for name, reading in readings.items() if reading.is_idle)
                if idle:
                    found.append(StoppedJob(job, run, idle, _failed(observation, job)))
                elif len(readings) == len(moved[job]):
                    self._resumed.add(key)
            known |= moved.keys()
        return tuple(found)


def stopped_jobs(context: Context, seen: Observation) -> tuple[StoppedJob, ...]:
    """The jobs of all racks that were not resumed, for a command that looks once.

    Raises:
        StoreError: the store of a rack cannot be read.
    """
    runs = [
        run
        for rack in seen.inventory.racks
        for run in context.store(rack).runs.moves(since=seen.at - FORGOTTEN_S, now=seen.at)
    ]
    return ResumptionWatch().stopped(seen, sorted(runs, key=lambda run: -run.started_at))


def _moved(plan: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The accelerators that a plan newly gives to each job."""
    for step in plan.get("steps", ()):
        if step.get("do") == "assign":
            for job, ranks in step["data"]["assignment"].items():
                before = step["data"]["before"].get(job, ())
                if new := tuple(name for name in ranks if name not in before):
                    yield job, new


def _readings_since(ended_at: float, observation: Observation, names: Iterable[str]) -> dict[str, GpuReading]:
    """The readings of accelerators that were taken after a run."""
    readings = ((name, observation.gpus.get(name)) for name in names)
    return {name: each for name, each in readings if each is not None and each.taken_at > ended_at}


def _failed(observation: Observation, job: str) -> tuple[str, ...]:
    accelerators = observation.report.accelerators
    return tuple(
        name
        for name in observation.assignment.get(job, ())
        if name in accelerators and accelerators[name].state is State.FAILED
    )
