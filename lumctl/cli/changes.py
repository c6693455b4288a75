"""The common part of commands that change light: find and show a plan, ask for a yes, apply it, print the result."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from lumctl.change import Plan, RunResult, apply, from_document, to_document
from lumctl.change.disturbance import HINT, jobs_to_stop, must_be_stopped
from lumctl.change.guard import Standby
from lumctl.change.origin import origin
from lumctl.change.plan import SLICE, Do, Step
from lumctl.change.preconditions import require
from lumctl.cli.invocation import Invocation, Target
from lumctl.cli.job_state import require_not_run
from lumctl.cli.output import OutputFormat
from lumctl.cli.plan_lines import styled_lines
from lumctl.cli.status_tables import unfinished_line
from lumctl.cli.verbs import aimed
from lumctl.context import Context
from lumctl.errors import LumctlError, RefusedError, RunError, UsageError
from lumctl.health.states import State
from lumctl.inventory.problems import nearest
from lumctl.jobs import jobs_to_resume
from lumctl.printable import counted
from lumctl.runbook.files import find_run, require_no_demand, save
from lumctl.runbook.yaml_text import text_of
from lumctl.store import Head, StoreError
from lumctl.swap import plan_rollback


def find_plan(context: Context, name: str) -> Plan:
    """A plan by its id in any rack's store, or from a file.

    Raises:
        UsageError: there is no plan of that name, or the file is not a plan.
        RefusedError: the plan was made for the other target.
    """
    for rack in context.inventory.racks:
        kept = context.store(rack).runs.plan(name)
        if kept is not None:
            return from_document(kept)
    path = Path(name)
    if not path.exists():
        _refuse_other_target(context, name)
        require_no_demand(context, name)
        near = nearest(name, [each for rack in context.inventory.racks for each in context.store(rack).runs.plan_ids()])
        raise UsageError(
            f"target {context.target} has no plan {name!r}, and no file has that name",
            hint=f"did you mean {near}?"
            if near
            else "make one: lumctl swap plan, or lumctl slice plan SHAPE --job NAME; "
            "list the plans that were not applied: lumctl swap list",
        )
    try:
        return from_document(json.loads(text_of(path)))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not a plan: {error}") from error


def _refuse_other_target(context: Context, name: str) -> None:
    """Raise a RefusedError if a plan of that id exists on the other target."""
    other = Target.RACK if context.target == Target.SIM else Target.SIM
    found = False
    # The other target may not exist, such as a simulator that is not running: then nothing is refused here.
    with suppress(LumctlError), Context(context.inventory, other) as elsewhere:
        found = any(elsewhere.store(rack).runs.plan(name) for rack in context.inventory.racks)
    if found:
        raise RefusedError(
            f"{name} was made for target {other}, but this command uses target {context.target}",
            hint=f"add --target {other}, or make a new plan for {context.target}",
        )


def show_plan(cx: Invocation, plan: Plan) -> None:
    """Print a plan: as data, as its id, or as a readable difference."""
    if cx.out.structured:
        document = to_document(plan)
        document.pop("schema")
        cx.out.document("plan", document)
    elif cx.out.format is OutputFormat.NAME:
        cx.out.names([plan.id])
    else:
        wide = cx.out.format is OutputFormat.WIDE
        for line in styled_lines(plan, wide=wide, to_stop=_without_hook(cx, plan)):
            cx.out.styled(line.text, line.style)


def _without_hook(cx: Invocation, plan: Plan) -> list[str]:
    """The jobs that an operator must stop first, according to the plan's warnings."""
    owners = dict.fromkeys(circuit.owner for circuit in (*plan.remove, *plan.add))
    return jobs_to_resume(cx.inventory, plan.warnings, owners)


def _anything() -> None:
    return None


def carry_out(
    cx: Invocation,
    context: Context,
    plan: Plan,
    *,
    yes: bool,
    dry_run: bool,
    stopped: bool = False,
    may: Callable[[], None] = _anything,
) -> None:
    """Apply a plan after an operator confirms (or only show it, with ``--dry-run``) and print the result.

    ``stopped``: an operator has confirmed that jobs without a hook are stopped if their light paths change. ``may`` is
    called after the plan was shown and may raise an error to refuse it.
    """
    require_not_run(cx, context.inventory, plan)
    if dry_run:
        show_plan(cx, plan)
        may()
        require(context, plan)
        if not stopped:
            tell_of_jobs(cx, context, plan)
        cx.out.narrate("dry run: nothing was done")
        return
    # With --yes it is not read before the change; with -o json the result is the only document that may be printed.
    if not (yes or cx.out.structured):
        show_plan(cx, plan)
    may()
    if not yes:
        require(context, plan)  # otherwise an operator would be asked about a stale plan
    with Standby(context) as standby, keeping(cx, context, plan.rack):
        standby.ready(plan.rack)  # the guard starts while the operator decides
        stopped_by = agree(cx, context, plan, f"Apply {plan.id} ({plan.title})", yes=yes, stopped=stopped)
        result = apply(context, plan, progress=_brief(cx, plan), stopped_by=stopped_by, arm=standby.arm)
    say_result(cx, context, result, kept_runbook(cx, context, result))


def _brief(cx: Invocation, plan: Plan) -> Callable[[str], None]:
    """Narrate a run; of a slice's hundreds of transmitters only if asked to be verbose."""
    if plan.kind != SLICE or cx.out.verbose:
        return cx.out.narrate
    unsaid = tuple(f"{step.id}. " for step in plan.steps if step.do is Do.TRANSMIT)

    def narrate(line: str) -> None:
        if not line.startswith(unsaid):
            cx.out.narrate(line)

    return narrate if unsaid else cx.out.narrate


def tell_of_jobs(cx: Invocation, context: Context, plan: Plan, left: Sequence[Step] | None = None) -> None:
    """Print which jobs an operator must stop before the steps ``left`` of a plan (by default all) can be done."""
    if jobs := jobs_to_stop(context, plan, left):
        cx.out.narrate(f"{must_be_stopped(jobs)}: --job-is-stopped")


def agree(
    cx: Invocation,
    context: Context,
    plan: Plan,
    what: str,
    *,
    yes: bool,
    stopped: bool,
    left: Sequence[Step] | None = None,
) -> str | None:
    """Ask the operator to confirm a plan and that its jobs are stopped; return who confirmed that jobs are stopped.

    ``what`` names the action in the question. ``left`` are the plan's remaining steps; by default all.

    Raises:
        UsageError: there is no terminal to ask on and ``--yes`` was not given.
        RefusedError: the operator declined; or no one confirmed that a job is stopped, which ``--yes`` does not do.
    """
    jobs = () if stopped else jobs_to_stop(context, plan, left)
    if jobs and yes:
        raise RefusedError(f"{must_be_stopped(jobs)}; --yes does not confirm that", hint=HINT)
    must = must_be_stopped(jobs) if jobs else ""
    cx.confirm(f"{must[:1].upper()}{must[1:]}{'. ' if must else ''}{what}?", yes=yes)
    # One yes answers both: the question has named the jobs that must be stopped.
    return origin() if stopped or jobs else None


def kept_runbook(cx: Invocation, context: Context, result: RunResult) -> Path | None:
    """Write the runbook of a run next to its rack's store; return its path, or ``None`` if it cannot be written."""
    return _kept(cx, context, result.run, result.plan.rack)


@contextmanager
def keeping(cx: Invocation, context: Context, rack: str) -> Iterator[None]:
    """Write a runbook even if the run fails in the block: it shows the steps that were tried and undone."""
    try:
        yield
    except RunError as error:
        _kept(cx, context, error.run, rack)
        raise


def _kept(cx: Invocation, context: Context, run: str, rack: str) -> Path | None:
    """Write a runbook; if that fails, only warn: the run has ended and is in the journal."""
    try:
        return save(context, run, rack)
    except LumctlError as error:
        cx.out.narrate(f"warning: {error.message}; the journal contains it: lumctl runbook show {run}")
        return None


def say_result(cx: Invocation, context: Context, result: RunResult, runbook: Path | None) -> None:
    """Print a finished run."""
    if cx.out.structured:
        cx.out.document("run", run_document(result, runbook, head_after(cx, context, result.plan.rack)))
    elif cx.out.format is OutputFormat.NAME:
        cx.out.names([result.run])
    else:
        taken_back = result.outcome in {"rolled-back", "superseded"}  # proved the earlier circuits, not the new
        proved = not taken_back and any(step.do is Do.VERIFY for step in result.plan.steps)
        told = f", {counted(len(result.verified), 'receivers')} proved" if proved and result.verified else ""
        cx.out.text(f"{result.run}: {result.outcome} in {result.seconds:.2f} s{told}")
        if result.silent:
            cx.out.text(f"not shown, because their hosts do not answer: {', '.join(result.silent)}")
        cx.out.text(f"runbook: {runbook or aimed(cx, f'lumctl runbook show {result.run}')}")
        if result.outcome == "done" and result.plan.kind in {"swap", SLICE}:
            cx.out.narrate(f"undo it: lumctl {result.plan.kind} rollback {result.run}")
        for line in resumption_lines(cx, context, result):
            cx.out.text(line)


def _to_resume(cx: Invocation, result: RunResult) -> list[str]:
    """The jobs that an operator stopped for a run and must resume; a slice that has no ranks after it is none."""
    if result.outcome not in {"done", "rolled-back"}:  # superseded: later runs decide
        return []
    after = "assignment" if result.outcome == "done" else "before"
    placed = {job: ranks for s in result.plan.steps if s.do is Do.ASSIGN for job, ranks in s.data[after].items()}
    return [job for job in _without_hook(cx, result.plan) if placed.get(job, True)]


def resumption_lines(cx: Invocation, context: Context, result: RunResult) -> list[str]:
    """What to do about each job that an operator must resume after a run; first replace what has failed of it."""
    jobs = _to_resume(cx, result)
    if not jobs:
        return []
    from lumctl.swap.suggestions import swap_obstacle

    ill: dict[str, list[str]] = {}
    obstacles: dict[str, LumctlError | None] = {}
    with suppress(LumctlError):  # the run has ended: a failed reading only withholds this warning
        seen = context.observe()
        for job in jobs:
            found = [seen.report.accelerators[name] for name in seen.assignment.get(job, ())]
            ill[job] = [each.id for each in found if each.state is State.FAILED]
            obstacles[job] = swap_obstacle(context, seen, ill[job]) if ill[job] else None
    lines = []
    for job in jobs:
        if names := ill.get(job):
            one = len(names) == 1
            what = f"do not resume job {job} yet: {' and '.join(names)} {'is' if one else 'are'} failed"
            then = f"replace {'it' if one else 'them'} first: lumctl swap plan --failed {','.join(names)}"
            if obstacle := obstacles.get(job):
                then = f"{obstacle.message.partition(': ')[0]}; see what to do: lumctl status"
            lines.append(aimed(cx, f"{what}; {then} --target {context.target}"))
        else:
            how = f"lumctl sim resume {job}" if context.target == Target.SIM else "it has no hook"
            lines.append(aimed(cx, f"resume job {job} now: {how}; where its ranks run: lumctl job show {job}"))
    return lines


def head_after(cx: Invocation, context: Context, rack: str) -> Head | None:
    """The end of a rack's journal; ``None``, with a warning, if the store fails: the run itself has already ended."""
    try:
        return context.store(rack).journal.head()
    except StoreError as error:
        cx.out.narrate(f"warning: the end of the journal is unknown: {error.message}")
        return None


def run_document(result: RunResult, runbook: Path | None, head: Head | None) -> dict[str, Any]:
    """A finished run as data; ``head`` is where its rack's journal ends, ``None`` if that cannot be read."""
    return {
        "run": result.run,
        "outcome": result.outcome,
        "target": result.plan.target,
        "plan": result.plan.id,
        "seconds": result.seconds,
        "stages": [asdict(stage) for stage in result.stages],
        "verified": [asdict(proof) for proof in result.verified],
        "silent": list(result.silent),
        "runbook": str(runbook) if runbook else None,
        "journal_head": asdict(head) if head is not None else None,
    }


def tell_unfinished(cx: Invocation, context: Context, racks: tuple[str, ...]) -> tuple[str, ...]:
    """List the runs of these racks that were interrupted or left half done, with the commands that finish them."""
    found = tuple(run for rack in racks for run in context.store(rack).runs.unfinished(now=context.now()))
    for run in found:
        cx.out.narrate(aimed(cx, unfinished_line(run, str(cx.target))))
    return found


def roll_back(cx: Invocation, context: Context, run: str, *, yes: bool, dry_run: bool, stopped: bool) -> None:
    """Undo a run of any kind, as :func:`carry_out` applies a plan."""
    plan = plan_rollback(context, find_run(context, run))
    # Warn after the plan is shown, next to the question: a long plan would scroll the warning away.
    warn = partial(_tell_where_ranks_return, cx, context, plan)
    carry_out(cx, context, plan, yes=yes, dry_run=dry_run, stopped=stopped, may=warn)
    if dry_run:
        # Its warnings are true only now: later, another accelerator may have failed.
        cx.out.narrate("the plan was not stored")


def _tell_where_ranks_return(cx: Invocation, context: Context, plan: Plan) -> None:
    """Warn of each accelerator that has findings now and to which a rollback returns a rank."""
    for warning in where_ranks_return(context, plan):
        cx.out.narrate(f"warning: {warning}")


def where_ranks_return(context: Context, plan: Plan) -> list[str]:
    """A sentence about each accelerator that is not ok now and to which a rollback returns a rank."""
    given = set[str]()
    for step in plan.steps:
        if step.do is Do.ASSIGN:
            for job, ranks in step.data["assignment"].items():
                given |= set(ranks) - set(step.data["before"].get(job, ()))
    if not given:
        return []
    seen = context.observe().report.accelerators
    found = {name: seen[name].findings[0].evidence for name in sorted(given & set(seen)) if seen[name].findings}
    return [f"{name} is not healthy ({told}): its former rank would run there again" for name, told in found.items()]
