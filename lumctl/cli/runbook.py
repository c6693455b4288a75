"""``lumctl runbook``: what was done, as a file that can be read, edited and replayed."""

from typing import Annotated

import typer

from lumctl.cli import runbook_diff, runbook_export, runbook_lint, runbook_replay, runbook_verify
from lumctl.cli.invocation import Invocation
from lumctl.cli.nouns import NOUNS
from lumctl.cli.output import OutputFormat
from lumctl.cli.runbook_export import with_head
from lumctl.cli.swap_show import RUN_COLUMNS, run_row
from lumctl.cli.verbs import noun_app, verb
from lumctl.context import Context
from lumctl.errors import UsageError
from lumctl.inventory.problems import nearest
from lumctl.runbook.files import all_runs, find_runbook, is_file
from lumctl.runbook.yaml_text import dump, plain

app = noun_app(NOUNS["runbook"].help)

KINDS = ("swap", "rollback", "fabric", "set", "adopt", "replay", "ack", "maintain", "policy")


@verb(app, "list")
def list_(
    cx: Invocation,
    kind: Annotated[
        str | None, typer.Option("--kind", metavar="KIND[,KIND...]", help=f"Only these: {', '.join(KINDS)}.")
    ] = None,
) -> None:
    """List runbooks, newest first: of every run, acknowledgement, maintenance window and change of policies."""
    wanted = _kinds(kind) if kind is not None else None
    with Context(cx.inventory, cx.target) as context:
        rows = [run_row(run) for run in all_runs(context) if wanted is None or run.kind in wanted]
    if cx.out.structured:
        cx.out.document("runbooks", {"target": str(cx.target), "runbooks": rows})
    elif cx.out.format is OutputFormat.NAME:
        cx.out.names([row["run"] for row in rows])
    else:
        cx.out.table(RUN_COLUMNS, rows)
        if not rows:
            cx.out.narrate(f"no run {f'of kind {kind} ' if kind else ''}on target {cx.target} yet")


@verb(app, "show")
def show(
    cx: Invocation,
    runbook: Annotated[str, typer.Argument(metavar="RUNBOOK", help="A run's id, or the path of a runbook file.")],
) -> None:
    """Print a runbook as YAML, or with -o json as JSON; that of a run has ``journal_head``, the end of its journal."""
    with Context(cx.inventory, cx.target) as context:
        found = find_runbook(context, runbook)
        document = plain(found.document)
        head = None if is_file(runbook) else context.store(found.rack).journal.head()
    if cx.out.format is OutputFormat.JSON:
        document.pop("schema")
        cx.out.document("runbook", with_head(document, head))
    else:
        cx.out.text(dump(document).rstrip())


runbook_export.register(app)
runbook_lint.register(app)
runbook_diff.register(app)
runbook_replay.register(app)
runbook_verify.register(app)


def _kinds(text: str) -> set[str]:
    words = {word.strip() for word in text.split(",") if word.strip()}
    for word in sorted(words):
        if word not in KINDS:
            near = nearest(word, KINDS)
            hint = f"did you mean {near}?" if near else f"one of: {', '.join(KINDS)}"
            raise UsageError(f"no kind of run {word!r}", hint=hint)
    return words
