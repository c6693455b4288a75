"""``lumctl swap list`` and ``lumctl swap show``: the runs of a rack, and one run with the outcome of each step."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Any

import typer

from lumctl.change import from_document
from lumctl.cli.changes import find_plan, show_plan, tell_unfinished
from lumctl.cli.forgotten_target import tell_if_forgotten
from lumctl.cli.invocation import Invocation
from lumctl.cli.output import OutputColumn, OutputFormat, in_words
from lumctl.cli.unapplied_plans import MOST_SHOWN, show_unapplied, unapplied_plans
from lumctl.cli.verbs import verb
from lumctl.context import Context
from lumctl.printable import counted
from lumctl.runbook.files import all_runs, find_run
from lumctl.store import ACTION_KINDS, StoredRun
from lumctl.time_text import age_text, iso_text, moment_text, moment_with_age, seconds_of


def register(app: typer.Typer) -> None:
    """Add the commands to their noun."""
    verb(app, "list", pages=True)(list_)
    verb(app, "show", pages=True)(show)


def list_(cx: Invocation) -> None:
    """List runs that changed devices, newest first; ``runbook list`` has the others, such as acknowledgements.

    A run whose engine has died is shown as cut, and one whose engine gave up as half-done, even if a full disk
    prevented it from recording that. The commands that finish such a run are printed on stderr.

    Below the runs it lists the newest plans that were never applied, -o json all of them, with the commands to look at
    one and to apply it. A plan is marked stale if the inventory or the placement of its jobs has changed since. A plan
    that was not applied within 30 days is deleted when the next one of its rack is stored.
    """
    with Context(cx.inventory, cx.target) as context:
        runs = [run for run in all_runs(context) if run.kind not in ACTION_KINDS]
        racks = tuple(context.inventory.racks)
        cut = tell_unfinished(cx, context, racks)
        left = tuple(run for rack in racks for run in context.store(rack).runs.left_half_done())
        plans, left_out = unapplied_plans(cx, context, None if cx.out.structured else MOST_SHOWN)
    rows = shown_as_cut([run_row(run) for run in runs], cut, left)
    if cx.out.structured:
        cx.out.document("runs", {"target": str(cx.target), "runs": rows, "plans": plans})
    elif cx.out.format is OutputFormat.NAME:
        cx.out.names([run.id for run in runs])
    else:
        cx.out.table(RUN_COLUMNS, readable_times(rows))
        if not runs:
            cx.out.narrate(f"no run on target {cx.target} yet")
            tell_if_forgotten(cx)
        show_unapplied(cx, plans, left_out, time.time())


def show(cx: Invocation, run: Annotated[str, typer.Argument(metavar="RUN", help="The id of a run or a plan.")]) -> None:
    """Show one run with every step's outcome, or a plan."""
    with Context(cx.inventory, cx.target) as context:
        if run.startswith("plan-"):
            applied = next((each for each in all_runs(context) if each.plan.get("id") == run), None)
            # A plan that was applied at once, such as that of fabric apply, is kept with its run only.
            show_plan(cx, find_plan(context, run) if applied is None else from_document(applied.plan))
            return
        found = find_run(context, run)
        entries, head = context.store(found.rack).journal.of_run(found.id), context.store(found.rack).journal.head()
    journal = [
        {"seq": e.seq, "at": iso_text(e.at), "kind": e.kind, "step": e.step, "data": dict(e.data)} for e in entries
    ]
    if cx.out.structured:
        document = {**run_row(found), "plan_digest": found.plan_digest, "journal": journal}
        cx.out.document("run", {**document, "journal_head": asdict(head)})
        return
    cx.out.text(f"{found.id}  {found.title}")
    began = moment_with_age(found.started_at, time.time())
    took = "" if found.seconds is None else f", took {found.seconds:.2f} s"
    said = f"{found.outcome_line()}, began {began}{took}, by {found.who}, lumctl {found.version}"
    cx.out.text(cx.out.wrapped(said, "  "))
    titles = {step["id"]: step["title"] for step in found.plan["steps"]}
    rows = [
        {
            "at": moment_text(e.at),
            "after": f"{e.at - found.started_at:.2f}",
            "kind": e.kind,
            "step": titles.get(e.step, ""),
            "took": "" if e.seconds is None else f"{e.seconds:.2f} s",
            "data": _brief(dict(e.data)),
        }
        for e in entries
    ]
    cx.out.table(_JOURNAL_COLUMNS, rows)


_ON_OFF = {True: "on", False: "off"}
_DIGEST = 64
"""The length of a plan's digest, in characters; the plan's id has the first few of them."""
RUN_COLUMNS = (
    OutputColumn("RUN", "run"),
    OutputColumn("RACK", "rack", wide=True),
    OutputColumn("OUTCOME", "outcome"),
    OutputColumn("STARTED", "started", gives_way=2),
    OutputColumn("AGE", "age", right=True),
    OutputColumn("SECONDS", "seconds", right=True, gives_way=1),
    OutputColumn("TITLE", "title"),
    OutputColumn("BY", "by", wide=True),
)
_JOURNAL_COLUMNS = (
    OutputColumn("AT", "at", gives_way=1),
    OutputColumn("SECONDS", "after", right=True),
    OutputColumn("ENTRY", "kind"),
    OutputColumn("STEP", "step"),
    OutputColumn("TOOK", "took", right=True),
    OutputColumn("", "data"),
)


def run_row(run: StoredRun) -> dict[str, Any]:
    """A run as a row of a table or of a document."""
    return {
        "run": run.id,
        "kind": run.kind,
        "title": run.title,
        "outcome": run.state,
        "target": run.target,
        "rack": run.rack,
        "by": run.who,
        "started": iso_text(run.started_at),
        "seconds": run.seconds,
        "undone_by": run.undone_by,
    }


def shown_as_cut(
    rows: list[dict[str, Any]], unfinished: tuple[str, ...], left: tuple[str, ...] = ()
) -> list[dict[str, Any]]:
    """Rows of runs, with outcome ``cut`` instead of ``running`` for those whose engine has died.

    The runs ``left`` get ``half-done``: their engine gave up but could not record that.
    """
    shown = dict.fromkeys(unfinished, "cut") | dict.fromkeys(left, "half-done")
    return [row | {"outcome": shown.get(row["run"], "running")} if row["outcome"] == "running" else row for row in rows]


def readable_times(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows of runs with their times in the format of tables."""
    now = time.time()
    times = ((row, seconds_of(row["started"])) for row in rows)
    return [
        {
            **row,
            "started": moment_text(at),
            "age": age_text(now - at),
            "seconds": "" if row["seconds"] is None else f"{row['seconds']:.2f}",
        }
        for row, at in times
    ]


_SHOWN_ELSEWHERE = frozenset({"do", "title", "done", "seconds", "inventory_digest"})
"""Keys of a journal entry that have their own column, or that follow from the kind of entry."""


def _brief(data: dict[str, Any]) -> str:
    by = f" (by {data['by']})" if "by" in data else ""
    if "failed" in data:
        return f"failed: {data['failed']}{by}"
    if "proofs" in data:
        silent = data.get("silent", ())
        passed = f", {len(silent)} circuits skipped: one of their hosts does not answer" if silent else ""
        return f"{counted(len(data['proofs']), 'receivers')} proved, {data['kept']} others still work{passed}"
    plain = {k: v for k, v in data.items() if isinstance(v, str | int | float) and k not in _SHOWN_ELSEWHERE}
    plain = {k: _ON_OFF[v] if k in {"is", "was"} and isinstance(v, bool) else v for k, v in plain.items()}
    # A digest fills the table's width, and the plan's id says the same.
    if isinstance(digest := plain.get("plan"), str) and len(digest) == _DIGEST:
        plain["plan"] = f"plan-{digest[:8]}"
    return in_words(plain) if plain else ""
