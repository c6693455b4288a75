"""``lumctl swap resume`` and ``lumctl swap abort``: finish or undo a run that was interrupted or left half done."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated, Any

import typer

from lumctl.change import RunResult
from lumctl.change.origin import origin
from lumctl.change.plan import Step
from lumctl.change.resumption import ABORT, RESUME, RunOutlook, outlook
from lumctl.change.resumption import abort as take_back
from lumctl.change.resumption import resume as go_on
from lumctl.cli.changes import agree, keeping, kept_runbook, say_result, tell_of_jobs
from lumctl.cli.invocation import Invocation
from lumctl.cli.output import OutputFormat
from lumctl.cli.verbs import DryRunOption, StoppedOption, YesOption, verb
from lumctl.context import Context
from lumctl.runbook.files import find_run
from lumctl.store import StoredRun

RunArgument = Annotated[str, typer.Argument(metavar="RUN", help="An unfinished run, as listed by status or swap list.")]


def register(app: typer.Typer) -> None:
    """Add the commands to their noun."""
    verb(app, "resume")(resume)
    verb(app, "abort")(abort)


def resume(
    cx: Invocation,
    run: RunArgument,
    yes: YesOption = False,
    job_is_stopped: StoppedOption = False,
    dry_run: DryRunOption = False,
) -> None:
    """Finish a run that was interrupted or left half done.

    Steps that the journal records as done are not repeated. A step without an outcome is repeated, as is a step whose
    device reverted by itself. Before that the spares must be ok, each device must hold its earlier states or those that
    this run wrote, and no foreign circuit may be changed. Transmitters that placed ranks need are switched on first.
    Then the light is proved and the run is done. If it cannot continue, it reports why and undoes everything (exit code
    6); if that fails too, it is half done (7).

    On a rack, jobs without a hook must be stopped before their light paths change, as for swap apply, and an operator
    must confirm that again: they may have been started since. If the run is undone, no confirmation is needed.

    The engine of the run must be gone: its lease ends at most 30 s after its death.
    """
    with Context(cx.inventory, cx.target) as context:
        _finish(
            cx,
            context,
            run,
            RESUME,
            lambda found, said: go_on(context, found, progress=cx.out.narrate, stopped_by=said),
            yes=yes,
            stopped=job_is_stopped,
            dry=dry_run,
        )


def abort(
    cx: Invocation,
    run: RunArgument,
    leave_later: Annotated[
        bool, typer.Option("--leave-later", help="Keep what later runs have changed, and close the run.")
    ] = False,
    yes: YesOption = False,
    dry_run: DryRunOption = False,
) -> None:
    """Undo a run that was interrupted or left half done, as its revert guard would have done.

    Each step that may have acted is undone, the last one first, and circuits that were proved before must be proved
    again. A step that cannot be undone leaves the run half done (exit code 7); try this command again then. A finished
    run is undone with swap rollback. The command also switches the rack's transmitters as recorded: those of placed
    ranks are switched on, those of replaced accelerators are switched off.

    If a later run has changed the same cells (fabric apply, or another device set), the command refuses. With
    ``--leave-later`` the run is closed as superseded: cells that later runs wrote, and the placement of the jobs that
    they carry, stay as they are; each is listed. The rest is undone, and transmitters that this run switched off are
    switched on if a job needs them now.
    """
    with Context(cx.inventory, cx.target) as context:
        _finish(
            cx,
            context,
            run,
            ABORT,
            lambda found, _said: take_back(context, found, leave_later=leave_later),
            yes=yes,
            dry=dry_run,
            leave_later=leave_later,
        )


def _finish(
    cx: Invocation,
    context: Context,
    name: str,
    act: str,
    do: Callable[[StoredRun, str | None], RunResult],
    *,
    yes: bool,
    dry: bool,
    stopped: bool = False,
    leave_later: bool = False,
) -> None:
    run = find_run(context, name)
    said = origin() if stopped else None
    # With --yes the outlook below is not shown, and what stays as it is must be named in any case.
    if leave_later and yes and not dry:
        for why in outlook(context, run, act, leave_later=True).left_alone.why:
            cx.out.narrate(f"kept, because a later run has changed it: {why}")
    if dry or not yes:
        found = outlook(context, run, act, leave_later=leave_later)
        # As in carry_out(): structured output is one document, that of the result.
        if dry or not cx.out.structured:
            _show(cx, found)
        if dry:
            if found.forward and not stopped:
                tell_of_jobs(cx, context, found.plan, found.steps)
            cx.out.narrate("dry run: nothing was done")
            return
        way = f"continue with {run.id}" if found.forward else f"undo {run.id}"
        what = f"{way[0].upper()}{way[1:]} ({run.title})"
        if found.forward:
            said = agree(cx, context, found.plan, what, yes=False, stopped=stopped, left=found.steps)
        else:
            cx.confirm(f"{what}?", yes=False)
    # As in carry_out(): a run that fails again leaves a runbook of what was tried.
    with keeping(cx, context, run.rack):
        result = do(run, said)
    say_result(cx, context, result, kept_runbook(cx, context, result))


def _show(cx: Invocation, found: RunOutlook) -> None:
    if cx.out.structured:
        cx.out.document("prospect", prospect_document(found))
    elif cx.out.format is OutputFormat.NAME:
        cx.out.names([found.run.id])
    else:
        for line in prospect_lines(found):
            cx.out.text(line)


def prospect_lines(found: RunOutlook) -> list[str]:
    """What resuming or aborting a run would do, as lines of text."""
    run, history = found.run, found.history
    left = "was left half done" if run.state == "half-done" else "was interrupted"
    done = f"{len(history.ended)} of {len(found.plan.steps)} steps are done"
    lines = [f"{run.id}  {run.title}", f"target {run.target}, rack {run.rack}; it {left}, {done}"]
    if found.why_not:
        lines += ["", f"it cannot continue: {found.why_not}"]
    if found.left_alone.why:
        lines += ["", "kept, because later runs have changed it", *(f"  {why}" for why in found.left_alone.why)]
        lines += [f"  {step.id}. {step.title}" for step in found.left_alone.steps]
    if not found.steps and found.left_alone.why:
        lines += ["", "no other effect of it remains: it is closed"]
    elif not found.steps:
        lines += ["", "nothing is left to do: it is closed as done" if found.forward else "no effect of it remains"]
    else:
        lines += ["", "left to do" if found.forward else "rolled back, in this order"]
        lines += [f"  {step.id}. {step.title}{_remark(found, step)}" for step in found.steps]
    if found.switching.lines():
        lines += [
            "",
            "and to turn transmitters on or off as recorded",
            *(f"  {line}" for line in found.switching.lines()),
        ]
    return lines


def prospect_document(found: RunOutlook) -> dict[str, Any]:
    """What resuming or aborting a run would do, as data."""
    return {
        "run": found.run.id,
        "target": found.run.target,
        "plan": found.plan.id,
        "act": RESUME if found.forward else ABORT,
        "why_not": found.why_not or None,
        "left_alone": {"steps": [step.id for step in found.left_alone.steps], "why": list(found.left_alone.why)},
        "transmitters": asdict(found.switching),
        "steps": [
            {"id": step.id, "do": step.do.value, "title": step.title, "known": _known(found, step)}
            for step in found.steps
        ],
    }


def _known(found: RunOutlook, step: Step) -> str:
    """The journal's outcome of a step: done, not done, or unknown."""
    if step.id in found.history.ended:
        return "done"
    return "unknown" if step in found.history.unclear else "not done"


def _remark(found: RunOutlook, step: Step) -> str:
    known = _known(found, step)
    if not found.forward:
        return f": {step.undo}" if step.undo else ""
    if known == "unknown":
        return " (again: whether it was done is unknown)"
    if known == "done":
        return " (again)"
    return "" if step.required or step.resumes_job else " (if it can be reached)"
