"""``lumctl job run|stop``: run a job's processes on its accelerators, and bring it back after failures."""

import os
import signal
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lumctl.cli.change_options import YesOption
from lumctl.cli.invocation import Invocation
from lumctl.cli.job_state import find_job, nobody
from lumctl.cli.output import OutputFormat
from lumctl.cli.verbs import verb
from lumctl.errors import ExitCode, LumctlError

if TYPE_CHECKING:
    from collections.abc import Callable


STOP_WITHIN_S = 120.0
"""How long a job may take to write its checkpoint and end."""
JobArgument = Annotated[str, typer.Argument(metavar="JOB", help="The job's name.")]


def register(app: typer.Typer) -> None:
    """Add the verbs to a noun."""
    verb(app, "run")(run)
    verb(app, "stop")(stop)


def run(
    cx: Invocation,
    job: JobArgument,
    yes: YesOption = False,
    no_swap: Annotated[
        bool, typer.Option("--no-swap", help="Restart processes in place only; where a spare is needed, wait.")
    ] = False,
    take: Annotated[
        bool, typer.Option("--take", help="Take the job over from another lumctl that does not answer any more.")
    ] = False,
) -> None:
    """Run a job, and bring it back to its next step when a process, an accelerator or a host fails.

    An agent on each host starts one process for each rank, and standby processes on the spares and beside the ranks.
    When a process dies or hangs, the others wait. If its accelerator is healthy, a standby process takes the rank over.
    Otherwise a swap is planned and applied: with --yes, or after one yes at the start, which holds for all recoveries
    until this command ends. The state comes from the memory of the other ranks, or from the newest checkpoint, and the
    interrupted step is repeated.

    The job continues without this command: when it ends (Ctrl-C), is killed, or its machine dies, the processes go on,
    and the same command takes them over. ``lumctl job stop`` ends the job with a checkpoint.
    """
    from lumctl.context import Context
    from lumctl.training.job_run import run_job

    find_job(cx.inventory, job).run_settings()
    if not no_swap:
        cx.confirm(f"Run {job}, and swap spares in whenever accelerators of it fail", yes=yes)
    agreed_by = "" if no_swap else _who(job)
    say = _stamped(cx.out.narrate)
    with suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGTERM, _as_ctrl_c)
    try:
        ended = run_job(lambda: Context(cx.inventory, cx.target), job, agreed_by, say, take=take)
    except KeyboardInterrupt:
        say(f"the job continues without lumctl; take it over: lumctl job run {job} --target {cx.target}")
        raise
    from lumctl.training.coordinator.requests import document

    show(cx, document(ended.state))
    end = ended.state.end
    if end is not None and end.exit_code is not ExitCode.DONE:
        raise JobFailedError(
            f"job {job} has stopped ({end}): {ended.state.why_ended}",
            end.exit_code,
            hint=_how_to_begin_again(job, ended.state.why_ended),
        )


class JobFailedError(LumctlError):
    """A job ended before it was done, without a request of an operator."""

    def __init__(self, message: str, exit_code: ExitCode, *, hint: str) -> None:
        super().__init__(message, hint=hint)
        self.exit_code = exit_code


def stop(cx: Invocation, job: JobArgument, yes: YesOption = False) -> None:
    """Stop a job that ``lumctl job run`` runs: each process finishes its step, writes a checkpoint, and ends.

    The next ``lumctl job run`` continues from there; see lumctl-job(7).
    """
    from lumctl.training.job_control import ask
    from lumctl.training.job_folder import coordinator_socket

    find_job(cx.inventory, job).run_settings()
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


def show(cx: Invocation, document: dict[str, Any]) -> None:
    """Print a job that is run."""
    from lumctl.cli.job_tables import print_job

    if cx.out.structured:
        cx.out.document("job-status", {"target": str(cx.target), **document})
    elif cx.out.format is OutputFormat.NAME:
        cx.out.names([rank["accelerator"] for rank in document["ranks"]])
    else:
        print_job(cx, document)


def _stamped(narrate: "Callable[[str], None]") -> "Callable[[str], None]":
    """Lines with the time of day, to compare with the logs of hosts and workers."""

    def say(line: str) -> None:
        narrate(f"{datetime.now().astimezone().isoformat(sep=' ', timespec='milliseconds')[11:23]} {line}")

    return say


def _how_to_begin_again(job: str, why: str) -> str:
    from lumctl.training.job_run import GONE

    if why == GONE:
        return f"begin again: lumctl sim up --detach, lumctl fabric apply --target sim, lumctl job run {job}"
    return f"its processes' logs are on the hosts; start it again: lumctl job run {job}"


def _who(job: str) -> str:
    from lumctl.change.origin import origin
    from lumctl.daemon.autopilot.stop_switch import JOB_RUN

    return f"{JOB_RUN}{job} by {origin()}"


def _as_ctrl_c(_number: int, _frame: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.kill(os.getpid(), signal.SIGINT)
