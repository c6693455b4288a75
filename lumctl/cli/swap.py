"""``lumctl swap``: put a spare in a failed accelerator's place, and take that back."""

import json
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from lumctl.change import Plan, from_document, to_document
from lumctl.cli.changes import carry_out, show_plan
from lumctl.cli.invocation import Invocation, Target
from lumctl.cli.nouns import NOUNS
from lumctl.cli.output import Column, OutputFormat, dump_json
from lumctl.cli.verbs import noun_app, verb
from lumctl.errors import LumctlError, RefusedError, UsageError
from lumctl.runbook.files import all_runs, find_run, write_private
from lumctl.site import Site
from lumctl.store import Run
from lumctl.swap import plan_rollback, plan_swap

app = noun_app(NOUNS["swap"].help)

YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask; for unattended use.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Show exactly what would be done, and do nothing.")]


@verb(app, "plan")
def plan(
    cx: Invocation,
    job: Annotated[str, typer.Argument(metavar="JOB", help="The job that lost accelerators.")],
    failed: Annotated[str, typer.Option("--failed", metavar="ACC[,ACC...]", help="The accelerators to replace.")],
    spare: Annotated[
        str | None, typer.Option("--spare", metavar="ACC[,ACC...]", help="Take these instead of the best ones.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Write the plan to a file as well.")] = None,
    even_if_healthy: Annotated[
        bool, typer.Option("--even-if-healthy", help="Replace accelerators that are read as ok.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Do not keep the plan.")] = False,
) -> None:
    """Plan a swap: choose spares, route their light paths, state loss and steps. Touches no device.

    The plan is kept in the rack's store under its id.
    """
    with Site(cx.inventory, cx.target) as site:
        made = plan_swap(site, job, _words(failed), _words(spare or ""), even_if_healthy=even_if_healthy)
        document = to_document(made)
        if not dry_run:
            site.store(made.rack).save_plan(document)
        if out is not None:
            write_private(out, dump_json(document) + "\n")
    show_plan(cx, made)
    if not dry_run:
        cx.out.narrate(f"apply it: lumctl swap apply {out or made.id} --target {made.target}")


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
    machine lost its power) does the run stay open: see swap list, and take it back with swap rollback 30 s later. The
    guard has what this command was started with, less its terminal and any agent that was forwarded to it.
    """
    with Site(cx.inventory, cx.target) as site:
        carry_out(cx, site, _find_plan(site, plan), yes=yes, dry_run=dry_run)


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
    """List runs, newest first."""
    with Site(cx.inventory, cx.target) as site:
        runs = all_runs(site)
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
            show_plan(cx, _find_plan(site, run))
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


def _find_plan(site: Site, name: str) -> Plan:
    """A plan by its id in any rack's store, or from a file."""
    for rack in site.inventory.racks:
        kept = site.store(rack).plan(name)
        if kept is not None:
            return from_document(kept)
    path = Path(name)
    if not path.exists():
        _refuse_other_target(site, name)
        raise UsageError(f"no plan {name!r} on target {site.target}, and no file of that name")
    try:
        return from_document(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} is not a plan: {error}") from error


def _refuse_other_target(site: Site, name: str) -> None:
    """Say so when a plan is known, but was made for the other target."""
    other = Target.RACK if site.target == Target.SIM else Target.SIM
    found = False
    with suppress(LumctlError), Site(site.inventory, other) as elsewhere:
        found = any(elsewhere.store(rack).plan(name) for rack in site.inventory.racks)
    if found:
        raise RefusedError(
            f"{name} was made for target {other}, this command is aimed at {site.target}",
            hint=f"add --target {other}, or make a new plan for {site.target}",
        )


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _clock(at: float) -> str:
    return datetime.fromtimestamp(at).astimezone().strftime("%H:%M:%S.%f")[:-3]


def _brief(data: dict[str, Any]) -> str:
    by = f" (by the {data['by']})" if "by" in data else ""
    if "failed" in data:
        return f"failed: {data['failed']}{by}"
    if "proofs" in data:
        return f"{len(data['proofs'])} receivers proved, {data['kept']} others still sound"
    plain = {k: v for k, v in data.items() if isinstance(v, str | int | float) and k not in {"do", "title", "done"}}
    return ", ".join(f"{key} {value}" for key, value in plain.items())
