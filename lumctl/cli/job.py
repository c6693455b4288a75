"""``lumctl job``: the jobs of an inventory, their ranks, and where each runs now."""

import os
import shlex
import signal
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lumctl.cli import job_phases, job_stragglers
from lumctl.cli.invocation import Invocation
from lumctl.cli.job_state import JobArgument, find_job, nobody, placed_jobs, print_job, state_of, status_of
from lumctl.cli.nouns import NOUNS
from lumctl.cli.output import OutputColumn, OutputFormat
from lumctl.cli.spare_queue import queued_words
from lumctl.cli.verbs import YesOption, aimed, noun_app, verb
from lumctl.errors import ExitCode, LumctlError
from lumctl.inventory.job_entries import COMMAND
from lumctl.inventory.model import Inventory, Job
from lumctl.inventory.wiring import Assignment, Circuit, CircuitEnd, job_circuits, orders_in
from lumctl.time_text import iso_times, moment_with_age

if TYPE_CHECKING:
    from collections.abc import Callable

app = noun_app(NOUNS["job"].help)
job_stragglers.register(app)
job_phases.register(app)

STOP_WITHIN_S = 120.0
"""How long a job may take to write its checkpoint and end."""


@verb(app, "run")
def run(
    cx: Invocation,
    job: JobArgument,
    yes: YesOption = False,
    no_swap: Annotated[
        bool, typer.Option("--no-swap", help="Restart processes in place only; if a spare is needed, wait.")
    ] = False,
    take: Annotated[
        bool, typer.Option("--take", help="Take the job over from another lumctl that no longer answers.")
    ] = False,
) -> None:
    """Run a job, and bring it back to its next step when a process, an accelerator or a host fails.

    An agent on each host starts one process for each rank, and standby processes on the spares and next to the ranks.
    When a process dies or hangs, the others wait. If its accelerator is healthy, a standby process takes the rank over.
    Otherwise a swap is planned and applied: with --yes, or after one confirmation at the start, which is valid for all
    recoveries until this command ends. The state comes from the memory of the other ranks, or from the newest
    checkpoint, and the interrupted step is repeated.

    The job continues without this command: when it ends (Ctrl-C), is killed, or its machine dies, the processes
    continue, and the same command takes them over. ``lumctl job stop`` ends the job with a checkpoint.
    """
    from lumctl.context import Context
    from lumctl.training.job_run import run_job

    found = find_job(placed_jobs(cx)[0], job)
    found.run_settings()
    acts = [] if no_swap else ["replace its accelerators by spares whenever they fail"]
    acts += ["change its light between its phases"] if found.phases else []
    if acts:
        cx.confirm(f"Run {job}{''.join(f', and {act}' for act in acts)}", yes=yes)
    agreed_by = "" if no_swap else _who(job)
    say = _stamped(cx.out.narrate)
    # SIGTERM ends this command like Ctrl-C: the job continues without it.
    with suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGTERM, _as_ctrl_c)
    try:
        ended = run_job(lambda: Context(cx.inventory, cx.target), job, agreed_by, say, take=take)
    except KeyboardInterrupt:
        say(f"the job continues without lumctl; take it over: lumctl job run {job} --target {cx.target}")
        raise
    from lumctl.training.coordinator.requests import document

    _print_run(cx, document(ended.state))
    end = ended.state.end
    if end is not None and end.exit_code is not ExitCode.DONE:
        raise JobFailedError(
            f"job {job} has stopped ({end}): {ended.state.why_ended}",
            end.exit_code,
            hint=_how_to_begin_again(job, ended.state.why_ended),
        )


class JobFailedError(LumctlError):
    """A job ended before all steps were done, although no operator stopped it."""

    def __init__(self, message: str, exit_code: ExitCode, *, hint: str) -> None:
        super().__init__(message, hint=hint)
        self.exit_code = exit_code


@verb(app, "stop")
def stop(cx: Invocation, job: JobArgument, yes: YesOption = False) -> None:
    """Stop a job that ``lumctl job run`` runs: each process finishes its step, writes a checkpoint, and ends.

    The next ``lumctl job run`` continues from there; see lumctl-job(7).
    """
    from lumctl.context.job_files import coordinator_socket
    from lumctl.training.job_control import ask

    find_job(placed_jobs(cx)[0], job).run_settings()
    cx.confirm(f"Stop job {job}", yes=yes)
    found = ask(coordinator_socket(cx.inventory.path, str(cx.target), job), "stop", timeout_s=STOP_WITHIN_S)
    if found is None:
        raise nobody(cx, job)
    if cx.out.structured:
        cx.out.document("job-stop", {"target": str(cx.target), "job": job, **found})
        return
    cx.out.text(f"{found['state']} after {found['done']} steps")
    for path in found["saved"]:
        cx.out.text(f"checkpoint: {path}")


def _print_run(cx: Invocation, document: dict[str, Any]) -> None:
    """Print the status document of a job that lumctl runs."""
    if cx.out.structured:
        cx.out.document("job-status", iso_times({"target": str(cx.target), **document}, "at", "ended_at", "started_at"))
    elif cx.out.format is OutputFormat.NAME:
        cx.out.names([rank["accelerator"] for rank in document["ranks"]])
    else:
        print_job(cx, document)


def _stamped(narrate: "Callable[[str], None]") -> "Callable[[str], None]":
    """A function that prints lines with the time of day, for comparison with the logs of hosts and workers."""

    def say(line: str) -> None:
        narrate(f"{datetime.now().astimezone().isoformat(sep=' ', timespec='milliseconds')[11:23]} {line}")

    return say


def _how_to_begin_again(job: str, why: str) -> str:
    from lumctl.training.job_run import GONE

    if why == GONE:
        return f"start again: lumctl sim up --detach, lumctl fabric apply --target sim, lumctl job run {job}"
    return f"the logs of its processes are on the hosts; start it again: lumctl job run {job}"


def _who(job: str) -> str:
    from lumctl.change.origin import origin
    from lumctl.daemon.autopilot.stop_switch import JOB_RUN

    return f"{JOB_RUN}{job} by {origin()}"


def _as_ctrl_c(_number: int, _frame: object) -> None:
    # A second SIGTERM must not cut off the ending.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.kill(os.getpid(), signal.SIGINT)


JOBS = (
    OutputColumn("JOB", "name"),
    OutputColumn("RACK", "rack", gives_way=1),
    OutputColumn("STATE", "does"),
    OutputColumn("RANKS", "rank_count", right=True),
    OutputColumn("LINKS", "link_count", right=True, gives_way=2),
    OutputColumn("ACCELERATORS", "accelerators"),
)
RANKS = (
    OutputColumn("RANK", "rank", right=True),
    OutputColumn("ACCELERATOR", "accelerator"),
    OutputColumn("HOST", "host"),
    OutputColumn("FIRST PLACED ON", "first_placed_on", gives_way=1),
)
LINKS = (
    OutputColumn("LINK", "id"),
    OutputColumn("FROM", "from"),
    OutputColumn("TO", "to"),
    OutputColumn("DIRECTION", "direction", wide=True),
    OutputColumn("DEVICE", "device"),
    OutputColumn("PORTS", "ports", wide=True),
)


@verb(app, "list", pages=True)
def list_jobs(cx: Invocation) -> None:
    """List the jobs, the state of those that ``lumctl job run`` runs, and the accelerators of each."""
    from lumctl.inventory.folded_names import fold

    inventory, assignment = placed_jobs(cx)
    if cx.out.format is OutputFormat.NAME:
        cx.out.names(list(inventory.jobs))
        return
    jobs = [_listed(inventory, job, assignment[job.name], state_of(cx, job)) for job in inventory.jobs.values()]
    if cx.out.structured:
        cx.out.document("jobs", {"target": str(cx.target), "jobs": jobs})
    else:
        rows = [{**job, "does": job["state"], "accelerators": ", ".join(fold(job["accelerators"]))} for job in jobs]
        cx.out.table(JOBS, rows)


@verb(app, "show", pages=True)
def show(cx: Invocation, job: JobArgument) -> None:
    """Show where each rank of a job runs now, and the circuits that its links need."""
    from lumctl.context import Context

    with Context(cx.inventory, cx.target) as context:
        inventory, assignment = context.inventory, context.assignment()
        found = find_job(inventory, job)
        waiting = [each for each in context.store(found.rack).demands.waiting() if each.job == found.name]
        now = context.now()
    document = job_document(inventory, found, assignment)
    if cx.out.structured:
        document["waiting"] = [{"id": each.id, "accelerators": list(each.accelerators)} for each in waiting]
        cx.out.document("job", {"target": str(cx.target), **document})
        return
    if cx.out.format is OutputFormat.NAME:
        cx.out.names([rank["accelerator"] for rank in document["ranks"]])
        return
    cx.out.text(f"{found.name}  rack: {found.rack}  target: {cx.target}")
    cx.out.text(_hook_line(found))
    for each in waiting:
        since = moment_with_age(each.asked_at, now)
        cx.out.text(f"{queued_words(each)} since {since}: {aimed(cx, 'lumctl spare queue')}")
    cx.out.text()
    cx.out.table(RANKS, [_rank_row(rank) for rank in document["ranks"]], title="ranks")
    cx.out.text()
    cx.out.table(LINKS, [_link_row(link) for link in document["links"]], title="links")


@verb(app, "status")
def status(cx: Invocation, job: JobArgument) -> None:
    """Show the state of a job: ranks and recoveries if ``lumctl job run`` runs it, otherwise what its hook reports."""
    from lumctl.context import Context
    from lumctl.errors import RefusedError
    from lumctl.jobs import Hooks, passed_over

    found = find_job(placed_jobs(cx)[0], job)
    if found.run is not None:
        _print_run(cx, status_of(cx, job))
        return
    if found.hook is None or (found.hook.kind == COMMAND and found.hook.status is None):
        raise RefusedError(f"job {job} has no status hook", hint="add one to the job in the inventory: hook: status")
    with Context(cx.inventory, cx.target) as context:
        if (why := passed_over(context, job)) is not None:
            raise RefusedError(f"the state of job {job} was not requested: {why}", hint="request it with --target rack")
        state = Hooks(context, job).status()
    if cx.out.structured:
        cx.out.document("job-status", {"job": job, "target": str(cx.target), "state": state})
    else:
        cx.out.text(str(state))


def job_document(inventory: Inventory, job: Job, placed: Assignment) -> dict[str, Any]:
    """A job with its accelerators, circuits and hook, as data."""
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
        return "no hook: pause it before its light paths change, and resume it afterwards"
    if job.hook.kind != COMMAND:
        from lumctl.jobs.control import words_of

        return f"paused and resumed by {words_of(job.hook)} ({job.hook.timeout_s:g} s each)"
    tells = (
        f"state reported by {shlex.join(job.hook.status)}"
        if job.hook.status
        else "its hook does not report whether it runs"
    )
    ways = f"paused by {shlex.join(job.hook.pause)}; resumed by {shlex.join(job.hook.resume)}; {tells}"
    return f"{ways} ({job.hook.timeout_s:g} s each)"


def _link(inventory: Inventory, circuit: Circuit) -> dict[str, Any]:
    return {
        "id": circuit.id,
        "direction": circuit.direction.value,
        "device": ", ".join(circuit.devices),
        "a": _end(inventory, circuit.a),
        "b": _end(inventory, circuit.b),
    }


def _end(inventory: Inventory, end: CircuitEnd) -> dict[str, Any]:
    accelerator = inventory.transponders[end.transponder].accelerator
    return {"accelerator": accelerator, "lane": end.transponder, "device": end.device, "port": end.port}


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
