"""``lumctl swap``: put a spare in a failed accelerator's place, and take that back."""

from pathlib import Path
from typing import Annotated

import typer

from lumctl.change import to_document
from lumctl.cli import swap_approve, swap_finish, swap_show
from lumctl.cli.change_options import DryRunOption, StoppedOption, YesOption
from lumctl.cli.changes import carry_out, show_plan
from lumctl.cli.invocation import Invocation
from lumctl.cli.nouns import NOUNS
from lumctl.cli.output import dump_json
from lumctl.cli.plans import find_plan
from lumctl.cli.unfinished_runs import tell_where_ranks_return
from lumctl.cli.verbs import noun_app, verb
from lumctl.context import Context
from lumctl.errors import UsageError
from lumctl.files import put
from lumctl.inventory.problems import nearest
from lumctl.runbook.files import find_run
from lumctl.swap import plan_reroute, plan_return, plan_rollback, plan_swap
from lumctl.swap.request import require_job
from lumctl.swap.suggestions import nothing_named

app = noun_app(NOUNS["swap"].help)
swap_finish.register(app)


@verb(app, "plan")
def plan(
    cx: Invocation,
    job: Annotated[
        str | None, typer.Argument(metavar="JOB", help="The job; found from the accelerators unless named.")
    ] = None,
    failed: Annotated[
        str, typer.Option("--failed", metavar="ACC|HOST[,...]", help="What to replace; a host: all that run ranks.")
    ] = "",
    host: Annotated[
        str, typer.Option("--host", metavar="HOST[,HOST...]", help="Replace all that run ranks on these hosts.")
    ] = "",
    spare: Annotated[
        str | None, typer.Option("--spare", metavar="ACC[,ACC...]", help="Take these instead of the best ones.")
    ] = None,
    back: Annotated[
        bool, typer.Option("--back", help="Return the ranks of JOB to the accelerators that the inventory gives them.")
    ] = False,
    avoid: Annotated[
        str,
        typer.Option("--avoid", metavar="COMPONENT[,...]", help="Lead circuits round PUCs, ports or transponders."),
    ] = "",
    may_move: Annotated[
        int,
        typer.Option("--may-move", metavar="N", min=0, help="Where there is no other way, move N circuits of others."),
    ] = 0,
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Write the plan to a file as well.")] = None,
    even_if_healthy: Annotated[
        bool, typer.Option("--even-if-healthy", help="Replace accelerators that are read as ok.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Do not keep the plan.")] = False,
) -> None:
    """Plan a swap: choose spares, route their light paths, state loss and steps. Touches no device.

    One plan replaces several failures in one rack, of one job or several. Spares are assigned so that every failure
    gets one if any choice allows it. Spares are ranked by these criteria, the first difference decides: reserved for
    the job (reserved_for); the least sufficient memory; all lanes ok; not tied to other spares; fewest faults in
    seven days; in service for more than a day, and burned in; fewest circuits moved; enough optical margin; least
    loss; fewest PUCs; fewest cells written. Accelerators that the inventory ties to a failed one are replaced with
    it, by spares that are tied to each other.

    With --avoid alone the circuits of JOB are routed around a failing component, and no accelerator is replaced; those
    of a failing transponder or port take a free lane of the same accelerator. With --back each rank returns to its own
    accelerator and lanes, if these are ok again: a plan like any other, not a rollback.

    If new circuits find no route, present circuits of the same jobs make room, and with --may-move up to N circuits of
    other jobs. The plan names each of them: it is dark for one settling time, and then proved by light like a new one.

    The plan is kept in the rack's store under its id. -o wide shows every cell and what each step requires.
    """
    wanted = _words(failed) + _words(host)
    with Context(cx.inventory, cx.target) as context:
        _require_hosts(context, _words(host))
        if back:
            made = plan_return(context, _returned(job, wanted, avoid, spare), may_move=may_move)
        elif avoid and not wanted:
            made = plan_reroute(context, job, _words(avoid), may_move=may_move)
        elif not wanted:
            if job is not None:
                require_job(cx.inventory, job)
            raise nothing_named(context, context.observe(), job)
        else:
            named = _words(spare or "")
            made = plan_swap(
                context, job, wanted, named, avoid=_words(avoid), may_move=may_move, even_if_healthy=even_if_healthy
            )
        document = to_document(made)
        if not dry_run:
            context.store(made.rack).runs.save_plan(document)
            asking = swap_approve.wants_approval(context, made)
        if out is not None:
            put(out, dump_json(document) + "\n", mode=0o600)
    show_plan(cx, made)
    if not dry_run:
        if asking:
            approve = f"lumctl swap approve {made.id} --target {made.target}"
            cx.out.narrate(f"policy {asking} asks for an approval: {approve}")
        cx.out.narrate(f"apply it: lumctl swap apply {out or made.id} --target {made.target}")


def _returned(job: str | None, wanted: list[str], avoid: str, spare: str | None) -> str:
    if job is None:
        raise UsageError("--back needs the job whose ranks return", hint="lumctl swap plan JOB --back")
    if wanted or avoid or spare:
        raise UsageError("--back goes with no --failed, --host, --spare or --avoid", hint="make a plan for each")
    return job


def _require_hosts(context: Context, names: list[str]) -> None:
    for name in names:
        if name not in context.inventory.hosts:
            near = nearest(name, context.inventory.hosts)
            raise UsageError(
                f"no host {name!r} in the inventory" + (f"; did you mean {near!r}?" if near else ""),
                hint="see: lumctl status -o wide",
            )


@verb(app, "apply")
def apply(
    cx: Invocation,
    plan: Annotated[str, typer.Argument(metavar="PLAN", help="A plan's id, or the file it was written to.")],
    yes: YesOption = False,
    job_is_stopped: StoppedOption = False,
    dry_run: DryRunOption = False,
) -> None:
    """Apply a plan: each step is journalled, the light is proved, and everything is undone if a step fails.

    On a rack, jobs without a hook must be stopped first, and an operator must confirm that: at the terminal, or with
    --job-is-stopped; --yes alone does not. The journal keeps who confirmed it.

    If this command is killed, or its terminal closes, its revert guard (another process) undoes the run within seconds.
    If the command is frozen for longer than a minute and twice the inventory's light_deadline_s, the guard takes the
    run over in the same way; the command reports that if it wakes up. Only if the guard is gone too (the
    machine lost its power) does the run stay open: see swap list, and 30 s later finish it with swap resume, or undo it
    with swap abort. The guard has what this command was started with, less its terminal and any agent that was
    forwarded to it.
    """
    with Context(cx.inventory, cx.target) as context:
        carry_out(cx, context, find_plan(context, plan), yes=yes, dry_run=dry_run, stopped=job_is_stopped)


swap_approve.register(app)


@verb(app, "rollback")
def rollback(
    cx: Invocation,
    run: Annotated[str, typer.Argument(metavar="RUN", help="The run to take back.")],
    yes: YesOption = False,
    job_is_stopped: StoppedOption = False,
    dry_run: DryRunOption = False,
) -> None:
    """Undo a run: restore the cells, the transmitters and the placement from before it. Also for an interrupted run.

    Jobs without a hook must be stopped as for swap apply, except for a run that was interrupted or left half done.
    """
    with Context(cx.inventory, cx.target) as context:
        plan = plan_rollback(context, find_run(context, run))
        tell_where_ranks_return(cx, context, plan)
        carry_out(cx, context, plan, yes=yes, dry_run=dry_run, stopped=job_is_stopped)


swap_show.register(app)


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]
