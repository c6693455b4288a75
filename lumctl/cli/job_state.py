"""What a job does now or how it ended: asked of the ``lumctl job run`` that runs it, else what that one has left."""

from typing import Any

from lumctl.cli.invocation import Invocation
from lumctl.errors import LumctlError, RefusedError, UsageError
from lumctl.inventory.model import Inventory, Job
from lumctl.inventory.problems import nearest

ASK_WITHIN_S = 5.0
LIST_WITHIN_S = 1.0
"""The same for a list of jobs, in which one that does not answer must not hold up the others."""


def status_of(cx: Invocation, job: str) -> dict[str, Any]:
    """The status that a job's coordinator reports, or reported when it ended.

    Raises:
        RefusedError: it does not run from this machine, and how it ended is not known.
    """
    found = _asked(cx, job, ASK_WITHIN_S)
    if found is None:
        raise nobody(cx, job)
    return found


def state_of(cx: Invocation, job: str) -> str | None:
    """The word for a job's state, ``None`` if unknown."""
    if cx.inventory.jobs[job].run is None:
        return None
    try:
        found = _asked(cx, job, LIST_WITHIN_S)
    except LumctlError:
        return None
    return str(found["state"]) if found is not None else None


def _asked(cx: Invocation, job: str, within_s: float) -> dict[str, Any] | None:
    """The status of a job's coordinator, or how the job ended; ``None`` if neither is known."""
    from lumctl.training.job_control import ask
    from lumctl.training.job_folder import COORDINATOR, ended_status, job_folder

    folder = job_folder(cx.inventory.path, str(cx.target), job)
    return ask(folder / COORDINATOR, "status", timeout_s=within_s) or ended_status(folder)


def nobody(cx: Invocation, job: str) -> RefusedError:
    """The error for a job that does not run from this machine, so it cannot be read or stopped."""
    from lumctl.cli.job_tables import ended_line
    from lumctl.training.job_folder import ended_status, job_folder

    last = ended_status(job_folder(cx.inventory.path, str(cx.target), job))
    how = f": it {ended_line(last)}" if last is not None else ""
    return RefusedError(
        f"nobody runs job {job} from this machine{how}",
        hint=f"lumctl job run {job} starts it, or takes its processes over where they run on",
    )


def find_job(inventory: Inventory, name: str) -> Job:
    """A job of the inventory.

    Raises:
        UsageError: there is none of that name.
    """
    if name in inventory.jobs:
        return inventory.jobs[name]
    near = nearest(name, inventory.jobs)
    known = f"did you mean {near}?" if near else f"the jobs are: {', '.join(inventory.jobs) or 'none'}"
    raise UsageError(f"no job {name!r} in {inventory.path}", hint=known)
