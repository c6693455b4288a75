"""``lumctl job``: the jobs of an inventory, their ranks, and where each runs now."""

import shlex
from typing import Any

from lumctl.cli import job_run
from lumctl.cli.invocation import Invocation
from lumctl.cli.job_state import find_job, state_of, status_of
from lumctl.cli.nouns import NOUNS
from lumctl.cli.output import OutputColumn, OutputFormat
from lumctl.cli.verbs import noun_app, verb
from lumctl.inventory.job_entries import COMMAND
from lumctl.inventory.model import Inventory, Job
from lumctl.inventory.wiring import Assignment, Circuit, CircuitEnd, job_circuits, orders_in

app = noun_app(NOUNS["job"].help)
job_run.register(app)

JOBS = (
    OutputColumn("JOB", "name"),
    OutputColumn("RACK", "rack"),
    OutputColumn("STATE", "does"),
    OutputColumn("RANKS", "rank_count", right=True),
    OutputColumn("LINKS", "link_count", right=True),
    OutputColumn("ACCELERATORS", "accelerators"),
)
RANKS = (
    OutputColumn("RANK", "rank", right=True),
    OutputColumn("ACCELERATOR", "accelerator"),
    OutputColumn("HOST", "host"),
    OutputColumn("FIRST PLACED ON", "first_placed_on"),
)
LINKS = (
    OutputColumn("LINK", "id"),
    OutputColumn("FROM", "from"),
    OutputColumn("TO", "to"),
    OutputColumn("DIRECTION", "direction", wide=True),
    OutputColumn("DEVICE", "device"),
    OutputColumn("PORTS", "ports", wide=True),
)


@verb(app, "list")
def list_jobs(cx: Invocation) -> None:
    """List the jobs, the state of those that ``lumctl job run`` runs, and the accelerators of each."""
    from lumctl.inventory.folded_names import fold

    assignment = _assignment(cx)
    if cx.out.format is OutputFormat.NAME:
        cx.out.names(list(cx.inventory.jobs))
        return
    jobs = [
        _listed(cx.inventory, job, assignment[job.name], state_of(cx, job.name)) for job in cx.inventory.jobs.values()
    ]
    if cx.out.structured:
        cx.out.document("jobs", {"target": str(cx.target), "jobs": jobs})
    else:
        rows = [{**job, "does": job["state"], "accelerators": ",".join(fold(job["accelerators"]))} for job in jobs]
        cx.out.table(JOBS, rows)


@verb(app, "show")
def show(cx: Invocation, job: job_run.JobArgument) -> None:
    """Show where each rank of a job runs now, and the circuits that its links need."""
    found = find_job(cx.inventory, job)
    document = job_document(cx.inventory, found, _assignment(cx))
    if cx.out.structured:
        cx.out.document("job", {"target": str(cx.target), **document})
        return
    if cx.out.format is OutputFormat.NAME:
        cx.out.names([rank["accelerator"] for rank in document["ranks"]])
        return
    cx.out.text(f"{found.name}  rack: {found.rack}  target: {cx.target}")
    cx.out.text(_hook_line(found))
    cx.out.text()
    cx.out.table(RANKS, [_rank_row(rank) for rank in document["ranks"]], title="ranks")
    cx.out.text()
    cx.out.table(LINKS, [_link_row(link) for link in document["links"]], title="links")


@verb(app, "status")
def status(cx: Invocation, job: job_run.JobArgument) -> None:
    """Show the state of a job: ranks and recoveries if ``lumctl job run`` runs it, otherwise what its hook reports."""
    from lumctl.context import Context
    from lumctl.errors import RefusedError
    from lumctl.jobs import Hooks, passed_over

    found = find_job(cx.inventory, job)
    if found.run is not None:
        job_run.show(cx, status_of(cx, job))
        return
    if found.hook is None or (found.hook.kind == COMMAND and found.hook.status is None):
        raise RefusedError(f"job {job} has no status hook", hint="name one in the inventory: jobs: hook: status")
    with Context(cx.inventory, cx.target) as context:
        if (why := passed_over(context, job)) is not None:
            raise RefusedError(f"job {job} is not asked: {why}", hint="ask it with --target rack")
        state = Hooks(context, job).status()
    if cx.out.structured:
        cx.out.document("job-status", {"job": job, "target": str(cx.target), "state": state})
    else:
        cx.out.text(str(state))


def job_document(inventory: Inventory, job: Job, placed: Assignment) -> dict[str, Any]:
    """A job placed on accelerators, as data."""
    accelerators = placed[job.name]
    circuits = job_circuits(inventory, job, accelerators, orders_in(placed))
    return {
        "job": job.name,
        "rack": job.rack,
        "ranks": [
            {
                "rank": rank,
                "accelerator": accelerator,
                "host": inventory.accelerators[accelerator].host,
                "first_placed_on": job.ranks[rank],
            }
            for rank, accelerator in enumerate(accelerators)
        ],
        "links": [_link(inventory, circuit) for circuit in circuits],
        "hook": hook_document(job),
    }


def hook_document(job: Job) -> dict[str, Any] | None:
    """The hook of a job as data; ``None`` if it has none."""
    hook = job.hook
    if hook is None:
        return None
    written = hook.settings.model_dump(mode="json") if hook.settings is not None else {}
    return {
        "kind": hook.kind,
        "pause": list(hook.pause) or None,
        "resume": list(hook.resume) or None,
        "status": list(hook.status) if hook.status else None,
        "timeout_s": hook.timeout_s,
        "on_sim": hook.on_sim,
        **written,
    }


def _hook_line(job: Job) -> str:
    if job.hook is None:
        return "no hook: pause it before its light moves, and resume it afterwards"
    if job.hook.kind != COMMAND:
        from lumctl.jobs.control import words_of

        return f"paused and resumed by {words_of(job.hook)} ({job.hook.timeout_s:g} s each)"
    tells = f"told by {shlex.join(job.hook.status)}" if job.hook.status else "whether it runs is not told"
    ways = f"paused by {shlex.join(job.hook.pause)}; resumed by {shlex.join(job.hook.resume)}; {tells}"
    return f"{ways} ({job.hook.timeout_s:g} s each)"


def _link(inventory: Inventory, circuit: Circuit) -> dict[str, Any]:
    return {
        "id": circuit.id,
        "direction": circuit.direction.value,
        "device": circuit.device,
        "a": _end(inventory, circuit.a),
        "b": _end(inventory, circuit.b),
    }


def _end(inventory: Inventory, end: CircuitEnd) -> dict[str, Any]:
    accelerator = inventory.transponders[end.transponder].accelerator
    return {"accelerator": accelerator, "lane": end.transponder, "port": end.port}


def _listed(inventory: Inventory, job: Job, accelerators: tuple[str, ...], state: str | None) -> dict[str, Any]:
    return {
        "name": job.name,
        "rack": job.rack,
        "rank_count": len(job.ranks),
        "link_count": len(job_circuits(inventory, job, accelerators)),
        "state": state,
        "accelerators": list(accelerators),
    }


def _rank_row(rank: dict[str, Any]) -> dict[str, Any]:
    moved = rank["accelerator"] != rank["first_placed_on"]
    return {**rank, "first_placed_on": rank["first_placed_on"] if moved else None}


def _link_row(link: dict[str, Any]) -> dict[str, Any]:
    a, b = link["a"], link["b"]
    return {**link, "from": a["lane"], "to": b["lane"], "ports": f"{a['port']}:{b['port']}"}


def _assignment(cx: Invocation) -> dict[str, tuple[str, ...]]:
    """Who runs where now, from the store: no host or device is asked."""
    from lumctl.context import Context

    with Context(cx.inventory, cx.target) as context:
        return context.assignment()
