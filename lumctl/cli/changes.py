"""What every command that changes light shares: show a plan, ask for a yes, apply it, say what came of it."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from lumctl.change import Plan, RunResult, apply, to_document
from lumctl.change.plan import Do
from lumctl.change.preconditions import require
from lumctl.cli.invocation import Invocation
from lumctl.cli.output import OutputFormat
from lumctl.cli.plan_lines import plan_lines
from lumctl.errors import UsageError
from lumctl.runbook.files import save
from lumctl.site import Site


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


def carry_out(cx: Invocation, site: Site, plan: Plan, *, yes: bool, dry_run: bool) -> None:
    """Apply a plan after a person's yes (or only show it, with ``--dry-run``) and print what came of it."""
    if dry_run:
        require(site, plan)
        show_plan(cx, plan)
        cx.out.narrate("dry run: nothing was done")
        return
    if not (yes or cx.out.structured):
        show_plan(cx, plan)
    cx.confirm(f"Apply {plan.id} ({plan.title})?", yes=yes)
    result = apply(site, plan, progress=cx.out.narrate)
    say_result(cx, result, kept_runbook(cx, site, result))


def kept_runbook(cx: Invocation, site: Site, result: RunResult) -> Path | None:
    """The run is done and in the journal: a file that cannot be written must not make it look otherwise."""
    try:
        return save(site, result.run, result.plan.rack)
    except UsageError as error:
        cx.out.narrate(f"warning: {error.message}; the journal has it: lumctl runbook show {result.run}")
        return None


def say_result(cx: Invocation, result: RunResult, runbook: Path | None) -> None:
    """Print a finished run."""
    if cx.out.structured:
        cx.out.document("run", run_document(result, runbook))
    elif cx.out.format is OutputFormat.NAME:
        cx.out.names([result.run])
    else:
        proved = any(step.do is Do.VERIFY for step in result.plan.steps)
        told = f", {len(result.verified)} receivers proved" if proved else ""
        cx.out.text(f"{result.run}: {result.outcome} in {result.seconds:.2f} s{told}")
        cx.out.text(f"runbook: {runbook or f'lumctl runbook show {result.run}'}")


def run_document(result: RunResult, runbook: Path | None) -> dict[str, Any]:
    """A finished run as data."""
    return {
        "run": result.run,
        "outcome": result.outcome,
        "target": result.plan.target,
        "plan": result.plan.id,
        "seconds": result.seconds,
        "phases": [asdict(phase) for phase in result.phases],
        "verified": [asdict(proof) for proof in result.verified],
        "runbook": str(runbook) if runbook else None,
    }
