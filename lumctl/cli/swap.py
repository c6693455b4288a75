"""``lumctl swap``: replace a failed accelerator by a spare, and undo that."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from lumctl.change import Plan, to_document
from lumctl.change.origin import origin
from lumctl.change.refusal_advice import why_silent
from lumctl.cli import swap_approve, swap_finish, swap_show
from lumctl.cli.changes import carry_out, find_plan, roll_back, show_plan
from lumctl.cli.forgotten_target import forgotten_target
from lumctl.cli.invocation import Invocation
from lumctl.cli.nouns import NOUNS
from lumctl.cli.output import dump_json
from lumctl.cli.spare_queue import queued_words
from lumctl.cli.verbs import DryRunOption, StoppedOption, YesOption, noun_app, verb
from lumctl.context import Context, Observation
from lumctl.errors import UnreachableError, UsageError
from lumctl.files import put
from lumctl.inventory.problems import require_known
from lumctl.swap import plan_reroute, plan_return, plan_swap
from lumctl.swap.demand_queue import queue_demands, vain_wait
from lumctl.swap.explanations import NoSpareError
from lumctl.swap.request import SwapRequest, parse_request, require_job, require_trouble_still
from lumctl.swap.silent_parts import until_answered
from lumctl.swap.suggestions import causes_text, the_one_to_replace

app = noun_app(NOUNS["swap"].help)
swap_finish.register(app)


@verb(app, "plan")
def plan(
    cx: Invocation,
    job: Annotated[
        str | None, typer.Argument(metavar="JOB", help="The job; by default that of the failed accelerators.")
    ] = None,
    failed: Annotated[
        str,
        typer.Option(
            "--failed",
            metavar="ACC|HOST[,...]",
            help="The accelerators to replace; a host means all its accelerators that run ranks.",
        ),
    ] = "",
    host: Annotated[
        str,
        typer.Option(
            "--host", metavar="HOST[,HOST...]", help="Replace all accelerators on these hosts that run ranks."
        ),
    ] = "",
    spare: Annotated[
        str | None, typer.Option("--spare", metavar="ACC[,ACC...]", help="Use these spares instead of the best ones.")
    ] = None,
    back: Annotated[
        bool,
        typer.Option(
            "--back", help="Move the ranks of JOB back to the accelerators that the inventory assigns to them."
        ),
    ] = False,
    avoid: Annotated[
        str,
        typer.Option("--avoid", metavar="COMPONENT[,...]", help="Avoid these PUCs, ports, transponders or fibres."),
    ] = "",
    may_move: Annotated[
        int,
        typer.Option(
            "--may-move", metavar="N", min=0, help="If there is no other route, move up to N circuits of other jobs."
        ),
    ] = 0,
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Also write the plan to a file.")] = None,
    even_if_healthy: Annotated[
        bool, typer.Option("--even-if-healthy", help="Replace accelerators even if they read as ok.")
    ] = False,
    even_if_costly: Annotated[
        bool, typer.Option("--even-if-costly", help="With --back: move back even if it costs more than sharing allows.")
    ] = False,
    even_if_unproven: Annotated[
        bool,
        typer.Option(
            "--even-if-unproven",
            help="With --back: move back even if no reading shows that what caused the swap is repaired.",
        ),
    ] = False,
    queue: Annotated[
        bool, typer.Option("--queue", help="If no spare can be used now, queue the job, see lumctl spare queue.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Do not store the plan.")] = False,
) -> None:
    """Plan a swap: choose spares, route their light paths, state loss and steps. Changes no device.

    Without --failed, --host, --avoid and --back, the rack is read, and the one accelerator that has failed is replaced;
    if several faults could be meant, nothing is planned, and the commands for each and for all together are listed.

    One plan replaces several failures in one rack, of one job or several. Spares are assigned so that every failure
    gets one if any choice allows it. Spares are ranked by these criteria, the first difference decides: every device
    that is written for it answers; reserved for the job (reserved_for); the least sufficient memory; all lanes ok; not
    tied to other spares; no filler job on it; fewest faults in seven days; in service for more than a day, and burned
    in; fewest circuits moved; enough optical margin; least loss; fewest PUCs (programmable unit cells of meshes);
    fewest cells written. Accelerators that the inventory ties to a failed one are replaced with it, by spares that are
    tied to each other.

    With --avoid alone the circuits of JOB are routed around a failing component, and no accelerator is replaced; those
    of a failing transponder or port move to a free lane of the same accelerator. With --back each rank returns to its
    own accelerator and lanes, if these are ok again: a plan like any other, not a rollback. A lane that sent no light
    when it was replaced is not ok again before it is read to send: lumctl device set LANE transmit=on lights it.

    A filler job on a spare that is taken is paused first. It runs again when all its spares are free: by the plan that
    frees them, or by lumctl swap plan FILLER --back.

    If new circuits find no route, present circuits of the same jobs make room, and with --may-move up to N circuits of
    other jobs. The plan lists each of them: it is dark for one settling time, and is then proved by light like a new
    one.

    The plan is stored in the rack's store under its id. -o wide shows every cell and what each step requires.
    """
    wanted = _words(failed) + _words(host)
    _require_may_wait(queue=queue, dry_run=dry_run, needs_no_spare=back or bool(avoid and not wanted))
    with Context(cx.inventory, cx.target) as context:
        require_known("host", _words(host), context.inventory.hosts)
        if back:
            returned = _returned(job, wanted, avoid, spare)
            made = plan_return(
                context,
                returned,
                may_move=may_move,
                even_if_costly=even_if_costly,
                even_if_unproven=even_if_unproven,
            )
        elif avoid and not wanted:
            made = plan_reroute(context, job, _words(avoid), may_move=may_move)
        else:
            seen, named = None, _words(spare or "")
            if not wanted:
                seen = context.observe()
                wanted = _the_one_that_failed(cx, context, job, seen)
                if not wanted:
                    return
            try:
                made = plan_swap(
                    context,
                    job,
                    wanted,
                    named,
                    avoid=_words(avoid),
                    may_move=may_move,
                    even_if_healthy=even_if_healthy,
                    seen=seen,
                )
            except NoSpareError as error:
                asked = parse_request(context.inventory, context.assignment(), job, wanted, named)
                _wait_for_one(cx, context, asked, error, queue=queue)
                return
        document = to_document(made)
        if not dry_run:
            # Before the request for approval, so that who approves can read the plan.
            context.store(made.rack).runs.save_plan(document)
            asking = swap_approve.wants_approval(context, made)
        if out is not None:
            put(out, dump_json(document) + "\n", mode=0o600)
    show_plan(cx, made)
    if dry_run:
        cx.out.narrate("dry run: the plan was not stored")
    else:
        _tell_next(cx, made, asking, out)


def _tell_next(cx: Invocation, made: Plan, asking: str | None, out: Path | None) -> None:
    if asking:
        approve = f"lumctl swap approve {made.id} --target {made.target}"
        cx.out.narrate(f"policy {asking} requires an approval: {approve}")
    apply_it = f"apply it: lumctl swap apply {out or made.id} --target {made.target}"
    if made.unanswered:
        why = why_silent(made.unanswered, made.target)
        cx.out.narrate(f"it cannot be applied {until_answered(made.unanswered)}; {why}")
        apply_it = f"then {apply_it}"
    cx.out.narrate(apply_it)


def _the_one_that_failed(cx: Invocation, context: Context, job: str | None, seen: Observation) -> list[str]:
    """What the only fault that a spare repairs has lost; if nothing has failed, print that and return nothing."""
    if job is not None:
        require_job(context.inventory, job)
    if slip := forgotten_target(cx, seen.report):
        raise UnreachableError(slip)
    remedy = the_one_to_replace(context, seen, job)
    if remedy is None:
        if cx.out.structured:
            cx.out.document("plan", {"id": None, "outcome": "nothing to replace", "target": str(cx.target)})
        whose = f"of {job} " if job else ""
        cx.out.narrate(f"nothing {whose}has failed: all accelerators in use were read just now and are ok")
        return []
    cx.out.narrate(f"planned for the only fault: {causes_text([remedy])}")
    return list(remedy.replace)


def _require_may_wait(*, queue: bool, dry_run: bool, needs_no_spare: bool) -> None:
    if queue and (dry_run or needs_no_spare):
        why = "--dry-run stores nothing" if dry_run else "--back, and --avoid alone, need no spare"
        raise UsageError(f"--queue is of no use here: {why}", hint="leave out --queue")


def _wait_for_one(cx: Invocation, context: Context, asked: SwapRequest, error: NoSpareError, *, queue: bool) -> None:
    """Queue the jobs of a request that no spare can serve now, and print their demands.

    Raises:
        NoSpareError: they are not to be queued; the hint says how that is done.
    """
    store, seen = context.store(asked.rack), context.observe()
    if not queue:
        failed = ",".join(name for name in asked.failed if name not in asked.tied)
        in_vain = vain_wait(store, seen, asked.rack, asked.failed) is not None
        wait = None if in_vain else f"to wait for a spare: lumctl swap plan --failed {failed} --queue"
        raise NoSpareError(error.message, hint="; ".join(filter(None, [error.hint, wait]))) from error
    demands = queue_demands(store, seen, asked.rack, asked.failed, why=error.message, who=origin())
    if cx.out.structured:
        queued = [{"id": each.id, "job": each.job, "accelerators": list(each.accelerators)} for each in demands]
        cx.out.document("plan", {"id": None, "outcome": "queued", "target": str(cx.target), "demands": queued})
        return
    cx.out.narrate(error.message)
    for each in demands:
        cx.out.text(queued_words(each))
    cx.out.narrate("see when a spare is there: lumctl spare queue")


def _returned(job: str | None, wanted: list[str], avoid: str, spare: str | None) -> str:
    if job is None:
        raise UsageError("--back needs the job whose ranks move back", hint="lumctl swap plan JOB --back")
    if wanted or avoid or spare:
        raise UsageError(
            "--back cannot be combined with --failed, --host, --spare or --avoid", hint="make one plan for each"
        )
    return job


@verb(app, "apply")
def apply(
    cx: Invocation,
    plan: Annotated[str, typer.Argument(metavar="PLAN", help="The id of a plan, or its file.")],
    yes: YesOption = False,
    job_is_stopped: StoppedOption = False,
    dry_run: DryRunOption = False,
) -> None:
    """Apply a plan: each step is recorded, the light is proved, and everything is undone if a step fails.

    On a rack, jobs without a hook must be stopped first, and an operator must confirm that: at the terminal, or with
    --job-is-stopped; --yes alone does not. The journal records who confirmed it.

    A plan that is older than the inventory's stale_after_s (30 s) is refused if a new reading shows that what it
    replaces is ok by now.

    If this command is killed, or its terminal closes, its revert guard (another process) undoes the run within seconds.
    If the command is frozen for longer than a minute and twice the inventory's light_deadline_s, the guard takes over
    the run in the same way; the command reports that if it wakes up. Only if the guard is gone too (the machine lost
    its power) does the run stay open: see swap list, and 30 s later finish it with swap resume, or undo it with swap
    abort. The guard has the environment of this command, except its terminal and any agent that was forwarded to it.
    """
    with Context(cx.inventory, cx.target) as context:
        found = find_plan(context, plan)
        still = partial(require_trouble_still, context, found)
        carry_out(cx, context, found, yes=yes, dry_run=dry_run, stopped=job_is_stopped, may=still)


swap_approve.register(app)


@verb(app, "rollback")
def rollback(
    cx: Invocation,
    run: Annotated[str, typer.Argument(metavar="RUN", help="The run to undo.")],
    yes: YesOption = False,
    job_is_stopped: StoppedOption = False,
    dry_run: DryRunOption = False,
) -> None:
    """Undo a run: restore the cells, the transmitters and the placement from before it. Also for an interrupted run.

    Jobs without a hook must be stopped as for swap apply, except for a run that was interrupted or left half done.
    """
    with Context(cx.inventory, cx.target) as context:
        roll_back(cx, context, run, yes=yes, dry_run=dry_run, stopped=job_is_stopped)


swap_show.register(app)


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]
