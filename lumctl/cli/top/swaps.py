"""Swaps planned for the dashboard, and applied once an operator has confirmed them there."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from lumctl.cli.invocation import Invocation
from lumctl.counts import counted
from lumctl.errors import UsageError

if TYPE_CHECKING:
    from lumctl.tui.actions import ApplyView, PlanView


def plan(cx: Invocation, job: str, failed: str) -> "PlanView":
    """Plan the replacement of one accelerator, with pictures of the meshes as they will be."""
    from lumctl.cli.top.meshes import with_meshes
    from lumctl.cli.top.runs import plan_view
    from lumctl.context import Context
    from lumctl.swap import plan_swap

    # A context of its own: the one that is observed belongs to the thread that reads.
    with Context(cx.inventory, cx.target) as context:
        return with_meshes(context, plan_view(plan_swap(context, job, [failed])))


def apply_plan(cx: Invocation, view: "PlanView", progress: Callable[[str], None]) -> "ApplyView":
    """Apply a plan and write its runbook."""
    from lumctl.change import apply
    from lumctl.change.origin import origin
    from lumctl.context import Context
    from lumctl.runbook.files import save
    from lumctl.tui.actions import ApplyView

    with Context(cx.inventory, cx.target) as context:
        # What a person has confirmed says which jobs must be stopped.
        result = apply(context, view.plan, progress=progress, stopped_by=origin())
        try:
            kept = f"runbook: {save(context, result.run, result.plan.rack)}"
        except UsageError as error:  # the run is done and in the journal all the same
            kept = f"warning: {error.message}"
    proved = f"{counted(len(result.verified), 'receivers')} proved"
    outcome = f"{result.run}: {result.outcome} in {result.seconds:.2f} s, {proved}"
    read_it = f"read it: lumctl runbook show {result.run}"
    return ApplyView(outcome, done=True, lines=(kept, read_it), run=f"{result.plan.rack}/{result.run}")
