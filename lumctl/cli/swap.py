"""``lumctl swap``: put a spare in a failed accelerator's place, and take that back."""

from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from lumctl.change import to_document
from lumctl.cli import swap_approve, swap_finish
from lumctl.cli.changes import carry_out, show_plan
from lumctl.cli.invocation import Invocation
from lumctl.cli.nouns import NOUNS
from lumctl.cli.output import Column, OutputFormat, dump_json
from lumctl.cli.plans import find_plan
from lumctl.cli.verbs import noun_app, verb
from lumctl.errors import UsageError
from lumctl.inventory.hints import nearest
from lumctl.runbook.files import all_runs, find_run, write_private
from lumctl.site import Site
from lumctl.store import ACTION_KINDS, Run
from lumctl.swap import plan_reroute, plan_return, plan_rollback, plan_swap

app = noun_app(NOUNS["swap"].help)
swap_finish.register(app)

YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask; for unattended use.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Show exactly what would be done, and do nothing.")]


@verb(app, "plan")
def plan(
    cx: Invocation,
    job: Annotated[
        str | None, typer.Argument(metavar="JOB", help="The job; found from the accelerators unless named.")
    ] = None,
    failed: Annotated[
        str, typer.Option("--failed", metavar="ACC|HOST[,...]", help="What to replace; a host: all that run ranks.")
    ] = "",
    host: Annotated[
        str, typer.Option("--host", metavar="HOST[,HOST...]", help="Replace all that run ranks on these hosts.")
    ] = "",
    spare: Annotated[
        str | None, typer.Option("--spare", metavar="ACC[,ACC...]", help="Take these instead of the best ones.")
    ] = None,
    back: Annotated[
        bool, typer.Option("--back", help="Return the ranks of JOB to the accelerators that the inventory gives them.")
    ] = False,
    avoid: Annotated[
        str,
        typer.Option("--avoid", metavar="COMPONENT[,...]", help="Lead circuits round PUCs, ports or transponders."),
    ] = "",
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Write the plan to a file as well.")] = None,
    even_if_healthy: Annotated[
        bool, typer.Option("--even-if-healthy", help="Replace accelerators that are read as ok.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Do not keep the plan.")] = False,
) -> None:
    """Plan a swap: choose spares, route their light paths, state loss and steps. Touches no device.

    Several failures, of one job or of several, are replaced by one plan if they are in one rack: spares are dealt out
    so that none goes without while there is a choice that serves all. Spares are ranked; the first of these in which
    two differ decides: kept for the job (reserved_for) before others; the least memory that is enough; all lanes ok;
    fewest faults in seven days; not back for less than a day, nor still burning in; fewest circuits moved; enough
    margin of light; least loss; fewest PUCs; fewest cells written.

    With --avoid alone the circuits of JOB are led round what is dying, and no accelerator is replaced. With --back each
    rank returns to its own accelerator if that is well again: a plan like any other, not a rollback.

    The plan is kept in the rack's store under its id. -o wide shows every cell and what each step requires.
    """
    wanted = _words(failed) + _words(host)
    with Site(cx.inventory, cx.target) as site:
        _require_hosts(site, _words(host))
        if back:
            made = plan_return(site, _returned(job, wanted, avoid, spare))
        elif avoid and not wanted:
            made = plan_reroute(site, job, _words(avoid))
        else:
            named = _words(spare or "")
            made = plan_swap(site, job, wanted, named, avoid=_words(avoid), even_if_healthy=even_if_healthy)
        document = to_document(made)
        if not dry_run:
            site.store(made.rack).save_plan(document)
            asking = swap_approve.wants_approval(site, made)
        if out is not None:
            write_private(out, dump_json(document) + "\n")
    show_plan(cx, made)
    if not dry_run:
        if asking:
            approve = f"lumctl swap approve {made.id} --target {made.target}"
            cx.out.narrate(f"policy {asking} asks for an approval: {approve}")
        cx.out.narrate(f"apply it: lumctl swap apply {out or made.id} --target {made.target}")


def _returned(job: str | None, wanted: list[str], avoid: str, spare: str | None) -> str:
    if job is None:
        raise UsageError("--back needs the job whose ranks return", hint="lumctl swap plan JOB --back")
    if wanted or avoid or spare:
        raise UsageError("--back goes with no --failed, --host, --spare or --avoid", hint="make a plan for each")
    return job


def _require_hosts(site: Site, names: list[str]) -> None:
    for name in names:
        if name not in site.inventory.hosts:
            near = nearest(name, site.inventory.hosts)
            raise UsageError(f"no host {name!r} in the inventory" + (f"; did you mean {near!r}?" if near else ""))


@verb(app, "apply")
def apply(
    cx: Invocation,
    plan: Annotated[str, typer.Argument(metavar="PLAN", help="A plan's id, or the file it was written to.")],
    yes: YesOption = False,
    dry_run: DryRunOption = False,
) -> None:
    """Apply a plan: journalled step by step, proved by light, undone if anything fails.

    If this command is killed, or its terminal closes, what it did is taken back all the same: its revert guard, a
    process of its own, does that within seconds. A command that stands still for a minute and twice the inventory's
    light_deadline_s is taken over in the same way, and says so should it wake up. Only where the guard is gone too (the
    machine lost its power) does the run stay open: see swap list, and 30 s later go on with it by swap resume, or take
    it back by swap abort. The guard has what this command was started with, less its terminal and any agent that was
    forwarded to it.
    """
    with Site(cx.inventory, cx.target) as site:
        carry_out(cx, site, find_plan(site, plan), yes=yes, dry_run=dry_run)


swap_approve.register(app)


@verb(app, "rollback")
def rollback(
    cx: Invocation,
    run: Annotated[str, typer.Argument(metavar="RUN", help="The run to take back.")],
    yes: YesOption = False,
    dry_run: DryRunOption = False,
) -> None:
    """Take a run back: the cells, the transmitters and the placement from before it. Also for a run that was cut."""
    with Site(cx.inventory, cx.target) as site:
        carry_out(cx, site, plan_rollback(site, find_run(site, run)), yes=yes, dry_run=dry_run)


@verb(app, "list")
def list_(cx: Invocation) -> None:
    """List runs, newest first; what touched no device (acknowledgements and the like) is in ``runbook list``."""
    with Site(cx.inventory, cx.target) as site:
        runs = [run for run in all_runs(site) if run.kind not in ACTION_KINDS]
    if cx.out.structured:
        cx.out.document("runs", {"target": str(cx.target), "runs": [run_row(run) for run in runs]})
    elif cx.out.format is OutputFormat.NAME:
        cx.out.names([run.id for run in runs])
    else:
        cx.out.table(RUN_COLUMNS, [run_row(run) for run in runs])
        if not runs:
            cx.out.narrate(f"no run on target {cx.target} yet")


@verb(app, "show")
def show(cx: Invocation, run: Annotated[str, typer.Argument(metavar="RUN", help="A run or a plan.")]) -> None:
    """Show one run with every step's outcome, or a plan that has not been applied."""
    with Site(cx.inventory, cx.target) as site:
        if run.startswith("plan-"):
            show_plan(cx, find_plan(site, run))
            return
        found = find_run(site, run)
        entries = site.store(found.rack).entries(found.id)
    journal = [{"seq": e.seq, "at": e.at, "kind": e.kind, "step": e.step, "data": dict(e.data)} for e in entries]
    if cx.out.structured:
        cx.out.document("run", {**run_row(found), "plan_digest": found.plan_digest, "journal": journal})
        return
    cx.out.text(f"{found.id}  {found.title}")
    cx.out.text(f"{found.outcome_line()}, by {found.who}, lumctl {found.version}")
    titles = {step["id"]: step["title"] for step in found.plan["steps"]}
    rows = [
        {"at": _clock(e.at), "kind": e.kind, "step": titles.get(e.step, ""), "data": _brief(dict(e.data))}
        for e in entries
    ]
    cx.out.table(_JOURNAL_COLUMNS, rows)


RUN_COLUMNS = (
    Column("RUN", "run"),
    Column("RACK", "rack", wide=True),
    Column("OUTCOME", "outcome"),
    Column("STARTED", "started"),
    Column("SECONDS", "seconds", right=True),
    Column("TITLE", "title"),
    Column("BY", "by", wide=True),
)
_JOURNAL_COLUMNS = (Column("AT", "at"), Column("ENTRY", "kind"), Column("STEP", "step"), Column("", "data"))


def run_row(run: Run) -> dict[str, Any]:
    """A run as a row of a table or an element of a document."""
    return {
        "run": run.id,
        "kind": run.kind,
        "title": run.title,
        "outcome": run.state,
        "target": run.target,
        "rack": run.rack,
        "by": run.who,
        "started": datetime.fromtimestamp(run.started_at).astimezone().isoformat(timespec="seconds"),
        "seconds": None if run.ended_at is None else round(run.ended_at - run.started_at, 3),
        "undone_by": run.undone_by,
    }


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _clock(at: float) -> str:
    return datetime.fromtimestamp(at).astimezone().strftime("%H:%M:%S.%f")[:-3]


def _brief(data: dict[str, Any]) -> str:
    by = f" (by {data['by']})" if "by" in data else ""
    if "failed" in data:
        return f"failed: {data['failed']}{by}"
    if "proofs" in data:
        return f"{len(data['proofs'])} receivers proved, {data['kept']} others still sound"
    plain = {k: v for k, v in data.items() if isinstance(v, str | int | float) and k not in {"do", "title", "done"}}
    return ", ".join(f"{key} {value}" for key, value in plain.items())
