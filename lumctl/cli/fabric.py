"""``lumctl fabric``: what the meshes carry, what they could, and programming the jobs' circuits onto them."""

from typing import Annotated

import typer

from lumctl.cli import fabric_matchings, fabric_route, fabric_show, fabric_trace
from lumctl.cli.change_options import DryRunOption, StoppedOption, YesOption
from lumctl.cli.changes import carry_out
from lumctl.cli.invocation import Invocation
from lumctl.cli.nouns import NOUNS
from lumctl.cli.unfinished_runs import tell_unfinished
from lumctl.cli.verbs import noun_app, verb
from lumctl.context import Context
from lumctl.errors import UsageError
from lumctl.swap import plan_fabric, require_cuts_agreed

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
    cut: Annotated[
        str, typer.Option("--cut", metavar="PORT[,...]", help="Also cut these light paths, which no job owns.")
    ] = "",
    yes: YesOption = False,
    job_is_stopped: StoppedOption = False,
    dry_run: DryRunOption = False,
) -> None:
    """Program a rack as recorded: the circuits that its jobs need, and their transmitters.

    Use it on day one, and after a repair. It switches on transmitters of placed ranks that are off, and switches off
    those of replaced accelerators; if nothing else is wrong, no cell is written.

    The states of switches and meshes that can be read back are read first; undoing the run restores them. The plan
    lists each light path that it cuts, with the light on it. A light path that no job of the inventory owns is cut only
    if one of its ports is named with ``--cut`` (PORT, or DEVICE/port/PORT); --yes alone does not suffice (exit code 5).

    If the store has no record, the light is read first. If it shows the jobs at other places than the inventory, the
    command refuses (5), and ``lumctl store adopt`` records where they run.

    On a rack, a job without a hook must be stopped before its active circuits are removed or written again, and an
    operator must say so, as for swap apply. If no circuit is active yet, no question is asked.
    """
    racks = list(cx.inventory.racks)
    if rack is None and len(racks) > 1:
        raise UsageError("the inventory has several racks", hint=f"--rack {'|'.join(racks)}")
    chosen = rack or racks[0]
    if chosen not in racks:
        raise UsageError(f"no rack {chosen!r} in the inventory", hint=f"one of: {', '.join(racks)}")
    with Context(cx.inventory, cx.target) as context:
        written = {job.name: job.ranks for job in cx.inventory.jobs.values() if job.rack == chosen}
        named = [word.strip() for word in cut.split(",") if word.strip()]
        plan = plan_fabric(context, chosen, rewrite=rewrite, placement=written if as_written else None, cut=named)
        if not plan.steps:
            if cx.out.structured:
                cx.out.document("run", {"run": None, "outcome": "nothing to do", "target": str(cx.target)})
            cx.out.narrate(f"{chosen} carries every circuit that its jobs need, by the record and by the light")
            return
        again = f"lumctl fabric apply{_said(rack, rewrite=rewrite, as_written=as_written)} --target {cx.target}"
        tell_unfinished(cx, context, (chosen,))  # what it darkened stays dark, and is not proved on top of it
        carry_out(
            cx,
            context,
            plan,
            yes=yes,
            dry_run=dry_run,
            stopped=job_is_stopped,
            may=lambda: require_cuts_agreed(context, plan, again),
        )


def _said(rack: str | None, *, rewrite: bool, as_written: bool) -> str:
    """The options of this command as they were typed."""
    words = [f"--rack {rack}"] if rack else []
    words += ["--rewrite"] if rewrite else []
    words += ["--as-written"] if as_written else []
    return "".join(f" {word}" for word in words)
