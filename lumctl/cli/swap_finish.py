"""``lumctl swap resume`` and ``lumctl swap abort``: a run that was cut or left half done is brought to an end."""

from collections.abc import Callable
from typing import Annotated, Any

import typer

from lumctl.change import RunResult
from lumctl.change.job_step import resumes
from lumctl.change.plan import Step
from lumctl.change.resuming import ABORT, RESUME, Prospect, prospect
from lumctl.change.resuming import abort as take_back
from lumctl.change.resuming import resume as go_on
from lumctl.cli.changes import kept_runbook, say_result
from lumctl.cli.invocation import Invocation
from lumctl.cli.output import OutputFormat
from lumctl.cli.verbs import verb
from lumctl.runbook.files import find_run
from lumctl.site import Site
from lumctl.store import Run

RunArgument = Annotated[str, typer.Argument(metavar="RUN", help="A run that status or swap list names as unfinished.")]
YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask; for unattended use.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Show exactly what would be done, and do nothing.")]


def register(app: typer.Typer) -> None:
    """Add the commands to their noun."""
    verb(app, "resume")(resume)
    verb(app, "abort")(abort)


def resume(cx: Invocation, run: RunArgument, yes: YesOption = False, dry_run: DryRunOption = False) -> None:
    """Go on with a run that was cut or left half done, to its planned end.

    What its journal says is done is not done again. A step of which nobody knows is done again, and so is what a
    device took back by itself. Before that the spares must read well, each device must hold what it held or what this
    run wrote, and nobody else's circuit may be touched. Then the light is proved and the run is done. Where it cannot
    go on, it says why and takes all back (exit code 6); where that fails too, it is half done (7).

    The engine of the run must be gone: its lease ends at most 30 s after it died.
    """
    with Site(cx.inventory, cx.target) as site:
        _finish(cx, site, run, RESUME, lambda found: go_on(site, found, progress=cx.out.narrate), yes=yes, dry=dry_run)


def abort(cx: Invocation, run: RunArgument, yes: YesOption = False, dry_run: DryRunOption = False) -> None:
    """Take a run that was cut or left half done back to where it began, as its revert guard would have.

    Each step that may have acted is undone, the last one first, and what was sound before must be sound again. What
    cannot be undone leaves the run half done (exit code 7), and this command can be tried again. A run that came to its
    end is taken back with swap rollback.
    """
    with Site(cx.inventory, cx.target) as site:
        _finish(cx, site, run, ABORT, lambda found: take_back(site, found), yes=yes, dry=dry_run)


def _finish(
    cx: Invocation, site: Site, name: str, act: str, do: Callable[[Run], RunResult], *, yes: bool, dry: bool
) -> None:
    run = find_run(site, name)
    if dry or not yes:
        found = prospect(site, run, act)
        if dry or not cx.out.structured:
            _show(cx, found)
        if dry:
            cx.out.narrate("dry run: nothing was done")
            return
        way = f"go on with {run.id}" if found.forward else f"take back {run.id}"
        cx.confirm(f"{way[0].upper()}{way[1:]} ({run.title})?", yes=False)
    result = do(run)
    say_result(cx, result, kept_runbook(cx, site, result))


def _show(cx: Invocation, found: Prospect) -> None:
    if cx.out.structured:
        cx.out.document("prospect", prospect_document(found))
    elif cx.out.format is OutputFormat.NAME:
        cx.out.names([found.run.id])
    else:
        for line in prospect_lines(found):
            cx.out.text(line)


def prospect_lines(found: Prospect) -> list[str]:
    """What would be done with a run, as lines of text."""
    run, trail = found.run, found.trail
    left = "was left half done" if run.state == "half-done" else "was cut"
    done = f"{len(trail.ended)} of {len(found.plan.steps)} steps are done"
    lines = [f"{run.id}  {run.title}", f"target {run.target}, rack {run.rack}; it {left}, {done}"]
    if found.why_not:
        lines += ["", f"it cannot go on: {found.why_not}"]
    if not found.steps:
        return [*lines, "", "nothing is left to do: it is closed as done" if found.forward else "nothing stands of it"]
    lines += ["", "left to do" if found.forward else "taken back, in this order"]
    return lines + [f"  {step.id}. {step.title}{_remark(found, step)}" for step in found.steps]


def prospect_document(found: Prospect) -> dict[str, Any]:
    """What would be done with a run, as data."""
    return {
        "run": found.run.id,
        "target": found.run.target,
        "plan": found.plan.id,
        "act": RESUME if found.forward else ABORT,
        "why_not": found.why_not or None,
        "steps": [
            {"id": step.id, "do": step.do.value, "title": step.title, "known": _known(found, step)}
            for step in found.steps
        ],
    }


def _known(found: Prospect, step: Step) -> str:
    """What the journal says of a step: done, not done, or that nobody knows."""
    if step.id in found.trail.ended:
        return "done"
    return "unknown" if step in found.trail.unclear else "not done"


def _remark(found: Prospect, step: Step) -> str:
    known = _known(found, step)
    if not found.forward:
        return f": {step.undo}" if step.undo else ""
    if known == "unknown":
        return " (again: whether it was done is not known)"
    if known == "done":
        return " (again)"
    return "" if step.required or resumes(step) else " (if it can be reached)"
