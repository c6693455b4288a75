"""``lumctl swap list`` and ``lumctl swap show``: the runs of a rack, and one of them with all that its steps did."""

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any

import typer

from lumctl.cli.changes import show_plan
from lumctl.cli.invocation import Invocation
from lumctl.cli.output import OutputColumn, OutputFormat
from lumctl.cli.plans import find_plan
from lumctl.cli.unfinished_runs import shown_as_cut, tell_unfinished
from lumctl.cli.verbs import verb
from lumctl.context import Context
from lumctl.printable import counted
from lumctl.runbook.files import all_runs, find_run
from lumctl.store import ACTION_KINDS, StoredRun


def register(app: typer.Typer) -> None:
    """Add the commands to their noun."""
    verb(app, "list")(list_)
    verb(app, "show")(show)


def list_(cx: Invocation) -> None:
    """List runs that touched devices, newest first; ``runbook list`` has the others, such as acknowledgements.

    A run whose engine is gone is shown as cut, and one whose engine gave up as half-done, even if a full disk prevented
    it from recording that. The commands that finish such a run are printed on stderr.
    """
    with Context(cx.inventory, cx.target) as context:
        runs = [run for run in all_runs(context) if run.kind not in ACTION_KINDS]
        racks = tuple(context.inventory.racks)
        cut = tell_unfinished(cx, context, racks)
        left = tuple(run for rack in racks for run in context.store(rack).runs.left_half_done())
    rows = shown_as_cut([run_row(run) for run in runs], cut, left)
    if cx.out.structured:
        cx.out.document("runs", {"target": str(cx.target), "runs": rows})
    elif cx.out.format is OutputFormat.NAME:
        cx.out.names([run.id for run in runs])
    else:
        cx.out.table(RUN_COLUMNS, rows)
        if not runs:
            cx.out.narrate(f"no run on target {cx.target} yet")


def show(cx: Invocation, run: Annotated[str, typer.Argument(metavar="RUN", help="A run or a plan.")]) -> None:
    """Show one run with every step's outcome, or a plan that has not been applied."""
    with Context(cx.inventory, cx.target) as context:
        if run.startswith("plan-"):
            show_plan(cx, find_plan(context, run))
            return
        found = find_run(context, run)
        entries, head = context.store(found.rack).journal.of_run(found.id), context.store(found.rack).journal.head()
    journal = [{"seq": e.seq, "at": e.at, "kind": e.kind, "step": e.step, "data": dict(e.data)} for e in entries]
    if cx.out.structured:
        document = {**run_row(found), "plan_digest": found.plan_digest, "journal": journal}
        cx.out.document("run", {**document, "journal_head": asdict(head)})
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
    OutputColumn("RUN", "run"),
    OutputColumn("RACK", "rack", wide=True),
    OutputColumn("OUTCOME", "outcome"),
    OutputColumn("STARTED", "started"),
    OutputColumn("SECONDS", "seconds", right=True),
    OutputColumn("TITLE", "title"),
    OutputColumn("BY", "by", wide=True),
)
_JOURNAL_COLUMNS = (
    OutputColumn("AT", "at"),
    OutputColumn("ENTRY", "kind"),
    OutputColumn("STEP", "step"),
    OutputColumn("", "data"),
)


def run_row(run: StoredRun) -> dict[str, Any]:
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


def _clock(at: float) -> str:
    return datetime.fromtimestamp(at).astimezone().strftime("%H:%M:%S.%f")[:-3]


def _brief(data: dict[str, Any]) -> str:
    by = f" (by {data['by']})" if "by" in data else ""
    if "failed" in data:
        return f"failed: {data['failed']}{by}"
    if "proofs" in data:
        silent = data.get("silent", ())
        passed = f", {len(silent)} circuits passed over: a host of theirs does not answer" if silent else ""
        return f"{counted(len(data['proofs']), 'receivers')} proved, {data['kept']} others still sound{passed}"
    plain = {k: v for k, v in data.items() if isinstance(v, str | int | float) and k not in {"do", "title", "done"}}
    return ", ".join(f"{key} {value}" for key, value in plain.items())
