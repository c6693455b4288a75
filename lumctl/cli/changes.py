"""The common part of commands that change light: show a plan, ask for a yes, apply it, print the result."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lumctl.change import Plan, RunResult, apply, to_document
from lumctl.change.disturbance import HINT, jobs_to_stop, must_be_stopped
from lumctl.change.guard import Standby
from lumctl.change.origin import origin
from lumctl.change.plan import Do, Step
from lumctl.change.preconditions import require
from lumctl.cli.invocation import Invocation
from lumctl.cli.output import OutputFormat
from lumctl.cli.plan_lines import plan_lines
from lumctl.context import Context
from lumctl.errors import LumctlError, RefusedError, RunError
from lumctl.printable import counted
from lumctl.runbook.files import save
from lumctl.store import Head, StoreError


def show_plan(cx: Invocation, plan: Plan) -> None:
    """Print a plan: as data, as its id, or as a difference that a person can read."""
    if cx.out.structured:
        document = to_document(plan)
        document.pop("schema")
        cx.out.document("plan", document)
    elif cx.out.format is OutputFormat.NAME:
        cx.out.names([plan.id])
    else:
        for line in plan_lines(plan, wide=cx.out.format is OutputFormat.WIDE):
            cx.out.text(line)


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
    """Apply a plan after an operator's yes (or only show it, with ``--dry-run``) and print the result.

    ``stopped``: an operator has confirmed that jobs without a hook whose light moves are stopped. ``may`` may refuse
    the plan after it was shown.
    """
    if dry_run:
        show_plan(cx, plan)
        may()
        require(context, plan)
        if not stopped:
            tell_of_jobs(cx, context, plan)
        cx.out.narrate("dry run: nothing was done")
        return
    if not (yes or cx.out.structured):
        show_plan(cx, plan)
    may()
    with Standby(context) as standby, keeping(cx, context, plan.rack):
        standby.ready(plan.rack)  # it comes up while the person thinks
        stopped_by = agree(cx, context, plan, f"Apply {plan.id} ({plan.title})", yes=yes, stopped=stopped)
        result = apply(context, plan, progress=cx.out.narrate, stopped_by=stopped_by, arm=standby.arm)
    say_result(cx, context, result, kept_runbook(cx, context, result))


def tell_of_jobs(cx: Invocation, context: Context, plan: Plan, left: Sequence[Step] | None = None) -> None:
    """Print which jobs an operator must stop before the steps ``left`` of a plan (by default all) may be done."""
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
    """Ask for a yes to a plan (``what`` is the action) and its needs; return who confirmed that jobs are stopped.

    ``left`` are its remaining steps; by default all.

    Raises:
        UsageError: there is no terminal to ask on and ``--yes`` was not given. RefusedError: the operator said no; or
        no one confirmed that a job is stopped, for which ``--yes`` does not suffice.
    """
    jobs = () if stopped else jobs_to_stop(context, plan, left)
    if jobs and yes:
        raise RefusedError(f"{must_be_stopped(jobs)}, and --yes does not say that", hint=HINT)
    must = must_be_stopped(jobs) if jobs else ""
    cx.confirm(f"{must[:1].upper()}{must[1:]}{'. ' if must else ''}{what}?", yes=yes)
    return origin() if stopped or jobs else None


def kept_runbook(cx: Invocation, context: Context, result: RunResult) -> Path | None:
    """The runbook of a run beside its store, if it can be written there."""
    return _kept(cx, context, result.run, result.plan.rack)


@contextmanager
def keeping(cx: Invocation, context: Context, rack: str) -> Iterator[None]:
    """A run that fails in the block leaves its runbook too: what was tried, and what was undone."""
    try:
        yield
    except RunError as error:
        _kept(cx, context, error.run, rack)
        raise


def _kept(cx: Invocation, context: Context, run: str, rack: str) -> Path | None:
    """The run is over and in the journal: a file that cannot be written must not make it look otherwise."""
    try:
        return save(context, run, rack)
    except LumctlError as error:
        cx.out.narrate(f"warning: {error.message}; the journal has it: lumctl runbook show {run}")
        return None


def say_result(cx: Invocation, context: Context, result: RunResult, runbook: Path | None) -> None:
    """Print a finished run."""
    if cx.out.structured:
        cx.out.document("run", run_document(result, runbook, head_after(cx, context, result.plan.rack)))
    elif cx.out.format is OutputFormat.NAME:
        cx.out.names([result.run])
    else:
        taken_back = result.outcome in {"rolled-back", "superseded"}  # it proved what was sound before, not what is new
        proved = not taken_back and any(step.do is Do.VERIFY for step in result.plan.steps)
        told = f", {counted(len(result.verified), 'receivers')} proved" if proved else ""
        cx.out.text(f"{result.run}: {result.outcome} in {result.seconds:.2f} s{told}")
        if result.silent:
            cx.out.text(f"not shown, for their hosts do not answer: {', '.join(result.silent)}")
        cx.out.text(f"runbook: {runbook or f'lumctl runbook show {result.run}'}")


def head_after(cx: Invocation, context: Context, rack: str) -> Head | None:
    """Where a rack's journal ends; a store that is gone just then must not make what was done look refused."""
    try:
        return context.store(rack).journal.head()
    except StoreError as error:
        cx.out.narrate(f"warning: where the journal ends is not known: {error.message}")
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
