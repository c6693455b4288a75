"""``lumctl runbook export``: print or save a runbook as YAML, JSON, or Markdown for an incident report."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from lumctl.change.refusal_advice import later_runs, past_later_runs
from lumctl.cli.invocation import Invocation
from lumctl.cli.output import OutputFormat, dump_json
from lumctl.cli.verbs import aimed, verb
from lumctl.context import Context
from lumctl.errors import UsageError
from lumctl.files import put
from lumctl.printable import printable
from lumctl.runbook.document import Runbook
from lumctl.runbook.files import find_runbook, is_file
from lumctl.runbook.report import LaterRuns, report
from lumctl.runbook.templates import template_of
from lumctl.runbook.yaml_text import dump, plain
from lumctl.store import Head

MARKDOWN = "md"
_ENDINGS = {".json": "json", ".md": MARKDOWN}


def register(app: typer.Typer) -> None:
    """Add the command to its noun."""
    verb(app, "export", formats=(MARKDOWN,))(export)


def export(
    cx: Invocation,
    runbook: Annotated[str, typer.Argument(metavar="RUNBOOK", help="The id of a run, or the path of a runbook file.")],
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write it to this file, not to standard output.")
    ] = None,
    as_template: Annotated[
        bool, typer.Option("--as-template", help="Export the intent, with parameters, instead of the executed steps.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
) -> None:
    """Print a runbook, to be saved, edited or sent: as YAML, or with -o json or -o md (for an incident report).

    With --out it is written to a file; without -o the file's ending chooses the format (.json, .md, else YAML).

    With ``--as-template`` its steps become intents (swap this, roll that back) with parameters for the rack and the
    components: ``runbook replay FILE --set NAME=VALUE`` plans them again, for another accelerator or another rack.
    """
    with Context(cx.inventory, cx.target) as context:
        found = find_runbook(context, runbook)
        document: dict[str, Any] = plain(found.document)
        if as_template:
            if not isinstance(found, Runbook):
                raise UsageError(f"{runbook} already contains intents")
            document = template_of(found)
        # A file may be from another rack or another time: the head of this journal says nothing about it.
        of_run = not (as_template or is_file(runbook))
        head = context.store(found.rack).journal.head() if of_run else None
        later = _later(context, found.rack, str(document["id"])) if of_run else None
    if cx.out.format is OutputFormat.NAME:
        cx.out.names([str(document.get("id", runbook))])
        return
    text = _text(cx, document, _format(cx, out), head, later)
    if out is None or str(out) == "-":
        cx.out.text(text.rstrip())
        return
    if out.exists() and not force:
        raise UsageError(f"{out} already exists", hint="add --force to overwrite it, or give another file with --out")
    put(out, text, mode=0o600)
    cx.out.narrate(f"written: {out}")


def _format(cx: Invocation, out: Path | None) -> str:
    """The format from ``-o``; else from the file's ending; else YAML."""
    if cx.out.own_format:
        return cx.out.own_format
    if cx.out.structured:
        return cx.out.format.value
    return _ENDINGS.get(out.suffix, "yaml") if out is not None else "yaml"


def with_head(document: dict[str, Any], head: Head | None) -> dict[str, Any]:
    """A runbook as data, with the end of its rack's journal; ``head`` is ``None`` for a file."""
    return document if head is None else {**document, "journal_head": asdict(head)}


def _later(context: Context, rack: str, name: str) -> LaterRuns | None:
    """The later runs that changed the same devices or jobs as a finished run; ``None`` if there are none."""
    run = context.store(rack).runs.get(name)
    later = later_runs(context, run) if run.state == "done" else []
    return LaterRuns(tuple(each.id for each in later), past_later_runs(context, run)) if later else None


def _text(
    cx: Invocation, document: dict[str, Any], format_: str, head: Head | None, later: LaterRuns | None = None
) -> str:
    if format_ == "json":
        return dump_json(with_head(document, head)) + "\n"
    # Its commands are typed elsewhere: they name the inventory.
    return aimed(cx, printable(report(document, head, later), lines=True)) if format_ == MARKDOWN else dump(document)
