"""The status of a job that lumctl runs: where it comes from, and how it is printed.

It comes from the ``lumctl job run`` that runs the job, else from the files that it left when it ended.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lumctl.cli.invocation import Invocation
from lumctl.cli.output import OutputColumn
from lumctl.cli.verbs import aimed
from lumctl.errors import LumctlError, RefusedError
from lumctl.inventory.folded_names import fold
from lumctl.inventory.model import Inventory, Job
from lumctl.inventory.problems import require_known
from lumctl.printable import counted
from lumctl.time_text import moment_text

if TYPE_CHECKING:
    from lumctl.change.plan import Plan
    from lumctl.inventory.wiring import Assignment

JobArgument = Annotated[str, typer.Argument(metavar="JOB", help="The job's name.")]
ASK_WITHIN_S = 5.0
LIST_WITHIN_S = 1.0
"""The shorter time limit for a list of jobs, so that a job that does not answer does not delay the others."""


def status_of(cx: Invocation, job: str) -> dict[str, Any]:
    """The status that a job's coordinator reports, or reported when it ended.

    Raises:
        RefusedError: no lumctl on this machine runs the job, and its end is unknown.
    """
    found = asked(cx, job, ASK_WITHIN_S)
    if found is None:
        raise nobody(cx, job)
    return found


def state_of(cx: Invocation, job: Job) -> str | None:
    """The word for a job's state, ``None`` if unknown."""
    if job.run is None:
        return None
    try:
        found = asked(cx, job.name, LIST_WITHIN_S)
    except LumctlError:
        return None
    return str(found["state"]) if found is not None else None


def asked(cx: Invocation, job: str, within_s: float) -> dict[str, Any] | None:
    """The status of a job's coordinator, or the job's end; ``None`` if neither is known."""
    from lumctl.context.job_files import COORDINATOR, job_folder
    from lumctl.training.job_control import ask
    from lumctl.training.job_folder import ended_status

    folder = job_folder(cx.inventory.path, str(cx.target), job)
    return ask(folder / COORDINATOR, "status", timeout_s=within_s) or ended_status(folder)


def nobody(cx: Invocation, job: str) -> RefusedError:
    """The error for a job that no lumctl on this machine runs, so that it cannot be read or stopped."""
    from lumctl.context.job_files import job_folder
    from lumctl.training.job_folder import ended_status

    last = ended_status(job_folder(cx.inventory.path, str(cx.target), job))
    how = f": it {ended_line(last)}" if last is not None else ""
    return RefusedError(
        f"no lumctl on this machine runs job {job}{how}",
        hint=f"lumctl job run {job} starts it, or takes over its processes where they still run",
    )


def require_not_run(cx: Invocation, inventory: Inventory, plan: "Plan") -> None:
    """Refuse a plan that takes all accelerators from a job while ``lumctl job run`` runs it: it would wait for ever.

    Raises:
        RefusedError: such a job runs.
    """
    from lumctl.change.plan import Do

    placed = (step.data["assignment"] for step in plan.steps if step.do is Do.ASSIGN)
    released = {name for assignment in placed for name, ranks in assignment.items() if not ranks}
    jobs = [inventory.jobs[name] for name in sorted(released & inventory.jobs.keys())]
    if not jobs:
        return
    from lumctl.context.job_files import coordinator_socket
    from lumctl.training.job_control import ask

    for job in jobs:
        place = coordinator_socket(cx.inventory.path, str(cx.target), job.name)
        if job.run is not None and ask(place, "status", timeout_s=ASK_WITHIN_S) is not None:
            raise RefusedError(
                f"{job.name} runs: without its accelerators, lumctl job run would wait for them for ever",
                hint=f"stop it first: lumctl job stop {job.name}",
            )


def placed_jobs(cx: Invocation) -> "tuple[Inventory, Assignment]":
    """The inventory with the slices, and the accelerators of each job now; hosts and devices are not contacted."""
    from lumctl.context import Context

    with Context(cx.inventory, cx.target) as context:
        placed = context.assignment()
        return context.inventory, placed


def find_job(inventory: Inventory, name: str) -> Job:
    """A job of the inventory.

    Raises:
        UsageError: no job has that name.
    """
    require_known("job", [name], inventory.jobs, str(inventory.path))
    return inventory.jobs[name]


Row = Mapping[str, Any]

RANKS = (
    OutputColumn("RANK", "rank", right=True),
    OutputColumn("ACCELERATOR", "accelerator"),
    OutputColumn("HOST", "host"),
    OutputColumn("WORKER", "worker", wide=True),
    OutputColumn("PID", "pid", right=True, wide=True),
    OutputColumn("DOES", "doing"),
    OutputColumn("STEPS", "done", right=True),
)
READY = (
    OutputColumn("READY ON", "accelerator"),
    OutputColumn("HOST", "host"),
    OutputColumn("WORKER", "worker", wide=True),
    OutputColumn("PID", "pid", right=True, wide=True),
)
RECOVERIES = (
    OutputColumn("AT", "at", gives_way=3),
    OutputColumn("CAUSE", "cause"),
    OutputColumn("FAILED", "failed"),
    OutputColumn("REPLACED BY", "replaced_by"),
    OutputColumn("CIRCUITS AFTER", "circuits", right=True, gives_way=2),
    OutputColumn("STEP AFTER", "step", right=True),
    OutputColumn("RUN", "run", gives_way=1),
)
UNDER_WAY = "under way"
NONE_DONE = "none"
IN_PLACE = "restarted in place"


def print_job(cx: Invocation, document: Row) -> None:
    """Print the document of a running job."""
    cx.out.text(headline(document, str(cx.target)))
    if document.get("ended_at") is not None:
        cx.out.text(f"{ended_line(document)}{': ' if document['why'] else ''}{document['why'] or ''}")
        for path in document["saved"]:
            cx.out.text(f"checkpoint: {path}")
    elif document.get("why"):
        cx.out.text(aimed(cx, f"{document['state']}: {document['why']}"))
    if (light := document.get("light")) is not None:
        from lumctl.training.phase_record import light_words

        for line in light_words(light):
            cx.out.text(f"light: {line}")
    tables: list[tuple[str, Sequence[OutputColumn], list[Row]]] = [
        ("ranks", RANKS, [{**rank, "doing": rank["state"]} for rank in document["ranks"]]),
        ("ready", READY, list(document["ready"])),
        ("recoveries", RECOVERIES, recovery_rows(document)),
    ]
    for title, columns, rows in tables:
        if rows:
            cx.out.text()
            cx.out.table(columns, rows, title=title)


def ended_line(document: Row) -> str:
    """The end of an ended job: ``stopped after 200 steps at 2027-01-15 09:00:00``."""
    return f"{document['state']} after {counted(document['done'], 'steps')} at {moment_text(document['ended_at'])}"


def headline(document: Row, target: str) -> str:
    """The job in one line: its state, progress, speed, and number of recoveries."""
    parts = [document["job"], document["state"], f"target: {target}"]
    if 0 < len(document["ranks"]) < document["of"]:
        parts.append(f"{len(document['ranks'])} of {document['of']} ranks")
    parts.append(counted(document["done"], "steps"))
    if document.get("loss") is not None:
        parts.append(f"loss: {document['loss']:.6g}")
    if document.get("rate_steps_per_s") is not None and document["state"] == "running":
        parts.append(f"{document['rate_steps_per_s']:.3g} steps/s")
    parts.append(f"generation: {document['generation']}")
    if document.get("scheduled_for") is not None:
        parts.append(f"works around rank {document['scheduled_for']}, which is late")
    recovered = sum(recovery["failure_to_step_s"] is not None for recovery in document["recoveries"])
    if recovered:
        parts.append(f"recovered: {counted(recovered, 'times')}")
    return "  ".join(parts)


def recovery_rows(document: Row) -> list[Row]:
    """One row for each recovery; the last one is marked as in progress if the job is recovering or waiting."""
    recoveries = document["recoveries"]
    # Only the last recovery can be under way; an earlier one without a step was overtaken by the next failure.
    last = len(recoveries) - 1 if document["state"] in {"recovering", "waiting"} else -1
    return [_recovery_row(recovery, NONE_DONE if at != last else UNDER_WAY) for at, recovery in enumerate(recoveries)]


def _recovery_row(recovery: Row, without_step: str) -> dict[str, Any]:
    from lumctl.training.timeline import in_words

    circuits, step = recovery["failure_to_circuits_s"], recovery["failure_to_step_s"]
    spares = list(recovery["replaced_by"].values())
    without = ", ".join(f"continued without rank {rank}" for rank in recovery["without"])
    in_place = without or ("" if step is None else IN_PLACE)
    return {
        **recovery,
        "at": moment_text(recovery["at"]),
        "failed": ", ".join(fold(recovery["failed"])),
        "replaced_by": ", ".join(fold(spares)) or in_place,
        "circuits": None if circuits is None else in_words(circuits),
        "step": without_step if step is None else in_words(step),
    }
