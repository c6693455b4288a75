"""Filler jobs in a plan: which of them give up the spares that it takes, and which get theirs back."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lumctl.context import Observation
from lumctl.errors import RefusedError
from lumctl.inventory.filler_records import running_fillers, stopped_filler, stopped_fillers
from lumctl.inventory.model import Job
from lumctl.inventory.wiring import Assignment, jobs_in
from lumctl.spares.fitness import unfit_reasons


@dataclass(frozen=True, slots=True)
class FillerChanges:
    """The filler jobs that a plan stops, and those that it starts again, each with its spares."""

    stopped: Mapping[str, tuple[str, ...]]
    started: Mapping[str, tuple[str, ...]]

    @property
    def records(self) -> dict[str, tuple[str, ...]]:
        """The records of these filler jobs after the plan."""
        given_up = {stopped_filler(name): ranks for name, ranks in self.stopped.items()}
        return {**given_up, **{stopped_filler(name): () for name in self.started}}

    def why(self) -> Iterator[str]:
        """What happens to these filler jobs, in words."""
        for name, ranks in self.stopped.items():
            yield f"filler job {name} gives up {', '.join(ranks)}: it is paused first"
        for name, ranks in self.started.items():
            yield f"filler job {name} runs again on {', '.join(ranks)}"


def require_startable(seen: Observation, filler: Job) -> None:
    """Require that a filler job is stopped, and that its spares are free and fit for use.

    Raises:
        RefusedError: it runs, or a spare of it is in use or not fit.
    """
    name = filler.name
    if filler not in stopped_fillers(seen.inventory, seen.assignment):
        raise RefusedError(
            f"filler job {name} has not given up its spares: there is nothing to move back",
            hint="see: lumctl spare list",
        )
    for accelerator in filler.ranks:
        if (place := seen.place_of(accelerator)) is not None:
            raise RefusedError(
                f"filler job {name} cannot run again: {accelerator} runs rank {place[1]} of {place[0]}",
                hint=f"once that accelerator of {place[0]} is repaired: lumctl swap plan {place[0]} --back",
            )
    if (why := next(_unfit(seen, filler.ranks), None)) is not None:
        raise RefusedError(f"filler job {name} cannot run again: {why}", hint="see: lumctl spare list")


def filler_changes(seen: Observation, taken: Collection[str], after: Assignment) -> FillerChanges:
    """The filler jobs that a plan stops and starts: it takes these spares, and leaves jobs placed as in ``after``."""
    running = running_fillers(seen.inventory, seen.assignment)
    stopped = [job for spare, job in running.items() if spare in taken]
    used = {name for ranks in jobs_in({**seen.assignment, **after}).values() for name in ranks}
    given_up = stopped_fillers(seen.inventory, seen.assignment)
    started = [job for job in given_up if not used & set(job.ranks) and not any(_unfit(seen, job.ranks))]
    return FillerChanges({job.name: job.ranks for job in stopped}, {job.name: job.ranks for job in started})


def filler_documents(seen: Observation, racks: Collection[str]) -> list[dict[str, Any]]:
    """The filler jobs of some racks as data: ``words`` say what each does, ``command`` starts a stopped one again."""
    found = []
    stopped = stopped_fillers(seen.inventory, seen.assignment)
    for job in seen.inventory.fillers.values():
        if job.rack in racks:
            words, command = f"runs on {', '.join(job.ranks)}", None
            if job in stopped:
                words, command = f"gave up {', '.join(job.ranks)}", f"lumctl swap plan {job.name} --back"
                try:
                    require_startable(seen, job)
                except RefusedError as error:
                    words, command = f"{words}; {error.hint}", None
            found.append(
                {
                    "name": job.name,
                    "rack": job.rack,
                    "accelerators": list(job.ranks),
                    "running": job not in stopped,
                    "words": words,
                    "command": command,
                }
            )
    return found


def _unfit(seen: Observation, accelerators: Iterable[str]) -> Iterator[str]:
    for name in accelerators:
        yield from (f"{name} {why}" for why in unfit_reasons(seen, name))
