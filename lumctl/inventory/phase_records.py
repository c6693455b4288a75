"""The phase of a job that has light, in an assignment: a record under ``phase of JOB``.

It holds the name of the phase and, if a plan permits the job to change it while it runs, the name of that permit.
Without a record, or with an empty one, the first phase of the job's order has light.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from lumctl.inventory.model import Inventory, Job, JobPhase

PHASE = "phase of "
"""The beginning of the name of such a record. It has blanks, so no job's name can begin with it."""

_MOST_IN_RECORD = 2

Placed = Mapping[str, tuple[str, ...]]


def phase_of(job: str) -> str:
    """The name of the record of a job's phase in an assignment."""
    return f"{PHASE}{job}"


def is_phase(name: str) -> bool:
    """Whether a name in an assignment is that of the record of a job's phase."""
    return name.startswith(PHASE)


def phase_misfit(inventory: Inventory, name: str, record: tuple[str, ...]) -> str | None:
    """Why the record of a job's phase does not fit the inventory, or ``None``. An empty record always fits."""
    job = inventory.jobs.get(name.removeprefix(PHASE))
    known = [phase.name for phase in job.phases] if job else []
    fits = not record or (len(record) <= _MOST_IN_RECORD and record[0] in known)
    return None if fits else f"it has no phase {', '.join(record)}"


def lit_phase(job: Job, assignment: Placed) -> JobPhase:
    """The phase of a job with phases that has light; a record that does not fit the inventory is ignored."""
    record = assignment.get(phase_of(job.name), ())
    name = record[0] if record else job.order[0]
    known = {phase.name: phase for phase in job.phases}
    return known.get(name) or known[job.order[0]]


def phase_permit(job: str, assignment: Placed) -> str | None:
    """The permit by which a job may change its phase while it runs (``Plan.permit``); ``None`` if it has none."""
    record = assignment.get(phase_of(job), ())
    return record[1] if len(record) == _MOST_IN_RECORD else None


def without_permits(assignment: Placed, jobs: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The records of those of some jobs that have permits, without their permits."""
    return {phase_of(job): assignment[phase_of(job)][:1] for job in jobs if phase_permit(job, assignment)}


def as_lit(job: Job, assignment: Placed) -> Job:
    """The job with the links that have light."""
    return job.in_phase(lit_phase(job, assignment)) if job.phases else job


def with_phases(inventory: Inventory, assignment: Placed) -> Inventory:
    """The inventory whose jobs have the links that have light."""
    jobs = {name: as_lit(job, assignment) for name, job in inventory.jobs.items()}
    return inventory if jobs == inventory.jobs else replace(inventory, jobs=jobs)


def phases_among(assignment: Placed, jobs: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The records of the phases of some jobs."""
    return {name: assignment[name] for name in map(phase_of, jobs) if name in assignment}
