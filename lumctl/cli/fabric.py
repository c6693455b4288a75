"""``lumctl fabric``: what the meshes carry, what they could, and programming the jobs' circuits onto them."""

from typing import Annotated

import typer

from lumctl.cli import fabric_matchings, fabric_route, fabric_show, fabric_trace
from lumctl.cli.change_options import DryRunOption, StoppedOption, YesOption
from lumctl.cli.changes import carry_out
from lumctl.cli.invocation import Invocation
from lumctl.cli.nouns import NOUNS
from lumctl.cli.unfinished import tell_unfinished
from lumctl.cli.verbs import noun_app, verb
from lumctl.errors import UsageError
from lumctl.site import Site
from lumctl.swap import plan_fabric

app = noun_app(NOUNS["fabric"].help)
fabric_show.register(app)
fabric_route.register(app)
fabric_matchings.register(app)
fabric_trace.register(app)


@verb(app, "apply")
def apply(
    cx: Invocation,
    rack: Annotated[
        str | None, typer.Option("--rack", metavar="RACK", help="Which rack, if there are several.")
    ] = None,
    rewrite: Annotated[
        bool, typer.Option("--rewrite", help="Route everything afresh and write every cell; darkens all meanwhile.")
    ] = False,
    as_written: Annotated[
        bool, typer.Option("--as-written", help="Place every job where the inventory says, forgetting earlier swaps.")
    ] = False,
    yes: YesOption = False,
    job_is_stopped: StoppedOption = False,
    dry_run: DryRunOption = False,
) -> None:
    """Program the circuits that the jobs need and the meshes do not carry yet: on day one, or after a repair.

    On a rack, jobs without a hook whose circuits stand and are taken away or written anew must be stopped, and somebody
    must say so, as for swap apply. Where nothing stands yet nobody is asked.
    """
    racks = list(cx.inventory.racks)
    if rack is None and len(racks) > 1:
        raise UsageError("the inventory has several racks", hint=f"--rack {'|'.join(racks)}")
    chosen = rack or racks[0]
    if chosen not in racks:
        raise UsageError(f"no rack {chosen!r} in the inventory", hint=f"one of: {', '.join(racks)}")
    with Site(cx.inventory, cx.target) as site:
        written = {job.name: job.ranks for job in cx.inventory.jobs.values() if job.rack == chosen}
        plan = plan_fabric(site, chosen, rewrite=rewrite, placement=written if as_written else None)
        if not plan.steps:
            if cx.out.structured:
                cx.out.document("run", {"run": None, "outcome": "nothing to do", "target": str(cx.target)})
            cx.out.narrate(f"{chosen} carries every circuit that its jobs need, by the record and by the light")
            return
        tell_unfinished(cx, site, (chosen,))  # what it darkened stays dark, and is not proved on top of it
        carry_out(cx, site, plan, yes=yes, dry_run=dry_run, stopped=job_is_stopped)
