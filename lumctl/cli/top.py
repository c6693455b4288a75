"""``lumctl top``: the dashboard, connected to a rack and to the swap."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from lumctl.cli.invocation import Invocation
from lumctl.cli.nouns import NOUNS
from lumctl.cli.output import ASCII_GLYPHS, GLYPHS
from lumctl.cli.verbs import noun_app, verb
from lumctl.errors import UsageError

if TYPE_CHECKING:
    from lumctl.tui.actions import ApplyView, PlanView

app = noun_app(NOUNS["top"].help)

IntervalOption = Annotated[
    float, typer.Option("--interval", metavar="SECONDS", min=0.2, help="Seconds between two readings.")
]


@verb(app)
def top(cx: Invocation, interval: IntervalOption = 2.0) -> int:
    """Show the dashboard: racks, accelerators, circuits and findings, live; swaps are planned and applied from it."""
    # Textual draws on stderr, so that one must be a terminal as well.
    if not all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        raise UsageError("the dashboard needs a terminal", hint="lumctl status --watch")
    from lumctl.site import Site
    from lumctl.tui.app import Dashboard
    from lumctl.tui.marks import Marks

    glyphs = ASCII_GLYPHS if cx.out.ascii_only else GLYPHS
    with Site(cx.inventory, cx.target) as site:
        site.endpoints  # noqa: B018 - a simulator that does not run is an error before the screen is taken
        dashboard = Dashboard(
            site.observe,
            lambda job, failed: _plan(cx, job, failed),
            lambda view, progress: _apply(cx, view, progress),
            racks=cx.inventory.racks,
            target=cx.target,
            marks=Marks(glyphs, ascii_only=cx.out.ascii_only),
            interval_s=interval,
        )
        dashboard.run()
    return dashboard.return_code or 0


def _plan(cx: Invocation, job: str, failed: str) -> "PlanView":
    from lumctl.cli.changes import plan_lines
    from lumctl.site import Site
    from lumctl.swap import plan_swap
    from lumctl.tui.actions import PlanView

    # A site of its own: the one that is observed belongs to the thread that reads.
    with Site(cx.inventory, cx.target) as site:
        plan = plan_swap(site, job, [failed])
    return PlanView(plan.title, plan.target, tuple(plan_lines(plan)[1:]), plan)


def _apply(cx: Invocation, view: "PlanView", progress: Callable[[str], None]) -> "ApplyView":
    from lumctl.change import apply
    from lumctl.runbook.files import save
    from lumctl.site import Site
    from lumctl.tui.actions import ApplyView

    with Site(cx.inventory, cx.target) as site:
        result = apply(site, view.plan, progress=progress)
        runbook = save(site, result.run, result.plan.rack)
    outcome = f"{result.run}: {result.outcome} in {result.seconds:.2f} s, {len(result.verified)} receivers proved"
    return ApplyView(outcome, done=True, lines=(f"runbook: {runbook}", f"read it: lumctl runbook show {result.run}"))
